/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bump allocator with a ceiling and a reference count: many small objects that
 * live and die together (a record of the mesh, a view, a request). Freed at
 * once when the last reference goes. Single-threaded like everything here.
 */
#ifndef CULVERT_BASE_ARENA_H
#define CULVERT_BASE_ARENA_H

#include <stddef.h>

struct arena; /* opaque */

/* An arena that may hand out up to max bytes, with one reference. NULL when out of memory. */
struct arena *arena_new(size_t max);

/* Like arena_new with a first block of exactly first bytes: for a caller who knows the final size (no slack).
 */
struct arena *arena_new_sized(size_t first, size_t max);

/* One more reference; returns arena. */
struct arena *arena_ref(struct arena *arena);

/* One reference less; the last one frees everything. NULL is fine. */
void arena_unref(struct arena *arena);

/* len uninitialised bytes, aligned for any of our types (8); NULL when out of memory or above the ceiling. */
void *arena_alloc(struct arena *arena, size_t len);

/* cnt * size zeroed bytes; never NULL for cnt 0 unless out of memory. */
void *arena_zalloc(struct arena *arena, size_t cnt, size_t size);

/* Copy of len bytes, unaligned; NULL as above. */
void *arena_memdup(struct arena *arena, const void *p, size_t len);

/* Copy of len bytes plus a terminator, unaligned; NULL as above. */
char *arena_strndup(struct arena *arena, const char *s, size_t len);

/* Copy of a string; NULL as above. */
char *arena_strdup(struct arena *arena, const char *s);

/* Formatted string; NULL as above. */
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Bytes handed out so far, padding included. */
size_t arena_used(const struct arena *arena);

/* Bytes of heap held, slack and headers included. */
size_t arena_held(const struct arena *arena);

#endif
