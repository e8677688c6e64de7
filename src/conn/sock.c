/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A socket as a stream. Reading: multishot receive into small provided
 * buffers, or single large receives once full buffers follow each other.
 * Writing: one gathered send in flight, started at the end of a turn. Knows
 * no protocol above bytes.
 */
#include "conn/sock.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"

/* tcpi_state of a socket without a connection (include/net/tcp_states.h; no header for user space has it). */
#define STATE_CLOSE 7
/* Full small buffers in a row that make a stream busy: 16 KB, one TLS record, had piled up. */
#define BUSY_CNT 4
/* A large receive that brings less than this is a small one. */
#define QUIET_LEN (2 * CHUNK_SMALL)
/* Small large-receives in a row that end busyness. */
#define QUIET_CNT 4
/* A live struct sock. */
#define SOCK_MAGIC 0x736f636bu

struct sock {
	struct stream stream;
	uint32_t magic;
	int fd;
	struct io_op recv;
	struct io_op send;     /* sends, or waits for room to send */
	struct io_task flush;  /* end of turn: send, or tear down */
	struct io_task work;   /* events that a call has made due */
	struct io_task starve; /* waiting for provided buffers */
	struct chain queue;    /* to be sent; its front is in flight */
	struct chain held;     /* received while reading was stopped */
	size_t sent_len;       /* bytes handed to the send in flight */
	int read_end;     /* what reading ended with: 1 = not yet, 0 = end of stream, else negative errno */
	int write_error;  /* 0, or why nothing can be sent any more */
	uint8_t streak;   /* receives in a row that speak for the other way of receiving */
	bool is_bulk : 1; /* large receives */
	bool is_reading : 1;  /* the owner wants data */
	bool is_end_told : 1; /* on_eof was called */
	bool is_dead : 1;     /* on_error was called */
	bool is_full : 1;     /* the kernel has no room: the operation waits for it */
	bool was_high : 1;    /* the queue reached the high mark: on_drained is due */
	bool is_shutdown : 1; /* end after the queue */
	bool is_finished : 1; /* the end was sent */
	bool is_fin_told : 1; /* on_finished was called */
	bool is_freed : 1;    /* the owner let go */
};

static struct sock *sock_of(const struct stream *stream)
{
	struct sock *s = list_entry(stream, struct sock, stream);
	ASSERT(s->magic == SOCK_MAGIC);
	return s;
}

/* Arms the receive that fits; a no-op unless bytes are wanted and none is in flight. */
static void arm(struct sock *s)
{
	if (!s->is_reading || s->recv.in_flight || s->read_end != 1 || s->is_freed || !chain_empty(&s->held))
		return;
	if (s->is_bulk)
		io_recv_bulk(s->stream.io, &s->recv, s->fd);
	else
		io_recv_small(s->stream.io, &s->recv, s->fd);
}

static void tell_error(struct sock *s, int code)
{
	char text[128];
	if (s->is_dead)
		return;
	s->is_dead = true;
	s->is_reading = false;
	s->stream.is_broken = true;
	if (s->stream.events && s->stream.events->on_error)
		s->stream.events->on_error(s->stream.ctx, code, err_io_text(code, text, sizeof(text)));
}

/* Tells the end of reading once everything before it was delivered. */
static void tell_end(struct sock *s)
{
	if (s->is_freed || s->is_dead || s->read_end == 1)
		return;
	if (s->is_reading && chain_empty(&s->held)) {
		if (s->read_end < 0) {
			tell_error(s, s->read_end);
			return;
		}
		if (!s->is_end_told) {
			s->is_end_told = true;
			if (s->stream.events && s->stream.events->on_eof)
				s->stream.events->on_eof(s->stream.ctx);
		}
	}
	if (s->is_end_told && s->write_error && !s->is_freed)
		tell_error(s, s->write_error);
}

static void deliver(struct sock *s, struct chain *data)
{
	if (s->stream.events && s->stream.events->on_data)
		s->stream.events->on_data(s->stream.ctx, data);
	chain_clear(data);
}

/* Watches for the moment to change the way of receiving; a chosen change happens at the next arming. */
static void judge(struct sock *s, size_t len)
{
	bool is_other = s->is_bulk ? len < QUIET_LEN : len >= CHUNK_SMALL;
	s->streak = is_other ? (uint8_t)(s->streak + 1) : 0;
	if (s->streak < (s->is_bulk ? QUIET_CNT : BUSY_CNT))
		return;
	s->streak = 0;
	s->is_bulk = !s->is_bulk;
	io_cancel(s->stream.io, &s->recv);
}

