/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of records as the control plane has them, so that nobody keeps them a
 * second time. Reads only.
 */
#include <string.h>

#include "mesh/store_int.h"

static bool tell_service(const struct svc_node *svc, store_name_fn *fn, void *ctx)
{
	/* Namespace and host name lie side by side, a zero between them. */
	char name[SVC_KEY_MAX + 1];

	memcpy(name, svc->key, svc->key_len);
	name[strlen(svc->ns)] = '/';
	name[svc->key_len] = 0;
	return fn(ctx, name);
}

static void each_address(const struct store *store, store_name_fn *fn, void *ctx)
{
	const struct svc_node *svc;
	const struct pw *pw;
	size_t cursor = 0;

	while ((pw = map_next(&store->workloads, &cursor))) {
		if (!fn(ctx, pw->uid))
			return;
	}
	cursor = 0;
	while ((svc = map_next(&store->services, &cursor))) {
		if (svc->record && !tell_service(svc, fn, ctx))
			return;
	}
}

void store_each_name(const struct store *store, enum store_resource resource, store_name_fn *fn, void *ctx)
{
	const struct policy_node *policy;
	size_t cursor = 0;

	if (resource == STORE_RESOURCE_ADDRESS) {
		each_address(store, fn, ctx);
		return;
	}
	while ((policy = map_next(&store->policies, &cursor))) {
		if (!fn(ctx, policy->key))
			return;
	}
}
