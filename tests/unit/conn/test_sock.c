/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets as streams: order, ends, breaks, back-pressure, memory, letting go at any moment. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "lab.h"

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

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int cnt = 0;
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt - 2;
}

/* Writes len bytes, expects them back, ends, expects the end. */
static int peer_echoed(int fd, size_t len)
{
	if (peer_write(fd, len, 65536) < 0 || peer_read(fd, len, false) < 0)
		return 1;
	shutdown(fd, SHUT_WR);
	return peer_read(fd, 0, true) < 0 ? 2 : 0;
}

static void run_echo(struct lab *lab, int fd[2], int (*body)(int, size_t), size_t len)
{
	struct owner o;
	pid_t pid = lab_peer(fd, body, len);
	owner_open(&o, lab, fd[0]);
	o.echo = o.stream;
	o.obeys = true;
	lab_until(lab, o.finished);
	lab_join(lab, pid);
	assert_false(o.is_wrong);
	assert_int_equal(o.got, len);
	assert_int_equal(o.eofs, 1);
	assert_int_equal(o.error, 0);
	assert_int_equal(o.stream->taken, len);
	stream_free(o.stream);
	lab_until(lab, io_in_flight(lab->io) == 0);
}

static void echoes(void **state)
{
	struct lab *lab = *state;
	int fd[2];
	lab_tcp(fd);
	run_echo(lab, fd, peer_echoed, 5);
	lab_unix(fd);
	run_echo(lab, fd, peer_echoed, 100000);
	assert_int_equal(count_threads(), 1);
}

/* One byte per write, each read back before the next. */
static int peer_dribbles(int fd, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = pattern(i), back = 0;
		if (write(fd, &byte, 1) != 1 || read(fd, &back, 1) != 1 || back != byte)
			return 1;
	}
	shutdown(fd, SHUT_WR);
	return peer_read(fd, 0, true) < 0 ? 2 : 0;
}

/* One byte per write, all of them before any is read. */
static int peer_sprinkles(int fd, size_t len)
{
	return peer_write(fd, len, 1) < 0 || peer_read(fd, len, false) < 0 || shutdown(fd, SHUT_WR) < 0 ||
	       peer_read(fd, 0, true) < 0;
}

static void echoes_single_bytes(void **state)
{
	int fd[2];
	lab_tcp(fd);
	run_echo(*state, fd, peer_dribbles, 3000);
	lab_tcp(fd);
	run_echo(*state, fd, peer_sprinkles, 20000);
}

/* Writes and reads at the same time. */
static int peer_bulk(int fd, size_t len)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(peer_write(fd, len, 65536) < 0 || shutdown(fd, SHUT_WR) < 0);
	int status = 1;
	int r = peer_read(fd, len, true);
	waitpid(pid, &status, 0);
	return r < 0 ? 1 : status != 0;
}

static void echoes_bulk(void **state)
{
	int fd[2];
	lab_tcp(fd);
	run_echo(*state, fd, peer_bulk, 100u << 20);
	lab_unix(fd);
	run_echo(*state, fd, peer_bulk, 10u << 20);
}

/* Bytes now and then, so that the way of receiving changes back and forth. */
static int peer_moody(int fd, size_t len)
{
	size_t pos = 0;
	uint8_t *buf = malloc(len);
	for (size_t i = 0; i < len; i++)
		buf[i] = pattern(i);
	for (int i = 0; pos < len; i++) {
		size_t n = i % 9 < 4 ? 300000 : 10;
		n = len - pos < n ? len - pos : n;
		for (size_t off = 0; off < n;) {
			ssize_t w = write(fd, buf + pos + off, n - off);
			if (w < 0)
				return 1;
			off += (size_t)w;
		}
		for (size_t off = 0; off < n;) {
			uint8_t back[4096];
			ssize_t r = read(fd, back, n - off < sizeof(back) ? n - off : sizeof(back));
			if (r <= 0 || memcmp(back, buf + pos + off, (size_t)r) != 0)
				return 2;
			off += (size_t)r;
		}
		pos += n;
	}
	free(buf);
	shutdown(fd, SHUT_WR);
	return peer_read(fd, 0, true) < 0 ? 3 : 0;
}

