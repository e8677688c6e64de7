/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A channel over a real socket pair: greeting, descriptors, full sockets, violations, no descriptor left
 * over. */
#include "../pb/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../pb/samples.h"
#include "base/fd.h"
#include "base/mem.h"
#include "ipc/chan.h"

static struct err err;
static struct chan_scratch scratch; /* shared by both ends, as by all channels of a process */
static struct chan a, b;
static struct chan_msg msg;
static long allocations_left = -1; /* negative = all succeed */

bool mem_should_fail(size_t len)
{
	if (allocations_left > 0)
		allocations_left--;
	return allocations_left == 0;
}

static void open_pair(enum ipc_role of_a, enum ipc_role of_b)
{
	int fds[2];
	assert_int_equal(fd_pair(fds), 0);
	chan_init(&a, fds[0], of_a, of_b, false, &scratch);
	chan_init(&b, fds[1], of_b, of_a, false, &scratch);
}

static int teardown(void **state)
{
	chan_done(&a);
	chan_done(&b);
	return 0;
}

static void greet(struct chan *from, struct chan *to)
{
	struct ipc_hello hello = {.uid = "u1"};
	assert_ok(chan_send_hello(from, &hello, -1, &err));
	assert_ok(chan_recv(to, &msg, &err));
	assert_int_equal(msg.rec.type, IPC_HELLO);
	chan_msg_done(&msg);
}

static void open_greeted(enum ipc_role of_a, enum ipc_role of_b)
{
	open_pair(of_a, of_b);
	greet(&a, &b);
	greet(&b, &a);
}

static int some_fd(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
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

static void test_greeting(void **state)
{
	open_pair(IPC_ROLE_SILO, IPC_ROLE_WARDEN);
	struct ipc_hello hello = {
	        .uid = "u1", .info = {.name = "n", .ns = "s", .service_account = "a"}, .netns_ino = 7};
	assert_ok(chan_send_hello(&a, &hello, some_fd(), &err));
	assert_ok(chan_recv(&b, &msg, &err));
	assert_string_equal(msg.rec.hello.release, CULVERT_VERSION);
	assert_int_equal(msg.rec.hello.role, IPC_ROLE_SILO);
	assert_int_equal(msg.rec.hello.proto_max, IPC_PROTO_MAX);
	assert_string_equal(msg.rec.hello.info.service_account, "a");
	assert_int_equal(msg.rec.hello.netns_ino, 7);
	assert_true(msg.fd >= 0 && (fcntl(msg.fd, F_GETFD) & FD_CLOEXEC));
	assert_int_equal(b.proto, 1);
	chan_msg_done(&msg);
	assert_int_equal(msg.fd, -1);
	assert_int_equal(chan_recv(&b, &msg, &err), -EAGAIN);
}

static void test_hello_comes_first_and_once(void **state)
{
	open_pair(IPC_ROLE_SILO, IPC_ROLE_WARDEN);
	struct ipc_record ready = {.type = IPC_READY};
	struct ipc_hello hello = {.uid = ""};
	assert_err(chan_send(&a, &ready, -1, &err), ERR_BAD_PHASE, "begins with one Hello");
	assert_ok(chan_send_hello(&a, &hello, -1, &err));
	assert_err(chan_send_hello(&a, &hello, -1, &err), ERR_BAD_PHASE, "begins with one Hello");
	assert_ok(chan_send(&a, &ready, -1, &err));
}

static void test_wrong_peer(void **state)
{
	int fds[2];
	struct ipc_hello hello = {.uid = ""};
	assert_int_equal(fd_pair(fds), 0);
	chan_init(&a, fds[0], IPC_ROLE_BROKER, IPC_ROLE_SILO, false, &scratch);
	chan_init(&b, fds[1], IPC_ROLE_SILO, IPC_ROLE_WARDEN, false, &scratch);
	assert_ok(chan_send_hello(&a, &hello, -1, &err));
	assert_err(chan_recv(&b, &msg, &err), ERR_BAD_SENDER, "a broker is not expected");
}

/* Every sample that one end may send arrives at the other as it was. */
static void test_records(void **state)
{
	open_greeted(IPC_ROLE_BROKER, IPC_ROLE_SILO);
	size_t cnt = 0;
	for (size_t i = 0; i < sample_cnt; i++) {
		const struct ipc_record *rec = &samples[i].rec;
		struct chan *from = &a, *to = &b;
		bool needs_fd = rec->type == IPC_LOG_PIPE || rec->type == IPC_CRL;
		int rc = rec->type == IPC_HELLO ? ERR_BAD_SENDER
		                                : chan_send(from, rec, needs_fd ? some_fd() : -1, &err);
		if (rc == ERR_BAD_SENDER) {
			from = &b;
			to = &a;
			rc = rec->type == IPC_HELLO ? ERR_BAD_SENDER
			                            : chan_send(from, rec, needs_fd ? some_fd() : -1, &err);
		}
		if (rc == ERR_BAD_SENDER)
			continue;
		assert_int_equal(rc, 0);
		cnt++;
		assert_ok(chan_recv(to, &msg, &err));
		assert_int_equal(msg.rec.type, rec->type);
		assert_int_equal(msg.rec.id, rec->id);
		assert_int_equal(msg.fd >= 0, needs_fd);
		chan_msg_done(&msg);
	}
	assert_true(cnt >= 19);
}

/* Puts bytes on the wire that no encoder of ours makes, with descriptors. */
static void send_raw(struct chan *from, const void *bytes, size_t len, size_t fd_cnt)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 4)];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (fd_cnt) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_cnt);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fd_cnt);
		memset(CMSG_DATA(c), 0, sizeof(int) * fd_cnt);
	}
	assert_int_equal(sendmsg(from->fd, &m, 0), len);
}

