/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Views by key with least-recently-used eviction; see cache.h. */
#include "silo/cache.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "silo/metrics.h"
#include "silo/resolver.h"

/* One key and its fetch. */
struct entry {
	struct list recent;  /* in cache.recent */
	struct fetch fetch;  /* of struct view */
	struct view_key key; /* strings point into bytes' tail */
	size_t key_len;      /* bytes used in key_bytes */
	uint8_t *key_bytes;  /* map key */
	char *names;         /* copies of the key's strings */
	bool is_asked;       /* the present broker has been asked */
};

static void view_kind_ref(void *value)
{
	view_ref(value);
}

static void view_kind_unref(void *value)
{
	view_unref(value);
}

static const struct fetch_kind VIEW_KIND = {.ref = view_kind_ref, .unref = view_kind_unref};

static struct map_key entry_key(const void *item)
{
	const struct entry *entry = item;
	return (struct map_key){.p = entry->key_bytes, .len = entry->key_len};
}

void cache_init(struct cache *cache, struct io *io, size_t max, const struct cache_ops *ops, void *ctx)
{
	*cache = (struct cache){.io = io, .ops = ops, .ctx = ctx, .max = max};
	map_init(&cache->entries, max, entry_key);
	list_init(&cache->recent);
}

/* Frees an entry that is no longer in the map. */
static void entry_free(struct entry *entry)
{
	list_del(&entry->recent);
	fetch_done(&entry->fetch);
	mem_free(entry->names);
	mem_free(entry->key_bytes);
	mem_free(entry);
}

void cache_done(struct cache *cache)
{
	struct entry *entry;
	while ((entry = map_pop(&cache->entries)))
		entry_free(entry);
	map_done(&cache->entries);
}

/* Makes room for one more entry; false when every entry is awaited. */
static bool make_room(struct cache *cache)
{
	if (map_cnt(&cache->entries) < cache->max)
		return true;
	for (struct list *it = cache->recent.prev; it != &cache->recent; it = it->prev) {
		struct entry *entry = list_entry(it, struct entry, recent);
		if (fetch_is_busy(&entry->fetch))
			continue;
		if (entry->is_asked)
			cache->ops->evict(cache->ctx, &entry->key);
		map_del(&cache->entries, entry->key_bytes, entry->key_len);
		entry_free(entry);
		return true;
	}
	return false;
}

static int entry_new(struct cache *cache, const struct view_key *key, const uint8_t *bytes, size_t len,
        struct entry **ret_entry)
{
	if (!make_room(cache))
		return -ENOSPC;
	struct entry *entry = mem_zalloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	list_init(&entry->recent);
	fetch_init(&entry->fetch, cache->io, &VIEW_KIND);
	entry->fetch.observer = cache->observer;
	int r = view_key_copy(key, &entry->key, &entry->names);
	if (r == 0 && !(entry->key_bytes = mem_alloc(len)))
		r = -ENOMEM;
	if (r == 0) {
		memcpy(entry->key_bytes, bytes, len);
		entry->key_len = len;
		r = map_put(&cache->entries, entry, NULL);
	}
	if (r < 0) {
		entry_free(entry);
		return r;
	}
	list_add(&cache->recent, &entry->recent);
	entry->is_asked = cache->ops->ask(cache->ctx, &entry->key);
	*ret_entry = entry;
	return 0;
}

/* The entry of a key, or NULL. */
static struct entry *find(struct cache *cache, const struct view_key *key)
{
	uint8_t bytes[VIEW_KEY_BYTES_MAX];
	int len = view_key_bytes(key, bytes, sizeof(bytes));
	return len < 0 ? NULL : map_get(&cache->entries, bytes, (size_t)len);
}

int cache_view(
        struct cache *cache, const struct view_key *key, struct view **ret_view, struct fetch **ret_fetch)
{
	uint8_t bytes[VIEW_KEY_BYTES_MAX];
	int len = view_key_bytes(key, bytes, sizeof(bytes));
	if (len < 0)
		return len;
	struct entry *entry = map_get(&cache->entries, bytes, (size_t)len);
	if (!entry) {
		int r = entry_new(cache, key, bytes, (size_t)len, &entry);
		if (r < 0)
			return r;
	} else {
		list_del(&entry->recent);
		list_add(&cache->recent, &entry->recent);
	}
	struct view *view = fetch_hold(&entry->fetch);
	if (!view) {
		*ret_fetch = &entry->fetch;
		return -EAGAIN;
	}
	*ret_view = view;
	return 0;
}

void cache_answer(struct cache *cache, struct view *view)
{
	struct entry *entry = find(cache, &view->key);
	if (!entry) {
		view_unref(view);
		return;
	}
	fetch_set(&entry->fetch, view);
}

void cache_fail(struct cache *cache, const struct view_key *key, int code)
{
	struct entry *entry = find(cache, key);
	if (entry)
		fetch_fail(&entry->fetch, code, NULL);
}

void cache_forget_asks(struct cache *cache)
{
	list_for_each(it, &cache->recent) list_entry(it, struct entry, recent)->is_asked = false;
}

void cache_ask_pending(struct cache *cache)
{
	list_for_each(it, &cache->recent)
	{
		struct entry *entry = list_entry(it, struct entry, recent);
		if (entry->is_asked)
			continue;
		if (!cache->ops->ask(cache->ctx, &entry->key))
			return;
		entry->is_asked = true;
	}
}

void cache_each(const struct cache *cache,
        void (*each)(void *ctx, const struct view_key *key, const struct fetch *fetch), void *ctx)
{
	list_for_each(it, &cache->recent)
	{
		const struct entry *entry = list_entry(it, struct entry, recent);
		each(ctx, &entry->key, &entry->fetch);
	}
}

size_t cache_cnt(const struct cache *cache)
{
	return map_cnt(&cache->entries);
}

static int source_view(void *ctx, const struct view_key *key, struct view **ret_view)
{
	struct cache_source *source = ctx;
	return cache_view(source->cache, key, ret_view, &source->missing);
}

static int source_resolve(void *ctx, const char *hostname, struct ip *ret_ips, size_t max, size_t *ret_cnt)
{
	struct cache_source *source = ctx;
	if (!source->resolver)
		return -EHOSTUNREACH;
	int r = resolver_get(source->resolver, hostname, ret_ips, max, ret_cnt, &source->missing);
	/* While it is awaited the routing will ask again. */
	if (r != -EAGAIN)
		metrics_on_demand_dns(source->resolver->silo, hostname);
	return r;
}

void cache_source_init(struct cache_source *source, struct cache *cache)
{
	*source = (struct cache_source){
	        .source = {.ctx = source, .view = source_view, .resolve = source_resolve}, .cache = cache};
}
