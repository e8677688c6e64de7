/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A failed assertion says where and ends the process with SIGABRT, in every build. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "unit.h"

static void ends_the_process(void **state)
{
	int fds[2], status;
	char text[256] = "";
	ASSERT(1 + 1 == 2);
	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		ASSERT(fds[0] < 0);
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	close(fds[0]);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_non_null(strstr(text, "test_check.c:"));
	assert_non_null(strstr(text, "fds[0] < 0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ends_the_process)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
