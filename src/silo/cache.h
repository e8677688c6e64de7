/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this silo knows of the mesh: the views it asked for, under a ceiling,
 * negative answers too. Each entry is a fetch. The cache does not know how an
 * ask travels: it is given two functions for it.
 */
#ifndef CULVERT_SILO_CACHE_H
#define CULVERT_SILO_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/map.h"
#include "mesh/route.h"
#include "mesh/view.h"
#include "silo/fetch.h"

/* How the cache talks to the broker. */
struct cache_ops {
	/* Wants the view, and every later version of it. False: not now (see cache_ask_pending). */
	bool (*ask)(void *ctx, const struct view_key *key);
	void (*evict)(void *ctx, const struct view_key *key); /* no longer wants to hear of it */
};

/* The cache; embed it. Private. */
struct cache {
	struct io *io;
	const struct cache_ops *ops;
	void *ctx;
	struct map entries;              /* struct entry by key bytes */
	struct list recent;              /* most recently used first */
	size_t max;                      /* ceiling of entries */
	struct fetch_observer *observer; /* of the entries' waits; borrowed, may be NULL */
};

/* Prepares an empty cache of at most `max` entries. */
void cache_init(struct cache *cache, struct io *io, size_t max, const struct cache_ops *ops, void *ctx);

/* Frees all entries; waiters get -ECANCELED. */
void cache_done(struct cache *cache);

/*
 * The view of a key: 0 and a reference, or -EAGAIN and *ret_fetch, the fetch to
 * wait for (asked if it was not). -ENOMEM, -ENAMETOOLONG, or -ENOSPC when all
 * entries are being waited for.
 */
int cache_view(
        struct cache *cache, const struct view_key *key, struct view **ret_view, struct fetch **ret_fetch);

/* An answer or a later version arrived; takes the reference over. What was evicted meanwhile is dropped. */
void cache_answer(struct cache *cache, struct view *view);

/* An ask failed for good (e.g. the broker refuses the key): waiters of the key get `code`. */
void cache_fail(struct cache *cache, const struct view_key *key, int code);

/* Marks everything as not asked, after a new broker or a forget-all; values stay valid until they are
 * answered. */
void cache_forget_asks(struct cache *cache);

/* Asks for what is not asked, most recently used first, until ask() says no. */
void cache_ask_pending(struct cache *cache);

/* Shows every entry, most recently used first: its key and its fetch. */
void cache_each(const struct cache *cache,
        void (*each)(void *ctx, const struct view_key *key, const struct fetch *fetch), void *ctx);

/* Number of entries. */
size_t cache_cnt(const struct cache *cache);

struct resolver;

/* A source of views for routing that remembers what was missing. */
struct cache_source {
	struct mesh_source source; /* give this to route_* */
	struct cache *cache;
	struct resolver *resolver; /* for workloads that have only a host name; NULL: they are unreachable */
	struct fetch *missing;     /* after -EAGAIN: wait for this one; else NULL */
};

/* Prepares a source over `cache`. */
void cache_source_init(struct cache_source *source, struct cache *cache);

#endif
