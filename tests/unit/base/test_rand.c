/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of the random helpers. */
#include "base/rand.h"
#include "unit.h"

static void ranges(void **state)
{
	uint64_t low = 0, high = 0;
	for (int i = 0; i < 3000; i++) {
		assert_true(rand_below(7) < 7);
		low += rand_below(10) == 0;
		uint64_t v = rand_jitter(1000, 10);
		assert_true(v >= 900 && v <= 1100);
		high += v > 1000;
	}
	assert_true(low > 100 && low < 600);
	assert_true(high > 1000 && high < 2000);
	assert_int_equal(rand_below(0), 0);
	assert_int_equal(rand_below(1), 0);
	assert_int_equal(rand_jitter(0, 50), 0);
	assert_int_equal(rand_jitter(77, 0), 77);
	assert_true(rand_jitter(10, 100) <= 20);
	assert_true(rand_jitter(UINT64_MAX, 100) == UINT64_MAX);
	assert_true(rand_u64() != rand_u64());
	rand_bytes(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ranges)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