#define LOG_PIPE "\xf2\x01\x00"
#define FORGET_ALL "\xca\x02\x00"

static void test_violations(void **state)
{
	static const char large[IPC_RECORD_MAX + 1];
	size_t before = open_fds();
	static const struct {
		const char *bytes;
		size_t len, fd_cnt;
		int code;
		const char *text;
	} cases[] = {
	        {LOG_PIPE, 3, 0, ERR_BAD_FD, "LogPipe: descriptor is missing"},
	        {LOG_PIPE, 3, 2, ERR_BAD_FD, "more than one descriptor"},
	        {FORGET_ALL, 3, 0, ERR_BAD_SENDER, "ForgetAll: not permitted from silo to broker"},
	        {"\xfa\x01\x00", 3, 0, ERR_PROTOCOL, "AskWorkload: id 0"},
	        {"\x08\x01\xfa\x01\x00", 5, 1, ERR_BAD_FD, "AskWorkload: unexpected descriptor"},
	        {"\x08\x01", 2, 0, ERR_PROTOCOL, "has no body"},
	        {"\xff", 1, 1, ERR_PROTOCOL, "malformed"},
	        {"\x08\x01\x9a\x02\x00", 5, 0, ERR_PROTOCOL, "AskAddress: is not one address"},
	        {large, sizeof(large), 1, ERR_TOO_LARGE, "is above 32768 bytes"},
	        {"", 0, 0, -EPIPE, "closed"},
	        {"", 0, 1, -EPIPE, "closed"},
	};
	for (size_t i = 0; i < CNT(cases); i++) {
		open_greeted(IPC_ROLE_SILO, IPC_ROLE_BROKER);
		send_raw(&a, cases[i].bytes, cases[i].len, cases[i].fd_cnt);
		assert_err(chan_recv(&b, &msg, &err), cases[i].code, cases[i].text);
		teardown(NULL);
	}
	assert_int_equal(open_fds(), before);
}

