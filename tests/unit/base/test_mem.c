/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation helpers and the hook that makes them fail. */
#include "unit.h"

static void allocates(void **state)
{
	char *s = mem_strdup("abc");
	assert_string_equal(s, "abc");
	char *cut = mem_strndup("a\0bc", 3);
	assert_memory_equal(cut, "a\0b", 4);
	uint8_t *zero = mem_zalloc(10, 10);
	for (int i = 0; i < 100; i++)
		assert_int_equal(zero[i], 0);
	zero = mem_realloc(zero, 1000);
	assert_int_equal(zero[99], 0);
	memset(zero, 7, 1000);
	mem_wipe(zero, 999);
	assert_int_equal(zero[0] | zero[998], 0);
	assert_int_equal(zero[999], 7);
	void *none[] = {mem_alloc(0), mem_zalloc(0, 8), mem_realloc(NULL, 0)};
	for (size_t i = 0; i < CNT(none); i++) {
		assert_non_null(none[i]);
		mem_free(none[i]);
	}
	mem_wipe(NULL, 0);
	mem_free(NULL);
	mem_free(s);
	mem_free(cut);
	mem_free(zero);
	mem_trim();
}

static void refuses(void **state)
{
	assert_null(mem_zalloc(SIZE_MAX, 2));
	assert_null(mem_strndup("", SIZE_MAX));
	char *s = mem_strdup("kept");
	allocations_left = 0;
	assert_null(mem_alloc(1));
	assert_null(mem_zalloc(1, 1));
	assert_null(mem_strdup("x"));
	assert_null(mem_realloc(s, 100));
	allocations_left = -1;
	assert_string_equal(s, "kept");
	mem_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(allocates), cmocka_unit_test(refuses)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
