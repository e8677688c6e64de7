/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SipHash-2-4 from its paper (Aumasson, Bernstein 2012); checked against its test vector. */
#include "base/hash.h"

#include <string.h>

#include "base/rand.h"

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v2 = rotl(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t m)
{
	s->v3 ^= m;
	sip_round(s);
	sip_round(s);
	s->v0 ^= m;
}

static inline uint64_t le64(const uint8_t *p, size_t len)
{
	uint64_t v = 0;
	for (size_t i = 0; i < len; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

struct hash_seed hash_seed_random(void)
{
	struct hash_seed seed;
	rand_bytes(&seed, sizeof(seed));
	return seed;
}

uint64_t hash_bytes(const struct hash_seed *seed, const void *data, size_t len)
{
	struct sip s = {
	        seed->k0 ^ 0x736f6d6570736575u,
	        seed->k1 ^ 0x646f72616e646f6du,
	        seed->k0 ^ 0x6c7967656e657261u,
	        seed->k1 ^ 0x7465646279746573u,
	};
	const uint8_t *p = data;
	size_t left = len;
	for (; left >= 8; left -= 8, p += 8)
		sip_word(&s, le64(p, 8));
	sip_word(&s, (uint64_t)len << 56 | le64(p, left));
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
