/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UTF-8: the edges of RFC 3629's table. */
#include "base/utf8.h"
#include "unit.h"

static void validity(void **state)
{
	static const char *const good[] = {
	        "",
	        "abc",
	        "\xc2\x80",
	        "\xdf\xbf",
	        "\xe0\xa0\x80",
	        "\xed\x9f\xbf",
	        "\xee\x80\x80",
	        "\xef\xbf\xbf",
	        "\xf0\x90\x80\x80",
	        "\xf4\x8f\xbf\xbf",
	};
	static const char *const bad[] = {
	        "\x80",
	        "\xbf",
	        "\xc0\x80",
	        "\xc1\xbf",
	        "\xc2",
	        "\xc2\x7f",
	        "\xe0\x9f\xbf",
	        "\xe0\xa0",
	        "\xed\xa0\x80",
	        "\xf0\x8f\xbf\xbf",
	        "\xf4\x90\x80\x80",
	        "\xf5\x80\x80\x80",
	        "\xff",
	        "a\xfe",
	        "\xe2\x82\x28",
	        "\xf0\x90\x80",
	};
	for (size_t i = 0; i < CNT(good); i++)
		assert_true(utf8_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < CNT(bad); i++)
		assert_false(utf8_valid(bad[i], strlen(bad[i])));
	assert_true(utf8_valid("a\0b", 3));
}

static void cutting(void **state)
{
	static const char text[] = "a\xc3\xa4\xe2\x82\xac";
	static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6};
	for (size_t max = 0; max < CNT(want); max++)
		assert_int_equal(utf8_cut(text, 6, max), want[max]);
	assert_int_equal(utf8_char_len(text, 0), 0);
	assert_int_equal(utf8_char_len(text + 3, 2), 0);
	assert_int_equal(utf8_char_len(text + 3, 3), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(validity), cmocka_unit_test(cutting)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