static void changes_pace(void **state)
{
	int fd[2];
	lab_tcp(fd);
	run_echo(*state, fd, peer_moody, 20u << 20);
}

static int peer_ends_first(int fd, size_t len)
{
	shutdown(fd, SHUT_WR);
	return peer_read(fd, len, true) < 0;
}

/* Ends, and only then, slowly, takes far more than socket buffers hold. */
static int peer_downloads(int fd, size_t len)
{
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < 3; i++) {
		usleep(30000);
		static uint8_t buf[1 << 20];
		if (recv(fd, buf, sizeof(buf), MSG_PEEK) <= 0)
			return 1;
	}
	return peer_read(fd, len, true) < 0;
}

/* A peer that has ended still gets everything: without spinning, without a worker thread. */
static void feeds_a_peer_that_ended(void **state)
{
	enum { LEN = 24 << 20, CNT = 3 };
	struct lab *lab = *state;
	struct owner o[CNT];
	pid_t pids[CNT];
	for (int i = 0; i < CNT; i++) {
		int fd[2];
		if (i)
			lab_tcp(fd);
		else
			lab_unix(fd);
		pids[i] = lab_peer(fd, peer_downloads, LEN);
		owner_open(&o[i], lab, fd[0]);
		assert_int_equal(owner_send(&o[i], 0, LEN), 0);
		stream_shutdown(o[i].stream);
	}
	/* One is let go while it waits for room. */
	struct owner gone;
	int fd[2];
	lab_tcp(fd);
	owner_open(&gone, lab, fd[0]);
	shutdown(fd[1], SHUT_WR);
	assert_int_equal(owner_send(&gone, 0, LEN), 0);
	lab_sleep(lab, 20);
	stream_free(gone.stream);
	for (int i = 0; i < CNT; i++) {
		lab_until(lab, o[i].finished);
		lab_join(lab, pids[i]);
		assert_int_equal(o[i].stream->taken, LEN);
		stream_free(o[i].stream);
	}
	close(fd[1]);
	assert_int_equal(count_threads(), 1);
}

static int peer_ends_last(int fd, size_t len)
{
	return peer_read(fd, 0, true) < 0 || peer_write(fd, len, 1000) < 0;
}

static void closes_by_halves(void **state)
{
	struct lab *lab = *state;
	struct owner o;
	int fd[2];
	lab_tcp(fd);
	pid_t pid = lab_peer(fd, peer_ends_first, 300000);
	owner_open(&o, lab, fd[0]);
	lab_until(lab, o.eofs);
	assert_int_equal(owner_send(&o, 0, 300000), 0);
	stream_shutdown(o.stream);
	stream_shutdown(o.stream);
	assert_int_equal(owner_send(&o, 0, 1), -EPIPE);
	lab_until(lab, o.finished);
	lab_join(lab, pid);
	stream_free(o.stream);

	lab_tcp(fd);
	pid = lab_peer(fd, peer_ends_last, 300000);
	owner_open(&o, lab, fd[0]);
	stream_shutdown(o.stream);
	lab_until(lab, o.eofs);
	assert_int_equal(o.finished, 1);
	assert_int_equal(o.got, 300000);
	assert_false(o.is_wrong);
	lab_join(lab, pid);
	stream_free(o.stream);
}

static int peer_resets(int fd, size_t len)
{
	struct linger linger = {.l_onoff = 1};
	if (peer_write(fd, len, 1000) < 0)
		return 1;
	usleep(50000);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return close(fd);
}

static int peer_is_reset(int fd, size_t len)
{
	uint8_t byte;
	ssize_t r = read(fd, &byte, 1);
	return r == -1 && errno == ECONNRESET ? 0 : 1;
}

static void breaks(void **state)
{
	struct lab *lab = *state;
	struct owner o;
	int fd[2];
	lab_tcp(fd);
	pid_t pid = lab_peer(fd, peer_resets, 5000);
	owner_open(&o, lab, fd[0]);
	o.free_on_error = true;
	lab_until(lab, o.error);
	assert_int_equal(o.error, -ECONNRESET);
	assert_string_equal(o.text, "Connection reset by peer (os error 104)");
	assert_int_equal(o.got, 5000);
	assert_int_equal(o.eofs, 0);
	lab_join(lab, pid);

	lab_tcp(fd);
	pid = lab_peer(fd, peer_is_reset, 0);
	owner_open(&o, lab, fd[0]);
	stream_abort(o.stream);
	lab_join(lab, pid);
}

