/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The duration grammar of reference control.md 3.5, row by row. */
#include <errno.h>

#include "base/param.h"
#include "unit.h"

static void accepted(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} rows[] = {
	        {"5", 5000},
	        {" 5s", 5000},
	        {"5 s", 5000},
	        {"5s ", 5000},
	        {"10S", 10000},
	        {"0", 0},
	        {"0s", 0},
	        {"1h30m", 5400000},
	        {"1h 30m", 5400000},
	        {"3m+31", 211000},
	        {"3m + 31", 211000},
	        {"3m31", 211000},
	        {"3m 31", 211000},
	        {"2m*3", 360000},
	        {"2m * 3", 360000},
	        {"2m*3*2", 720000},
	        {"1m*10s", 600000},
	        {"1h+1m+1s+1ms", 3661001},
	        {"1y", 31536000000},
	        {"2years", 63072000000},
	        {"1mon", 2592000000},
	        {"1MONTHS", 2592000000},
	        {"1w", 604800000},
	        {"1d", 86400000},
	        {"1hr", 3600000},
	        {"1hours", 3600000},
	        {"1min", 60000},
	        {"1minutes", 60000},
	        {"1sec", 1000},
	        {"250ms", 250},
	        {"250msec", 250},
	        {"2milliseconds", 2},
	        {"1us", 1},
	        {"1500\xc2\xb5s", 2},
	        {"1000\xce\xbcs", 1},
	        {"1ns", 1},
	        {"1000000nanoseconds", 1},
	        {"1000001ns", 2},
	        {"18446744073709551615ms", UINT64_MAX},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		uint64_t ms = 77;
		if (duration_parse(rows[i].text, strlen(rows[i].text), &ms, NULL) < 0)
			fail_msg("%s", rows[i].text);
		assert_int_equal(ms, rows[i].ms);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *text;
		int rc;
	} rows[] = {
	        {"", -EINVAL},
	        {" ", -EINVAL},
	        {"1.5s", -EINVAL},
	        {"-5s", -EINVAL},
	        {"+5s", -EINVAL},
	        {"5x", -EINVAL},
	        {"s", -EINVAL},
	        {"5s+", -EINVAL},
	        {"5s*", -EINVAL},
	        {"*5", -EINVAL},
	        {"1h+2*3", -EINVAL},
	        {"2*3+1", -EINVAL},
	        {"1h30m*2", -EINVAL},
	        {"5ss", -EINVAL},
	        {"5 5x", -EINVAL},
	        {"0x5", -EINVAL},
	        {"5,5", -EINVAL},
	        {"1h++1", -EINVAL},
	        {"inf", -EINVAL},
	        {"5\xc2", -EINVAL},
	        {"18446744073709551616", -ERANGE},
	        {"18446744073709551615s", -ERANGE},
	        {"18446744073709551615y", -ERANGE},
	        {"1y*18446744073709551615", -ERANGE},
	        {"18446744073709551615ms+1ms", -ERANGE},
	        {"999999999999y*9999999999999999y", -ERANGE},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		uint64_t ms = 77;
		const char *why = NULL;
		if (duration_parse(rows[i].text, strlen(rows[i].text), &ms, &why) != rows[i].rc)
			fail_msg("%s", rows[i].text);
		assert_int_equal(ms, 77);
		assert_non_null(why);
	}
	const char *why;
	uint64_t ms;
	duration_parse("", 0, &ms, &why);
	assert_string_equal(why, "Empty input");
	assert_int_equal(duration_parse("5s\0", 3, &ms, &why), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(accepted), cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
