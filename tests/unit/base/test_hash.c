/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SipHash-2-4 against the reference vectors of its authors. */
#include "base/hash.h"
#include "unit.h"

static void vectors(void **state)
{
	/* Key 00..0f, message 00..(len-1); from the paper's appendix and the reference code's table. */
	static const struct {
		size_t len;
		uint64_t want;
	} rows[] = {
	        {0, 0x726fdb47dd0e0e31u},
	        {1, 0x74f839c593dc67fdu},
	        {7, 0xab0200f58b01d137u},
	        {8, 0x93f5f5799a932462u},
	        {15, 0xa129ca6149be45e5u},
	};
	const struct hash_seed seed = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
	uint8_t message[16];
	for (uint8_t i = 0; i < 16; i++)
		message[i] = i;
	for (size_t i = 0; i < CNT(rows); i++)
		assert_true(hash_bytes(&seed, message, rows[i].len) == rows[i].want);
	assert_true(hash_bytes(&seed, NULL, 0) == rows[0].want);
}

static void seeds_differ(void **state)
{
	struct hash_seed a = hash_seed_random(), b = hash_seed_random();
	assert_true(a.k0 != b.k0 && a.k1 != b.k1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(seeds_differ)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
