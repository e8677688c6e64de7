/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring, peers in child processes that use plain blocking calls, and a
 * stream owner that counts what it is told.
 */
#ifndef CULVERT_TESTS_UNIT_CONN_LAB_H
#define CULVERT_TESTS_UNIT_CONN_LAB_H

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/list.h"
#include "conn/sock.h"

/* A test that takes longer hangs. */
#define LAB_TIMEOUT_MS 60000

/* What tests of one group share: the ring. */
struct lab {
	struct io *io;
	struct timer tick; /* wakes the loop, so that conditions are looked at */
};

static inline void lab_tick(struct timer *timer, uint64_t now)
{
	struct lab *lab = list_entry(timer, struct lab, tick);
	io_timer_start(lab->io, timer, 2);
}

static inline void lab_open(struct lab *lab, bool baseline61, size_t pool_max)
{
	struct err err = {0};
	struct io_opts opts = {.baseline61 = baseline61, .pool_max = pool_max};
	if (io_new(&opts, &lab->io, &err) < 0)
		fail_msg("io_new: %s", err.text);
	timer_init(&lab->tick, lab_tick);
	io_timer_start(lab->io, &lab->tick, 1);
}

/* Turns until `cond` holds. */
#define lab_until(lab, cond)                                                                                 \
	do {                                                                                                 \
		uint64_t lab_end = clock_ms() + LAB_TIMEOUT_MS;                                              \
		while (!(cond)) {                                                                            \
			assert_int_equal(io_turn((lab)->io, true), 0);                                       \
			if (clock_ms() > lab_end)                                                            \
				fail_msg("%s:%d: timed out waiting for %s", __FILE__, __LINE__, #cond);      \
		}                                                                                            \
	} while (0)

/* Turns for a time. */
static inline void lab_sleep(struct lab *lab, uint64_t ms)
{
	uint64_t end = clock_ms() + ms;
	lab_until(lab, clock_ms() >= end);
}

/* All operations must end; a chunk that has not come back is a leak, which the sanitizer tells of. */
static inline void lab_close(struct lab *lab)
{
	/* What was let go is torn down by deferred work. */
	for (int i = 0; i < 3; i++)
		io_turn(lab->io, false);
	lab_until(lab, io_in_flight(lab->io) == 0);
	io_free(lab->io);
	lab->io = NULL;
}

/* A TCP connection over loopback. */
static inline void lab_tcp(int fd[2])
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sa);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;
	assert_int_equal(bind(l, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&sa, &len), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&sa, sizeof(sa)), 0);
	fd[1] = accept(l, NULL, NULL);
	assert_true(fd[1] >= 0);
	setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	close(l);
}

static inline void lab_unix(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
}

/* Runs `body` on fd[1] in a child; fd[1] is closed here. Exit status 0 = it saw what it expected. */
static inline pid_t lab_peer(int fd[2], int (*body)(int fd, size_t len), size_t len)
{
	pid_t pid = fork();
	if (pid == 0) {
		close(fd[0]);
		alarm(LAB_TIMEOUT_MS / 1000);
		_exit(body(fd[1], len));
	}
	assert_true(pid > 0);
	close(fd[1]);
	fd[1] = -1;
	return pid;
}

