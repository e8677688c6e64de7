/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What nghttp2 reports while it reads, turned into events for stream and
 * session owners. Owners are called at once while reading; what happens while
 * a piece of output is built waits for h2_events_dispatch(). Knows no
 * transport.
 */
#include "h2/internal.h"

#include <errno.h>
#include <string.h>

static struct h2_stream *stream_of(struct h2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session->ng, id);
}

/* Whether the owner still wants to hear of the stream. */
static bool is_heard(const struct h2_stream *stream)
{
	return stream->ops && !stream->is_faulty;
}

void h2_event_post(struct h2_stream *stream, uint8_t event)
{
	if (!stream->ops)
		return;
	if (!stream->events)
		list_add_tail(&stream->session->events, &stream->event_node);
	stream->events |= event;
}

static void tell_reset(struct h2_stream *stream, uint32_t code, bool is_remote)
{
	struct h2_reset reset = {.code = code, .is_remote = is_remote};

	if (stream->ops->on_reset)
		stream->ops->on_reset(stream->user, stream, &reset);
}

static void event_tell(struct h2_stream *stream, uint8_t event)
{
	switch (event) {
	case STREAM_EVENT_WRITABLE:
		if (stream->ops->on_writable)
			stream->ops->on_writable(stream->user, stream);
		break;
	case STREAM_EVENT_DRAINED:
		if (stream->ops->on_drained)
			stream->ops->on_drained(stream->user, stream);
		break;
	case STREAM_EVENT_RESET:
		/* Refusals of requests that never left come from the peer's GOAWAY, all else from ourselves.
		 */
		tell_reset(stream, stream->reset_code,
		        stream->reset_code == H2_REFUSED_STREAM && stream->session->is_goaway_seen);
		break;
	}
}

void h2_events_dispatch(struct h2_session *session)
{
	while (!list_empty(&session->events)) {
		struct h2_stream *stream = list_entry(session->events.next, struct h2_stream, event_node);
		uint8_t event = stream->events & (uint8_t)-stream->events;

		/* One at a time: the owner may release the stream in each. */
		stream->events &= (uint8_t)~event;
		if (!stream->events)
			list_del(&stream->event_node);
		event_tell(stream, event);
	}
	if (session->is_room_pending) {
		session->is_room_pending = false;
		if (session->ops->on_stream_room)
			session->ops->on_stream_room(session->ctx);
	}
}

static void count_idle_frame(struct h2_session *session)
{
	if (!h2_bucket_take(&session->idle_frames, session->now_ms))
		h2_calm_down(session, "too many frames without content");
}

static void count_early_reset(struct h2_session *session)
{
	if (!h2_bucket_take(&session->resets, session->now_ms))
		h2_calm_down(session, "too many streams reset");
}

static int on_begin_frame(nghttp2_session *ng, const nghttp2_frame_hd *hd, void *user)
{
	struct h2_session *session = user;

	switch (hd->type) {
	case NGHTTP2_DATA:
		if (hd->length == 0 && !(hd->flags & NGHTTP2_FLAG_END_STREAM))
			count_idle_frame(session);
		break;
	case NGHTTP2_PING:
	case NGHTTP2_PRIORITY:
	case NGHTTP2_SETTINGS:
		count_idle_frame(session);
		break;
	default:
		break;
	}
	return 0;
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
	struct h2_session *session = user;
	const struct h2_config *config = &session->config;
	enum h2_message_kind kind = H2_MESSAGE_TRAILERS;
	struct h2_stream *stream;

	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		kind = H2_MESSAGE_REQUEST;
		stream = h2_stream_new(session, frame->hd.stream_id);
		if (stream)
			nghttp2_session_set_stream_user_data(ng, frame->hd.stream_id, stream);
	} else {
		stream = stream_of(session, frame->hd.stream_id);
		if (stream && !config->is_server && !stream->has_head)
			kind = H2_MESSAGE_RESPONSE;
	}
	session->message_stream = stream;
	if (!stream)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	h2_message_done(&session->message);
	h2_message_begin(&session->message, kind, config->keep_headers, config->header_list_max);
	return 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
        const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
	struct h2_session *session = user;
	int err;

	if (!session->message_stream)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	err = h2_message_line(
	        &session->message, (const char *)name, name_len, (const char *)value, value_len);
	if (err == -E2BIG)
		h2_calm_down(session, "header list far too long");
	return err ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
}

static void tell_end(struct h2_stream *stream)
{
	if (is_heard(stream) && stream->ops->on_end)
		stream->ops->on_end(stream->user, stream);
}

static void request_arrived(struct h2_session *session, struct h2_stream *stream, int err)
{
	if (err == -E2BIG) {
		h2_respond(stream, 431, NULL, 0, true);
		h2_stream_release(stream);
		return;
	}
	if (err) {
		h2_stream_reset(stream, H2_PROTOCOL_ERROR);
		count_early_reset(session);
		return;
	}
	if (session->ops->on_request)
		session->ops->on_request(session->ctx, stream, &session->message.headers);
	/* Still here even if the owner let go: nghttp2 has not closed it. */
	if (!stream->ops && !stream->is_released)
		h2_stream_reset(stream, H2_REFUSED_STREAM);
	else if (stream->peer_ended)
		tell_end(stream);
}

static void response_arrived(struct h2_session *session, struct h2_stream *stream, int err)
{
	int status = session->message.status;

	if (err == 0 && status < 200) {
		/* Interim answers say nothing to us, but may not be the last word. */
		if (stream->peer_ended)
			h2_stream_fault(stream, H2_PROTOCOL_ERROR);
		return;
	}
	stream->has_head = true;
	if (err)
		h2_stream_fault(stream, err == -E2BIG ? H2_REFUSED_STREAM : H2_PROTOCOL_ERROR);
	if (is_heard(stream) && stream->ops->on_response)
		stream->ops->on_response(stream->user, stream, status, &session->message.headers);
	if (stream->peer_ended)
		tell_end(stream);
}

