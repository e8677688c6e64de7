/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workloads, services and policies as JSON in upstream's schema (reference control.md 11.5), keys in
 * alphabetical order. */
#ifndef CULVERT_BROKER_DUMP_MESH_H
#define CULVERT_BROKER_DUMP_MESH_H

#include "base/json.h"
#include "mesh/store.h"

/* Writes the three lists, each a key and an array. 0 or -ENOMEM. */
int dump_policies(struct json *json, const struct store *store);
int dump_services(struct json *json, const struct store *store);
int dump_workloads(struct json *json, const struct store *store);

#endif