/* Waits for a peer while the loop goes on. */
static inline void lab_join(struct lab *lab, pid_t pid)
{
	int status = 0;
	pid_t got = 0;
	lab_until(lab, (got = waitpid(pid, &status, WNOHANG)) != 0);
	assert_int_equal(got, pid);
	if (WIFSIGNALED(status))
		fail_msg("peer died of signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Byte `pos` of the stream that peers write and check. */
static inline uint8_t pattern(size_t pos)
{
	return (uint8_t)((pos * 2654435761u) >> 13);
}

static inline int peer_write(int fd, size_t len, size_t piece)
{
	static uint8_t buf[65536];
	for (size_t pos = 0; pos < len;) {
		size_t n = len - pos < piece ? len - pos : piece;
		for (size_t i = 0; i < n; i++)
			buf[i] = pattern(pos + i);
		for (size_t off = 0; off < n;) {
			ssize_t w = write(fd, buf + off, n - off);
			if (w <= 0)
				return -1;
			off += (size_t)w;
		}
		pos += n;
	}
	return 0;
}

/* Reads `len` bytes of the pattern, and the end of the stream if `to_end`. */
static inline int peer_read(int fd, size_t len, bool to_end)
{
	static uint8_t buf[65536];
	size_t pos = 0;
	while (pos < len) {
		size_t want = len - pos < sizeof(buf) ? len - pos : sizeof(buf);
		ssize_t r = read(fd, buf, want);
		if (r <= 0)
			return -1;
		for (ssize_t i = 0; i < r; i++) {
			if (buf[i] != pattern(pos++))
				return -2;
		}
	}
	return to_end && read(fd, buf, 1) != 0 ? -3 : 0;
}

/* Owner of a stream: counts, checks the pattern, may echo. */
struct owner {
	struct lab *lab;
	struct stream *stream;
	struct stream *echo; /* where data is written to; NULL = dropped */
	bool obeys;          /* stops reading while the echo's queue is high */
	size_t got;          /* bytes received */
	size_t most_queued;
	size_t most_used; /* of the pool */
	int data_calls;
	int eofs;
	int drained;
	int finished;
	int error;
	char text[128];
	bool is_wrong; /* the bytes were not the pattern */
	bool free_on_error;
};

static inline void owner_data(void *ctx, struct chain *data)
{
	struct owner *o = ctx;
	for (struct chunk *c = data->head; c; c = c->next) {
		for (uint32_t i = 0; i < c->len; i++)
			o->is_wrong = o->is_wrong || chunk_bytes(c)[i] != pattern(o->got + i);
		o->got += c->len;
	}
	o->data_calls++;
	size_t used = io_pool(o->lab->io)->used;
	o->most_used = used > o->most_used ? used : o->most_used;
	if (!o->echo)
		return;
	(void)stream_write(o->echo, data);
	size_t queued = stream_queued(o->echo);
	o->most_queued = queued > o->most_queued ? queued : o->most_queued;
	if (o->obeys && queued >= STREAM_HIGH_LEN)
		stream_read_stop(o->stream);
}

static inline void owner_eof(void *ctx)
{
	struct owner *o = ctx;
	o->eofs++;
	if (o->echo)
		stream_shutdown(o->echo);
}

static inline void owner_drained(void *ctx)
{
	struct owner *o = ctx;
	o->drained++;
	stream_read_start(o->stream);
}

static inline void owner_finished(void *ctx)
{
	((struct owner *)ctx)->finished++;
}

static inline void owner_error(void *ctx, int code, const char *text)
{
	struct owner *o = ctx;
	o->error = code;
	(void)snprintf(o->text, sizeof(o->text), "%s", text);
	if (o->free_on_error) {
		stream_free(o->stream);
		o->stream = NULL;
	}
}

static const struct stream_events owner_events = {
        .on_data = owner_data,
        .on_eof = owner_eof,
        .on_drained = owner_drained,
        .on_finished = owner_finished,
        .on_error = owner_error,
};

static inline void owner_init(struct owner *o, struct lab *lab, struct stream *stream)
{
	*o = (struct owner){.lab = lab, .stream = stream};
	stream_set_events(stream, &owner_events, o);
}

/* An owner of a new stream over `fd`, reading. */
static inline void owner_open(struct owner *o, struct lab *lab, int fd)
{
	struct stream *stream = NULL;
	assert_int_equal(sock_new(lab->io, fd, &stream), 0);
	owner_init(o, lab, stream);
	stream_read_start(stream);
}

/* Queues `len` bytes of the pattern from position `pos` on. */
static inline int owner_send(struct owner *o, size_t pos, size_t len)
{
	struct chain data = {0};
	uint8_t buf[4096];
	for (size_t done = 0; done < len;) {
		size_t n = len - done < sizeof(buf) ? len - done : sizeof(buf);
		for (size_t i = 0; i < n; i++)
			buf[i] = pattern(pos + done + i);
		assert_int_equal(chain_write(&data, io_pool(o->lab->io), buf, n), 0);
		done += n;
	}
	return stream_write(o->stream, &data);
}

#endif
