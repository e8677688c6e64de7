/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listening and dialling: options, refusals, deadlines, source addresses, running out of descriptors. */
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>

#include "lab.h"

#include "conn/dial.h"
#include "conn/listen.h"

static int lab_setup(void **state)
{
	static struct lab lab;
	lab_open(&lab, *state != NULL, 0);
	*state = &lab;
	return 0;
}

static int lab_teardown(void **state)
{
	lab_close(*state);
	return 0;
}

/* A listening socket on loopback; its address. */
static int listen_on(int domain, int flags, int backlog, struct addr *ret_addr)
{
	struct sockaddr_storage sa;
	struct addr any = {
	        .ip = domain == AF_INET ? ip_v4(127, 0, 0, 1) : (struct ip){.family = 6, .b[15] = 1}};
	socklen_t len = addr_to_sockaddr(&any, &sa);
	int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(sock_local_addr(fd, ret_addr), 0);
	return fd;
}

struct guest_book {
	struct lab *lab;
	struct listener *listener;
	int fds[64];
	int cnt;
	int errors;
	int last_error;
	bool stop_on_accept;
};

static void on_accept(void *ctx, int fd)
{
	struct guest_book *b = ctx;
	b->fds[b->cnt++] = fd;
	if (b->stop_on_accept) {
		listen_stop(b->listener);
		b->listener = NULL;
	}
}

static void on_accept_error(void *ctx, int code)
{
	struct guest_book *b = ctx;
	b->errors++;
	b->last_error = code;
}

static const struct listen_events listen_events = {.on_accept = on_accept, .on_error = on_accept_error};

struct call {
	struct lab *lab;
	int done;
	int code;
	struct stream *stream;
	int warnings;
	char step[32];
	int warning;
};

static void on_dialled(void *ctx, int code, struct stream *stream)
{
	struct call *c = ctx;
	c->done++;
	c->code = code;
	c->stream = stream;
}

static void on_warning(void *ctx, const char *step, int code)
{
	struct call *c = ctx;
	c->warnings++;
	c->warning = code;
	(void)snprintf(c->step, sizeof(c->step), "%s", step);
}

static const struct dial_events dial_events = {.on_done = on_dialled, .on_warning = on_warning};

static struct dial *dial(struct lab *lab, struct call *c, const struct dial_opts *opts)
{
	struct dial *d = NULL;
	*c = (struct call){.lab = lab};
	assert_int_equal(dial_start(lab->io, opts, &dial_events, c, &d), 0);
	assert_int_equal(c->done, 0);
	return d;
}

static int get_int(int fd, int level, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);
	getsockopt(fd, level, option, &value, &len);
	return value;
}

static void meets(void **state)
{
	struct lab *lab = *state;
	static const int domains[] = {AF_INET, AF_INET6};
	for (int i = 0; i < 4; i++) {
		struct guest_book b = {.lab = lab};
		struct listen_opts opts = {.nodelay = i % 2, .keepalive = {i % 2, 180, 180, 9, 7000}};
		struct dial_opts to = {.keepalive = {true, 33, 34, 5, 0}};
		struct call calls[10];
		int fd = listen_on(domains[i / 2], i % 2 ? SOCK_NONBLOCK : 0, 128, &to.dst);
		assert_int_equal(listen_start(lab->io, fd, &opts, &listen_events, &b, &b.listener), 0);
		for (int k = 0; k < 10; k++)
			dial(lab, &calls[k], &to);
		lab_until(lab, b.cnt == 10);
		for (int k = 0; k < 10; k++) {
			lab_until(lab, calls[k].done);
			assert_int_equal(calls[k].code, 0);
			int dialled = sock_fd(calls[k].stream);
			assert_int_equal(get_int(dialled, IPPROTO_TCP, TCP_NODELAY), 1);
			assert_int_equal(get_int(dialled, IPPROTO_TCP, TCP_KEEPIDLE), 33);
			assert_int_equal(fcntl(dialled, F_GETFD), FD_CLOEXEC);
			assert_int_equal(fcntl(b.fds[k], F_GETFD), FD_CLOEXEC);
			assert_int_equal(get_int(b.fds[k], IPPROTO_TCP, TCP_NODELAY), i % 2);
			assert_int_equal(get_int(b.fds[k], SOL_SOCKET, SO_KEEPALIVE), i % 2);
			stream_free(calls[k].stream);
			close(b.fds[k]);
		}
		listen_stop(b.listener);
		/* Refused from this moment on. */
		dial(lab, &calls[0], &to);
		lab_until(lab, calls[0].done);
		assert_int_equal(calls[0].code, -ECONNREFUSED);
		assert_null(calls[0].stream);
	}
	listen_stop(NULL);
	dial_cancel(NULL);
}

