/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filters against the real kernel: each case runs in a child, because a
 * wrong call ends the process. Sanitizers need calls of their own, so under
 * them only the log mode can be installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seccomp/filter.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Wait status of a child that installs the filter and then makes one call by number. */
static int status_of(enum filter_who who, enum filter_mode mode, const long call[7])
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (filter_install(who, mode) != 0)
			_exit(99);
		syscall(call[0], call[1], call[2], call[3], call[4], call[5], call[6]);
		_exit(7);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void expect_killed(enum filter_who who, const long call[7])
{
	int status = status_of(who, FILTER_KILL, call);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void expect_passed(enum filter_who who, enum filter_mode mode, const long call[7])
{
	int status = status_of(who, mode, call);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static const long forbidden_to_both[][7] = {
        {SYS_execve},
        {SYS_ptrace},
        {SYS_setns},
        {SYS_unshare},
        {SYS_mount},
        {SYS_kill, 0, 0},
        {SYS_tgkill, 1, 1, 0},
        {SYS_fcntl, 0, F_SETOWN, 1},
        {SYS_fcntl, 0, F_SETSIG, SIGKILL},
        {SYS_clone},
        {SYS_prctl},
        {SYS_io_uring_setup, 1},
        {SYS_bpf},
        {SYS_capset},
        {SYS_process_vm_readv},
        {SYS_ioctl},
        {SYS_socket, AF_PACKET, SOCK_RAW},
        {SYS_socket, AF_VSOCK, SOCK_STREAM},
        {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER},
        {SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0},
        {SYS_mprotect, 0, 0, PROT_EXEC},
};

static const long allowed_to_both[][7] = {
        {SYS_getpid},
        {SYS_fcntl, 0, F_GETFL},
        {SYS_socket, AF_INET, SOCK_STREAM},
        {SYS_socket, AF_INET6, SOCK_DGRAM},
        {SYS_close, 0},
        {SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0},
};

static void test_forbidden(void **state)
{
	for (size_t i = 0; i < COUNT(forbidden_to_both); i++) {
		expect_killed(FILTER_SILO, forbidden_to_both[i]);
		expect_killed(FILTER_BROKER, forbidden_to_both[i]);
	}
}

static void test_allowed(void **state)
{
	for (size_t i = 0; i < COUNT(allowed_to_both); i++) {
		expect_passed(FILTER_SILO, FILTER_KILL, allowed_to_both[i]);
		expect_passed(FILTER_BROKER, FILTER_KILL, allowed_to_both[i]);
	}
}

/* The silo reads files, the broker also writes them. */
static void test_differences(void **state)
{
	const long open_read[7] = {SYS_openat, AT_FDCWD, (long)"/", O_RDONLY};
	const long open_write[7] = {SYS_openat, AT_FDCWD, (long)"/", O_WRONLY};
	const long open_create[7] = {SYS_openat, AT_FDCWD, (long)"/", O_RDONLY | O_CREAT};
	const long unix_socket[7] = {SYS_socket, AF_UNIX, SOCK_STREAM};
	const long nfnetlink[7] = {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER};
	const long rtnetlink[7] = {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE};
	expect_passed(FILTER_SILO, FILTER_KILL, open_read);
	expect_killed(FILTER_SILO, open_write);
	expect_killed(FILTER_SILO, open_create);
	expect_killed(FILTER_SILO, unix_socket);
	expect_passed(FILTER_SILO, FILTER_KILL, rtnetlink);
	expect_passed(FILTER_BROKER, FILTER_KILL, open_write);
	expect_passed(FILTER_BROKER, FILTER_KILL, unix_socket);
	/* The broker of dedicated mode looks for its workload by the interfaces' addresses. */
	expect_passed(FILTER_BROKER, FILTER_KILL, rtnetlink);
	expect_killed(FILTER_BROKER, nfnetlink);
	expect_killed(FILTER_SILO, nfnetlink);
}

static void test_modes(void **state)
{
	const long ptrace_call[7] = {SYS_ptrace, -1};
	expect_passed(FILTER_SILO, FILTER_LOG, ptrace_call);
	expect_passed(FILTER_BROKER, FILTER_OFF, ptrace_call);
	assert_int_equal(filter_mode_parse("log"), FILTER_LOG);
	assert_int_equal(filter_mode_parse("off"), FILTER_OFF);
	assert_int_equal(filter_mode_parse("Off"), filter_mode_parse(NULL));
	assert_int_equal(filter_mode_parse(""), filter_mode_parse("kill"));
}

int main(void)
{
	const struct CMUnitTest strict[] = {
	        cmocka_unit_test(test_forbidden),
	        cmocka_unit_test(test_allowed),
	        cmocka_unit_test(test_differences),
	        cmocka_unit_test(test_modes),
	};
	const struct CMUnitTest sanitized[] = {cmocka_unit_test(test_modes)};
	if (filter_mode_parse(NULL) == FILTER_KILL)
		return cmocka_run_group_tests(strict, NULL, NULL);
	return cmocka_run_group_tests(sanitized, NULL, NULL);
}