static int peer_reads_then_is_reset(int fd, size_t len)
{
	uint8_t bytes[65536];
	ssize_t r;
	usleep(100000);
	while ((r = read(fd, bytes, sizeof(bytes))) > 0)
		len -= (size_t)r;
	return r < 0 && errno == ECONNRESET && len == 0 ? 0 : 1;
}

static int peer_sleeps(int fd, size_t len)
{
	(void)fd;
	usleep((useconds_t)len * 1000);
	return 0;
}

/* What was written comes first, as far as the peer takes it in time. */
static void resets_after_what_was_written(void **state)
{
	struct lab *lab = *state;
	struct owner o;
	int fd[2];
	lab_tcp(fd);
	pid_t pid = lab_peer(fd, peer_reads_then_is_reset, 2000000);
	owner_open(&o, lab, fd[0]);
	assert_int_equal(owner_send(&o, 0, 2000000), 0);
	stream_reset(o.stream);
	lab_join(lab, pid);

	/* The peer reads nothing and has no room: it is cut all the same. */
	lab_tcp(fd);
	pid = lab_peer(fd, peer_sleeps, 2 * STREAM_RESET_MS);
	owner_open(&o, lab, fd[0]);
	assert_int_equal(owner_send(&o, 0, 20000000), 0);
	stream_reset(o.stream);
	uint64_t began = clock_ms();
	lab_sleep(lab, STREAM_RESET_MS / 2);
	lab_until(lab, io_in_flight(lab->io) == 0);
	assert_true(clock_ms() - began < LAB_TIMEOUT_MS / 2);
	lab_join(lab, pid);

	/* Nothing waits: at once. */
	lab_tcp(fd);
	pid = lab_peer(fd, peer_is_reset, 0);
	owner_open(&o, lab, fd[0]);
	stream_reset(o.stream);
	lab_join(lab, pid);
	stream_reset(NULL);
}

/* Says something that nobody reads, takes its time, and must find all that was written, then the end. */
static int peer_talks_and_reads_to_the_end(int fd, size_t len)
{
	uint8_t bytes[65536] = {0};
	ssize_t r;
	if (write(fd, bytes, 1000) != 1000)
		return 1;
	usleep(100000);
	while ((r = read(fd, bytes, sizeof(bytes))) > 0)
		len -= (size_t)r;
	return r == 0 && len == 0 ? 0 : 1;
}

/* Refusing: by reset when nothing was said, else all that was, then the end. */
static void refuses(void **state)
{
	struct lab *lab = *state;
	struct owner o;
	int fd[2];
	lab_tcp(fd);
	pid_t pid = lab_peer(fd, peer_is_reset, 0);
	owner_open(&o, lab, fd[0]);
	stream_refuse(o.stream, true);
	lab_join(lab, pid);

	lab_tcp(fd);
	pid = lab_peer(fd, peer_talks_and_reads_to_the_end, 10);
	owner_open(&o, lab, fd[0]);
	assert_int_equal(owner_send(&o, 0, 10), 0);
	stream_refuse(o.stream, true);
	lab_join(lab, pid);

	/* Who never ends is left after a while. */
	lab_tcp(fd);
	pid = lab_peer(fd, peer_sleeps, 2 * STREAM_RESET_MS);
	owner_open(&o, lab, fd[0]);
	assert_int_equal(owner_send(&o, 0, 10), 0);
	stream_refuse(o.stream, true);
	lab_sleep(lab, STREAM_RESET_MS / 2);
	lab_until(lab, io_in_flight(lab->io) == 0);
	lab_join(lab, pid);
	stream_refuse(NULL, true);
}

