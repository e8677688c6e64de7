/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replies of servers, kept for as long as their records say, under ceilings of
 * entries and bytes; the least recently used go first. Nothing is allocated
 * before the first reply. The time is an argument.
 */
#ifndef CULVERT_SILO_DNS_CACHE_H
#define CULVERT_SILO_DNS_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "dns/message.h"

/* Ceilings: upstream keeps 8,192 records for a pod; a silo's share of the node's memory allows fewer. */
#define DNS_CACHE_ENTRIES 512
#define DNS_CACHE_BYTES (256u << 10)
/* Longest life of an entry, seconds: a day, as upstream's resolver. */
#define DNS_CACHE_TTL_MAX 86400

/* The cache; embed it. Private. */
struct dns_cache {
	struct map entries;
	struct list recent; /* most recently used first */
	size_t bytes;
};

/* A reply in the cache, borrowed until the cache changes. */
struct dns_cached {
	const uint8_t *data;
	size_t len;
	uint32_t age; /* seconds since it came */
};

/* Prepares an empty cache. */
void dns_cache_init(struct dns_cache *cache);

/* Frees all. */
void dns_cache_done(struct dns_cache *cache);

/* Looks a question up: 0, or -ENOENT (never known, or expired). */
int dns_cache_get(struct dns_cache *cache, const struct dns_question *question, uint64_t now_ms,
        struct dns_cached *ret_cached);

/* Keeps a copy of a reply for ttl seconds; nothing happens when ttl is 0 or memory is short. */
void dns_cache_put(struct dns_cache *cache, const struct dns_question *question, const uint8_t *data,
        size_t len, uint32_t ttl, uint64_t now_ms);

#endif
