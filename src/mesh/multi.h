/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Several items under one key of a base map: the map holds the head, the
 * rest hangs from it. Linking and unlinking cost the same however many there
 * are. The items embed struct multi as their first member.
 */
#ifndef CULVERT_MESH_MULTI_H
#define CULVERT_MESH_MULTI_H

#include "base/check.h"
#include "base/map.h"

/* First member of an item. */
struct multi {
	struct multi *next; /* next item with the same key, in no particular order */
	struct multi *prev; /* NULL for the head */
};

/* The items under a key, or NULL. */
static inline struct multi *multi_get(const struct map *map, const void *key, size_t len)
{
	return map_get(map, key, len);
}

/* Adds an item. 0, -ENOMEM or -ENOSPC. */
static inline int multi_link(struct map *map, struct multi *item)
{
	struct map_key key = map->key_of(item);
	struct multi *head = map_get(map, key.p, key.len);

	*item = (struct multi){0};
	if (!head)
		return map_put(map, item, NULL);
	item->prev = head;
	item->next = head->next;
	if (item->next)
		item->next->prev = item;
	head->next = item;
	return 0;
}

/* Takes a linked item out. */
static inline void multi_unlink(struct map *map, struct multi *item)
{
	struct map_key key = map->key_of(item);
	struct multi *next = item->next;

	if (next)
		next->prev = item->prev;
	if (item->prev) {
		item->prev->next = next;
	} else if (next) {
		void *old;
		int rc = map_put(map, next, &old); /* an equal key is replaced in place: cannot fail */
		ASSERT(rc == 0 && old == item);
	} else {
		map_del(map, key.p, key.len);
	}
	*item = (struct multi){0};
}

#endif
