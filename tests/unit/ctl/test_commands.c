/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of subcommands: finding, and guessing what was meant. */
#include <errno.h>
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
	assert_string_equal(ctl_command_find("svc")->name, "service");
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
	assert_null(ctl_command_nearest("certainly-not"));
	assert_null(ctl_command_nearest(""));
	assert_null(ctl_command_nearest(longest));
}

static void reads_intervals(void **state)
{
	static const struct {
		const char *text;
		unsigned ms;
	} rows[] = {{"2", 2000}, {"0.5", 500}, {"500ms", 500}, {"1s", 1000}, {"1ms", 1}, {"3600", 3600000},
	        {"", 0}, {"x", 0}, {"0", 0}, {"-1", 0}, {"3601", 0}, {"nan", 0}, {"inf", 0}, {"2m", 0},
	        {"1 s", 0}};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned ms = 0;
		assert_int_equal(ctl_read_interval(rows[i].text, &ms), rows[i].ms ? 0 : -EINVAL);
		assert_int_equal(ms, rows[i].ms);
	}
}

static void every_outcome_has_its_code(void **state)
{
	(void)state;
	assert_int_equal(ctl_exit_of(0), CTL_EXIT_OK);
	assert_int_equal(ctl_exit_of(-EINVAL), CTL_EXIT_USAGE);
	assert_int_equal(ctl_exit_of(-EHOSTDOWN), CTL_EXIT_NO_DAEMON);
	assert_int_equal(ctl_exit_of(-EACCES), CTL_EXIT_DENIED);
	assert_int_equal(ctl_exit_of(-ESRCH), CTL_EXIT_NOT_FOUND);
	assert_int_equal(ctl_exit_of(-EPIPE), CTL_EXIT_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(finds_exact_names_only),
	        cmocka_unit_test(guesses_what_is_two_slips_away),
	        cmocka_unit_test(guesses_nothing_far_away),
	        cmocka_unit_test(reads_intervals),
	        cmocka_unit_test(every_outcome_has_its_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
