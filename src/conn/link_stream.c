/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HTTP/2 streams as struct stream. Received bytes wait in the stream and are
 * credited to the peer only when they have been delivered: that is the
 * back-pressure. Knows nothing of TLS and of the transport.
 */
#include "conn/link_priv.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"

static struct link_stream *st_of(const struct stream *stream)
{
	struct link_stream *st = list_entry(stream, struct link_stream, stream);
	ASSERT(st->magic == LINK_STREAM_MAGIC);
	return st;
}

static void wake(struct link_stream *st)
{
	io_defer(st->stream.io, &st->work, IO_PHASE_WORK);
}

/* Has the link look at this stream at the end of the turn. */
static void mark(struct link_stream *st)
{
	if (!st->link)
		return;
	if (list_empty(&st->dirty))
		list_add_tail(&st->link->dirty, &st->dirty);
	link_mark(st->link);
}

static void deliver(struct link_stream *st)
{
	struct chain data = {0};
	size_t len = st->rx.len;
	chain_move(&data, &st->rx);
	if (st->stream.events && st->stream.events->on_data)
		st->stream.events->on_data(st->stream.ctx, &data);
	chain_clear(&data);
	if (!st->h2)
		return;
	h2_stream_consume(st->h2, len);
	if (st->link)
		link_mark(st->link);
}

static const char *error_text(const struct link_stream *st, char *dst, size_t cap)
{
	if (st->error == ERR_REVOKED)
		return err_str(st->error);
	if (st->error != -EPROTO)
		return err_io_text(st->error, dst, cap);
	(void)snprintf(dst, cap, "stream error %s: %s", st->is_reset_remote ? "received" : "sent",
	        h2_code_name(st->reset_code));
	return dst;
}

static void tell_error(struct link_stream *st)
{
	char text[128];
	st->is_dead = true;
	st->is_reading = false;
	if (st->stream.events && st->stream.events->on_error)
		st->stream.events->on_error(st->stream.ctx, st->error, error_text(st, text, sizeof(text)));
}

static void tell_eof(struct link_stream *st)
{
	st->is_end_told = true;
	if (st->stream.events && st->stream.events->on_eof)
		st->stream.events->on_eof(st->stream.ctx);
}

static void tell_finished(struct link_stream *st)
{
	st->is_fin_told = true;
	if (st->stream.events && st->stream.events->on_finished)
		st->stream.events->on_finished(st->stream.ctx);
}

static void tell_drained(struct link_stream *st)
{
	st->is_drained = false;
	if (st->stream.events && st->stream.events->on_drained)
		st->stream.events->on_drained(st->stream.ctx);
}

static void destroy(struct link_stream *st)
{
	list_del(&st->node);
	list_del(&st->dirty);
	list_del(&st->busy);
	io_undefer(&st->work);
	chain_clear(&st->rx);
	chain_clear(&st->tx);
	st->magic = 0;
	mem_free(st);
}

/* Each event may free the stream; that only marks it, and this is called once more. */
static void on_work(struct io_task *task)
{
	struct link_stream *st = list_entry(task, struct link_stream, work);
	if (!st->is_freed && st->is_reading && !chain_empty(&st->rx))
		deliver(st);
	if (!st->is_freed && st->is_reading && chain_empty(&st->rx) && st->is_ended && !st->is_end_told)
		tell_eof(st);
	if (!st->is_freed && st->is_drained && !st->error)
		tell_drained(st);
	if (!st->is_freed && st->is_finished && !st->is_fin_told)
		tell_finished(st);
	/* A break is told at once, but not before what came before it. */
	if (!st->is_freed && st->error && !st->is_dead && chain_empty(&st->rx) &&
	        (!st->is_ended || st->is_end_told))
		tell_error(st);
	if (st->is_freed)
		destroy(st);
}

static void on_h2_response(void *user, struct h2_stream *h2, int status, const struct h2_headers *headers)
{
	struct link_stream *st = user;
	if (st->answer && st->answer->on_response)
		st->answer->on_response(st->answer_ctx, &st->stream, status, headers);
}

static void on_h2_trailers(void *user, struct h2_stream *h2, const struct h2_headers *headers)
{
	struct link_stream *st = user;
	/* The headers are borrowed, so they cannot wait for the body: the body comes now. */
	if (st->is_reading && !chain_empty(&st->rx))
		deliver(st);
	if (!st->is_freed && st->answer && st->answer->on_trailers)
		st->answer->on_trailers(st->answer_ctx, &st->stream, headers);
}

