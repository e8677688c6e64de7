/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decimal numbers at their edges. */
#include <errno.h>

#include "base/num.h"
#include "unit.h"

static void parses(void **state)
{
	uint64_t v = 5;
	assert_int_equal(num_parse("0", 1, 0, &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(num_parse("007", 3, 7, &v), 0);
	assert_int_equal(v, 7);
	assert_int_equal(num_parse("18446744073709551615", 20, UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(num_parse("18446744073709551616", 20, UINT64_MAX, &v), -ERANGE);
	assert_int_equal(num_parse("99999999999999999999x", 21, UINT64_MAX, &v), -EINVAL);
	assert_int_equal(num_parse("8", 1, 7, &v), -ERANGE);
	static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "a"};
	for (size_t i = 0; i < CNT(bad); i++)
		assert_int_equal(num_parse(bad[i], strlen(bad[i]), 100, &v), -EINVAL);
	assert_true(v == UINT64_MAX);
	assert_int_equal(num_parse("129", 2, 100, &v), 0);
	assert_int_equal(v, 12);
}

static void prints(void **state)
{
	char text[NUM_STR_MAX];
	assert_int_equal(num_format(0, text), 1);
	assert_string_equal(text, "0");
	assert_int_equal(num_format(UINT64_MAX, text), 20);
	assert_string_equal(text, "18446744073709551615");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(parses), cmocka_unit_test(prints)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
