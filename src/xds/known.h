/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which resources of one type the control plane believes we hold, and in
 * which version: what a reconnect must echo (reference control.md 4.8). A name
 * is kept as a keyed hash and a version as a number, 16 bytes together, where
 * the store can tell the name again; what does not fit is kept as text.
 */
#ifndef CULVERT_XDS_KNOWN_H
#define CULVERT_XDS_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/map.h"

/* Names of one type; as many as the store takes of everything. */
#define XDS_KNOWN_MAX 1300000
/* Bytes of a version that are kept; a longer one is taken for none, so the resource is sent again. */
#define XDS_VERSION_MAX 255

/* One slot. Private. */
struct xds_slot {
	uint64_t tag;     /* hash, form of the version, mark; 0 = free */
	uint64_t version; /* as a number */
};

/* The table. Private. */
struct xds_known {
	struct hash_seed seed;
	struct xds_slot *slots;
	size_t cap; /* power of two or 0 */
	size_t cnt;
	struct map odd; /* names that are kept as text */
};

/* An empty table. */
void xds_known_init(struct xds_known *known);

/* Frees everything. */
void xds_known_done(struct xds_known *known);

/* Number of names. */
size_t xds_known_cnt(const struct xds_known *known);

/*
 * Notes name with its version, marked. keeps_name: the store can tell the name
 * again. 0, -ENOMEM, -ENOSPC.
 */
int xds_known_put(struct xds_known *known, const char *name, const char *version, bool keeps_name);

/* Forgets a name; whether it was there. */
bool xds_known_del(struct xds_known *known, const char *name);

/* Whether the name is there; its version, if ret_version is not NULL (XDS_VERSION_MAX + 1 bytes). */
bool xds_known_get(const struct xds_known *known, const char *name, char *ret_version);

/* Takes all marks away. */
void xds_known_unmark(struct xds_known *known);

/* Marks a name if it is there. */
void xds_known_mark(struct xds_known *known, const char *name);

/* Whether a name is there, without mark. */
bool xds_known_is_stale(const struct xds_known *known, const char *name);

/* Walks the names kept as text; return false to stop. */
typedef bool xds_known_fn(void *ctx, const char *name, const char *version, bool is_stale);
void xds_known_each_odd(const struct xds_known *known, xds_known_fn *fn, void *ctx);

/* Whether a name is kept as text. */
bool xds_known_is_odd(const struct xds_known *known, const char *name);

/* Forgets what has no mark. */
void xds_known_sweep(struct xds_known *known);

#endif