static void on_h2_data(void *user, struct h2_stream *h2, const uint8_t *bytes, size_t len)
{
	struct link_stream *st = user;
	if (chain_write(&st->rx, io_pool(st->stream.io), bytes, len) < 0) {
		h2_stream_reset(h2, H2_INTERNAL_ERROR);
		st->h2 = NULL;
		st->error = -ENOMEM;
	}
	if (st->is_reading || st->error)
		wake(st);
}

static void on_h2_end(void *user, struct h2_stream *h2)
{
	struct link_stream *st = user;
	st->is_ended = true;
	wake(st);
}

static void on_h2_reset(void *user, struct h2_stream *h2, const struct h2_reset *reset)
{
	struct link_stream *st = user;
	int code = st->is_ended ? h2_reset_write_error(reset) : h2_reset_read_error(reset);
	/* A clean end for the reader is still a broken pipe for the writer. */
	st->error = code ? code : -EPIPE;
	st->reset_code = reset->code;
	st->is_reset = reset->transport_err == 0;
	st->is_reset_remote = reset->is_remote;
	st->stream.is_broken = h2_reset_read_error(reset) != 0;
	/* What CONNECT_ERROR stands for (RFC 9113 section 8.5). */
	if (code == -EPROTO && reset->is_remote && reset->code == H2_CONNECT_ERROR)
		st->error = -ECONNRESET;
	h2_stream_release(st->h2);
	st->h2 = NULL;
	chain_clear(&st->tx);
	wake(st);
}

static void on_h2_writable(void *user, struct h2_stream *h2)
{
	struct link_stream *st = user;
	st->is_blocked = false;
	if (!chain_empty(&st->tx))
		mark(st);
}

static void on_h2_drained(void *user, struct h2_stream *h2)
{
	struct link_stream *st = user;
	st->is_finished = true;
	wake(st);
}

static const struct h2_stream_ops h2_ops = {
        .on_response = on_h2_response,
        .on_data = on_h2_data,
        .on_end = on_h2_end,
        .on_reset = on_h2_reset,
        .on_writable = on_h2_writable,
        .on_drained = on_h2_drained,
        .on_trailers = on_h2_trailers,
};

void link_stream_push(struct link_stream *st)
{
	while (st->h2 && !st->is_blocked && !chain_empty(&st->tx)) {
		struct chain piece = {0};
		size_t len = st->tx.head->len;
		chain_append(&piece, chain_take(&st->tx));
		int r = h2_stream_write(st->h2, &piece);
		if (r < 0) {
			chain_clear(&piece);
			chain_clear(&st->tx);
			return;
		}
		st->given += len;
		st->is_blocked = r > 0;
	}
	if (st->h2 && st->is_shutdown && !st->is_end_given && chain_empty(&st->tx)) {
		st->is_end_given = true;
		(void)h2_stream_end(st->h2);
	}
	if (st->h2 && st->given > st->stream.taken && list_empty(&st->busy))
		list_add_tail(&st->link->busy, &st->busy);
}

void link_stream_progress(struct link_stream *st)
{
	size_t left = st->h2 ? h2_stream_queued(st->h2) : 0;
	/* What a reset has dropped was not taken. */
	if (st->h2)
		st->stream.taken = st->given - left;
	if (left == 0)
		list_del(&st->busy);
	if (st->was_high && left + st->tx.len <= st->stream.low) {
		st->was_high = false;
		st->is_drained = true;
		wake(st);
	}
}

void link_stream_orphan(struct link_stream *st)
{
	h2_stream_release(st->h2);
	st->h2 = NULL;
	st->link = NULL;
	list_del(&st->node);
	list_del(&st->dirty);
	list_del(&st->busy);
	if (!st->error && !(st->is_ended && st->is_finished)) {
		st->error = -EPIPE;
		st->stream.is_broken = true;
	}
	wake(st);
}

static void op_read_start(struct stream *stream)
{
	struct link_stream *st = st_of(stream);
	if (st->is_dead)
		return;
	st->is_reading = true;
	if (!chain_empty(&st->rx) || st->is_ended || st->error)
		wake(st);
}

static void op_read_stop(struct stream *stream)
{
	st_of(stream)->is_reading = false;
}

static int op_write(struct stream *stream, struct chain *data)
{
	struct link_stream *st = st_of(stream);
	if (!st->h2 || st->is_shutdown) {
		chain_clear(data);
		return -EPIPE;
	}
	stream_absorb(&st->tx, data);
	st->was_high = st->was_high || stream_is_high(stream);
	mark(st);
	return 0;
}

static size_t op_queued(const struct stream *stream)
{
	const struct link_stream *st = st_of(stream);
	return st->tx.len + (st->h2 ? h2_stream_queued(st->h2) : 0);
}

