/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks over the store in a fixed order, one unpacked record at a time, for
 * dumps. Reads only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mesh/store_int.h"

/* All items of a map, sorted; caller frees with mem_free. NULL and -ENOMEM, or NULL and 0 when empty. */
static void **sorted(const struct map *map, int (*cmp)(const void *, const void *), int *ret_rc)
{
	void **list = NULL;
	size_t cursor = 0, n = 0;

	*ret_rc = 0;
	if (map_cnt(map) == 0)
		return NULL;
	list = mem_zalloc(map_cnt(map), sizeof(*list));
	if (!list) {
		*ret_rc = -ENOMEM;
		return NULL;
	}
	while (n < map_cnt(map))
		list[n++] = map_next(map, &cursor);
	qsort(list, n, sizeof(*list), cmp);
	return list;
}

static int by_uid(const void *a, const void *b)
{
	const struct pw *const *x = a, *const *y = b;
	return strcmp((*x)->uid, (*y)->uid);
}

static int show_workload(
        const struct store *store, const struct pw *pw, store_workload_fn *fn, void *ctx, bool *ret_go_on)
{
	struct workload w;
	struct arena *arena = arena_new(SIZE_MAX); /* bounded by the packed record */
	int rc = arena ? pw_unpack(store, pw, arena, PW_FULL, NULL, &w) : -ENOMEM;
	if (rc == 0)
		*ret_go_on = fn(ctx, &w);
	arena_unref(arena);
	return rc;
}

int store_each_workload(const struct store *store, store_workload_fn *fn, void *ctx)
{
	int rc;
	void **list = sorted(&store->workloads, by_uid, &rc);
	bool go_on = true;

	for (size_t i = 0; list && rc == 0 && go_on && i < map_cnt(&store->workloads); i++) {
		rc = show_workload(store, list[i], fn, ctx, &go_on);
	}
	mem_free(list);
	return rc;
}

static int by_key(const void *a, const void *b)
{
	const struct svc_node *const *x = a, *const *y = b;
	int order = strcmp((*x)->ns, (*y)->ns);
	return order ? order : strcmp((*x)->hostname, (*y)->hostname);
}

static int by_workload(const void *a, const void *b)
{
	const struct service_endpoint *x = a, *y = b;
	return strcmp(x->workload_uid, y->workload_uid);
}

/* The present endpoints of a service in an array (caller frees). */
static int endpoints_of(const struct store *store, const struct svc_node *svc,
        struct service_endpoint **ret_list, size_t *ret_cnt)
{
	size_t cap = svc->extra_cnt, n = 0;

	list_for_each(node, &svc->eps) cap++;
	struct service_endpoint *list = mem_zalloc(cap + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	list_for_each(node, &svc->eps)
	{
		const struct pw_ep *ep = list_entry(node, struct pw_ep, in_svc);
		if (ep->is_dropped)
			continue;
		list[n++] = (struct service_endpoint){
		        .workload_uid = ep->owner->uid,
		        .ports = pw_ports(ep->owner, ep),
		        .port_cnt = ep->port_cnt,
		        .status = ep->owner->is_unhealthy ? WORKLOAD_UNHEALTHY : WORKLOAD_HEALTHY,
		};
	}
	for (size_t i = 0; i < svc->extra_cnt; i++) {
		if (view_extra_workload(store, svc, svc->extras[i].record))
			list[n++] = *svc->extras[i].record;
	}
	qsort(list, n, sizeof(*list), by_workload);
	*ret_list = list;
	*ret_cnt = n;
	return 0;
}

int store_each_service(const struct store *store, store_service_fn *fn, void *ctx)
{
	int rc;
	void **list = sorted(&store->services, by_key, &rc);
	bool go_on = true;

	for (size_t i = 0; list && rc == 0 && go_on && i < map_cnt(&store->services); i++) {
		const struct svc_node *svc = list[i];
		struct service_endpoint *endpoints;
		size_t cnt;
		if (!svc->record)
			continue;
		rc = endpoints_of(store, svc, &endpoints, &cnt);
		if (rc < 0)
			break;
		go_on = fn(ctx, svc->record, endpoints, cnt);
		mem_free(endpoints);
	}
	mem_free(list);
	return rc;
}

/* --- walks that pause ---------------------------------------------------- */

struct store_keys {
	enum store_kind kind;
	bool has_origin;
	size_t cnt;
	char **keys; /* each a block of its own strings, one or two, terminated; in `arena` */
	struct arena *arena;
};

static int by_hostname(const void *a, const void *b)
{
	const struct svc_node *const *x = a, *const *y = b;
	int order = strcmp((*x)->hostname, (*y)->hostname);
	return order ? order : strcmp((*x)->ns, (*y)->ns);
}

/* As the texts "namespace/hostname" compare. */
static int by_full_name(const void *a, const void *b)
{
	const struct svc_node *const *x = a, *const *y = b;
	const char *p = (*x)->ns, *q = (*y)->ns;
	while (*p && *p == *q)
		p++, q++;
	int c = *p ? (unsigned char)*p : '/';
	int d = *q ? (unsigned char)*q : '/';
	if (c != d)
		return c - d;
	return *p || *q ? *p ? 1 : -1 : strcmp((*x)->hostname, (*y)->hostname);
}

static int by_policy_key(const void *a, const void *b)
{
	const struct policy_node *const *x = a, *const *y = b;
	return strcmp((*x)->key, (*y)->key);
}

/* How a kind is kept and ordered. */
static const struct map *map_of(
        const struct store *store, enum store_kind kind, int (**ret_cmp)(const void *, const void *))
{
	switch (kind) {
	case STORE_WORKLOADS:
		*ret_cmp = by_uid;
		return &store->workloads;
	case STORE_SERVICES:
		*ret_cmp = by_hostname;
		return &store->services;
	case STORE_STAGED:
		*ret_cmp = by_full_name;
		return &store->services;
	default:
		*ret_cmp = by_policy_key;
		return &store->policies;
	}
}

/* The key of an item as the walk keeps it, or NULL without error (*ret_is_wanted false) when it is left out.
 */
static char *copy_key(struct arena *arena, enum store_kind kind, const enum store_origin *origin,
        const void *item, bool *ret_is_wanted)
{
	const struct pw *pw = item;
	const struct svc_node *svc = item;
	const struct policy_node *policy = item;
	switch (kind) {
	case STORE_WORKLOADS:
		*ret_is_wanted = !origin || pw->origin == *origin;
		return *ret_is_wanted ? arena_strdup(arena, pw->uid) : NULL;
	case STORE_POLICIES:
		*ret_is_wanted = !origin || policy->origin == *origin;
		return *ret_is_wanted ? arena_strdup(arena, policy->key) : NULL;
	default:
		*ret_is_wanted = kind == STORE_STAGED ? !svc->record
		                                      : svc->record && (!origin || svc->origin == *origin);
		/* Namespace, zero, host name; the last zero comes with the copy. */
		return *ret_is_wanted ? arena_strndup(arena, svc->key, svc->key_len) : NULL;
	}
}

int store_keys_new(const struct store *store, enum store_kind kind, const enum store_origin *origin,
        struct store_keys **ret_keys)
{
	int (*cmp)(const void *, const void *);
	const struct map *map = map_of(store, kind, &cmp);
	int rc;
	void **list = sorted(map, cmp, &rc);
	struct store_keys *keys = mem_zalloc(1, sizeof(*keys));

