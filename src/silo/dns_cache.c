/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies by question; see dns_cache.h. */
#include "silo/dns_cache.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"

/* Type and name. */
#define KEY_MAX (2 + DNS_NAME_MAX)

struct entry {
	struct list recent;
	uint64_t born_ms;
	uint64_t dies_ms;
	size_t len; /* of the reply */
	size_t key_len;
	uint8_t bytes[]; /* key, reply */
};

static struct map_key entry_key(const void *item)
{
	const struct entry *entry = item;
	return (struct map_key){.p = entry->bytes, .len = entry->key_len};
}

/* Length bytes are below 'A' and stay. */
static size_t make_key(const struct dns_question *question, uint8_t key[KEY_MAX])
{
	key[0] = (uint8_t)(question->type >> 8);
	key[1] = (uint8_t)question->type;
	for (size_t i = 0; i < question->name_len; i++)
		key[2 + i] = (uint8_t)tolower(question->name[i]);
	return 2u + question->name_len;
}

static size_t cost(const struct entry *entry)
{
	return sizeof(*entry) + entry->key_len + entry->len;
}

void dns_cache_init(struct dns_cache *cache)
{
	map_init(&cache->entries, DNS_CACHE_ENTRIES + 1, entry_key);
	list_init(&cache->recent);
	cache->bytes = 0;
}

static void drop(struct dns_cache *cache, struct entry *entry)
{
	map_del(&cache->entries, entry->bytes, entry->key_len);
	list_del(&entry->recent);
	cache->bytes -= cost(entry);
	mem_free(entry);
}

void dns_cache_done(struct dns_cache *cache)
{
	while (!list_empty(&cache->recent))
		drop(cache, list_entry(cache->recent.next, struct entry, recent));
	map_done(&cache->entries);
}

int dns_cache_get(struct dns_cache *cache, const struct dns_question *question, uint64_t now_ms,
        struct dns_cached *ret_cached)
{
	uint8_t key[KEY_MAX];
	struct entry *entry = map_get(&cache->entries, key, make_key(question, key));
	if (!entry)
		return -ENOENT;
	if (entry->dies_ms <= now_ms) {
		drop(cache, entry);
		return -ENOENT;
	}
	list_del(&entry->recent);
	list_add(&cache->recent, &entry->recent);
	ret_cached->data = entry->bytes + entry->key_len;
	ret_cached->len = entry->len;
	ret_cached->age = (uint32_t)((now_ms - entry->born_ms) / 1000);
	return 0;
}

void dns_cache_put(struct dns_cache *cache, const struct dns_question *question, const uint8_t *data,
        size_t len, uint32_t ttl, uint64_t now_ms)
{
	uint8_t key[KEY_MAX];
	size_t key_len = make_key(question, key);
	struct entry *old = map_get(&cache->entries, key, key_len);
	if (old)
		drop(cache, old);
	struct entry *entry = ttl ? mem_alloc(sizeof(*entry) + key_len + len) : NULL;
	if (!entry)
		return;
	if (ttl > DNS_CACHE_TTL_MAX)
		ttl = DNS_CACHE_TTL_MAX;
	*entry = (struct entry){
	        .born_ms = now_ms, .dies_ms = now_ms + ttl * 1000ull, .len = len, .key_len = key_len};
	memcpy(entry->bytes, key, key_len);
	memcpy(entry->bytes + key_len, data, len);
	list_init(&entry->recent);
	if (map_put(&cache->entries, entry, NULL) < 0) {
		mem_free(entry);
		return;
	}
	list_add(&cache->recent, &entry->recent);
	cache->bytes += cost(entry);
	while (map_cnt(&cache->entries) > DNS_CACHE_ENTRIES || cache->bytes > DNS_CACHE_BYTES)
		drop(cache, list_entry(cache->recent.prev, struct entry, recent));
}
