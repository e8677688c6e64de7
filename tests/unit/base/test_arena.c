/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arenas: alignment, ceiling, growth, counting, failing allocations. */
#include "base/arena.h"
#include "unit.h"

static void hands_out(void **state)
{
	struct arena *a = arena_new(1u << 20);
	assert_string_equal(arena_strdup(a, "x"), "x");
	uint64_t *n = arena_alloc(a, sizeof(*n));
	assert_int_equal((uintptr_t)n % 8, 0);
	*n = 7;
	uint64_t *zero = arena_zalloc(a, 300, sizeof(*zero));
	for (int i = 0; i < 300; i++)
		assert_int_equal(zero[i], 0);
	assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
	assert_string_equal(arena_strndup(a, NULL, 0), "");
	assert_memory_equal(arena_memdup(a, "a\0b", 3), "a\0b", 3);
	assert_string_equal(arena_printf(a, "%d-%s", 42, "z"), "42-z");
	assert_int_equal(*n, 7);
	assert_true(arena_used(a) >= 2400 && arena_held(a) > arena_used(a));
	arena_unref(a);
}

static void many_blocks(void **state)
{
	struct arena *a = arena_new(8u << 20);
	char *first = arena_strdup(a, "first");
	for (int i = 0; i < 5000; i++) {
		char *p = arena_alloc(a, 1000);
		assert_non_null(p);
		memset(p, i, 1000);
	}
	assert_string_equal(first, "first");
	arena_unref(a);
}

static void keeps_ceiling(void **state)
{
	struct arena *a = arena_new(1000);
	assert_null(arena_alloc(a, 1001));
	assert_non_null(arena_alloc(a, 600));
	assert_null(arena_alloc(a, 401));
	assert_non_null(arena_alloc(a, 400));
	assert_null(arena_memdup(a, "x", 1));
	assert_null(arena_alloc(a, SIZE_MAX));
	assert_null(arena_strndup(a, "x", SIZE_MAX));
	assert_null(arena_zalloc(a, SIZE_MAX / 2, 4));
	arena_unref(a);
	assert_null(arena_new_sized(SIZE_MAX, SIZE_MAX));
}

static void exact_size_has_no_slack(void **state)
{
	struct arena *a = arena_new_sized(64, 4096);
	size_t held = arena_held(a);
	assert_non_null(arena_alloc(a, 64));
	assert_int_equal(arena_held(a), held);
	assert_non_null(arena_alloc(a, 1));
	assert_true(arena_held(a) > held);
	arena_unref(a);
}

static void counts(void **state)
{
	struct arena *a = arena_new(100);
	char *s = arena_strdup(a, "kept");
	assert_ptr_equal(arena_ref(a), a);
	arena_unref(a);
	assert_string_equal(s, "kept");
	arena_unref(a);
	arena_unref(NULL);
}

static void out_of_memory(void **state)
{
	allocations_left = 0;
	assert_null(arena_new(100));
	allocations_left = 1;
	struct arena *a = arena_new(1u << 20);
	assert_non_null(a);
	assert_null(arena_alloc(a, 100000));
	allocations_left = -1;
	assert_non_null(arena_alloc(a, 100000));
	arena_unref(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(hands_out),
	        cmocka_unit_test(many_blocks),
	        cmocka_unit_test(keeps_ceiling),
	        cmocka_unit_test(exact_size_has_no_slack),
	        cmocka_unit_test(counts),
	        cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
