/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listeners and their options, made in a namespace of this test's own; needs root and is skipped without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "warden/drop.h"
#include "warden/listen.h"

static bool has_netns;

static int enter_netns(void **state)
{
	has_netns = unshare(CLONE_NEWNET) == 0;
	return 0;
}

static const struct settings usual = {
        .enable_proxy = true, .ipv6_enabled = true, .packet_mark = 1337, .inpod_port_reuse = true};

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);
	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

static void expect_row(const struct listen_spec *spec, enum ipc_fd_kind kind, const char *text)
{
	char dst[ADDR_STR_MAX];
	assert_int_equal(spec->kind, kind);
	assert_int_equal(spec->type, SOCK_STREAM);
	assert_string_equal(addr_format(&spec->addr, dst), text);
}

static void test_table(void **state)
{
	struct listen_spec specs[LISTEN_MAX];
	struct settings settings = usual;
	assert_int_equal(listen_table(&settings, specs), 3);
	expect_row(&specs[0], IPC_FD_INBOUND_HBONE, "[::]:15008");
	expect_row(&specs[1], IPC_FD_INBOUND_PLAINTEXT, "[::]:15006");
	expect_row(&specs[2], IPC_FD_OUTBOUND, "[::]:15001");
	settings.ipv6_enabled = false;
	assert_int_equal(listen_table(&settings, specs), 3);
	expect_row(&specs[0], IPC_FD_INBOUND_HBONE, "0.0.0.0:15008");
	settings.enable_proxy = false;
	assert_int_equal(listen_table(&settings, specs), 0);
}

static void expect_dns(const struct listen_spec *spec, int type, const char *text, bool is_optional)
{
	char dst[ADDR_STR_MAX];
	assert_int_equal(spec->kind, type == SOCK_DGRAM ? IPC_FD_DNS_UDP : IPC_FD_DNS_TCP);
	assert_int_equal(spec->type, type);
	assert_int_equal(spec->is_optional, is_optional);
	assert_string_equal(addr_format(&spec->addr, dst), text);
}

static void test_dns_table(void **state)
{
	struct listen_spec specs[LISTEN_MAX];
	struct settings settings = usual;
	settings.dns_enabled = true;
	settings.dns_localhost = true;
	settings.dns_addr = (struct addr){.port = 15053};
	assert_int_equal(listen_table(&settings, specs), 7);
	expect_dns(&specs[3], SOCK_DGRAM, "127.0.0.1:15053", false);
	expect_dns(&specs[4], SOCK_STREAM, "127.0.0.1:15053", false);
	expect_dns(&specs[5], SOCK_DGRAM, "[::1]:15053", true);
	expect_dns(&specs[6], SOCK_STREAM, "[::1]:15053", true);
	settings.ipv6_enabled = false;
	assert_int_equal(listen_table(&settings, specs), 5);
	settings.enable_proxy = false;
	settings.dns_localhost = false;
	settings.dns_addr.ip = ip_v4(10, 0, 0, 1);
	assert_int_equal(listen_table(&settings, specs), 2);
	expect_dns(&specs[0], SOCK_DGRAM, "10.0.0.1:15053", false);
}

static int open_first(const struct settings *settings, struct err *err)
{
	struct listen_spec specs[LISTEN_MAX];
	int fd = -1;
	assert_true(listen_table(settings, specs) > 0);
	int rc = listen_open(settings, &specs[0], &fd, err);
	return rc < 0 ? rc : fd;
}

static void expect_options(
        const struct settings *settings, int mark, int reuse_port, int reuse_addr, int transparent)
{
	int fd = open_first(settings, NULL);
	assert_true(fd >= 0);
	assert_int_equal(option(fd, SOL_SOCKET, SO_MARK), mark);
	assert_int_equal(option(fd, SOL_SOCKET, SO_REUSEPORT), reuse_port);
	assert_int_equal(option(fd, SOL_SOCKET, SO_REUSEADDR), reuse_addr);
	assert_int_equal(option(fd, SOL_IP, IP_TRANSPARENT), transparent);
	assert_int_equal(option(fd, SOL_SOCKET, SO_ACCEPTCONN), 1);
	if (settings->ipv6_enabled)
		assert_int_equal(option(fd, SOL_IPV6, IPV6_V6ONLY), 0);
	close(fd);
}