/* The peer stops reading: writing fails, its words are still heard, then the break is told. */
static void hears_out_a_deaf_peer(void **state)
{
	struct lab *lab = *state;
	struct owner o;
	int fd[2];
	lab_unix(fd);
	owner_open(&o, lab, fd[0]);
	shutdown(fd[1], SHUT_RD);
	assert_int_equal(owner_send(&o, 0, 10), 0);
	lab_sleep(lab, 20);
	assert_int_equal(owner_send(&o, 0, 10), -EPIPE);
	assert_int_equal(o.error, 0);
	assert_int_equal(peer_write(fd[1], 9000, 9000), 0);
	lab_until(lab, o.got == 9000);
	assert_int_equal(o.error, 0);
	close(fd[1]);
	lab_until(lab, o.error);
	assert_int_equal(o.error, -EPIPE);
	assert_int_equal(o.eofs, 1);
	assert_int_equal(o.finished, 0);
	stream_free(o.stream);
}

static int peer_writes(int fd, size_t len)
{
	return peer_write(fd, len, 65536) < 0;
}

static int peer_naps(int fd, size_t len)
{
	usleep(400000);
	return peer_read(fd, len, true) < 0;
}

/* One connection feeds another whose reader is slow: memory stays bounded and nothing is lost. */
static void bounds_memory(void **state)
{
	struct lab *lab = *state;
	struct owner from, to;
	int a[2], b[2];
	size_t len = 40u << 20;
	lab_tcp(a);
	pid_t writer = lab_peer(a, peer_writes, len);
	lab_tcp(b);
	pid_t sink = lab_peer(b, peer_naps, len);
	owner_open(&from, lab, a[0]);
	owner_open(&to, lab, b[0]);
	from.echo = to.stream;
	from.obeys = true;
	/* The reading side wakes when the writing side has drained. */
	stream_set_events(to.stream, &owner_events, &from);
	lab_until(lab, from.eofs && from.finished);
	lab_join(lab, sink);
	lab_join(lab, writer);
	assert_true(from.drained > 0);
	assert_true(from.most_queued < STREAM_HIGH_LEN + (512u << 10));
	assert_true(from.most_used < 4u << 20);
	stream_free(from.stream);
	stream_free(to.stream);
}

/* Paused before it began: bytes and end wait, in bounds, and come in order. */
static void holds_back(void **state)
{
	struct lab *lab = *state;
	struct owner o;
	int fd[2];
	lab_tcp(fd);
	owner_open(&o, lab, fd[0]);
	lab_sleep(lab, 5);
	stream_read_stop(o.stream);
	shutdown(fd[1], SHUT_WR);
	lab_sleep(lab, 20);
	assert_int_equal(o.eofs, 0);
	stream_read_start(o.stream);
	stream_read_stop(o.stream);
	lab_sleep(lab, 5);
	assert_int_equal(o.eofs, 0);
	stream_read_start(o.stream);
	lab_until(lab, o.eofs);
	stream_free(o.stream);
	close(fd[1]);

	lab_tcp(fd);
	owner_open(&o, lab, fd[0]);
	lab_sleep(lab, 5);
	stream_read_stop(o.stream);
	pid_t pid = lab_peer(fd, peer_writes, 8u << 20);
	lab_sleep(lab, 100);
	assert_int_equal(o.got, 0);
	/* Two bursts of all small buffers, and what is lent. */
	assert_true(io_pool(lab->io)->used <= 3 * IO_SMALL_CNT * CHUNK_SMALL + IO_BULK_CNT * CHUNK_BULK);
	stream_read_start(o.stream);
	lab_until(lab, o.eofs);
	assert_int_equal(o.got, 8u << 20);
	assert_false(o.is_wrong);
	lab_join(lab, pid);
	stream_free(o.stream);
}

/* More connections than buffers, all at once. */
static void shares_buffers(void **state)
{
	enum { CNT = 200 };
	struct lab *lab = *state;
	static struct owner o[CNT];
	int peers[CNT];
	static uint8_t data[60000];
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = pattern(i);
	for (int i = 0; i < CNT; i++) {
		int fd[2];
		lab_unix(fd);
		owner_open(&o[i], lab, fd[0]);
		peers[i] = fd[1];
	}
	io_turn(lab->io, false);
	for (int i = 0; i < CNT; i++)
		assert_int_equal(write(peers[i], data, sizeof(data)), sizeof(data));
	for (int i = 0; i < CNT; i++) {
		lab_until(lab, o[i].got == sizeof(data));
		assert_false(o[i].is_wrong);
	}
	for (int i = 0; i < CNT; i++) {
		stream_free(o[i].stream);
		close(peers[i]);
	}
}

