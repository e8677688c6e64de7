/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Start times of processes, also of one with an unpleasant name. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"

static void test_start_time(void **state)
{
	uint64_t own = 0, again = 0, later = 0;
	assert_int_equal(proc_start_time(getpid(), &own), 0);
	assert_true(own > 0);
	assert_int_equal(proc_start_time(getpid(), &again), 0);
	assert_int_equal(own, again);
	/* Ticks are 10 ms. */
	usleep(30000);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_NAME, ") 1 (x)");
		pause();
	}
	usleep(30000);
	assert_int_equal(proc_start_time(pid, &later), 0);
	assert_true(later > own);
	assert_true(later < own + 100 * 60);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(proc_start_time(pid, &again), -ENOENT);
	assert_int_equal(again, own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_start_time)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
