/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One gRPC call on a connection to the control plane: its request, messages
 * both ways, and how it ended. Events to the owner never come from inside a
 * call of the owner; the end comes as a task of its own, so that an owner may
 * do anything in it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/control_priv.h"
#include "grpc/text.h"

/* Bytes of messages that may wait to be sent: the first xDS request names every resource held, 100,000 have
 * about 10 MB. */
#define QUEUE_MAX (64u << 20)

static struct io *io_of(const struct control_call *call)
{
	return call->channel->broker->io;
}

/* --- ends ----------------------------------------------------------------- */

/* Leaves connection and stream; the call only waits to be told. */
static void let_go(struct control_call *call)
{
	struct control_conn *conn = call->conn;
	struct stream *stream = call->stream;
	call->is_over = true;
	call->conn = NULL;
	call->stream = NULL;
	io_timer_stop(io_of(call), &call->deadline);
	chain_clear(&call->queue);
	list_del(&call->node);
	list_add_tail(&call->channel->ending, &call->node);
	io_defer(io_of(call), &call->end, IO_PHASE_WORK);
	stream_free(stream);
	if (conn)
		control_conn_left(conn);
}

void control_call_free(struct control_call *call)
{
	if (!call->is_over)
		let_go(call);
	io_undefer(&call->end);
	list_del(&call->node);
	call->is_cancelled = true;
	/* Its own callback is running and frees it. */
	if (call->is_busy)
		call->channel = NULL;
	else
		mem_free(call);
}

static void on_end(struct io_task *task)
{
	struct control_call *call = list_entry(task, struct control_call, end);
	const struct control_call_events *events = call->events;
	void *ctx = call->ctx;
	enum control_stage stage = call->stage;
	struct grpc_status status = call->status;
	bool is_told = !call->is_cancelled;
	list_del(&call->node);
	mem_free(call);
	if (is_told)
		events->on_end(ctx, stage, &status);
}

static void finish(struct control_call *call, enum control_stage stage)
{
	if (call->is_over)
		return;
	call->stage = stage;
	let_go(call);
}

void control_call_fail(
        struct control_call *call, enum control_stage stage, enum grpc_code code, const char *fmt, ...)
{
	char text[GRPC_MESSAGE_MAX];
	va_list ap;
	if (call->is_over)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	grpc_status_set(&call->status, code, "%s", text);
	finish(call, stage);
}

static void deadline_over(struct timer *timer, uint64_t now)
{
	struct control_call *call = list_entry(timer, struct control_call, deadline);
	(void)now;
	/* Not even headers: the connection may be dead without anybody saying so. */
	if (call->stage == CONTROL_CONNECT && call->conn && call->conn->is_ready)
		control_conn_retire(call->conn);
	control_call_fail(call, call->stage, GRPC_DEADLINE_EXCEEDED, "%s: no answer within %llu ms",
	        call->channel->auth.authority, (unsigned long long)call->opts.deadline_ms);
}

/* --- answer --------------------------------------------------------------- */

static void on_response(void *ctx, struct stream *stream, int status, const struct h2_headers *headers)
{
	struct control_call *call = ctx;
	const char *code = h2_headers_get(headers, "grpc-status");
	const char *encoding = h2_headers_get(headers, "grpc-encoding");
	(void)stream;
	if (call->is_over)
		return;
	if (code) {
		/* Trailers-Only: the end without a beginning. */
		grpc_status_parse(code, h2_headers_get(headers, "grpc-message"), &call->status);
		call->has_status = true;
		return;
	}
	if (status != 200)
		control_call_fail(call, CONTROL_CONNECT, grpc_code_from_http(status),
		        "%s: grpc-status header missing, mapped from HTTP status code %d",
		        call->channel->auth.authority, status);
	else if (!grpc_content_type_is_fine(h2_headers_get(headers, "content-type")))
		control_call_fail(call, CONTROL_CONNECT, GRPC_UNKNOWN, "%s: the answer is no gRPC",
		        call->channel->auth.authority);
	else if (encoding && strcmp(encoding, "identity") != 0)
		control_call_fail(call, CONTROL_CONNECT, GRPC_UNIMPLEMENTED,
		        "Content is compressed with `%.64s` which isn't supported", encoding);
	if (call->is_over)
		return;
	call->stage = CONTROL_STREAM;
	call->is_busy = true;
	if (call->events->on_open)
		call->events->on_open(call->ctx);
	call->is_busy = false;
	if (!call->channel)
		mem_free(call);
}

static void on_trailers(void *ctx, struct stream *stream, const struct h2_headers *headers)
{
	struct control_call *call = ctx;
	(void)stream;
	grpc_status_parse(h2_headers_get(headers, "grpc-status"), h2_headers_get(headers, "grpc-message"),
	        &call->status);
	call->has_status = true;
}

static const struct link_answer_events answer_events = {
        .on_response = on_response, .on_trailers = on_trailers};

/* The owner refused a message. */
static void refused(struct control_call *call, int code, const struct err *err)
{
	if (!call->is_over)
		control_call_fail(call, CONTROL_STREAM,
		        code == -ENOMEM || code == ERR_TOO_LARGE ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL,
		        "%s", err->text[0] ? err->text : err_str(code));
}

static void give_piece(struct control_call *call, const struct grpc_piece *piece)
{
	const struct control_call_events *events = call->events;
	struct err err = {0};
	int r = 0;
	if (!piece->is_begin)
		r = events->on_bytes(call->ctx, piece->bytes, piece->len, piece->is_last, &err);
	else if (events->on_message)
		r = events->on_message(call->ctx, piece->len, &err);
	if (r < 0 && call->channel)
		refused(call, r, &err);
}

