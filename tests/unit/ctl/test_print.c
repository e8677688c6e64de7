/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and JSON as they reach the terminal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/print.h"

static const struct column COLUMNS[] = {
        {"NAME", "name", false}, {"PID", "pid", true}, {"RESTARTS", "restarts", false}, {"UP", "up", false}};

/* Prints the table of a JSON text into a string that the caller frees. */
static char *table(const char *json, int *ret_r, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	cJSON *rows = cJSON_Parse(json);
	assert_non_null(rows);
	*ret_r = print_table(out, rows, COLUMNS, 4, err);
	cJSON_Delete(rows);
	fclose(out);
	return text;
}

static void assert_table(const char *json, const char *expected)
{
	struct err err = {0};
	int r;
	char *text = table(json, &r, &err);
	assert_int_equal(r, 0);
	assert_string_equal(text, expected);
	free(text);
}

static void fits_columns_to_what_they_hold(void **state)
{
	(void)state;
	assert_table("[]", "NAME  PID  RESTARTS  UP\n");
	assert_table(
	        "[{\"name\":\"a-long-name\",\"pid\":4194304,\"restarts\":3,\"up\":true},{\"name\":\"b\",\"pid\":7,\"restarts\":0,\"up\":false}]",
	        "NAME         PID      RESTARTS  UP\n"
	        "a-long-name  4194304  3         true\n"
	        "b            7        0         false\n");
}

static void shows_what_is_missing_as_a_dash(void **state)
{
	(void)state;
	assert_table("[{\"name\":\"\",\"pid\":0,\"restarts\":{}}]", "NAME  PID  RESTARTS  UP\n"
	                                                            "-     -    -         -\n");
}

static void sends_no_commands_to_the_terminal(void **state)
{
	(void)state;
	/* Escape, newline, delete, C1 control sequence introducer, invalid UTF-8; an umlaut may stay. */
	assert_table("[{\"name\":\"a\\u001b[2Jb\\nc\\u007f\\u009bd\",\"pid\":1}]",
	        "NAME          PID  RESTARTS  UP\n"
	        "a?[2Jb?c???d  1    -         -\n");
	assert_table(
	        "[{\"name\":\"x\xff\xc3\",\"pid\":1}]", "NAME  PID  RESTARTS  UP\nx??   1    -         -\n");
	assert_table("[{\"name\":\"\xc3\xbcx\",\"pid\":1}]",
	        "NAME  PID  RESTARTS  UP\n\xc3\xbcx   1    -         -\n");
}

static void cuts_a_cell_that_is_too_long(void **state)
{
	char json[2000], name[1000];
	struct err err = {0};
	int r;
	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(json, sizeof(json), "[{\"name\":\"%s\"}]", name);
	char *text = table(json, &r, &err);
	assert_int_equal(r, 0);
	assert_null(strstr(text, name));
	assert_int_equal(strspn(strchr(text, '\n') + 1, "n"), 255);
	free(text);
}

static void refuses_what_is_no_list_of_objects(void **state)
{
	static const char *const wrong[] = {"{}", "7", "[1]", "[{}, null]"};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = {0};
		int r;
		char *text = table(wrong[i], &r, &err);
		assert_int_equal(r, -EPROTO);
		assert_string_equal(text, "");
		assert_non_null(strstr(err.text, "no list"));
		free(text);
	}
}

static void ends_json_with_one_newline(void **state)
{
	(void)state;
	for (int has_newline = 0; has_newline < 2; has_newline++) {
		char *text = NULL;
		size_t len = 0;
		struct err err = {0};
		struct buf body;
		FILE *out = open_memstream(&text, &len);
		buf_init(&body, 100);
		assert_int_equal(buf_add_str(&body, has_newline ? "[ ]\n" : "[ ]"), 0);
		assert_int_equal(print_json(out, &body, &err), 0);
		fclose(out);
		assert_string_equal(text, "[ ]\n");
		buf_done(&body);
		free(text);
	}
}

static void reports_that_the_output_fails(void **state)
{
	struct err err = {0};
	struct buf body;
	FILE *full = fopen("/dev/full", "w");
	(void)state;
	assert_non_null(full);
	buf_init(&body, 100);
	assert_int_equal(buf_add_str(&body, "[]"), 0);
	assert_int_equal(print_json(full, &body, &err), -ENOSPC);
	buf_done(&body);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(fits_columns_to_what_they_hold),
	        cmocka_unit_test(shows_what_is_missing_as_a_dash),
	        cmocka_unit_test(sends_no_commands_to_the_terminal),
	        cmocka_unit_test(cuts_a_cell_that_is_too_long),
	        cmocka_unit_test(refuses_what_is_no_list_of_objects),
	        cmocka_unit_test(ends_json_with_one_newline),
	        cmocka_unit_test(reports_that_the_output_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