static void stops_in_callback(void **state)
{
	struct lab *lab = *state;
	struct guest_book b = {.lab = lab, .stop_on_accept = true};
	struct listen_opts opts = {0};
	struct dial_opts to = {0};
	struct call calls[5];
	int fd = listen_on(AF_INET, 0, 128, &to.dst);
	assert_int_equal(listen_start(lab->io, fd, &opts, &listen_events, &b, &b.listener), 0);
	for (int k = 0; k < 5; k++)
		dial(lab, &calls[k], &to);
	for (int k = 0; k < 5; k++) {
		lab_until(lab, calls[k].done);
		stream_free(calls[k].stream);
	}
	lab_until(lab, !b.listener);
	assert_int_equal(b.cnt, 1);
	close(b.fds[0]);
}

static void keeps_deadlines(void **state)
{
	struct lab *lab = *state;
	struct dial_opts to = {.timeout_ms = 80};
	struct call calls[4];
	/* A full backlog: the kernel lets further SYNs go unanswered. */
	int fd = listen_on(AF_INET, 0, 0, &to.dst);
	int cnt = 0;
	uint64_t start = clock_ms();
	for (int k = 0; k < 4; k++)
		dial(lab, &calls[k], &to);
	for (int k = 0; k < 4; k++) {
		lab_until(lab, calls[k].done);
		cnt += calls[k].code == -ETIMEDOUT;
		assert_true(calls[k].code == 0 || calls[k].code == -ETIMEDOUT);
		stream_free(calls[k].stream);
	}
	assert_true(cnt >= 1);
	assert_in_range(clock_ms() - start, 80, 1000);
	/* Given up by the owner at once, after a turn, and when it is done already. */
	for (int turns = 0; turns < 3; turns++) {
		struct dial *d = dial(lab, &calls[0], &to);
		for (int i = 0; i < turns; i++)
			io_turn(lab->io, true);
		if (!calls[0].done)
			dial_cancel(d);
		lab_sleep(lab, 10);
		stream_free(calls[0].stream);
	}
	close(fd);
}

/* A connection from a port of ours; its client's port as the server sees it. */
static uint16_t port_of(struct lab *lab, struct guest_book *b, struct call *c, const struct dial_opts *to)
{
	struct addr peer;
	int cnt = b->cnt;
	dial(lab, c, to);
	lab_until(lab, c->done && b->cnt == cnt + 1);
	assert_int_equal(c->code, 0);
	assert_int_equal(c->warnings, 0);
	assert_int_equal(sock_peer_addr(b->fds[cnt], &peer), 0);
	assert_true(ip_eq(&peer.ip, &to->src));
	return peer.port;
}

/* Ports of preserved sources: ours one after the other, and the kernel's where ours cannot be had. */
static void chooses_ports(struct lab *lab, struct guest_book *b, const struct dial_opts *opts)
{
	struct dial_ports ports = {.next = DIAL_PORT_CNT - 1, .step = 1};
	struct dial_opts to = *opts;
	struct addr at = {.ip = opts->src.family == 4 ? ip_v4(0, 0, 0, 0) : (struct ip){.family = 6}};
	struct sockaddr_storage sa;
	struct call calls[6];
	int on = 1;
	to.ports = &ports;
	assert_int_equal(port_of(lab, b, &calls[0], &to), DIAL_PORT_MIN + DIAL_PORT_CNT - 1);
	assert_int_equal(port_of(lab, b, &calls[1], &to), DIAL_PORT_MIN);
	/* An application listens on the next one. */
	at.port = DIAL_PORT_MIN + 1;
	socklen_t len = addr_to_sockaddr(&at, &sa);
	int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(port_of(lab, b, &calls[2], &to), DIAL_PORT_MIN + 2);
	/* It listens wherever we look. */
	ports = (struct dial_ports){.next = 1, .step = 0};
	assert_true(port_of(lab, b, &calls[3], &to) >= DIAL_PORT_MIN + DIAL_PORT_CNT);
	/* A connection to the same server has the port: another socket, within the same dial, or none when it
	 * is given up. */
	ports.next = 2;
	assert_true(port_of(lab, b, &calls[4], &to) >= DIAL_PORT_MIN + DIAL_PORT_CNT);
	assert_int_equal(get_int(sock_fd(calls[4].stream), SOL_SOCKET, SO_MARK), (int)to.mark);
	dial_cancel(dial(lab, &calls[5], &to));
	lab_sleep(lab, 10);
	assert_int_equal(calls[5].done, 0);
	close(fd);
	for (int i = 0; i < 5; i++)
		stream_free(calls[i].stream);
}