static void read_bytes(struct control_call *call, const uint8_t *bytes, size_t len)
{
	struct grpc_piece piece;
	struct grpc_status status;
	int r = 0;
	while (!call->is_over && (r = grpc_reader_next(&call->reader, &bytes, &len, &piece, &status)) > 0)
		give_piece(call, &piece);
	if (r < 0 && !call->is_over) {
		call->status = status;
		finish(call, CONTROL_STREAM);
	}
}

static void on_data(void *ctx, struct chain *data)
{
	struct control_call *call = ctx;
	call->is_busy = true;
	for (const struct chunk *c = data->head; c && !call->is_over; c = c->next)
		read_bytes(call, chunk_bytes(c), c->len);
	call->is_busy = false;
	if (!call->channel)
		mem_free(call);
}

static void on_eof(void *ctx)
{
	struct control_call *call = ctx;
	if (call->stage == CONTROL_STREAM && !grpc_reader_is_between(&call->reader) &&
	        (!call->has_status || call->status.code == GRPC_OK))
		control_call_fail(call, call->stage, GRPC_INTERNAL, "Unexpected EOF decoding stream.");
	else if (!call->has_status)
		control_call_fail(call, call->stage, GRPC_UNKNOWN,
		        "%s: the server ended the call without a status", call->channel->auth.authority);
	finish(call, call->stage);
}

static void on_error(void *ctx, int code, const char *text)
{
	struct control_call *call = ctx;
	const char *where = call->channel->auth.authority;
	uint32_t reset;
	(void)code;
	if (call->has_status)
		finish(call, call->stage);
	else if (link_reset_code(call->stream, &reset) && reset != H2_NO_ERROR)
		control_call_fail(call, call->stage, grpc_code_from_reset(reset), "%s: h2 protocol error: %s",
		        where, h2_code_name(reset));
	else
		control_call_fail(call, call->stage,
		        call->stage == CONTROL_STREAM ? GRPC_UNKNOWN : GRPC_UNAVAILABLE,
		        "%s: connection lost: %s", where, text);
}

static const struct stream_events stream_events = {
        .on_data = on_data, .on_eof = on_eof, .on_error = on_error};

/* --- request -------------------------------------------------------------- */

static void opened(struct control_call *call)
{
	stream_set_events(call->stream, &stream_events, call);
	stream_read_start(call->stream);
	if (!chain_empty(&call->queue))
		(void)stream_write(call->stream, &call->queue);
	if (call->is_half_closed)
		stream_shutdown(call->stream);
}

void control_call_open(struct control_call *call)
{
	struct control_auth *auth = &call->channel->auth;
	struct control_lines lines;
	struct err err = {0};
	int r = control_lines_make(auth, &lines, &err);
	if (r < 0) {
		control_call_fail(
		        call, CONTROL_CONNECT, GRPC_UNAUTHENTICATED, "%s: %s", auth->authority, err.text);
		control_lines_done(&lines);
		return;
	}
	const struct h2_request request = {.method = "POST",
	        .scheme = "https",
	        .authority = auth->authority,
	        .path = call->opts.path,
	        .headers = lines.lines,
	        .header_cnt = lines.cnt};
	r = link_request(call->conn->link, &request, &answer_events, call, &call->stream);
	control_lines_done(&lines);
	if (r == 0)
		opened(call);
	else if (r != -EAGAIN)
		control_call_fail(call, CONTROL_CONNECT, GRPC_INTERNAL, "%s: the request cannot be sent: %s",
		        auth->authority, r == -EINVAL ? "a header is not allowed" : err_str(r));
}

int control_call_start(struct control_channel *channel, const struct control_call_opts *opts,
        const struct control_call_events *events, void *ctx, struct control_call **ret_call)
{
	struct control_call *call = mem_zalloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	call->conn = control_conn_get(channel);
	if (!call->conn) {
		mem_free(call);
		return -ENOMEM;
	}
	call->channel = channel;
	call->opts = *opts;
	call->events = events;
	call->ctx = ctx;
	call->stage = CONTROL_CONNECT;
	grpc_reader_init(&call->reader, opts->message_max);
	timer_init(&call->deadline, deadline_over);
	io_task_init(&call->end, on_end);
	list_init(&call->node);
	list_add_tail(&call->conn->calls, &call->node);
	if (opts->deadline_ms)
		io_timer_start(io_of(call), &call->deadline, opts->deadline_ms);
	*ret_call = call;
	if (call->conn->is_ready)
		control_call_open(call);
	return 0;
}

int control_call_send(struct control_call *call, const void *bytes, size_t len)
{
	uint8_t head[GRPC_HEAD_LEN];
	struct chunk_pool *pool = io_pool(io_of(call));
	size_t queued = call->queue.len + (call->stream ? stream_queued(call->stream) : 0);
	struct chain data = {0};
	if (call->is_over || call->is_half_closed)
		return -EPIPE;
	if (len > QUEUE_MAX || queued + len > QUEUE_MAX)
		return -ENOSPC;
	grpc_head_write(len, head);
	if (chain_write(&data, pool, head, sizeof(head)) < 0 || chain_write(&data, pool, bytes, len) < 0) {
		chain_clear(&data);
		return -ENOMEM;
	}
	if (call->stream)
		return stream_write(call->stream, &data);
	chain_move(&call->queue, &data);
	return 0;
}

void control_call_half_close(struct control_call *call)
{
	if (call->is_over || call->is_half_closed)
		return;
	call->is_half_closed = true;
	if (call->stream)
		stream_shutdown(call->stream);
}

void control_call_cancel(struct control_call *call)
{
	if (!call)
		return;
	call->is_cancelled = true;
	if (!call->is_over)
		let_go(call);
}
