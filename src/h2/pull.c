/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output, piece by piece. Large payloads leave where they lie: the frame
 * header is written in front of them, into the chunk's headroom or over bytes
 * that the piece before has carried away. Everything smaller is gathered.
 * Knows no transport.
 */
#include "h2/internal.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How much of the queue goes into the next frame: one large chunk, or small ones up to the next large. */
static size_t next_payload(const struct chain *queue, size_t max)
{
	size_t n = 0;

	if (queue->head && queue->head->len >= DIRECT_MIN)
		return min_size(queue->head->len, max);
	for (const struct chunk *c = queue->head; c && c->len < DIRECT_MIN && n < max; c = c->next)
		n += c->len;
	return min_size(n, max);
}

static ssize_t on_read(nghttp2_session *ng, int32_t stream_id, uint8_t *buf, size_t max, uint32_t *flags,
        nghttp2_data_source *source, void *user)
{
	struct h2_stream *stream = source->ptr;
	size_t len = next_payload(&stream->queue, min_size(max, H2_DATA_MAX));
	bool is_last = stream->end_wanted && len == stream->queue.len;

	if (len == 0 && !is_last) {
		stream->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (!is_last)
		return (ssize_t)len;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (stream->trailers) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (h2_stream_submit_trailers(stream) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return (ssize_t)len;
}

nghttp2_data_provider h2_pull_source(struct h2_stream *stream)
{
	return (nghttp2_data_provider){.source.ptr = stream, .read_callback = on_read};
}

static bool is_direct(const struct h2_stream *stream, size_t len)
{
	const struct chunk *head = stream->queue.head;

	return len >= DIRECT_MIN && head->len >= len && head->off >= FRAME_HEADER_LEN;
}

static void queue_shrank(struct h2_stream *stream)
{
	if (stream->is_stopped && stream->queue.len <= stream->session->config.queue_low) {
		stream->is_stopped = false;
		h2_event_post(stream, STREAM_EVENT_WRITABLE);
	}
}

static void send_direct(struct h2_env *env, struct chain *queue, const uint8_t *head, size_t len)
{
	uint8_t *start = chunk_bytes(queue->head) - FRAME_HEADER_LEN;

	memcpy(start, head, FRAME_HEADER_LEN);
	env->direct = start;
	env->direct_len = FRAME_HEADER_LEN + len;
	if (queue->head->len == len)
		env->held = chain_take(queue);
	else
		chain_consume(queue, len);
}

static void send_gathered(struct h2_env *env, struct chain *queue, const uint8_t *head, size_t len)
{
	uint8_t *at = env->piece + env->piece_len;

	memcpy(at, head, FRAME_HEADER_LEN);
	chain_copy(queue, 0, at + FRAME_HEADER_LEN, len);
	chain_consume(queue, len);
	env->piece_len += FRAME_HEADER_LEN + len;
}

static int on_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head, size_t len,
        nghttp2_data_source *source, void *user)
{
	struct h2_stream *stream = source->ptr;
	struct h2_env *env = stream->session->env;
	bool direct = is_direct(stream, len);

	if (direct ? env->piece_len > 0 : env->piece_len + FRAME_HEADER_LEN + len > H2_PIECE_MAX)
		return NGHTTP2_ERR_WOULDBLOCK;
	if (direct)
		send_direct(env, &stream->queue, head, len);
	else
		send_gathered(env, &stream->queue, head, len);
	queue_shrank(stream);
	return direct ? NGHTTP2_ERR_PAUSE : 0;
}

static void goaway_left(struct h2_session *session, const nghttp2_frame *frame)
{
	char reason[FAULT_MAX];
	int err;

	if (frame->goaway.error_code != NGHTTP2_NO_ERROR) {
		int len = (int)min_size(frame->goaway.opaque_data_len, sizeof(reason) - 1);

		if (len)
			memcpy(reason, frame->goaway.opaque_data, (size_t)len);
		reason[len] = '\0';
		h2_set_fault(session, len ? reason : h2_code_name(frame->goaway.error_code));
	}
	if (!session->is_draining || session->is_drain_pinged)
		return;
	session->is_drain_pinged = true;
	err = h2_ping(session, DRAIN_PING);
	if (err)
		h2_set_error(session, err);
}

static int on_frame_send(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
	struct h2_session *session = user;
	struct h2_stream *stream;

	switch (frame->hd.type) {
	case NGHTTP2_DATA:
	case NGHTTP2_HEADERS:
		stream = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
		if (stream && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
			h2_stream_end_left(stream);
		break;
	case NGHTTP2_GOAWAY:
		goaway_left(session, frame);
		break;
	default:
		break;
	}
	return 0;
}

void h2_pull_register(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
}

/* Moves what fits of nghttp2's current frame into the piece; false when the piece is full. */
static bool take_carry(struct h2_session *session)
{
	struct h2_env *env = session->env;
	size_t len = min_size(session->carry_len, H2_PIECE_MAX - env->piece_len);

	/* Before the first frame there is no pointer yet, and C forbids to add even 0 to none. */
	if (session->carry_len == 0)
		return true;
	memcpy(env->piece + env->piece_len, session->carry, len);
	env->piece_len += len;
	session->carry += len;
	session->carry_len -= len;
	return session->carry_len == 0;
}

static int build_piece(struct h2_session *session)
{
	while (take_carry(session)) {
		ssize_t len = nghttp2_session_mem_send(session->ng, &session->carry);

		if (len < 0)
			return h2_set_error(session, (int)len);
		session->carry_len = (size_t)len;
		if (len == 0)
			break;
	}
	return session->error;
}

int h2_pull(struct h2_session *session, const uint8_t **ret_piece, size_t *ret_len)
{
	struct h2_env *env = session->env;
	int err;

	ASSERT(!session->is_busy && !session->is_pulling);
	chunk_free(env->held);
	env->held = NULL;
	session->is_busy = true;
	h2_events_dispatch(session);
	session->is_busy = false;
	if (session->error || session->is_dead)
		return session->error;
	env->direct = NULL;
	env->piece_len = 0;
	session->is_pulling = true;
	err = build_piece(session);
	session->is_pulling = false;
	if (err)
		return err;
	*ret_piece = env->direct ? env->direct : env->piece;
	*ret_len = env->direct ? env->direct_len : env->piece_len;
	return *ret_len > 0;
}

bool h2_wants_pull(const struct h2_session *session)
{
	if (session->error || session->is_dead)
		return false;
	return session->carry_len > 0 || session->is_room_pending || !list_empty(&session->events) ||
	       nghttp2_session_want_write(session->ng);
}
