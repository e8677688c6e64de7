/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Form-encoded parameters: decoding, presence, precedence, refusals. */
#include <errno.h>

#include "http/request.h"
#include "unit.h"

static void looks_up(void **state)
{
	static const struct {
		const char *form, *name;
		int rc;
		const char *value;
	} rows[] = {
	        {"level=debug", "level", 1, "debug"},
	        {"level=debug", "leve", 0, NULL},
	        {"level=debug", "levels", 0, NULL},
	        {"", "level", 0, NULL},
	        {"reset", "reset", 1, ""},
	        {"reset=", "reset", 1, ""},
	        {"a=1&a=2", "a", 1, "2"},
	        {"a=1&b=2&c=3", "b", 1, "2"},
	        {"&&a=1&", "a", 1, "1"},
	        {"a=b=c", "a", 1, "b=c"},
	        {"a=x+y%20z", "a", 1, "x y z"},
	        {"level=access%3Ddebug%2Cinfo", "level", 1, "access=debug,info"},
	        {"%6cevel=x", "level", 1, "x"},
	        {"a=%zz%4", "a", 1, "%zz%4"},
	        {"a=%", "a", 1, "%"},
	        {"a=%c3%A4", "a", 1, "\xc3\xa4"},
	        {"a=%00", "a", -EINVAL, NULL},
	        {"%00a=1", "a", 0, NULL},
	        {"=x", "", 1, "x"},
	        {"a=1234567", "a", 1, "1234567"},
	        {"a=12345678", "a", -EMSGSIZE, NULL},
	        {"a=%31%32345678", "a", -EMSGSIZE, NULL},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		char value[24] = "untouched";
		size_t cap = rows[i].rc == -EMSGSIZE || strlen(rows[i].value ? rows[i].value : "") == 7
		                     ? 8
		                     : sizeof(value);
		int rc = http_form_get(rows[i].form, strlen(rows[i].form), rows[i].name, value, cap);
		if (rc != rows[i].rc)
			fail_msg("%s: %d", rows[i].form, rc);
		if (rc == 1)
			assert_string_equal(value, rows[i].value);
	}
	char c;
	assert_int_equal(http_form_get("a", 1, "a", &c, 0), -EMSGSIZE);
	assert_int_equal(http_form_get("a=1&b=2", 3, "b", &c, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(looks_up)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
