/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors beside ZDS packets: the rules of node-agent.md 1.3, and that none is ever left open. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "pb/zds.h"

static struct err err;
static int pair[2];
static struct arena *arena;
static struct zds_request req;
static int got_fd;

static int setup(void **state)
{
	arena = arena_new(ZDS_ARENA_MAX);
	got_fd = -1;
	return fd_pair(pair);
}

static int teardown(void **state)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	arena_unref(arena);
	return 0;
}

static size_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t cnt = 0;
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/* Sends bytes with cnt descriptors, or with credentials instead when cnt < 0. */
static void send_raw(const void *bytes, size_t len, int cnt)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 253)];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	if (cnt > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)cnt);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)cnt);
		for (int i = 0; i < cnt; i++) {
			int null = 0;
			memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &null, sizeof(int));
		}
	}
	assert_int_equal(sendmsg(pair[0], &msg, 0), len);
}

static int receive(void)
{
	return zds_recv_request(pair[1], arena, &req, &got_fd, &err);
}

#define ADD "\x0a\x04\x0a\x02u1"
#define KEEP "\x2a\x04\x0a\x02u1"

static void test_add_with_descriptor(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(zds_send(pair[0], (const uint8_t *)ADD, 6, null), 0);
	assert_ok(receive());
	assert_int_equal(req.type, ZDS_ADD);
	assert_true(got_fd >= 0);
	assert_true(fcntl(got_fd, F_GETFD) & FD_CLOEXEC);
	fd_close(&got_fd);
	fd_close(&null);
}

static void test_pairing(void **state)
{
	send_raw(ADD, 6, 0);
	assert_err(receive(), ERR_BAD_FD, "No control message");
	send_raw(KEEP, 6, 1);
	assert_err(receive(), ERR_BAD_FD, "Unexpected control message");
	send_raw(KEEP, 6, 0);
	assert_ok(receive());
	assert_int_equal(got_fd, -1);
}

/* Too many come before truncation, truncation before parsing, parsing before pairing. */
static void test_order(void **state)
{
	char large[2000] = {0};
	send_raw(large, sizeof(large), 3);
	assert_err(receive(), ERR_BAD_FD, "Expected 1 FD, got 3");
	send_raw(large, sizeof(large), 1);
	assert_err(receive(), ERR_TRUNCATED, "received truncated message");
	send_raw("\xff", 1, 1);
	assert_err(receive(), ERR_PROTOCOL, "malformed");
	send_raw(ADD, 6, 253);
	assert_err(receive(), ERR_BAD_FD, "Expected 1 FD, got 253");
}

/* Control messages of another kind are not ours to judge. */
static void test_credentials(void **state)
{
	int on = 1;
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	send_raw(KEEP, 6, 0);
	assert_ok(receive());
	send_raw(ADD, 6, 1);
	assert_ok(receive());
	assert_true(got_fd >= 0);
	fd_close(&got_fd);
}

static void test_end(void **state)
{
	assert_int_equal(receive(), -EAGAIN);
	fd_close(&pair[0]);
	assert_err(receive(), -EPIPE, "closed");
	assert_int_equal(zds_send(pair[1], (const uint8_t *)"\x0a\x00", 2, -1), -EPIPE);
}

/* A packet without bytes reads as a hang-up on this socket type, whatever came beside it. */
static void test_empty_packet(void **state)
{
	send_raw("", 0, 1);
	assert_err(receive(), -EPIPE, "closed");
}

static void test_no_leak(void **state)
{
	size_t before = open_fds();
	for (int i = 0; i < 1000; i++) {
		send_raw(ADD, 6, i % 4);
		if (receive() == 0)
			fd_close(&got_fd);
		send_raw(KEEP, 6, i % 3);
		if (receive() == 0)
			fd_close(&got_fd);
		send_raw("", 0, 1);
		assert_int_equal(receive(), -EPIPE);
	}
	assert_int_equal(open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_add_with_descriptor, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_pairing, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_credentials, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_end, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_empty_packet, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_no_leak, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