static void take(struct sock *s, struct chunk *chunk)
{
	struct chain data = {0};
	/* After a switch the rest of the old receive's completions says nothing new. */
	if (!s->recv.is_cancelled)
		judge(s, chunk->len);
	chain_append(&data, chunk);
	if (s->is_reading && chain_empty(&s->held)) {
		deliver(s, &data);
		return;
	}
	stream_absorb(&s->held, &data);
	io_cancel(s->stream.io, &s->recv);
}

/* What the kernel says of the connection; false for a unix socket, which has no such option. */
static bool tcp_info_get(const struct sock *s, struct tcp_info *ret_info)
{
	socklen_t len = sizeof(*ret_info);
	*ret_info = (struct tcp_info){0};
	return getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, ret_info, &len) == 0;
}

/*
 * A reset that a send was told of looks like an end to the receive. Before our
 * own FIN a peer's leaves the socket in CLOSE_WAIT, a reset leaves it closed.
 */
static bool is_reset(const struct sock *s)
{
	struct tcp_info info;
	return !s->is_finished && tcp_info_get(s, &info) && info.tcpi_state == STATE_CLOSE;
}

static void on_recv(struct io_op *op, const struct io_result *result)
{
	struct sock *s = list_entry(op, struct sock, recv);
	ASSERT(s->magic == SOCK_MAGIC);
	if (s->is_freed) {
		chunk_free(result->chunk);
		if (!result->more)
			io_defer(s->stream.io, &s->flush, IO_PHASE_SOCK);
		return;
	}
	int res = result->res;
	if (result->chunk)
		take(s, result->chunk);
	else if (res == 0 && !result->more)
		s->read_end = is_reset(s) ? -ECONNRESET : 0;
	else if (res == -ENOBUFS)
		io_wait_buffers(s->stream.io, &s->starve);
	else if (res < 0 && res != -ECANCELED && res != -EAGAIN && res != -EINTR)
		s->read_end = res;
	if (s->is_freed || result->more)
		return;
	tell_end(s);
	if (res != -ENOBUFS)
		arm(s);
}

static void on_starve(struct io_task *task)
{
	arm(list_entry(task, struct sock, starve));
}

/* Our direction is over for good; the peer's goes on to its end. */
static void break_write(struct sock *s, int code)
{
	s->write_error = code;
	chain_clear(&s->queue);
	s->was_high = false;
	io_defer(s->stream.io, &s->work, IO_PHASE_WORK);
}

static void finish(struct sock *s)
{
	if (!s->is_shutdown || s->is_finished || s->write_error)
		return;
	/* Not on the ring: the kernel would start a worker thread for it. It does not block. */
	if (shutdown(s->fd, SHUT_WR) < 0 && errno != ENOTCONN) {
		break_write(s, -errno);
		return;
	}
	s->is_finished = true;
	io_defer(s->stream.io, &s->work, IO_PHASE_WORK);
}

static void on_send(struct io_op *op, const struct io_result *result)
{
	struct sock *s = list_entry(op, struct sock, send);
	ASSERT(s->magic == SOCK_MAGIC);
	io_defer(s->stream.io, &s->flush, IO_PHASE_SOCK);
	if (s->is_freed)
		return;
	int res = result->res;
	if (s->is_full) {
		s->is_full = false;
		if (res < 0)
			break_write(s, res);
	} else if (res > 0) {
		s->is_full = (size_t)res < s->sent_len;
		chain_consume(&s->queue, (size_t)res);
		s->stream.taken += (uint64_t)res;
	} else if (res == -EAGAIN) {
		s->is_full = true;
	} else if (res != -EINTR) {
		break_write(s, res ? res : -EPIPE);
	}
	if (s->was_high && s->queue.len <= s->stream.low) {
		s->was_high = false;
		if (s->stream.events && s->stream.events->on_drained)
			s->stream.events->on_drained(s->stream.ctx);
	}
}

static void destroy(struct sock *s)
{
	io_undefer(&s->work);
	io_undefer(&s->starve);
	io_undefer(&s->flush);
	io_close(s->stream.io, s->fd);
	chain_clear(&s->queue);
	chain_clear(&s->held);
	s->magic = 0;
	mem_free(s);
}

