/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams: opening, answering, queueing, ending, letting go. A stream object
 * lives until both nghttp2 and its owner are done with it. Knows no event
 * order (events.c) and no output (pull.c).
 */
#include "h2/internal.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

/* Pseudo headers that stand before the regular lines of a message. */
#define PSEUDO_MAX 4u

struct h2_stream *h2_stream_new(struct h2_session *session, int32_t id)
{
	struct h2_stream *stream = mem_zalloc(1, sizeof(*stream));
	const struct h2_config *config = &session->config;

	if (!stream)
		return NULL;
	stream->session = session;
	stream->id = id;
	list_init(&stream->event_node);
	list_add_tail(&session->streams, &stream->node);
	h2_window_init(
	        &stream->window, config->stream_window_start, config->stream_window_max, session->now_ms);
	session->open_cnt++;
	h2_ping_wake(session);
	return stream;
}

static void trailers_free(struct h2_stream *stream)
{
	if (!stream->trailers)
		return;
	h2_headers_done(stream->trailers);
	mem_free(stream->trailers);
	stream->trailers = NULL;
}

void h2_stream_close(struct h2_stream *stream)
{
	if (stream->is_closed)
		return;
	stream->is_closed = true;
	stream->session->open_cnt--;
	chain_clear(&stream->queue);
	trailers_free(stream);
	stream->events &= (uint8_t)~STREAM_EVENT_WRITABLE;
	if (!stream->events)
		list_del(&stream->event_node);
}

void h2_stream_destroy(struct h2_stream *stream)
{
	h2_stream_close(stream);
	h2_credit_consumed(stream, stream->unconsumed);
	if (stream->session->message_stream == stream)
		stream->session->message_stream = NULL;
	list_del(&stream->event_node);
	list_del(&stream->node);
	mem_free(stream);
}

static void stream_rst(struct h2_stream *stream, uint32_t code)
{
	struct h2_session *session = stream->session;
	int err = nghttp2_submit_rst_stream(session->ng, NGHTTP2_FLAG_NONE, stream->id, code);

	if (err)
		h2_set_error(session, err);
}

void h2_stream_fault(struct h2_stream *stream, uint32_t code)
{
	if (stream->is_faulty)
		return;
	stream->is_faulty = true;
	stream->reset_code = code;
	stream_rst(stream, code);
}

static int put_line(nghttp2_nv *nv, const char *name, const char *value, bool is_unique)
{
	nv->name = (uint8_t *)(uintptr_t)name;
	nv->namelen = strlen(name);
	nv->value = (uint8_t *)(uintptr_t)value;
	nv->valuelen = strlen(value);
	nv->flags = is_unique ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
	return 1;
}

/* Appends regular lines behind `cnt` pseudo headers; returns the number of lines or -EINVAL. */
static int put_headers(nghttp2_nv *nv, int cnt, const struct h2_header *headers, size_t header_cnt)
{
	size_t bytes = 0;

	if (header_cnt > H2_SEND_LINES_MAX)
		return -EINVAL;
	for (size_t i = 0; i < header_cnt; i++) {
		if (!h2_header_is_sendable(&headers[i]))
			return -EINVAL;
		cnt += put_line(&nv[cnt], headers[i].name, headers[i].value, headers[i].is_unique);
	}
	for (int i = 0; i < cnt; i++)
		bytes += nv[i].namelen + nv[i].valuelen;
	return bytes <= H2_SEND_BYTES_MAX ? cnt : -EINVAL;
}

static int put_request(nghttp2_nv *nv, const struct h2_request *request)
{
	bool is_connect = strcmp(request->method, "CONNECT") == 0;
	int cnt = 0;

	if (!nghttp2_check_method((const uint8_t *)request->method, strlen(request->method)))
		return -EINVAL;
	if (is_connect != !request->scheme || is_connect != !request->path)
		return -EINVAL;
	if (request->authority && !h2_authority_is_valid(request->authority, strlen(request->authority)))
		return -EINVAL;
	if (request->path && !nghttp2_check_path((const uint8_t *)request->path, strlen(request->path)))
		return -EINVAL;
	cnt += put_line(&nv[cnt], ":method", request->method, false);
	if (request->scheme)
		cnt += put_line(&nv[cnt], ":scheme", request->scheme, false);
	if (request->authority)
		cnt += put_line(&nv[cnt], ":authority", request->authority, false);
	if (request->path)
		cnt += put_line(&nv[cnt], ":path", request->path, false);
	return put_headers(nv, cnt, request->headers, request->header_cnt);
}

