/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of this folder share: the insides of env, session and
 * stream. Nobody else includes it.
 */
#ifndef CULVERT_H2_INTERNAL_H
#define CULVERT_H2_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "base/chain.h"
#include "base/list.h"
#include "h2/bucket.h"
#include "h2/message.h"
#include "h2/session.h"
#include "h2/window.h"

/* Bytes of a frame header (RFC 9113 section 4.1). */
#define FRAME_HEADER_LEN 9u
/*
 * Payloads from here on leave in place, as their own piece; smaller ones are
 * copied together into one. Below it an own record costs more than the copy.
 */
#define DIRECT_MIN 4096u
/* PING, and SETTINGS acknowledgements that may wait in the output; more is a flood. */
#define ACKS_MAX 512u
/* CONTINUATION frames of one header block: 64 KiB of headers need four. */
#define CONTINUATIONS_MAX 8u
/* Entries of one SETTINGS frame; the protocol knows fewer than ten. */
#define SETTINGS_MAX 32u
/* Bytes kept of a fault's text. */
#define FAULT_MAX 96u

/* See session.h. */
struct h2_env {
	nghttp2_session_callbacks *callbacks; /* the same for all sessions; owned */
	nghttp2_mem mem;                      /* base/mem.h for nghttp2 */
	struct h2_budget budget;
	struct chunk *held;          /* whole chunk that the last piece lies in; owned until the next call */
	const uint8_t *direct;       /* piece inside a chunk, while pulling; NULL = in `piece` */
	size_t direct_len;           /* its length in bytes */
	size_t piece_len;            /* bytes used of `piece` */
	uint8_t piece[H2_PIECE_MAX]; /* where small frames gather */
};

/* What is to be told to a stream's owner once it is safe. Bits. */
enum stream_event {
	STREAM_EVENT_WRITABLE = 1 << 0,
	STREAM_EVENT_DRAINED = 1 << 1,
	STREAM_EVENT_RESET = 1 << 2,
};

/* See session.h. */
struct h2_stream {
	struct list node;                /* in session->streams, from birth to death */
	struct list event_node;          /* in session->events while `events` is not 0 */
	struct h2_session *session;      /* owner */
	const struct h2_stream_ops *ops; /* NULL until bound, and once released */
	void *user;                      /* first argument of the callbacks */
	struct chain queue;              /* output; chunks owned */
	struct h2_headers *trailers;     /* lines that end our side; owned, NULL = none */
	struct h2_window window;         /* the peer's credit */
	size_t unconsumed;               /* bytes delivered, not consumed */
	int32_t id;
	uint32_t reset_code;  /* with STREAM_EVENT_RESET or is_faulty */
	uint8_t events;       /* pending, enum stream_event */
	bool is_released : 1; /* the owner let go */
	bool is_closed : 1;   /* nghttp2 has forgotten it (or the session is dead) */
	bool is_faulty : 1;   /* we reset it for the peer's fault: events are swallowed */
	bool has_head : 1;    /* server: answered; client: final answer received */
	bool end_wanted : 1;  /* our END_STREAM is to follow the queue */
	bool end_sent : 1;    /* our END_STREAM is out */
	bool peer_ended : 1;  /* END_STREAM received */
	bool is_stopped : 1;  /* the writer was told to stop */
	bool is_deferred : 1; /* nghttp2 waits to be told of data */
};

/* See session.h. Memory per tunnel: this plus nghttp2's session (about 20 KB, most of it a frame buffer
 * hardly touched). */