/* The test's own network namespace, so that addresses and marks are ours. */
static int in_namespace(int fd, size_t len)
{
	struct lab lab;
	struct guest_book b = {.lab = &lab}, b6 = {.lab = &lab};
	struct listen_opts opts = {0};
	struct call c;
	struct addr peer;
	struct dial_opts to6 = {.mark = 1337, .src = {.family = 6, .b = {0xfd, [15] = 7}}};
	struct dial_opts to = {.mark = 1337, .src = ip_v4(203, 0, 113, 7)};
	if (unshare(CLONE_NEWNET) < 0 || system("ip link set lo up && ip addr add 10.1.2.3/32 dev lo && "
	                                        "ip route add local 203.0.113.0/24 dev lo && "
	                                        "ip route add local fd00::/64 dev lo") != 0)
		return 77;
	lab_open(&lab, false, 0);
	int l = listen_on(AF_INET, 0, 128, &to.dst);
	assert_int_equal(listen_start(lab.io, l, &opts, &listen_events, &b, &b.listener), 0);
	/* A source that is no address of ours. */
	dial(&lab, &c, &to);
	lab_until(&lab, c.done && b.cnt == 1);
	assert_int_equal(c.code, 0);
	assert_int_equal(c.warnings, 0);
	assert_int_equal(get_int(sock_fd(c.stream), SOL_SOCKET, SO_MARK), 1337);
	assert_int_equal(sock_peer_addr(b.fds[0], &peer), 0);
	assert_true(ip_eq(&peer.ip, &to.src));
	stream_free(c.stream);
	chooses_ports(&lab, &b, &to);
	int l6 = listen_on(AF_INET6, 0, 128, &to6.dst);
	assert_int_equal(listen_start(lab.io, l6, &opts, &listen_events, &b6, &b6.listener), 0);
	chooses_ports(&lab, &b6, &to6);
	listen_stop(b6.listener);
	int cnt = b.cnt;
	/* To itself: nothing is spoofed. */
	to.src = to.dst.ip;
	dial(&lab, &c, &to);
	lab_until(&lab, c.done && b.cnt == cnt + 1);
	assert_int_equal(get_int(sock_fd(c.stream), IPPROTO_IP, IP_TRANSPARENT), 0);
	stream_free(c.stream);
	/* Of another family: fails at connect. */
	to.src = (struct ip){.family = 6, .b = {0xfd}};
	dial(&lab, &c, &to);
	lab_until(&lab, c.done);
	assert_true(c.code < 0);
	/* Without the capability: a warning, and the plain way; a mark is a must. */
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	to.src = ip_v4(203, 0, 113, 7);
	to.mark = 0;
	dial(&lab, &c, &to);
	lab_until(&lab, c.done && b.cnt == cnt + 2);
	assert_int_equal(c.code, 0);
	assert_int_equal(c.warnings, 1);
	assert_string_equal(c.step, "set transparent");
	assert_int_equal(c.warning, -EPERM);
	stream_free(c.stream);
	to.mark = 1337;
	dial(&lab, &c, &to);
	lab_until(&lab, c.done);
	assert_int_equal(c.code, -EPERM);
	listen_stop(b.listener);
	lab_close(&lab);
	return 0;
}

static void preserves_sources(void **state)
{
	struct lab *lab = *state;
	int fd[2];
	if (geteuid() != 0)
		skip();
	lab_unix(fd);
	lab_join(lab, lab_peer(fd, in_namespace, 0));
	close(fd[0]);
}

/* Without descriptors it pauses, and goes on when there are some. */
static void survives_famine(void **state)
{
	struct lab *lab = *state;
	struct guest_book b = {.lab = lab};
	struct listen_opts opts = {0};
	struct addr addr;
	struct sockaddr_storage sa;
	struct rlimit old, tight;
	int clients[3];
	int fd = listen_on(AF_INET, 0, 128, &addr);
	socklen_t len = addr_to_sockaddr(&addr, &sa);
	for (int i = 0; i < 3; i++)
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	getrlimit(RLIMIT_NOFILE, &old);
	tight = old;
	tight.rlim_cur = 4;
	setrlimit(RLIMIT_NOFILE, &tight);
	/* The kernel notes the limit when the accept begins. */
	assert_int_equal(listen_start(lab->io, fd, &opts, &listen_events, &b, &b.listener), 0);
	for (int i = 0; i < 3; i++)
		(void)connect(clients[i], (struct sockaddr *)&sa, len);
	uint64_t turns = 0, end = clock_ms() + 400;
	struct rusage before, after;
	getrusage(RUSAGE_SELF, &before);
	for (; clock_ms() < end; turns++)
		io_turn(lab->io, true);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(b.last_error, -EMFILE);
	/* 10, 20, 40 ... ms; each pause may meet the queue's three connections. */
	assert_in_range(b.errors, 1, 30);
	/* The lab's own tick wakes every 2 ms. */
	assert_true(turns < 400);
	setrlimit(RLIMIT_NOFILE, &old);
	lab_until(lab, b.cnt == 3);
	for (int i = 0; i < 3; i++) {
		close(clients[i]);
		close(b.fds[i]);
	}
	listen_stop(b.listener);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lab_setup, lab_teardown)

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	        T(meets),
	        {"meets as on Linux 6.1", meets, lab_setup, lab_teardown, (void *)1},
	        T(stops_in_callback),
	        T(keeps_deadlines),
	        T(preserves_sources),
	        T(survives_famine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
