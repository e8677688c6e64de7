/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The schema of the mesh file: one YAML element becomes one plain record
 * (reference control.md 9). Knows neither files nor the store's insides.
 */
#ifndef CULVERT_BROKER_LOCAL_RECORD_H
#define CULVERT_BROKER_LOCAL_RECORD_H

#include "base/arena.h"
#include "base/err.h"
#include "mesh/store.h"
#include "yaml/yaml.h"

/* A service with the endpoints that it names itself. */
struct local_service {
	struct service service;
	const struct service_endpoint *endpoints;
	size_t endpoint_cnt;
};

/*
 * Each fills *ret from an element; strings may borrow the document, the rest
 * is in `arena`. 0, -EINVAL or -ENOMEM with text.
 */
int local_workload(
        const struct yaml_node *node, struct arena *arena, struct workload *ret_workload, struct err *err);
int local_service(const struct yaml_node *node, struct arena *arena, struct local_service *ret_service,
        struct err *err);
int local_policy(
        const struct yaml_node *node, struct arena *arena, struct policy *ret_policy, struct err *err);

#endif
