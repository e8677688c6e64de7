/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Views and their keys. A view lives inside its own arena, whose reference
 * count is the view's; it knows neither store nor cache.
 */
#include "mesh/view.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "culvert/limits.h"

struct view_key view_key_address(const char *network, const struct ip *ip)
{
	return (struct view_key){
	        .kind = VIEW_ADDRESS, .network = network, .ip = *ip, .ns = "", .hostname = ""};
}

struct view_key view_key_host(const char *ns, const char *hostname)
{
	return (struct view_key){.kind = VIEW_HOST, .network = "", .ns = ns, .hostname = hostname};
}

struct view_key view_key_name(const char *name)
{
	return (struct view_key){.kind = VIEW_NAME, .network = "", .ns = "", .hostname = name};
}

int view_key_copy(const struct view_key *key, struct view_key *ret_key, char **ret_block)
{
	size_t network = strlen(key->network) + 1, ns = strlen(key->ns) + 1, host = strlen(key->hostname) + 1;
	char *block = mem_alloc(network + ns + host);
	if (!block)
		return -ENOMEM;
	*ret_block = block;
	*ret_key = *key;
	ret_key->network = memcpy(block, key->network, network);
	ret_key->ns = memcpy(block + network, key->ns, ns);
	ret_key->hostname = memcpy(block + network + ns, key->hostname, host);
	return 0;
}

bool view_key_eq(const struct view_key *a, const struct view_key *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind != VIEW_ADDRESS)
		return strcmp(a->ns, b->ns) == 0 && strcmp(a->hostname, b->hostname) == 0;
	return a->unfiltered == b->unfiltered && ip_eq(&a->ip, &b->ip) && strcmp(a->network, b->network) == 0;
}

int view_key_bytes(const struct view_key *key, void *dst, size_t cap)
{
	uint8_t *at = dst;
	const char *first = key->kind != VIEW_ADDRESS ? key->ns : key->network;
	const void *second =
	        key->kind != VIEW_ADDRESS ? (const void *)key->hostname : (const void *)key->ip.b;
	size_t first_len = strlen(first) + 1; /* its terminator keeps the halves apart */
	size_t second_len = key->kind != VIEW_ADDRESS ? strlen(key->hostname) : sizeof(key->ip.b);

	if (cap > VIEW_KEY_BYTES_MAX)
		cap = VIEW_KEY_BYTES_MAX;
	if (cap < 3 || first_len > cap - 3 || second_len > cap - 3 - first_len)
		return -ENAMETOOLONG;
	*at++ = (uint8_t)key->kind;
	*at++ = key->kind == VIEW_ADDRESS && key->unfiltered;
	*at++ = key->kind == VIEW_ADDRESS ? key->ip.family : 0;
	memcpy(at, first, first_len);
	memcpy(at + first_len, second, second_len);
	return (int)(3 + first_len + second_len);
}

int view_new(struct arena *arena, const struct view_key *key, uint64_t generation,
        const struct workload *workload, const struct service *service, const struct endpoint *endpoints,
        size_t endpoint_cnt, struct view **ret_view)
{
	if (endpoint_cnt > LIMIT_VIEW_ENDPOINTS)
		return ERR_TOO_MANY;
	struct view *view = arena_zalloc(arena, 1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	view->key = *key;
	view->key.network = arena_strdup(arena, key->network);
	view->key.ns = arena_strdup(arena, key->ns);
	view->key.hostname = arena_strdup(arena, key->hostname);
	view->endpoints = endpoint_cnt ? arena_alloc(arena, endpoint_cnt * sizeof(*endpoints)) : NULL;
	if (!view->key.network || !view->key.ns || !view->key.hostname || (endpoint_cnt && !view->endpoints))
		return -ENOMEM;
	if (endpoint_cnt)
		memcpy((void *)(uintptr_t)view->endpoints, endpoints, endpoint_cnt * sizeof(*endpoints));
	view->arena = arena;
	view->known = workload || service;
	view->generation = generation;
	view->workload = workload;
	view->service = service;
	view->endpoint_cnt = endpoint_cnt;
	*ret_view = view;
	return 0;
}

struct view *view_ref(struct view *view)
{
	if (view)
		arena_ref(view->arena);
	return view;
}

void view_unref(struct view *view)
{
	if (view)
		arena_unref(view->arena);
}