/* Letting go with receive and send in flight, at every stage, leaves nothing behind. */
static void lets_go_any_time(void **state)
{
	struct lab *lab = *state;
	int fds = count_fds();
	for (int i = 0; i < 200; i++) {
		struct owner o;
		int fd[2];
		if (i % 2)
			lab_tcp(fd);
		else
			lab_unix(fd);
		fcntl(fd[1], F_SETFL, O_NONBLOCK);
		owner_open(&o, lab, fd[0]);
		assert_int_equal(write(fd[1], "abcdefgh", 8), 8);
		owner_send(&o, 0, i % 3 ? 4u << 20 : 100);
		for (int turns = i / 7 % 5; turns > 0; turns--)
			io_turn(lab->io, true);
		if (i % 5 == 0)
			close(fd[1]);
		if (i % 11 < 5)
			stream_abort(o.stream);
		else
			stream_free(o.stream);
		for (int turns = i % 3; turns > 0; turns--)
			io_turn(lab->io, false);
		if (i % 5)
			close(fd[1]);
	}
	lab_until(lab, io_in_flight(lab->io) == 0);
	lab_sleep(lab, 5);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_threads(), 1);
}

static void free_on_data(void *ctx, struct chain *data)
{
	struct owner *o = ctx;
	stream_free(o->stream);
	o->stream = NULL;
}

static void lets_go_in_callback(void **state)
{
	static const struct stream_events events = {.on_data = free_on_data};
	struct lab *lab = *state;
	for (int i = 0; i < 20; i++) {
		struct owner o;
		int fd[2];
		lab_unix(fd);
		owner_open(&o, lab, fd[0]);
		stream_set_events(o.stream, &events, &o);
		for (int k = 0; k < 10; k++)
			assert_int_equal(write(fd[1], "xyz", 3), 3);
		lab_until(lab, !o.stream);
		lab_until(lab, io_in_flight(lab->io) == 0);
		close(fd[1]);
	}
}

/* A tiny ceiling of memory slows down, and breaks nothing. */
static void lives_with_little_memory(void **state)
{
	struct lab lab;
	lab_open(&lab, false, 2u << 20);
	for (int i = 0; i < 3; i++) {
		int fd[2];
		lab_tcp(fd);
		run_echo(&lab, fd, peer_bulk, 5u << 20);
	}
	lab_close(&lab);
}

/* As a user without privileges and without locked memory for provided buffers. */
static int unprivileged_echo(int fd, size_t len)
{
	struct lab lab;
	struct owner o;
	int pair[2];
	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 1;
	lab_open(&lab, len == 61, 0);
	lab_tcp(pair);
	run_echo(&lab, pair, peer_bulk, 3u << 20);
	lab_close(&lab);
	memset(&o, 0, sizeof(o));
	return 0;
}

/* As a user whose locked memory is used up by the ring: receives bring their own buffers. */
static int echo_without_locked_memory(int fd, size_t len)
{
	struct lab lab;
	int pair[2];
	struct rlimit limit = {0};
	struct io *io = NULL;
	if (geteuid() == 0 && (setgid(54320) < 0 || setuid(54320) < 0))
		return 1;
	/* The smallest limit that has room for a ring. */
	do {
		limit.rlim_cur = limit.rlim_max += (rlim_t)sysconf(_SC_PAGESIZE);
		pid_t pid = fork();
		int status = 0;
		if (pid == 0)
			_exit(setrlimit(RLIMIT_MEMLOCK, &limit) < 0 ||
			        io_new(&(struct io_opts){0}, &io, NULL) < 0);
		if (waitpid(pid, &status, 0) == pid && status == 0)
			break;
	} while (limit.rlim_cur < 64 * 4096);
	usleep(200000);
	if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return 2;
	lab_open(&lab, false, 0);
	lab_tcp(pair);
	run_echo(&lab, pair, peer_bulk, 3u << 20);
	lab_tcp(pair);
	run_echo(&lab, pair, peer_dribbles, 500);
	lab_close(&lab);
	return 0;
}

