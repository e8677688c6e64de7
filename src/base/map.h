/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hash map from byte strings to items, seeded per map, with a ceiling. An
 * item carries its own key: a function given at init finds it, so keys are
 * never copied and an entry costs about 20 bytes. The map owns no items. Open
 * addressing; shrinks when it empties.
 */
#ifndef CULVERT_BASE_MAP_H
#define CULVERT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/* A key: len bytes at p, borrowed from the item. */
struct map_key {
	const void *p;
	size_t len;
};

/* The map. Fields are private. */
struct map {
	void **items;     /* NULL = free slot */
	uint32_t *hashes; /* beside items, in the same block */
	size_t cap;       /* slots, power of two or 0 */
	size_t cnt;       /* items */
	size_t max;       /* ceiling of cnt */
	struct map_key (*key_of)(const void *item);
	struct hash_seed seed;
};

/* A key that is a terminated string. For key functions: `return map_key_str(i->name)`. */
struct map_key map_key_str(const char *s);

/* Prepares an empty map of at most max items; allocates nothing yet. key_of must give the same key while the
 * item is in. */
void map_init(struct map *map, size_t max, struct map_key (*key_of)(const void *item));

/* Frees the table, not the items; the map is empty and usable afterwards. */
void map_done(struct map *map);

/* Number of items. */
static inline size_t map_cnt(const struct map *map)
{
	return map->cnt;
}

/* The item with that key, or NULL. */
void *map_get(const struct map *map, const void *key, size_t len);

/* The item whose key is the string s, or NULL. */
void *map_get_str(const struct map *map, const char *s);

/*
 * Puts item in under its own key. An item with an equal key is replaced and
 * handed back in *ret_old (else NULL is stored; ret_old may be NULL only when
 * the caller knows that there is none). -ENOMEM, or -ENOSPC at the ceiling;
 * the map is unchanged then.
 */
int map_put(struct map *map, void *item, void **ret_old);

/* Takes the item with that key out and returns it, NULL when absent. */
void *map_del(struct map *map, const void *key, size_t len);

/* Like map_del, for a string key. */
void *map_del_str(struct map *map, const char *s);

/*
 * Walks all items in no particular order: start with *cursor = 0, NULL at the
 * end. The map must not change meanwhile; to remove while walking use map_sweep.
 */
void *map_next(const struct map *map, size_t *cursor);

/* Takes any one item out; NULL when empty. For emptying a map with its items. */
void *map_pop(struct map *map);

/*
 * Calls drop for every item; when it returns true the item is out of the map
 * (drop may free it). drop must not touch the map.
 */
void map_sweep(struct map *map, bool (*drop)(void *item, void *ctx), void *ctx);

#endif