static void test_L2_L3_options(void **state)
{
	struct settings settings = usual;
	if (!has_netns)
		skip();
	expect_options(&settings, 1337, 1, 0, 1);
	settings.enable_orig_src_set = true;
	expect_options(&settings, 1337, 1, 0, 0);
	settings.enable_orig_src = true;
	expect_options(&settings, 1337, 1, 0, 1);
	settings.packet_mark = 0;
	settings.inpod_port_reuse = false;
	settings.ipv6_enabled = false;
	expect_options(&settings, 0, 0, 1, 1);
	settings.packet_mark = 7;
	settings.inpod_port_reuse = true;
	settings.dedicated = true;
	expect_options(&settings, 0, 0, 1, 1);
}

/* The daemon's own pod: one listener, none of the options that captured traffic needs (dataplane.md 2.9). */
static void test_self_options(void **state)
{
	struct listen_spec specs[LISTEN_MAX];
	const struct settings settings = usual;
	int fd = -1;
	assert_int_equal(listen_table_self(&settings, specs), 1);
	expect_row(&specs[0], IPC_FD_INBOUND_HBONE, "[::]:15008");
	if (!has_netns)
		skip();
	assert_int_equal(listen_open(&settings, &specs[0], &fd, NULL), 0);
	assert_int_equal(option(fd, SOL_SOCKET, SO_MARK), 0);
	assert_int_equal(option(fd, SOL_SOCKET, SO_REUSEPORT), 0);
	assert_int_equal(option(fd, SOL_IP, IP_TRANSPARENT), 0);
	close(fd);
}

/* In a process that holds nothing: whether the listener can be made. */
static int open_without_rights(const struct settings *settings)
{
	int status = 0;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct listen_spec specs[LISTEN_MAX];
		int fd = -1;
		listen_table(settings, specs);
		int rc = drop_caps(0, 0, NULL);
		if (rc == 0)
			rc = listen_open(settings, &specs[0], &fd, NULL);
		_exit(-rc);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* The source address must be kept, but the kernel does not let us: no start. Unset, it is kept where
 * possible. */
static void test_L7_source_must_be_kept(void **state)
{
	struct settings settings = usual;
	if (!has_netns)
		skip();
	settings.packet_mark = 0;
	assert_int_equal(open_without_rights(&settings), 0);
	settings.enable_orig_src_set = settings.enable_orig_src = true;
	assert_int_equal(open_without_rights(&settings), -EPERM);
}

/* Two daemons side by side share the port; one that does not want to is told why it fails, and nothing stays
 * open. */
static void test_sharing(void **state)
{
	struct settings alone = usual;
	struct err err = {0};
	if (!has_netns)
		skip();
	alone.inpod_port_reuse = false;
	int one = open_first(&usual, NULL);
	int two = open_first(&usual, NULL);
	assert_true(one >= 0 && two >= 0);
	int next = dup(two);
	close(next);
	assert_int_equal(open_first(&alone, &err), -EADDRINUSE);
	assert_string_equal(err.text,
	        "Bind([::]:15008, Os { code: 98, kind: AddrInUse, message: \"Address already in use\" })");
	assert_int_equal(dup(two), next);
	close(next);
	close(one);
	close(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_dns_table),
	        cmocka_unit_test(test_L2_L3_options), cmocka_unit_test(test_self_options),
	        cmocka_unit_test(test_L7_source_must_be_kept), cmocka_unit_test(test_sharing)};
	return cmocka_run_group_tests(tests, enter_netns, NULL);
}
