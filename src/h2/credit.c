/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive credit: what peers may send before we consume it. Connection windows
 * are charged to the process's budget, since no peer can have more in flight
 * than that; stream windows only divide them. Knows no wire format.
 */
#include "h2/internal.h"

#include "base/check.h"

/* A connection starts with this much and cannot be told less (RFC 9113 section 6.9.2). */
#define CONN_WINDOW_MIN 65535u

static size_t budget_left(const struct h2_budget *budget)
{
	return budget->max > budget->used ? budget->max - budget->used : 0;
}

static uint32_t clamp_u32(uint64_t n)
{
	return n > NGHTTP2_MAX_WINDOW_SIZE ? NGHTTP2_MAX_WINDOW_SIZE : (uint32_t)n;
}

int h2_credit_open(struct h2_session *session)
{
	struct h2_budget *budget = &session->env->budget;
	uint32_t start = session->config.conn_window_start;
	size_t left = budget_left(budget);

	if (start > left)
		start = (uint32_t)left;
	if (start < CONN_WINDOW_MIN)
		start = CONN_WINDOW_MIN;
	h2_window_init(&session->window, start, session->config.conn_window_max, session->now_ms);
	budget->used += start;
	return nghttp2_session_set_local_window_size(session->ng, NGHTTP2_FLAG_NONE, 0, (int32_t)start);
}

void h2_credit_close(struct h2_session *session)
{
	size_t held = (size_t)session->window.size + session->window.excess;

	ASSERT(session->env->budget.used >= held);
	session->env->budget.used -= held;
	session->window.size = 0;
	session->window.excess = 0;
}

static void credit_resize(
        struct h2_session *session, struct h2_window *window, int32_t stream_id, uint32_t size)
{
	int err = nghttp2_session_set_local_window_size(
	        session->ng, NGHTTP2_FLAG_NONE, stream_id, (int32_t)size);

	window->size = size;
	if (err)
		h2_set_error(session, err);
}

static void conn_grow(struct h2_session *session, uint32_t limit)
{
	struct h2_window *window = &session->window;
	uint32_t affordable =
	        clamp_u32((uint64_t)window->size + window->excess + budget_left(&session->env->budget));
	uint32_t size = h2_window_grown(window, limit < affordable ? limit : affordable);
	uint32_t more = size - window->size;
	uint32_t reclaimed = more < window->excess ? more : window->excess;

	if (more == 0)
		return;
	window->excess -= reclaimed;
	session->env->budget.used += more - reclaimed;
	credit_resize(session, window, 0, size);
}

static void conn_shrink(struct h2_session *session)
{
	struct h2_window *window = &session->window;
	uint32_t size = h2_window_shrunk(window);

	if (size == window->size)
		return;
	/* The peer keeps what it was promised: the budget gets it back as it is consumed. */
	window->excess += window->size - size;
	credit_resize(session, window, 0, size);
}

void h2_credit_received(struct h2_stream *stream, size_t len)
{
	struct h2_session *session = stream->session;

	stream->unconsumed += len;
	session->unconsumed += len;
	/* Streams whose owners stall must not starve the others of the connection. */
	if (session->unconsumed > session->window.size / 2)
		conn_grow(session, session->window.ceiling);
}

static void conn_used(struct h2_session *session, size_t len)
{
	struct h2_window *window = &session->window;
	uint32_t repaid = len < window->excess ? (uint32_t)len : window->excess;
	/* One stream cannot use more than twice its own largest window. */
	uint64_t limit = 2 * (uint64_t)session->config.stream_window_max * session->open_cnt;

	window->excess -= repaid;
	session->env->budget.used -= repaid;
	switch (h2_window_used(window, len, session->now_ms)) {
	case H2_WINDOW_GROW:
		conn_grow(session, clamp_u32(limit));
		break;
	case H2_WINDOW_SHRINK:
		conn_shrink(session);
		break;
	case H2_WINDOW_KEEP:
		break;
	}
}

static void stream_used(struct h2_stream *stream, size_t len)
{
	struct h2_session *session = stream->session;
	struct h2_window *window = &stream->window;
	uint32_t size = window->size;

	switch (h2_window_used(window, len, session->now_ms)) {
	case H2_WINDOW_GROW:
		/* Half of the connection's credit at most: a stalled stream leaves room for others. */
		size = h2_window_grown(window, session->window.size / 2);
		break;
	case H2_WINDOW_SHRINK:
		size = h2_window_shrunk(window);
		break;
	case H2_WINDOW_KEEP:
		break;
	}
	if (size != window->size)
		credit_resize(session, window, stream->id, size);
}

/* Until the peer has acknowledged our SETTINGS, its streams start with another window than ours say. */
static bool is_window_agreed(const struct h2_session *session)
{
	return nghttp2_session_get_local_settings(session->ng, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE) ==
	       session->config.stream_window_start;
}

void h2_credit_consumed(struct h2_stream *stream, size_t len)
{
	struct h2_session *session = stream->session;
	int err;

	ASSERT(len <= stream->unconsumed && len <= session->unconsumed);
	stream->unconsumed -= len;
	session->unconsumed -= len;
	if (session->is_dead || len == 0)
		return;
	if (stream->is_closed)
		err = nghttp2_session_consume_connection(session->ng, len);
	else
		err = nghttp2_session_consume(session->ng, stream->id, len);
	if (err) {
		h2_set_error(session, err);
		return;
	}
	conn_used(session, len);
	if (!stream->is_closed && !stream->peer_ended && is_window_agreed(session))
		stream_used(stream, len);
}