/* What a later release asks is answered, what it only tells is dropped, neither ends the channel. */
static void test_unknown(void **state)
{
	open_greeted(IPC_ROLE_SILO, IPC_ROLE_BROKER);
	size_t before = open_fds();
	send_raw(&a, "\x08\x07\xfa\x03\x01\x01", 6, 1);
	send_raw(&a, "\xfa\x03\x00", 3, 0);
	struct ipc_record known = {.id = 8, .type = IPC_ASK_POLICIES};
	assert_ok(chan_send(&a, &known, -1, &err));
	assert_ok(chan_recv(&b, &msg, &err));
	assert_int_equal(msg.rec.type, IPC_ASK_POLICIES);
	chan_msg_done(&msg);
	assert_ok(chan_recv(&a, &msg, &err));
	assert_int_equal(msg.rec.type, IPC_UNSUPPORTED);
	assert_int_equal(msg.rec.id, 7);
	assert_int_equal(msg.rec.unsupported.type, 63);
	chan_msg_done(&msg);
	assert_int_equal(open_fds(), before);
	for (int i = 0; i < 40; i++)
		send_raw(&a, "\xfa\x03\x00", 3, 0);
	assert_err(chan_recv(&b, &msg, &err), ERR_TOO_MANY, "nothing but unknown");
}

/* A reader that stops: the queue takes its share in order, then says so; descriptors of the refused are
 * closed. */
