/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of subcommands: finding, and guessing what was meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/ctl.h"

static void finds_exact_names_only(void **state)
{
	(void)state;
	assert_string_equal(ctl_command_find("pods")->name, "pods");
	assert_null(ctl_command_find("pod"));
	assert_null(ctl_command_find(""));
}

static void guesses_what_is_two_slips_away(void **state)
{
	static const char *const typed[][2] = {
	        {"pod", "pods"},
	        {"podz", "pods"},
	        {"pdos", "pods"},
	        {"dmup", "dump"},
	        {"verison", "version"},
	        {"halp", "help"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(typed) / sizeof(typed[0]); i++)
		assert_string_equal(ctl_command_nearest(typed[i][0])->name, typed[i][1]);
}

static void guesses_nothing_far_away(void **state)
{
	char longest[1000];
	(void)state;
	memset(longest, 'p', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_null(ctl_command_nearest("connections"));
	assert_null(ctl_command_nearest(""));
	assert_null(ctl_command_nearest(longest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(finds_exact_names_only),
	        cmocka_unit_test(guesses_what_is_two_slips_away),
	        cmocka_unit_test(guesses_nothing_far_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