struct h2_session {
	struct h2_env *env;
	nghttp2_session *ng;
	struct h2_config config;
	const struct h2_session_ops *ops;
	void *ctx;
	struct list streams;              /* all stream objects */
	struct list events;               /* streams with pending events */
	uint32_t open_cnt;                /* streams not closed */
	struct h2_message message;        /* header block being received; one at a time by the protocol */
	struct h2_stream *message_stream; /* whose it is; NULL = none */
	struct h2_window window;          /* connection */
	size_t unconsumed;                /* bytes delivered on all streams, not consumed */
	const uint8_t *carry; /* rest of a frame in nghttp2's buffer that did not fit the last piece */
	size_t carry_len;
	struct h2_bucket resets;      /* allowance for streams dropped early */
	struct h2_bucket idle_frames; /* allowance for frames without content */
	uint64_t now_ms;
	uint64_t ping_at_ms;  /* next PING due, or when the one on its way was sent */
	bool is_ping_asleep;  /* no stream is open and the config wants no PINGs then */
	uint64_t ping_seq;    /* number of the last PING; its payload */
	int64_t rtt_ms;       /* -1 = unknown */
	uint32_t goaway_code; /* of the peer's last GOAWAY */
	int error;            /* sticky error that made the session unusable */
	bool is_busy;         /* the owner's callbacks may be running */
	bool is_pulling;      /* inside nghttp2's send side: events wait, the piece is being built */
	bool is_dead;         /* aborted */
	bool is_draining;     /* graceful drain began */
	bool is_drain_pinged; /* its PING is out */
	bool is_closing;      /* own GOAWAY: no new streams */
	bool is_ping_pending;
	bool is_room_pending; /* on_stream_room is to be called */
	bool is_settings_seen;
	bool is_goaway_seen;
	char fault[FAULT_MAX];
};

/* Payload of the drain's PING; keepalives count up from 1. */
#define DRAIN_PING UINT64_MAX

/* nghttp2's callbacks of the receive side and of a stream's life into `callbacks` (events.c). */
void h2_events_register(nghttp2_session_callbacks *callbacks);

/* nghttp2's callbacks of the send side into `callbacks` (pull.c). */
void h2_pull_register(nghttp2_session_callbacks *callbacks);

/* Where nghttp2 takes a stream's DATA from (pull.c). */
nghttp2_data_provider h2_pull_source(struct h2_stream *stream);

/* Tell owners what waited; not inside nghttp2 (events.c). */
void h2_events_dispatch(struct h2_session *session);

/* Note an event for a stream's owner, to be dispatched later (events.c). */
void h2_event_post(struct h2_stream *stream, uint8_t event);

/* Note why the session fails; the first text stays (session.c). */
void h2_set_fault(struct h2_session *session, const char *text);

/* Sticky error from an nghttp2 code (fatal ones only); returns ours (session.c). */
int h2_set_error(struct h2_session *session, int ng_code);

/* GOAWAY ENHANCE_YOUR_CALM; `text` says what was too much (session.c). */
void h2_calm_down(struct h2_session *session, const char *text);

/* Write a PING with this payload, big-endian; 0 or nghttp2's code (session.c). */
int h2_ping(struct h2_session *session, uint64_t payload);

/* A new stream object in the session's list; NULL = out of memory (stream.c). */
struct h2_stream *h2_stream_new(struct h2_session *session, int32_t id);

/* Free a stream object; queue and credit go back (stream.c). */
void h2_stream_destroy(struct h2_stream *stream);

/* nghttp2 forgot the stream, or the session died: mark, drop the queue (stream.c). */
void h2_stream_close(struct h2_stream *stream);

/* RST_STREAM for the peer's fault; the owner learns by on_reset (stream.c). */
void h2_stream_fault(struct h2_stream *stream, uint32_t code);

/* Hands the stream's trailers to nghttp2; 0 or its code (stream.c). */
int h2_stream_submit_trailers(struct h2_stream *stream);

/* A stream was opened: PINGs that slept begin anew (session.c). */
void h2_ping_wake(struct h2_session *session);

/* Our END_STREAM left; resets what the owner abandoned (stream.c). */
void h2_stream_end_left(struct h2_stream *stream);

/* Count received bytes, and grow the connection window if stalled streams fill it (credit.c). */
void h2_credit_received(struct h2_stream *stream, size_t len);

/* Give back credit of consumed bytes, growing windows with use (credit.c). */
void h2_credit_consumed(struct h2_stream *stream, size_t len);

/* Take the connection's starting credit from the budget and announce it (credit.c). 0 or nghttp2's code. */
int h2_credit_open(struct h2_session *session);

/* Return all of the session's credit to the budget (credit.c). */
void h2_credit_close(struct h2_session *session);

#endif
