/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clocks move forward; timestamps agree with the C library's calendar. */
#include <time.h>

#include "base/clock.h"
#include "unit.h"

static void moves(void **state)
{
	uint64_t ns = clock_ns(), us = clock_us(), ms = clock_ms();
	assert_true(us >= ns / 1000 && ms >= us / 1000);
	assert_true(clock_ns() >= ns);
	assert_true(clock_wall_us() > 1700000000000000u);
}

static void prints(void **state)
{
	char text[CLOCK_STR_MAX];
	assert_int_equal(clock_format(0, 0, text), 20);
	assert_string_equal(text, "1970-01-01T00:00:00Z");
	assert_int_equal(clock_format(1795227168671326u, 6, text), 27);
	assert_string_equal(text, "2026-11-21T02:12:48.671326Z");
	clock_format(1795227168671326u, 3, text);
	assert_string_equal(text, "2026-11-21T02:12:48.671Z");
	clock_format(UINT64_MAX, 6, text);
	assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
}

static void agrees_with_gmtime(void **state)
{
	for (uint64_t s = 0; s < 8000000000u; s += 7654321) {
		char text[CLOCK_STR_MAX], want[CLOCK_STR_MAX];
		time_t t = (time_t)s;
		struct tm tm;
		strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
		clock_format(s * 1000000, 0, text);
		assert_string_equal(text, want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(moves), cmocka_unit_test(prints), cmocka_unit_test(agrees_with_gmtime)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
