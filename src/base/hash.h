/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SipHash-2-4 (Aumasson, Bernstein): a keyed hash, so that a peer who chooses
 * the keys of a table cannot choose its collisions. No table here: see map.h.
 */
#ifndef CULVERT_BASE_HASH_H
#define CULVERT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The 128-bit key. */
struct hash_seed {
	uint64_t k0;
	uint64_t k1;
};

/* A random key from the kernel. */
struct hash_seed hash_seed_random(void);

/* SipHash-2-4 of len bytes (data may be NULL when len is 0). */
uint64_t hash_bytes(const struct hash_seed *seed, const void *data, size_t len);

#endif