static void test_full_queue(void **state)
{
	size_t before = open_fds();
	open_greeted(IPC_ROLE_WARDEN, IPC_ROLE_BROKER);
	size_t sent = 0;
	int rc = 0;
	for (; rc == 0 && sent < 5000; sent++) {
		struct ipc_record rec = {
		        .type = IPC_SILO_ATTACH, .silo_attach = {.uid = "u", .pid = (int32_t)sent}};
		rc = chan_send(&a, &rec, some_fd(), &err);
	}
	assert_int_equal(rc, -ENOBUFS);
	sent--;
	assert_int_equal(a.queue_cnt, CHAN_QUEUE_MAX);
	assert_true(chan_wants_write(&a));
	size_t received = 0;
	for (;;) {
		rc = chan_recv(&b, &msg, &err);
		if (rc == -EAGAIN && !chan_wants_write(&a))
			break;
		if (rc == -EAGAIN) {
			assert_int_equal(chan_flush(&a), 0);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(msg.rec.silo_attach.pid, received);
		assert_true(msg.fd >= 0);
		received++;
		chan_msg_done(&msg);
	}
	assert_int_equal(received, sent);
	assert_int_equal(a.queue_bytes, 0);
	teardown(NULL);
	assert_int_equal(open_fds(), before);
}

static void test_peer_gone(void **state)
{
	size_t before = open_fds();
	open_greeted(IPC_ROLE_WARDEN, IPC_ROLE_SILO);
	struct ipc_record drain = {.type = IPC_DRAIN};
	/* Unread data makes the kernel report a reset instead of an end. */
	assert_ok(chan_send(&a, &drain, -1, &err));
	chan_done(&b);
	assert_err(chan_recv(&a, &msg, &err), -EPIPE, "the silo has closed the channel");
	struct ipc_record attach = {.type = IPC_ATTACH_BROKER};
	assert_int_equal(chan_send(&a, &attach, some_fd(), &err), -EPIPE);
	chan_done(&a);
	chan_done(&a);
	assert_int_equal(open_fds(), before);
}

/* A refused record takes its descriptor along. */
static void test_refused_send_closes(void **state)
{
	open_greeted(IPC_ROLE_WARDEN, IPC_ROLE_SILO);
	size_t before = open_fds();
	struct ipc_record bad = {.type = IPC_NONE}, not_ours = {.type = IPC_READY},
	                  no_fd = {.type = IPC_DRAIN};
	assert_int_equal(chan_send(&a, &bad, some_fd(), &err), ERR_PROTOCOL);
	assert_int_equal(chan_send(&a, &not_ours, some_fd(), &err), ERR_BAD_SENDER);
	assert_int_equal(chan_send(&a, &no_fd, some_fd(), &err), ERR_BAD_FD);
	struct ipc_record attach = {.type = IPC_ATTACH_BROKER};
	assert_err(chan_send(&a, &attach, -1, &err), ERR_BAD_FD, "descriptor is missing");
	assert_int_equal(open_fds(), before);
	assert_int_equal(chan_recv(&b, &msg, &err), -EAGAIN);
}

static void test_pages(void **state)
{
	static char value[1025];
	struct string_match strings[31];
	memset(value, 'x', sizeof(value) - 1);
	for (size_t i = 0; i < CNT(strings); i++)
		strings[i] = (struct string_match){MATCH_EXACT, value};
	struct policy_match matches[2] = {
	        {.namespaces = strings, .namespace_cnt = 30}, {.namespaces = strings, .namespace_cnt = 31}};
	struct policy_clause clauses[2] = {
	        {.matches = matches, .match_cnt = 1}, {.matches = matches, .match_cnt = 2}};
	struct policy_rule rules[2] = {
	        {.clauses = clauses, .clause_cnt = 1}, {.clauses = clauses + 1, .clause_cnt = 1}};
	struct policy policies[] = {{.name = "big", .ns = "s", .rules = rules, .rule_cnt = 1},
	        {.name = "huge", .ns = "s", .rules = rules + 1, .rule_cnt = 1},
	        {.name = "big", .ns = "s", .rules = rules, .rule_cnt = 1}};
	struct ipc_record whole = {
	        .type = IPC_ANSWER_POLICIES, .answer_policies = {.policies = policies, .policy_cnt = 3}};
	open_greeted(IPC_ROLE_BROKER, IPC_ROLE_SILO);
	size_t skipped = 0, cnt = 0;
	assert_ok(chan_send_pages(&a, &whole, &skipped, &err));
	assert_int_equal(skipped, 1);
	for (bool last = false; !last;) {
		assert_ok(chan_recv(&b, &msg, &err));
		cnt += msg.rec.answer_policies.policy_cnt;
		last = ipc_is_last(&msg.rec);
		chan_msg_done(&msg);
	}
	assert_int_equal(cnt, 2);
}

static void test_no_leak(void **state)
{
	size_t before = open_fds();
	for (int i = 0; i < 1000; i++) {
		open_greeted(IPC_ROLE_WARDEN, IPC_ROLE_SILO);
		struct ipc_record attach = {.type = IPC_ATTACH_BROKER};
		assert_ok(chan_send(&a, &attach, some_fd(), &err));
		assert_ok(chan_send(&a, &attach, some_fd(), &err));
		assert_ok(chan_recv(&b, &msg, &err));
		chan_msg_done(&msg);
		send_raw(&a, LOG_PIPE, 3, i % 3);
		assert_ok(chan_recv(&b, &msg, &err));
		chan_msg_done(&msg);
		assert_true(chan_recv(&b, &msg, &err) < 0);
		teardown(NULL);
	}
	assert_int_equal(open_fds(), before);
}

static void test_allocation_failures(void **state)
{
	size_t before = open_fds();
	int rc = -ENOMEM;
	for (long n = 1; rc == -ENOMEM; n++) {
		open_greeted(IPC_ROLE_WARDEN, IPC_ROLE_BROKER);
		struct ipc_record rec = {.type = IPC_SILO_ATTACH, .silo_attach = {.uid = "u"}};
		assert_ok(chan_send(&a, &rec, some_fd(), &err));
		allocations_left = n;
		rc = chan_recv(&b, &msg, &err);
		allocations_left = -1;
		if (rc == 0)
			chan_msg_done(&msg);
		teardown(NULL);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(open_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_teardown(test_greeting, teardown),
	        cmocka_unit_test_teardown(test_hello_comes_first_and_once, teardown),
	        cmocka_unit_test_teardown(test_wrong_peer, teardown),
	        cmocka_unit_test_teardown(test_records, teardown),
	        cmocka_unit_test_teardown(test_violations, teardown),
	        cmocka_unit_test_teardown(test_unknown, teardown),
	        cmocka_unit_test_teardown(test_full_queue, teardown),
	        cmocka_unit_test_teardown(test_peer_gone, teardown),
	        cmocka_unit_test_teardown(test_refused_send_closes, teardown),
	        cmocka_unit_test_teardown(test_pages, teardown),
	        cmocka_unit_test_teardown(test_no_leak, teardown),
	        cmocka_unit_test_teardown(test_allocation_failures, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
