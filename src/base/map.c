/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open addressing with linear probing and backward-shift deletion: no
 * tombstones, so a table that lives for months does not degrade. Items and
 * 32-bit hashes share one block.
 */
#include "base/map.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

#define MAP_MIN 8

struct map_key map_key_str(const char *s)
{
	return (struct map_key){.p = s, .len = strlen(s)};
}

void map_init(struct map *map, size_t max, struct map_key (*key_of)(const void *item))
{
	*map = (struct map){.max = max, .key_of = key_of, .seed = hash_seed_random()};
}

void map_done(struct map *map)
{
	mem_free(map->items);
	map->items = NULL;
	map->hashes = NULL;
	map->cap = 0;
	map->cnt = 0;
}

/* Slot of the key, or the free slot where it would go. cap must not be 0. */
static size_t find(const struct map *map, const void *key, size_t len, uint32_t hash)
{
	size_t i = hash & (map->cap - 1);
	while (map->items[i]) {
		if (map->hashes[i] == hash) {
			struct map_key k = map->key_of(map->items[i]);
			if (k.len == len && (len == 0 || memcmp(k.p, key, len) == 0))
				return i;
		}
		i = (i + 1) & (map->cap - 1);
	}
	return i;
}

static uint32_t hash_of(const struct map *map, const void *key, size_t len)
{
	return (uint32_t)hash_bytes(&map->seed, key, len);
}

static int resize(struct map *map, size_t cap)
{
	size_t bytes;
	if (__builtin_mul_overflow(cap, sizeof(void *) + sizeof(uint32_t), &bytes))
		return -ENOMEM;
	void **items = mem_zalloc(1, bytes);
	if (!items)
		return -ENOMEM;
	uint32_t *hashes = (uint32_t *)(void *)(items + cap);
	for (size_t i = 0; i < map->cap; i++) {
		if (!map->items[i])
			continue;
		size_t at = map->hashes[i] & (cap - 1);
		while (items[at])
			at = (at + 1) & (cap - 1);
		items[at] = map->items[i];
		hashes[at] = map->hashes[i];
	}
	mem_free(map->items);
	map->items = items;
	map->hashes = hashes;
	map->cap = cap;
	return 0;
}

void *map_get(const struct map *map, const void *key, size_t len)
{
	return map->cnt ? map->items[find(map, key, len, hash_of(map, key, len))] : NULL;
}

void *map_get_str(const struct map *map, const char *s)
{
	return map_get(map, s, strlen(s));
}

int map_put(struct map *map, void *item, void **ret_old)
{
	struct map_key k = map->key_of(item);
	uint32_t hash = hash_of(map, k.p, k.len);
	size_t at = map->cap ? find(map, k.p, k.len, hash) : 0;
	if (map->cap && map->items[at]) {
		ASSERT(ret_old);
		*ret_old = map->items[at];
		map->items[at] = item;
		return 0;
	}
	if (map->cnt >= map->max)
		return -ENOSPC;
	/* At most 7/8 full: linear probing stays short and the find loop always meets a free slot. */
	if (map->cnt + 1 > map->cap / 8 * 7) {
		int rc = resize(map, map->cap ? map->cap * 2 : MAP_MIN);
		if (rc < 0)
			return rc;
		at = find(map, k.p, k.len, hash);
	}
	map->items[at] = item;
	map->hashes[at] = hash;
	map->cnt++;
	if (ret_old)
		*ret_old = NULL;
	return 0;
}

/* Empties slot i and closes the gap in its probe chain. */
static void close_gap(struct map *map, size_t i)
{
	size_t mask = map->cap - 1;
	for (size_t j = (i + 1) & mask; map->items[j]; j = (j + 1) & mask) {
		/* Slot j may move to i unless its home lies cyclically in (i, j]. */
		if (((j - map->hashes[j]) & mask) < ((j - i) & mask))
			continue;
		map->items[i] = map->items[j];
		map->hashes[i] = map->hashes[j];
		i = j;
	}
	map->items[i] = NULL;
	map->cnt--;
}

/* Gives memory back when 1/8 full or less. Failing is harmless: the old table stays. */
static void shrink(struct map *map)
{
	size_t cap = map->cap;
	while (cap > MAP_MIN && map->cnt <= cap / 8)
		cap /= 2;
	if (map->cnt == 0)
		map_done(map);
	else if (cap != map->cap)
		(void)resize(map, cap);
}

void *map_del(struct map *map, const void *key, size_t len)
{
	if (map->cnt == 0)
		return NULL;
	size_t i = find(map, key, len, hash_of(map, key, len));
	void *item = map->items[i];
	if (item) {
		close_gap(map, i);
		shrink(map);
	}
	return item;
}

void *map_del_str(struct map *map, const char *s)
{
	return map_del(map, s, strlen(s));
}

void *map_next(const struct map *map, size_t *cursor)
{
	while (*cursor < map->cap) {
		void *item = map->items[(*cursor)++];
		if (item)
			return item;
	}
	return NULL;
}

void *map_pop(struct map *map)
{
	size_t cursor = 0;
	void *item = map_next(map, &cursor);
	if (!item)
		return NULL;
	close_gap(map, cursor - 1);
	shrink(map);
	return item;
}

void map_sweep(struct map *map, bool (*drop)(void *item, void *ctx), void *ctx)
{
	if (map->cnt == 0)
		return;
	/* Start behind a free slot, so that closing a gap never brings in an item from the other end. */
	size_t start = 0;
	while (map->items[start])
		start++;
	size_t mask = map->cap - 1;
	for (size_t n = 1; n < map->cap;) {
		size_t i = (start + n) & mask;
		if (map->items[i] && drop(map->items[i], ctx))
			close_gap(map, i);
		else
			n++;
	}
	shrink(map);
}
