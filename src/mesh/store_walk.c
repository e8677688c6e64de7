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

int store_each_workload(const struct store *store, store_workload_fn *fn, void *ctx)
{
	int rc;
	void **list = sorted(&store->workloads, by_uid, &rc);
	bool go_on = true;

	for (size_t i = 0; list && rc == 0 && go_on && i < map_cnt(&store->workloads); i++) {
		struct workload w;
		struct arena *arena = arena_new(SIZE_MAX); /* bounded by the packed record */
		rc = arena ? pw_unpack(store, list[i], arena, PW_FULL, NULL, &w) : -ENOMEM;
		if (rc == 0)
			go_on = fn(ctx, &w);
		arena_unref(arena);
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
