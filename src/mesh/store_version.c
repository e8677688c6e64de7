/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Versions of records, for whoever has to name them to the control plane
 * again. Knows neither when they are asked for nor what they mean.
 */
#include <errno.h>
#include <string.h>

#include "mesh/store_int.h"

/* Where the version of a resource is kept, or NULL. */
static uint32_t *slot_of(struct store *store, enum store_resource resource, const char *name)
{
	if (resource == STORE_RESOURCE_POLICY) {
		struct policy_node *policy = map_get_str(&store->policies, name);
		return policy ? &policy->version : NULL;
	}
	struct pw *pw = map_get_str(&store->workloads, name);
	if (pw)
		return &pw->version;
	struct svc_node *svc = svc_find_name(store, name);
	return svc && svc->record ? &svc->version : NULL;
}

int store_set_version(
        struct store *store, enum store_resource resource, const char *name, const char *version)
{
	uint32_t *slot = slot_of(store, resource, name);
	uint32_t id;

	if (!slot)
		return -ENOENT;
	int rc = intern_get(&store->names, version, &id);
	if (rc < 0)
		return rc;
	intern_put(&store->names, *slot);
	*slot = id;
	return 0;
}

static bool tell_service(
        const struct store *store, const struct svc_node *svc, store_version_fn *fn, void *ctx)
{
	/* Namespace and host name lie side by side, a zero between them. */
	char name[SVC_KEY_MAX + 1];
	size_t ns_len = strlen(svc->ns);

	memcpy(name, svc->key, svc->key_len);
	name[ns_len] = '/';
	name[svc->key_len] = 0;
	return fn(ctx, name, intern_text(&store->names, svc->version));
}

static void each_address(const struct store *store, store_version_fn *fn, void *ctx)
{
	const struct svc_node *svc;
	const struct pw *pw;
	size_t cursor = 0;

	while ((pw = map_next(&store->workloads, &cursor))) {
		if (pw->version && !fn(ctx, pw->uid, intern_text(&store->names, pw->version)))
			return;
	}
	cursor = 0;
	while ((svc = map_next(&store->services, &cursor))) {
		if (svc->version && !tell_service(store, svc, fn, ctx))
			return;
	}
}

void store_each_version(
        const struct store *store, enum store_resource resource, store_version_fn *fn, void *ctx)
{
	const struct policy_node *policy;
	size_t cursor = 0;

	if (resource == STORE_RESOURCE_ADDRESS) {
		each_address(store, fn, ctx);
		return;
	}
	while ((policy = map_next(&store->policies, &cursor))) {
		if (policy->version && !fn(ctx, policy->key, intern_text(&store->names, policy->version)))
			return;
	}
}
