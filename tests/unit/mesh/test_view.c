/* SPDX-License-Identifier: GPL-2.0-or-later */
/* View keys and construction. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "culvert/limits.h"
#include "mesh/view.h"

static void test_keys(void **state)
{
	struct ip v4 = ip_v4(10, 0, 0, 1), v6 = {.family = 6, .b = {10, 0, 0, 1}};
	struct view_key keys[] = {
	        view_key_address("", &v4),
	        view_key_address("n", &v4),
	        view_key_address("", &v6),
	        view_key_address("", &v4),
	        view_key_host("", "h"),
	        view_key_host("h", ""),
	        view_key_host("a", "h"),
	        view_key_host("ah", ""),
	        view_key_name("h"),
	        view_key_name("ah"),
	};
	size_t cnt = sizeof(keys) / sizeof(keys[0]);

	keys[3].unfiltered = true;
	for (size_t i = 0; i < cnt; i++) {
		for (size_t k = 0; k < cnt; k++) {
			uint8_t a[VIEW_KEY_BYTES_MAX], b[VIEW_KEY_BYTES_MAX];
			int a_len = view_key_bytes(&keys[i], a, sizeof(a)),
			    b_len = view_key_bytes(&keys[k], b, sizeof(b));
			assert_true(a_len > 0 && b_len > 0);
			assert_int_equal(view_key_eq(&keys[i], &keys[k]), i == k);
			assert_int_equal(a_len == b_len && memcmp(a, b, (size_t)a_len) == 0, i == k);
		}
	}
}

static void test_key_ceiling(void **state)
{
	char name[VIEW_KEY_BYTES_MAX] = "", dst[2 * VIEW_KEY_BYTES_MAX];
	struct view_key key = view_key_host("", name);

	memset(name, 'x', sizeof(name));
	name[VIEW_KEY_BYTES_MAX - 4] = 0;
	assert_int_equal(view_key_bytes(&key, dst, sizeof(dst)), VIEW_KEY_BYTES_MAX);
	assert_int_equal(view_key_bytes(&key, dst, VIEW_KEY_BYTES_MAX - 1), -ENAMETOOLONG);
	name[VIEW_KEY_BYTES_MAX - 4] = 'x';
	name[VIEW_KEY_BYTES_MAX - 3] = 0;
	assert_int_equal(view_key_bytes(&key, dst, sizeof(dst)), -ENAMETOOLONG);
	assert_int_equal(view_key_bytes(&key, dst, 0), -ENAMETOOLONG);
}

static void test_new(void **state)
{
	static const struct endpoint endpoints[LIMIT_VIEW_ENDPOINTS + 1];
	struct arena *arena = arena_new(65536);
	char ns[] = "ns";
	struct view_key key = view_key_host(ns, "h");
	struct view *view;

	assert_int_equal(view_new(arena, &key, 1, NULL, NULL, endpoints, LIMIT_VIEW_ENDPOINTS + 1, &view),
	        ERR_TOO_MANY);
	assert_int_equal(view_new(arena, &key, 5, NULL, NULL, endpoints, 2, &view), 0);
	ns[0] = 'x'; /* the key is a copy */
	assert_string_equal(view->key.ns, "ns");
	assert_false(view->known);
	assert_int_equal(view->generation, 5);
	assert_int_equal(view->endpoint_cnt, 2);
	view_unref(view);
	view_unref(NULL);
	assert_null(view_ref(NULL));
}

static void test_new_without_memory(void **state)
{
	struct arena *arena = arena_new(64);
	struct view_key key = view_key_host("a", "b");
	struct view *view;

	assert_int_equal(view_new(arena, &key, 1, NULL, NULL, NULL, 0, &view), -ENOMEM);
	arena_unref(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_keys),
	        cmocka_unit_test(test_key_ceiling),
	        cmocka_unit_test(test_new),
	        cmocka_unit_test(test_new_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