	if (rc == 0 && keys) {
		keys->kind = kind;
		keys->has_origin = origin != NULL;
		keys->arena = arena_new(SIZE_MAX); /* bounded by the store's own ceilings */
		keys->keys = mem_zalloc(map_cnt(map) + 1, sizeof(*keys->keys));
	}
	if (rc == 0 && (!keys || !keys->arena || !keys->keys))
		rc = -ENOMEM;
	for (size_t i = 0; rc == 0 && list && i < map_cnt(map); i++) {
		bool is_wanted = false;
		char *key = copy_key(keys->arena, kind, origin, list[i], &is_wanted);
		if (key)
			keys->keys[keys->cnt++] = key;
		else if (is_wanted)
			rc = -ENOMEM;
	}
	mem_free(list);
	if (rc < 0) {
		store_keys_free(keys);
		return rc;
	}
	*ret_keys = keys;
	return 0;
}

void store_keys_free(struct store_keys *keys)
{
	if (!keys)
		return;
	arena_unref(keys->arena);
	mem_free(keys->keys);
	mem_free(keys);
}

size_t store_keys_cnt(const struct store_keys *keys)
{
	return keys->cnt;
}

int store_show_workload(
        const struct store *store, const struct store_keys *keys, size_t i, store_workload_fn *fn, void *ctx)
{
	const struct pw *pw = map_get_str(&store->workloads, keys->keys[i]);
	bool go_on;
	return pw ? show_workload(store, pw, fn, ctx, &go_on) : -ENOENT;
}

/* The endpoints that the record itself names, by uid, in an array (caller frees). */
static int endpoints_given(const struct svc_node *svc, struct service_endpoint **ret_list, size_t *ret_cnt)
{
	size_t cnt = svc->endpoint_cnt;
	struct service_endpoint *list = mem_zalloc(cnt ? cnt : 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	if (cnt)
		memcpy(list, svc->endpoints, cnt * sizeof(*list));
	qsort(list, cnt, sizeof(*list), by_workload);
	*ret_list = list;
	*ret_cnt = cnt;
	return 0;
}

int store_show_service(
        const struct store *store, const struct store_keys *keys, size_t i, store_service_fn *fn, void *ctx)
{
	const char *ns = keys->keys[i];
	const char *hostname = ns + strlen(ns) + 1;
	const struct svc_node *svc = svc_find(store, ns, hostname);
	struct service_endpoint *endpoints;
	size_t cnt;
	if (!svc || (keys->kind == STORE_SERVICES) != (svc->record != NULL))
		return -ENOENT;
	int rc = keys->has_origin ? endpoints_given(svc, &endpoints, &cnt)
	                          : endpoints_of(store, svc, &endpoints, &cnt);
	if (rc < 0)
		return rc;
	const struct service staged = {.ns = ns, .hostname = hostname, .name = ""};
	fn(ctx, svc->record ? svc->record : &staged, endpoints, cnt);
	mem_free(endpoints);
	return 0;
}

int store_show_policy(
        const struct store *store, const struct store_keys *keys, size_t i, store_policy_fn *fn, void *ctx)
{
	const struct policy_node *node = map_get_str(&store->policies, keys->keys[i]);
	if (!node)
		return -ENOENT;
	fn(ctx, node->key, node->record);
	return 0;
}
