/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An HTTP/2 stream as a struct stream. Events of HTTP/2 are noted and told in
 * a task of their own, so that nothing calls back from inside a call and what
 * arrives in one turn is delivered as one chain.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "conn/link_int.h"

static struct link_stream *of(struct stream *stream)
{
	return list_entry(stream, struct link_stream, stream);
}

static void want_work(struct link_stream *s)
{
	io_defer(s->io, &s->work, IO_PHASE_WORK);
}

/* --- what HTTP/2 says ---------------------------------------------------- */

static void on_response(void *user, struct h2_stream *h2s, int status, const struct h2_headers *headers)
{
	struct link_stream *s = user;
	(void)h2s;
	if (s->answer && s->answer->on_response)
		s->answer->on_response(s->answer_ctx, &s->stream, status, headers);
}

static void on_trailers(void *user, struct h2_stream *h2s, const struct h2_headers *headers)
{
	struct link_stream *s = user;
	(void)h2s;
	if (s->answer && s->answer->on_trailers)
		s->answer->on_trailers(s->answer_ctx, &s->stream, headers);
}

/* Told in words of the log; see reference dataplane.md 6 for what each code means to a reader. */
static void break_with(struct link_stream *s, int code, const char *text)
{
	if (s->error)
		return;
	s->error = code;
	snprintf(s->text, sizeof(s->text), "%s", text);
}

static void on_data(void *user, struct h2_stream *h2s, const uint8_t *bytes, size_t len)
{
	struct link_stream *s = user;
	if (chain_write(&s->held, io_pool(s->io), bytes, len) < 0) {
		/* The credit goes back with the stream. */
		break_with(s, -ENOMEM, err_str(-ENOMEM));
		h2_stream_consume(h2s, len);
	}
	want_work(s);
}

static void on_end(void *user, struct h2_stream *h2s)
{
	struct link_stream *s = user;
	(void)h2s;
	s->is_end = true;
	want_work(s);
}

static void on_reset(void *user, struct h2_stream *h2s, const struct h2_reset *reset)
{
	struct link_stream *s = user;
	char os[64];
	int read_error = s->is_end ? 0 : h2_reset_read_error(reset);
	int write_error = s->is_finished ? 0 : h2_reset_write_error(reset);
	int code = read_error ? read_error : write_error;
	(void)h2s;
	s->is_end = true;
	s->is_write_broken = true;
	list_del(&s->writing);
	if (code == -EPROTO)
		break_with(s, code, h2_code_name(reset->code));
	else if (code)
		break_with(s, code, err_io_text(code, os, sizeof(os)));
	want_work(s);
}

static void on_writable(void *user, struct h2_stream *h2s)
{
	struct link_stream *s = user;
	(void)h2s;
	s->is_low = s->was_high;
	s->was_high = false;
	want_work(s);
}

static void on_drained(void *user, struct h2_stream *h2s)
{
	struct link_stream *s = user;
	(void)h2s;
	s->is_finished = true;
	want_work(s);
}

const struct h2_stream_ops link_stream_h2_ops = {
        .on_response = on_response,
        .on_data = on_data,
        .on_end = on_end,
        .on_reset = on_reset,
        .on_writable = on_writable,
        .on_drained = on_drained,
        .on_trailers = on_trailers,
};

/* --- what the owner is told ---------------------------------------------- */

static void deliver(struct link_stream *s)
{
	struct chain data = {0};
	size_t len = s->held.len;
	if (!s->is_reading || len == 0)
		return;
	chain_move(&data, &s->held);
	/* Credit first: the owner may free the stream from within. Its own queues bound what it takes. */
	if (s->h2s) {
		h2_stream_consume(s->h2s, len);
		link_want_output(s->link);
	}
	if (s->stream.events && s->stream.events->on_data)
		s->stream.events->on_data(s->stream.ctx, &data);
	chain_clear(&data);
}

static void tell_end(struct link_stream *s)
{
	if (s->is_freed || s->is_dead || !s->is_end || s->is_end_told || !s->is_reading ||
	        !chain_empty(&s->held))
		return;
	/* A read that failed is no clean end: on_error says so. */
	if (s->error && s->error != -EPIPE)
		return;
	s->is_end_told = true;
	if (s->stream.events && s->stream.events->on_eof)
		s->stream.events->on_eof(s->stream.ctx);
}

static void tell_write(struct link_stream *s)
{
	if (s->is_low && !s->is_freed && !s->is_dead) {
		s->is_low = false;
		if (s->stream.events && s->stream.events->on_drained)
			s->stream.events->on_drained(s->stream.ctx);
	}
	if (s->is_finished && !s->is_fin_told && !s->is_freed && !s->is_dead) {
		s->is_fin_told = true;
		if (s->stream.events && s->stream.events->on_finished)
			s->stream.events->on_finished(s->stream.ctx);
	}
}