static void trailers_arrived(struct h2_session *session, struct h2_stream *stream, int err)
{
	if (err || !stream->peer_ended)
		h2_stream_fault(stream, H2_PROTOCOL_ERROR);
	if (is_heard(stream) && stream->ops->on_trailers)
		stream->ops->on_trailers(stream->user, stream, &session->message.headers);
	tell_end(stream);
}

static void message_arrived(struct h2_session *session, const nghttp2_frame *frame)
{
	struct h2_stream *stream = session->message_stream;
	int err = h2_message_end(&session->message);

	session->message_stream = NULL;
	if (!stream)
		return;
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		stream->peer_ended = true;
	switch (session->message.kind) {
	case H2_MESSAGE_REQUEST:
		request_arrived(session, stream, err);
		break;
	case H2_MESSAGE_RESPONSE:
		response_arrived(session, stream, err);
		break;
	case H2_MESSAGE_TRAILERS:
		trailers_arrived(session, stream, err);
		break;
	}
	h2_message_done(&session->message);
}

static int on_data_chunk(
        nghttp2_session *ng, uint8_t flags, int32_t stream_id, const uint8_t *bytes, size_t len, void *user)
{
	struct h2_session *session = user;
	struct h2_stream *stream = stream_of(session, stream_id);
	int err;

	if (!stream) {
		err = nghttp2_session_consume(ng, stream_id, len);
		return err ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
	}
	if (!stream->has_head && !session->config.is_server)
		h2_stream_fault(stream, H2_PROTOCOL_ERROR);
	h2_credit_received(stream, len);
	if (is_heard(stream) && stream->ops->on_data)
		stream->ops->on_data(stream->user, stream, bytes, len);
	else
		h2_credit_consumed(stream, len);
	return 0;
}

static void data_arrived(struct h2_session *session, const nghttp2_frame *frame)
{
	struct h2_stream *stream = stream_of(session, frame->hd.stream_id);

	if (!stream || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return;
	stream->peer_ended = true;
	if (!stream->has_head && !session->config.is_server)
		h2_stream_fault(stream, H2_PROTOCOL_ERROR);
	tell_end(stream);
}

static void reset_arrived(struct h2_session *session, const nghttp2_frame *frame)
{
	struct h2_stream *stream = stream_of(session, frame->hd.stream_id);

	/* A stream dropped before it was answered cost us more than the peer. */
	if (session->config.is_server && stream && !stream->has_head)
		count_early_reset(session);
}

static void settings_arrived(struct h2_session *session)
{
	if (!session->is_settings_seen) {
		session->is_settings_seen = true;
		if (session->ops->on_settings)
			session->ops->on_settings(session->ctx);
	}
	session->is_room_pending = !session->config.is_server;
}

static void pong_arrived(struct h2_session *session, const uint8_t *opaque)
{
	uint64_t payload = 0;

	for (int i = 0; i < 8; i++)
		payload = payload << 8 | opaque[i];
	if (payload == DRAIN_PING && session->is_drain_pinged) {
		h2_close_when_idle(session);
	} else if (payload == session->ping_seq && session->is_ping_pending) {
		session->is_ping_pending = false;
		session->rtt_ms = (int64_t)(session->now_ms - session->ping_at_ms);
		session->ping_at_ms = session->now_ms + session->config.ping_interval_ms;
	}
}

static void goaway_arrived(struct h2_session *session, const nghttp2_frame *frame)
{
	session->is_goaway_seen = true;
	session->goaway_code = frame->goaway.error_code;
	if (session->goaway_code != H2_NO_ERROR)
		h2_set_fault(session, h2_code_name(session->goaway_code));
	if (session->ops->on_goaway)
		session->ops->on_goaway(
		        session->ctx, (uint32_t)frame->goaway.last_stream_id, session->goaway_code);
}

static int on_frame_recv(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
	struct h2_session *session = user;
	bool is_ack = frame->hd.flags & NGHTTP2_FLAG_ACK;

	switch (frame->hd.type) {
	case NGHTTP2_DATA:
		data_arrived(session, frame);
		break;
	case NGHTTP2_HEADERS:
		message_arrived(session, frame);
		break;
	case NGHTTP2_RST_STREAM:
		reset_arrived(session, frame);
		break;
	case NGHTTP2_SETTINGS:
		if (!is_ack)
			settings_arrived(session);
		break;
	case NGHTTP2_PING:
		if (is_ack)
			pong_arrived(session, frame->ping.opaque_data);
		break;
	case NGHTTP2_GOAWAY:
		goaway_arrived(session, frame);
		break;
	default:
		break;
	}
	return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t stream_id, uint32_t code, void *user)
{
	struct h2_session *session = user;
	struct h2_stream *stream = stream_of(session, stream_id);

	if (!stream)
		return 0;
	h2_stream_close(stream);
	session->is_room_pending = !session->config.is_server;
	if (!stream->ops) {
		h2_stream_destroy(stream);
		return 0;
	}
	if (stream->peer_ended && stream->end_sent && !stream->is_faulty)
		return 0;
	if (!stream->is_faulty)
		stream->reset_code = code;
	if (session->is_pulling)
		h2_event_post(stream, STREAM_EVENT_RESET);
	else
		tell_reset(stream, stream->reset_code, !stream->is_faulty);
	return 0;
}

static int on_invalid_frame(nghttp2_session *ng, const nghttp2_frame *frame, int code, void *user)
{
	h2_set_fault(user, nghttp2_strerror(code));
	return 0;
}

void h2_events_register(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
}