static void op_shutdown(struct stream *stream)
{
	struct link_stream *st = st_of(stream);
	if (st->is_shutdown)
		return;
	st->is_shutdown = true;
	mark(st);
}

/* The common part of all ways of letting go; HTTP/2's stream is dealt with already. */
static void let_go(struct link_stream *st)
{
	ASSERT(!st->is_freed);
	st->h2 = NULL;
	st->is_freed = true;
	st->is_reading = false;
	st->stream.events = NULL;
	st->answer = NULL;
	if (st->link)
		link_mark(st->link);
	wake(st);
}

static void op_free(struct stream *stream, enum stream_end end)
{
	struct link_stream *st = st_of(stream);
	if (st->h2 && end != STREAM_END_QUIET) {
		h2_stream_reset(st->h2, end == STREAM_END_RESET ? H2_CONNECT_ERROR : H2_CANCEL);
	} else if (st->h2) {
		/* An end that was asked for carries what is queued. */
		if (st->is_shutdown) {
			st->is_blocked = false;
			link_stream_push(st);
		}
		h2_stream_release(st->h2);
	}
	let_go(st);
}

static const struct stream_ops st_ops = {
        .read_start = op_read_start,
        .read_stop = op_read_stop,
        .write = op_write,
        .queued = op_queued,
        .unsent = op_queued,
        .shutdown = op_shutdown,
        .free = op_free,
};

static struct link_stream *st_new(struct link *link)
{
	struct link_stream *st = mem_zalloc(1, sizeof(*st));
	if (!st)
		return NULL;
	st->stream.ops = &st_ops;
	st->stream.high = STREAM_HIGH_LEN;
	st->stream.low = STREAM_LOW_LEN;
	st->magic = LINK_STREAM_MAGIC;
	st->stream.io = link->io;
	st->link = link;
	list_init(&st->node);
	list_init(&st->dirty);
	list_init(&st->busy);
	list_add_tail(&link->streams, &st->node);
	io_task_init(&st->work, on_work);
	return st;
}

void link_stream_accept(struct link *link, struct h2_stream *h2, const struct h2_headers *headers)
{
	struct link_stream *st = link->events && link->events->on_request ? st_new(link) : NULL;
	if (!st) {
		h2_stream_reset(h2, H2_REFUSED_STREAM);
		return;
	}
	st->h2 = h2;
	h2_stream_bind(h2, &h2_ops, st);
	link->events->on_request(link->ctx, &st->stream, headers);
}

int link_request(struct link *link, const struct h2_request *request, const struct link_answer_events *answer,
        void *ctx, struct stream **ret_stream)
{
	if (!link_can_open(link))
		return -EAGAIN;
	struct link_stream *st = st_new(link);
	if (!st)
		return -ENOMEM;
	st->answer = answer;
	st->answer_ctx = ctx;
	int r = h2_request(link->h2, request, &h2_ops, st, &st->h2);
	if (r < 0) {
		destroy(st);
		return r;
	}
	link_wake_pings(link);
	link_mark(link);
	*ret_stream = &st->stream;
	return 0;
}

int link_connect(struct link *link, const char *authority, const struct h2_header *headers, size_t header_cnt,
        const struct link_answer_events *answer, void *ctx, struct stream **ret_stream)
{
	const struct h2_request request = {
	        .method = "CONNECT", .authority = authority, .headers = headers, .header_cnt = header_cnt};
	return link_request(link, &request, answer, ctx, ret_stream);
}

int link_respond(
        struct stream *stream, int status, const struct h2_header *headers, size_t header_cnt, bool end)
{
	struct link_stream *st = st_of(stream);
	if (!st->h2)
		return -EPIPE;
	int r = h2_respond(st->h2, status, headers, header_cnt, end);
	if (r == 0 && end)
		st->is_shutdown = st->is_end_given = true;
	link_mark(st->link);
	return r;
}

int link_trailers(struct stream *stream, const struct h2_header *headers, size_t header_cnt)
{
	struct link_stream *st = st_of(stream);
	if (!st->h2 || st->is_shutdown)
		return -EPIPE;
	int r = h2_stream_trailers(st->h2, headers, header_cnt);
	if (r == 0)
		stream_shutdown(stream);
	return r;
}

void link_reset(struct stream *stream, uint32_t code)
{
	struct link_stream *st = st_of(stream);
	h2_stream_reset(st->h2, code);
	let_go(st);
}

bool link_reset_code(const struct stream *stream, uint32_t *ret_code)
{
	const struct link_stream *st = st_of(stream);
	if (!st->is_reset)
		return false;
	*ret_code = st->reset_code;
	return true;
}

struct link *link_of(const struct stream *stream)
{
	return st_of(stream)->link;
}