static void on_flush(struct io_task *task)
{
	struct sock *s = list_entry(task, struct sock, flush);
	if (s->is_freed) {
		if (!s->recv.in_flight && !s->send.in_flight)
			destroy(s);
		return;
	}
	if (s->send.in_flight) {
		io_expect(s->stream.io, &s->send);
		return;
	}
	if (chain_empty(&s->queue)) {
		s->is_full = false;
		finish(s);
	} else if (s->is_full) {
		io_writable(s->stream.io, &s->send, s->fd);
	} else if (s->was_high || s->is_shutdown) {
		s->sent_len = io_send(s->stream.io, &s->send, s->fd, &s->queue);
	} else {
		/* When it has left nothing follows from it. */
		s->sent_len = io_send_quiet(s->stream.io, &s->send, s->fd, &s->queue);
	}
}

static void on_work(struct io_task *task)
{
	struct sock *s = list_entry(task, struct sock, work);
	if (s->is_reading && !chain_empty(&s->held)) {
		struct chain data = {0};
		chain_move(&data, &s->held);
		deliver(s, &data);
	}
	if (s->is_finished && !s->write_error && !s->is_fin_told && !s->is_freed) {
		s->is_fin_told = true;
		if (s->stream.events && s->stream.events->on_finished)
			s->stream.events->on_finished(s->stream.ctx);
	}
	tell_end(s);
	arm(s);
}

static void op_read_start(struct stream *stream)
{
	struct sock *s = sock_of(stream);
	if (s->is_reading || s->is_dead)
		return;
	s->is_reading = true;
	if (!chain_empty(&s->held) || s->read_end != 1)
		io_defer(s->stream.io, &s->work, IO_PHASE_WORK);
	else
		arm(s);
}

static void op_read_stop(struct stream *stream)
{
	/* A receive in flight stays: it is cancelled when it brings something. Short pauses then cost
	 * nothing. */
	sock_of(stream)->is_reading = false;
}

static int op_write(struct stream *stream, struct chain *data)
{
	struct sock *s = sock_of(stream);
	if (s->write_error || s->is_shutdown || s->is_dead) {
		chain_clear(data);
		return -EPIPE;
	}
	stream_absorb(&s->queue, data);
	s->was_high = s->was_high || stream_is_high(stream);
	io_defer(s->stream.io, &s->flush, IO_PHASE_SOCK);
	return 0;
}

static size_t op_queued(const struct stream *stream)
{
	return sock_of(stream)->queue.len;
}

static size_t op_unsent(const struct stream *stream)
{
	const struct sock *s = sock_of(stream);
	struct tcp_info info;
	if (s->write_error)
		return 0;
	/* A unix socket hands over at once. */
	if (!tcp_info_get(s, &info))
		return s->queue.len;
	return s->queue.len + info.tcpi_notsent_bytes + info.tcpi_unacked;
}

static void op_shutdown(struct stream *stream)
{
	struct sock *s = sock_of(stream);
	s->is_shutdown = true;
	io_defer(s->stream.io, &s->flush, IO_PHASE_SOCK);
}

static void op_free(struct stream *stream, enum stream_end end)
{
	struct sock *s = sock_of(stream);
	ASSERT(!s->is_freed);
	s->is_freed = true;
	s->stream.events = NULL;
	s->is_reading = false;
	io_undefer(&s->work);
	io_undefer(&s->starve);
	struct linger linger = {.l_onoff = 1};
	if (end != STREAM_END_QUIET)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	io_cancel(s->stream.io, &s->recv);
	io_cancel(s->stream.io, &s->send);
	io_defer(s->stream.io, &s->flush, IO_PHASE_SOCK);
}

static const struct stream_ops sock_ops = {
        .read_start = op_read_start,
        .read_stop = op_read_stop,
        .write = op_write,
        .queued = op_queued,
        .unsent = op_unsent,
        .shutdown = op_shutdown,
        .free = op_free,
};

int sock_new(struct io *io, int fd, struct stream **ret_stream)
{
	struct sock *s = mem_zalloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->stream.ops = &sock_ops;
	s->stream.high = STREAM_HIGH_LEN;
	s->stream.low = STREAM_LOW_LEN;
	s->magic = SOCK_MAGIC;
	s->stream.io = io;
	s->fd = fd;
	s->read_end = 1;
	io_op_init(&s->recv, on_recv);
	io_op_init(&s->send, on_send);
	io_task_init(&s->flush, on_flush);
	io_task_init(&s->work, on_work);
	io_task_init(&s->starve, on_starve);
	*ret_stream = &s->stream;
	return 0;
}

int sock_fd(const struct stream *stream)
{
	return sock_of(stream)->fd;
}