static void tell_error(struct link_stream *s)
{
	if (!s->error || s->is_freed || s->is_dead)
		return;
	/* What came before the break is delivered first, as far as the owner reads at all. */
	if (s->is_reading && !chain_empty(&s->held))
		return;
	s->is_dead = true;
	if (s->stream.events && s->stream.events->on_error)
		s->stream.events->on_error(s->stream.ctx, s->error, s->text);
}

static void detach(struct link_stream *s)
{
	list_del(&s->node);
	list_del(&s->writing);
	s->link = NULL;
	s->h2s = NULL;
}

static void work(struct io_task *task)
{
	struct link_stream *s = list_entry(task, struct link_stream, work);
	if (!s->is_freed)
		deliver(s);
	tell_end(s);
	tell_write(s);
	tell_error(s);
	if (!s->is_freed)
		return;
	io_undefer(&s->work);
	chain_clear(&s->held);
	mem_free(s);
}

/* --- what the owner does ------------------------------------------------- */

static void op_read_start(struct stream *stream)
{
	struct link_stream *s = of(stream);
	s->is_reading = true;
	if (!chain_empty(&s->held) || s->is_end || s->error)
		want_work(s);
}

static void op_read_stop(struct stream *stream)
{
	of(stream)->is_reading = false;
}

static int op_write(struct stream *stream, struct chain *data)
{
	struct link_stream *s = of(stream);
	size_t len = data->len;
	int r = s->h2s && !s->is_write_broken && !s->is_shutdown ? h2_stream_write(s->h2s, data) : -EPIPE;
	if (r < 0) {
		chain_clear(data);
		return -EPIPE;
	}
	s->written += len;
	s->was_high = s->was_high || r == 1;
	if (list_empty(&s->writing))
		list_add_tail(&s->link->writing, &s->writing);
	link_want_output(s->link);
	return 0;
}

static size_t op_queued(const struct stream *stream)
{
	const struct link_stream *s = list_entry(stream, const struct link_stream, stream);
	return s->h2s && !s->is_write_broken ? h2_stream_queued(s->h2s) : 0;
}

static void op_shutdown(struct stream *stream)
{
	struct link_stream *s = of(stream);
	if (s->is_shutdown || !s->h2s || s->is_write_broken)
		return;
	s->is_shutdown = true;
	if (h2_stream_end(s->h2s) < 0)
		break_with(s, -EPIPE, "broken pipe");
	link_want_output(s->link);
}

static void let_go(struct link_stream *s, bool is_reset, uint32_t code)
{
	struct h2_stream *h2s = s->h2s;
	struct link *link = s->link;
	s->is_freed = true;
	s->stream.events = NULL;
	s->answer = NULL;
	detach(s);
	if (h2s && is_reset)
		h2_stream_reset(h2s, code);
	else if (h2s)
		h2_stream_release(h2s);
	if (link)
		link_want_output(link);
	want_work(s);
}

static void op_free(struct stream *stream, bool is_abort)
{
	let_go(of(stream), is_abort, H2_CANCEL);
}

static const struct stream_ops OPS = {
        .read_start = op_read_start,
        .read_stop = op_read_stop,
        .write = op_write,
        .queued = op_queued,
        .shutdown = op_shutdown,
        .free = op_free,
};

struct link_stream *link_stream_new(struct link *link)
{
	struct link_stream *s = mem_zalloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->stream.ops = &OPS;
	s->link = link;
	s->io = link->io;
	io_task_init(&s->work, work);
	list_init(&s->node);
	list_init(&s->writing);
	list_add_tail(&link->streams, &s->node);
	return s;
}

void link_stream_orphan(struct link_stream *s)
{
	detach(s);
	s->is_write_broken = true;
	s->is_end = true;
	if (!s->is_finished || !s->is_end_told)
		break_with(s, -EPIPE, "broken pipe");
	want_work(s);
}

void link_stream_drop(struct link_stream *s)
{
	detach(s);
	io_undefer(&s->work);
	chain_clear(&s->held);
	mem_free(s);
}

void link_streams_account(struct link *link)
{
	list_for_each_safe(it, &link->writing)
	{
		struct link_stream *s = list_entry(it, struct link_stream, writing);
		size_t queued = h2_stream_queued(s->h2s);
		s->stream.taken = s->written - queued;
		if (queued == 0)
			list_del(&s->writing);
	}
}

/* --- link.h -------------------------------------------------------------- */

int link_respond(
        struct stream *stream, int status, const struct h2_header *headers, size_t header_cnt, bool end)
{
	struct link_stream *s = of(stream);
	if (!s->h2s || s->is_write_broken)
		return -EPIPE;
	int r = h2_respond(s->h2s, status, headers, header_cnt, end);
	if (r == 0 && end)
		s->is_shutdown = true;
	link_want_output(s->link);
	return r;
}

void link_reset(struct stream *stream, uint32_t code)
{
	let_go(of(stream), true, code);
}

struct link *link_of(const struct stream *stream)
{
	return list_entry(stream, const struct link_stream, stream)->link;
}