int h2_request(struct h2_session *session, const struct h2_request *request, const struct h2_stream_ops *ops,
        void *user, struct h2_stream **ret_stream)
{
	nghttp2_nv nv[PSEUDO_MAX + H2_SEND_LINES_MAX];
	nghttp2_data_provider source;
	struct h2_stream *stream;
	int cnt;

	if (!h2_can_open(session))
		return -EAGAIN;
	cnt = put_request(nv, request);
	if (cnt < 0)
		return cnt;
	stream = h2_stream_new(session, 0);
	if (!stream)
		return -ENOMEM;
	source = h2_pull_source(stream);
	stream->id = nghttp2_submit_request(session->ng, NULL, nv, (size_t)cnt, &source, stream);
	if (stream->id < 0) {
		/* Ids are left (h2_can_open), so this is memory. */
		h2_stream_destroy(stream);
		return -ENOMEM;
	}
	h2_stream_bind(stream, ops, user);
	*ret_stream = stream;
	return 0;
}

int h2_connect(struct h2_session *session, const char *authority, const struct h2_header *headers,
        size_t header_cnt, const struct h2_stream_ops *ops, void *user, struct h2_stream **ret_stream)
{
	struct h2_request request = {
	        .method = "CONNECT", .authority = authority, .headers = headers, .header_cnt = header_cnt};

	return h2_request(session, &request, ops, user, ret_stream);
}

void h2_stream_bind(struct h2_stream *stream, const struct h2_stream_ops *ops, void *user)
{
	stream->ops = ops;
	stream->user = user;
}

void *h2_stream_user(const struct h2_stream *stream)
{
	return stream->user;
}

struct h2_session *h2_stream_session(const struct h2_stream *stream)
{
	return stream->session;
}

uint32_t h2_stream_id(const struct h2_stream *stream)
{
	return (uint32_t)stream->id;
}

int h2_respond(
        struct h2_stream *stream, int status, const struct h2_header *headers, size_t header_cnt, bool end)
{
	nghttp2_nv nv[PSEUDO_MAX + H2_SEND_LINES_MAX];
	nghttp2_data_provider source = h2_pull_source(stream);
	struct h2_session *session = stream->session;
	char text[4] = {(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10),
	        (char)('0' + status % 10), 0};
	int cnt;
	int err;

	if (!session->config.is_server || stream->has_head || status < 200 || status > 599)
		return -EINVAL;
	if (stream->is_closed || stream->is_faulty)
		return -EPIPE;
	cnt = put_headers(nv, put_line(nv, ":status", text, false), headers, header_cnt);
	if (cnt < 0)
		return cnt;
	err = nghttp2_submit_response(session->ng, stream->id, nv, (size_t)cnt, end ? NULL : &source);
	if (err)
		return h2_set_error(session, err);
	stream->has_head = true;
	stream->end_wanted |= end;
	return 0;
}

static void stream_resume(struct h2_stream *stream)
{
	int err;

	if (!stream->is_deferred)
		return;
	stream->is_deferred = false;
	err = nghttp2_session_resume_data(stream->session->ng, stream->id);
	if (err && err != NGHTTP2_ERR_INVALID_ARGUMENT)
		h2_set_error(stream->session, err);
}

int h2_stream_write(struct h2_stream *stream, struct chain *data)
{
	const struct h2_config *config = &stream->session->config;

	if (stream->is_closed || stream->is_faulty || stream->end_wanted)
		return -EPIPE;
	if (stream->queue.len + data->len > config->queue_high + H2_QUEUE_SLACK)
		return -ENOBUFS;
	chain_move(&stream->queue, data);
	if (!chain_empty(&stream->queue))
		stream_resume(stream);
	if (stream->session->error)
		return stream->session->error;
	if (stream->queue.len > config->queue_high)
		stream->is_stopped = true;
	return stream->is_stopped ? 1 : 0;
}