static void serves_without_locked_memory(void **state)
{
	struct lab *lab = *state;
	int fd[2];
	lab_unix(fd);
	lab_join(lab, lab_peer(fd, echo_without_locked_memory, 0));
	close(fd[0]);
}

static void serves_any_user(void **state)
{
	struct lab *lab = *state;
	for (size_t baseline = 0; baseline <= 61; baseline += 61) {
		int fd[2];
		lab_unix(fd);
		lab_join(lab, lab_peer(fd, unprivileged_echo, baseline));
		close(fd[0]);
	}
}

static void reads_addresses(void **state)
{
	int fd[2];
	struct addr local, peer, other;
	char text[ADDR_STR_MAX];
	lab_tcp(fd);
	assert_int_equal(sock_local_addr(fd[0], &local), 0);
	assert_int_equal(sock_peer_addr(fd[1], &peer), 0);
	assert_true(addr_eq(&local, &peer));
	assert_memory_equal(addr_format(&local, text), "127.0.0.1:", 10);
	assert_true(sock_original_dst(fd[0], &other) < 0);
	assert_int_equal(sock_set_nodelay(fd[0]), 0);
	struct sock_keepalive keepalive = {
	        .is_on = true, .idle_s = 180, .interval_s = 181, .probe_cnt = 9, .user_timeout_ms = 4000};
	assert_int_equal(sock_set_keepalive(fd[0], &keepalive), 0);
	int value = 0;
	socklen_t len = sizeof(value);
	getsockopt(fd[0], IPPROTO_TCP, TCP_KEEPINTVL, &value, &len);
	assert_int_equal(value, 181);
	getsockopt(fd[0], IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &len);
	assert_int_equal(value, 4000);
	close(fd[0]);
	close(fd[1]);
	lab_unix(fd);
	assert_int_equal(sock_set_nodelay(fd[0]), 0);
	assert_int_equal(sock_local_addr(fd[0], &local), -EAFNOSUPPORT);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(sock_peer_addr(-1, &peer), -EBADF);
}

/* Whether `fd` takes that congestion control, and what it has once it is known to stay on this machine. */
static bool is_left(int fd, const char *wanted, const char *left)
{
	char name[17] = "";
	socklen_t len = sizeof(name) - 1;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, wanted, (socklen_t)strlen(wanted)) < 0)
		return true;
	sock_set_unpaced(fd);
	return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 && strcmp(name, left) == 0;
}

static void does_not_pace(void **state)
{
	int fd[2];
	lab_tcp(fd);
	assert_true(is_left(fd[0], "bbr", "reno"));
	/* What does not pace stays the operator's choice. */
	assert_true(is_left(fd[0], "cubic", "cubic"));
	assert_true(is_left(fd[0], "reno", "reno"));
	sock_set_unpaced(-1);
	close(fd[0]);
	close(fd[1]);
}

#define T(name) cmocka_unit_test_setup_teardown(name, lab_setup, lab_teardown)

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	        T(echoes),
	        T(echoes_single_bytes),
	        T(echoes_bulk),
	        {"echoes_bulk as on Linux 6.1", echoes_bulk, lab_setup, lab_teardown, (void *)1},
	        T(changes_pace),
	        T(closes_by_halves),
	        T(feeds_a_peer_that_ended),
	        {"feeds_a_peer_that_ended as on Linux 6.1", feeds_a_peer_that_ended, lab_setup, lab_teardown,
	                (void *)1},
	        T(breaks),
	        T(resets_after_what_was_written),
	        T(refuses),
	        T(hears_out_a_deaf_peer),
	        T(bounds_memory),
	        T(holds_back),
	        T(does_not_pace),
	        T(shares_buffers),
	        T(lets_go_any_time),
	        T(lets_go_in_callback),
	        cmocka_unit_test(lives_with_little_memory),
	        T(serves_any_user),
	        T(serves_without_locked_memory),
	        cmocka_unit_test(reads_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
