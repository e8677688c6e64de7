/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sequences of delays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "warden/backoff.h"

static void expect(struct backoff *backoff, const uint32_t *delays, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		assert_int_equal(backoff_take(backoff), delays[i]);
}

static void test_restart(void **state)
{
	struct backoff backoff = BACKOFF_RESTART;
	const uint32_t delays[] = {0, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
	expect(&backoff, delays, 9);
	backoff_reset(&backoff);
	expect(&backoff, delays, 3);
}

static void test_dial(void **state)
{
	struct backoff backoff = BACKOFF_DIAL;
	const uint32_t delays[] = {20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 15000, 15000};
	expect(&backoff, delays, 12);
	backoff_reset(&backoff);
	expect(&backoff, delays, 2);
}

static void test_life(void **state)
{
	struct backoff backoff = BACKOFF_RESTART;
	assert_int_equal(backoff_after_life(&backoff, 5), 0);
	assert_int_equal(backoff_after_life(&backoff, 9999), 100);
	assert_int_equal(backoff_after_life(&backoff, 0), 200);
	assert_int_equal(backoff_after_life(&backoff, 10000), 0);
	assert_int_equal(backoff_after_life(&backoff, 1), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_restart), cmocka_unit_test(test_dial), cmocka_unit_test(test_life)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
