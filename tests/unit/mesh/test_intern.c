/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interned strings: same text same number, counted, numbers reused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "mesh/intern.h"

static uint32_t get(struct intern *t, const char *s)
{
	uint32_t id;
	assert_int_equal(intern_get(t, s, &id), 0);
	return id;
}

static void test_counting(void **state)
{
	struct intern t;
	uint32_t id;

	intern_init(&t);
	assert_int_equal(get(&t, ""), 0);
	assert_string_equal(intern_text(&t, 0), "");
	uint32_t a = get(&t, "a"), b = get(&t, "b");
	assert_int_not_equal(a, b);
	assert_int_equal(get(&t, "a"), a);
	assert_string_equal(intern_text(&t, a), "a");
	intern_put(&t, a);
	assert_int_equal(intern_find(&t, "a", &id), 0);
	assert_int_equal(intern_ref(&t, a), a);
	intern_put(&t, a);
	intern_put(&t, a);
	assert_int_equal(intern_find(&t, "a", &id), -ENOENT);
	assert_int_equal(get(&t, "c"), a);
	intern_put(&t, 0);
	intern_done(&t);
}

static void test_many(void **state)
{
	struct intern t;
	char text[16];

	intern_init(&t);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 5000; i++) {
			snprintf(text, sizeof(text), "%u", i);
			assert_true(get(&t, text) <= 5000);
		}
		for (unsigned i = 0; i < 5000; i++) {
			uint32_t id;
			snprintf(text, sizeof(text), "%u", i);
			assert_int_equal(intern_find(&t, text, &id), 0);
			intern_put(&t, id);
		}
	}
	intern_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_counting),
	        cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
