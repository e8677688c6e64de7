/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deep copies of services and policies, and their equality. Workloads, of
 * which there are many, are packed instead: see pack.h.
 */
#ifndef CULVERT_MESH_RECORD_H
#define CULVERT_MESH_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "culvert/records.h"
#include "mesh/store.h"

/* Copies a service with all that hangs from it into `arena`. 0 or -ENOMEM (also at the arena's ceiling). */
int record_copy_service(
        struct arena *arena, const struct service *service, const struct service **ret_service);

/* The same for a policy. */
int record_copy_policy(struct arena *arena, const struct policy *policy, const struct policy **ret_policy);

/* The same for endpoints that a service record names; cnt 0 gives NULL. */
int record_copy_endpoints(struct arena *arena, const struct service_endpoint *endpoints, size_t cnt,
        const struct service_endpoint **ret_endpoints);

/* Whether two records say the same, order of lists included. */
bool record_eq_service(const struct service *a, const struct service *b);
bool record_eq_policy(const struct policy *a, const struct policy *b);
bool record_eq_endpoints(
        const struct service_endpoint *a, size_t a_cnt, const struct service_endpoint *b, size_t b_cnt);

#endif
