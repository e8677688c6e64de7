/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is left after dropping, read back from the kernel across an exec as
 * uid 0: the way a silo is executed. Needs root and is skipped without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "warden/drop.h"

/* Runs prepare in a child, then executes grep over its own /proc status; the lines go to text. */
static void status_after(int (*prepare)(void), char *text, size_t cap)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		if (prepare() < 0)
			_exit(99);
		execlp("grep", "grep", "-E", "^(Cap|NoNewPrivs|Uid)", "/proc/self/status", NULL);
		_exit(98);
	}
	close(fds[1]);
	size_t len = 0;
	for (ssize_t n = 1; n > 0 && len < cap - 1; len += (size_t)n) {
		n = read(fds[0], text + len, cap - 1 - len);
		if (n < 0)
			n = 0;
	}
	text[len] = '\0';
	close(fds[0]);
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int as_silo(void)
{
	if (drop_no_new_privs(NULL) < 0)
		return -1;
	return drop_caps(DROP_CAP(CAP_NET_RAW), DROP_CAP(CAP_NET_RAW), NULL);
}

/* As the chart grants it: nothing to touch the bounding set with. */
static int as_silo_of_the_chart(void)
{
	const uint64_t chart = DROP_CAP(CAP_SYS_ADMIN) | DROP_CAP(CAP_NET_ADMIN) | DROP_CAP(CAP_NET_RAW);
	if (drop_caps(chart, ~UINT64_C(0), NULL) < 0)
		return -1;
	return as_silo();
}

static int as_warden(void)
{
	const uint64_t keep = DROP_CAP(CAP_SYS_ADMIN) | DROP_CAP(CAP_NET_RAW);
	return drop_no_new_privs(NULL) < 0 ? -1 : drop_caps(keep, keep, NULL);
}

static int as_broker(void)
{
	if (drop_no_new_privs(NULL) < 0 || drop_caps(~UINT64_C(0), 0, NULL) < 0 || drop_uid(1337, NULL) < 0)
		return -1;
	return drop_caps(0, 0, NULL);
}

static void require_root(void)
{
	uint64_t held = 0;
	assert_int_equal(drop_caps_held(&held), 0);
	if (geteuid() != 0 || !(held & DROP_CAP(CAP_SETPCAP)) || !(held & DROP_CAP(CAP_SETUID)))
		skip();
}

static void test_silo(void **state)
{
	char text[1024];
	require_root();
	status_after(as_silo, text, sizeof(text));
	assert_non_null(strstr(text, "CapPrm:\t0000000000002000"));
	assert_non_null(strstr(text, "CapEff:\t0000000000002000"));
	assert_non_null(strstr(text, "CapBnd:\t0000000000002000"));
	assert_non_null(strstr(text, "NoNewPrivs:\t1"));
}

static void test_silo_of_the_chart(void **state)
{
	char text[1024];
	require_root();
	status_after(as_silo_of_the_chart, text, sizeof(text));
	assert_non_null(strstr(text, "CapPrm:\t0000000000002000"));
	assert_non_null(strstr(text, "CapEff:\t0000000000002000"));
	assert_null(strstr(text, "CapBnd:\t0000000000002000"));
}

static void test_warden(void **state)
{
	char text[1024];
	require_root();
	status_after(as_warden, text, sizeof(text));
	assert_non_null(strstr(text, "CapPrm:\t0000000000202000"));
	assert_non_null(strstr(text, "CapBnd:\t0000000000202000"));
}

static void test_broker(void **state)
{
	char text[1024];
	require_root();
	status_after(as_broker, text, sizeof(text));
	assert_non_null(strstr(text, "Uid:\t1337\t1337\t1337\t1337"));
	assert_non_null(strstr(text, "CapPrm:\t0000000000000000"));
	assert_non_null(strstr(text, "CapBnd:\t0000000000000000"));
	assert_non_null(strstr(text, "CapAmb:\t0000000000000000"));
}

static void test_text(void **state)
{
	struct buf text;
	buf_init(&text, 1024);
	drop_caps_text(DROP_CAP(CAP_NET_RAW) | DROP_CAP(CAP_CHOWN), &text);
	assert_string_equal(buf_cstr(&text), "chown net_raw");
	buf_clear(&text);
	drop_caps_text(0, &text);
	assert_string_equal(buf_cstr(&text), "none");
	buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_silo),
	        cmocka_unit_test(test_silo_of_the_chart),
	        cmocka_unit_test(test_warden),
	        cmocka_unit_test(test_broker),
	        cmocka_unit_test(test_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