size_t h2_stream_queued(const struct h2_stream *stream)
{
	return stream->queue.len;
}

int h2_stream_end(struct h2_stream *stream)
{
	if (stream->end_wanted)
		return 0;
	if (stream->is_closed || stream->is_faulty)
		return -EPIPE;
	stream->end_wanted = true;
	stream_resume(stream);
	return stream->session->error;
}

static int trailers_copy(struct h2_headers *copy, const struct h2_header *headers, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		int r = h2_headers_add(copy, headers[i].name, strlen(headers[i].name), headers[i].value,
		        strlen(headers[i].value));
		if (r)
			return r == -E2BIG ? -EINVAL : r;
	}
	return 0;
}

int h2_stream_trailers(struct h2_stream *stream, const struct h2_header *headers, size_t header_cnt)
{
	nghttp2_nv nv[H2_SEND_LINES_MAX];
	int err;

	if (!stream->session->config.is_server || stream->trailers || header_cnt == 0)
		return -EINVAL;
	if (stream->is_closed || stream->is_faulty || stream->end_wanted)
		return -EPIPE;
	if (put_headers(nv, 0, headers, header_cnt) < 0)
		return -EINVAL;
	stream->trailers = mem_alloc(sizeof(*stream->trailers));
	if (!stream->trailers)
		return -ENOMEM;
	h2_headers_init(stream->trailers, H2_SEND_BYTES_MAX + 2 * H2_SEND_LINES_MAX);
	err = trailers_copy(stream->trailers, headers, header_cnt);
	if (err)
		trailers_free(stream);
	return err;
}

int h2_stream_submit_trailers(struct h2_stream *stream)
{
	nghttp2_nv nv[H2_SEND_LINES_MAX];
	struct h2_headers_it it = {0};
	size_t cnt = 0;

	while (cnt < H2_SEND_LINES_MAX && h2_headers_next(stream->trailers, NULL, &it))
		cnt += (size_t)put_line(&nv[cnt], it.name, it.value, false);
	return nghttp2_submit_trailer(stream->session->ng, stream->id, nv, cnt);
}

void h2_stream_consume(struct h2_stream *stream, size_t len)
{
	h2_credit_consumed(stream, len);
}

size_t h2_stream_unconsumed(const struct h2_stream *stream)
{
	return stream->unconsumed;
}

/* The owner's pointer is dead from here on. */
static void stream_let_go(struct h2_stream *stream)
{
	stream->is_released = true;
	stream->ops = NULL;
	stream->events = 0;
	list_del(&stream->event_node);
	h2_credit_consumed(stream, stream->unconsumed);
}

void h2_stream_reset(struct h2_stream *stream, uint32_t code)
{
	if (!stream)
		return;
	ASSERT(!stream->is_released);
	stream_let_go(stream);
	if (stream->is_closed)
		h2_stream_destroy(stream);
	else if (!stream->is_faulty && !(stream->peer_ended && stream->end_sent))
		stream_rst(stream, code);
}

/* What an abandoned stream is reset with (dataplane section 6). */
static uint32_t abandon_code(const struct h2_stream *stream)
{
	return stream->end_sent && stream->session->config.is_server ? H2_NO_ERROR : H2_CANCEL;
}

void h2_stream_end_left(struct h2_stream *stream)
{
	stream->end_sent = true;
	if (!stream->is_released)
		h2_event_post(stream, STREAM_EVENT_DRAINED);
	else if (!stream->peer_ended && !stream->is_faulty)
		stream_rst(stream, abandon_code(stream));
}

void h2_stream_release(struct h2_stream *stream)
{
	if (!stream)
		return;
	/* Our END_STREAM is on its way: a reset now would overtake it. */
	if (!stream->is_closed && stream->end_wanted && !stream->end_sent) {
		ASSERT(!stream->is_released);
		stream_let_go(stream);
		return;
	}
	h2_stream_reset(stream, abandon_code(stream));
}
