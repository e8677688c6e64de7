/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HTTP/2 connections and their streams, sans I/O: bytes in, bytes out, events
 * by callback. The only user of nghttp2. Knows nothing of TLS, sockets, HBONE
 * policy or the mesh; time is an argument.
 *
 * Single-threaded. Callbacks run inside h2_feed(), h2_pull() and h2_abort()
 * only. Inside a callback every h2_stream_* function and h2_connect() may be
 * called, on this session or another; h2_feed(), h2_pull(), h2_abort() and
 * h2_session_free() of the same session may not (they assert). After any call
 * the owner should pull output while its transport has room: see h2_pull().
 *
 * Reference: dataplane sections 4.8, 5, 6, 8.2, 14; RFC 9113.
 */
#ifndef CULVERT_H2_SESSION_H
#define CULVERT_H2_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "h2/headers.h"

struct chain; /* base/chain.h */
struct h2_session;
struct h2_stream;

/* Payload of a full DATA frame: with its 9-byte header exactly one TLS record of 16,384 bytes. */
#define H2_DATA_MAX 16375u
/* Longest piece that h2_pull() hands out. */
#define H2_PIECE_MAX 16384u
/* A stream's queue may pass its high mark by this much (bytes): room for the largest single read of a socket.
 */
#define H2_QUEUE_SLACK (4u << 20)
/* Header lines, and bytes of them, that one message of ours may carry. */
#define H2_SEND_LINES_MAX 32u
#define H2_SEND_BYTES_MAX 16384u
/* A deadline that never comes. */
#define H2_NEVER UINT64_MAX

/* Error codes of RST_STREAM and GOAWAY (RFC 9113 section 7). */
enum h2_code {
	H2_NO_ERROR = 0x0,
	H2_PROTOCOL_ERROR = 0x1,
	H2_INTERNAL_ERROR = 0x2,
	H2_FLOW_CONTROL_ERROR = 0x3,
	H2_SETTINGS_TIMEOUT = 0x4,
	H2_STREAM_CLOSED = 0x5,
	H2_FRAME_SIZE_ERROR = 0x6,
	H2_REFUSED_STREAM = 0x7,
	H2_CANCEL = 0x8,
	H2_COMPRESSION_ERROR = 0x9,
	H2_CONNECT_ERROR = 0xa,
	H2_ENHANCE_YOUR_CALM = 0xb,
	H2_INADEQUATE_SECURITY = 0xc,
	H2_HTTP_1_1_REQUIRED = 0xd,
};

/* Name of a code as RFC 9113 spells it, "UNKNOWN" for others. Static. */
const char *h2_code_name(uint32_t code);

/*
 * Receive credit that all sessions of a process may promise to their peers
 * together. A session holds its connection window's size out of it: what a
 * peer may have sent and we must be ready to hold. Embedded in the env.
 */
struct h2_budget {
	size_t max;  /* bytes; ceiling for growth. Every session gets 65,535 even above it (RFC 9113 6.9.2) */
	size_t used; /* bytes now promised by the sessions of this env */
};

/*
 * What the sessions of one process share. One per process; outlives its
 * sessions. Holds the output buffer of h2_pull(), so a piece is valid only
 * until the next h2_* call on any session of the env.
 */
struct h2_env;

/*
 * Make the shared part. `budget_max`: bytes of receive credit for all sessions
 * (0 = default 64 MiB). Returns 0 or -ENOMEM.
 */
int h2_env_new(size_t budget_max, struct h2_env **ret_env);

/* Free it; accepts NULL. All its sessions must be gone. */
void h2_env_free(struct h2_env *env);

/* For idle moments: gives the output buffer's memory back until it is needed. No piece of h2_pull() may be in
 * use. */
void h2_env_rest(struct h2_env *env);

/* The budget, to read (metrics, tests). Borrowed. */
const struct h2_budget *h2_env_budget(const struct h2_env *env);

/* Settings of one session; fill with h2_config_init() and change what differs. */
struct h2_config {
	bool is_server;
	uint32_t stream_window_start; /* bytes; SETTINGS_INITIAL_WINDOW_SIZE that we announce; default 256 KiB
	                               */
	uint32_t stream_window_max;   /* bytes; a busy stream's window grows up to this; default 4 MiB */
	uint32_t conn_window_start; /* bytes; connection window at start, as far as the budget allows; default
	                               1 MiB */
	uint32_t conn_window_max;   /* bytes; it grows up to this; default 16 MiB */
	uint32_t frame_max;         /* bytes; SETTINGS_MAX_FRAME_SIZE that we announce; default 1 MiB */
	uint32_t header_list_max;   /* bytes, RFC 9113 6.5.2 counting; default 16 KiB client, 64 KiB server */
	uint32_t max_streams; /* streams the peer may open at once; default 200 server; clients announce none
	                       */
	uint32_t initial_peer_streams; /* streams we open before the peer's SETTINGS are known; default 100 */
	size_t queue_high; /* bytes queued on a stream above which h2_stream_write() says stop; 256 KiB */
	size_t queue_low;  /* on_writable comes when the queue falls to this; 64 KiB */
	uint32_t ping_interval_ms; /* first PING this long after the start, next after each PONG; 0 = none;
	                              10,000 */
	uint32_t ping_timeout_ms;  /* a PONG missing this long = dead peer; 20,000 */
	bool ping_busy_only;       /* no PINGs while no stream is open: gRPC servers punish them; false */
	/*
	 * Streams that the peer may reset before our answer (or that we reset
	 * for malformed requests): a bucket of reset_burst refilled with
	 * reset_rate a second; beyond it GOAWAY ENHANCE_YOUR_CALM.
	 */
	uint32_t reset_burst; /* 1,000 */
	uint32_t reset_rate;  /* 200 a second */
	/* The same for frames that carry nothing: PING, SETTINGS, PRIORITY, empty DATA. */
	uint32_t idle_frame_burst; /* 2,000 */
	uint32_t idle_frame_rate;  /* 1,000 a second */
	/*
	 * Names of regular headers to keep, lower case, NULL-terminated; all
	 * others are checked, counted and dropped. NULL = HBONE's: baggage,
	 * forwarded, traceparent, x-forwarded-network. Must outlive the session.
	 */
	const char *const *keep_headers;
};

/* Fill a config with the defaults above for a server or a client. */
void h2_config_init(struct h2_config *config, bool is_server);

/* Why a stream ended early. */
struct h2_reset {
	/*
	 * RST_STREAM's or GOAWAY's code. With transport_err set: H2_NO_ERROR.
	 */
	uint32_t code;
	/* Not 0: the connection was lost or aborted by our owner; the negative errno given to h2_abort(). */
	int transport_err;
	/* The peer said it; false = our own side found a fault (malformed message). */
	bool is_remote;
};

/*
 * What a pending read sees (dataplane section 6): 0 = clean end (NO_ERROR,
 * CANCEL), -EPIPE (STREAM_CLOSED), transport_err if set, else -EPROTO ("the
 * HTTP/2 reason": h2_code_name).
 */
int h2_reset_read_error(const struct h2_reset *reset);

/* What a write sees: -EPIPE (NO_ERROR, CANCEL, STREAM_CLOSED), transport_err if set, else -EPROTO. */
int h2_reset_write_error(const struct h2_reset *reset);

/*
 * What a half-close after the reset sees: 0 (NO_ERROR), -EPIPE (CANCEL,
 * STREAM_CLOSED), transport_err if set, else -EPROTO.
 */
int h2_reset_shutdown_error(const struct h2_reset *reset);

/*
 * Events of a stream. `user` is what was bound. Any member may be NULL.
 * After on_reset, or after on_end and an own END_STREAM sent, nothing more
 * comes; the owner still has to h2_stream_release().
 */
struct h2_stream_ops {
	/*
	 * Client: the final answer's status line arrived (100..599 except 1xx,
	 * which are skipped). headers: kept lines, borrowed for the call.
	 */
	void (*on_response)(
	        void *user, struct h2_stream *stream, int status, const struct h2_headers *headers);
	/*
	 * DATA payload, borrowed from the bytes given to h2_feed(). len > 0.
	 * The owner owes h2_stream_consume() for these bytes once it has
	 * passed them on; until then they count against the windows.
	 */
	void (*on_data)(void *user, struct h2_stream *stream, const uint8_t *bytes, size_t len);
	/* END_STREAM from the peer: no more data. At most once, never with on_reset before it. */
	void (*on_end)(void *user, struct h2_stream *stream);
	/*
	 * The stream died before both directions were finished. May come after
	 * on_end (the other direction's fate: h2_reset_write_error()). Queued
	 * output is dropped. At most once.
	 */
	void (*on_reset)(void *user, struct h2_stream *stream, const struct h2_reset *reset);
	/* The output queue fell from above queue_high to queue_low. */
	void (*on_writable)(void *user, struct h2_stream *stream);
	/* END_STREAM of our side was taken by h2_pull(): all output is on its way. At most once; not before
	 * on_reset. */
	void (*on_drained)(void *user, struct h2_stream *stream);
	/*
	 * Header lines after the body, borrowed for the call; on_end follows.
	 * Kept lines only.
	 */
	void (*on_trailers)(void *user, struct h2_stream *stream, const struct h2_headers *headers);
};

/* Events of a session. `ctx` is what h2_session_new() got. Any member may be NULL. */
struct h2_session_ops {
	/*
	 * Server: a well-formed request. headers holds ":method", ":authority",
	 * ":scheme", ":path" where sent, and the kept lines, borrowed for the
	 * call; a CONNECT may lack ":authority" (answer it 400). The owner binds
	 * the stream (h2_stream_bind) or refuses it: h2_respond() with end and
	 * h2_stream_release(), or h2_stream_reset(). A stream that is not bound
	 * when the callback returns is reset with REFUSED_STREAM.
	 */
	void (*on_request)(void *ctx, struct h2_stream *stream, const struct h2_headers *headers);
	/* The peer's first SETTINGS arrived: h2_peer_max_streams() is now the peer's word. Once. */
	void (*on_settings)(void *ctx);
	/* The room for own streams changed: a stream ended, or new SETTINGS. Client only. */
	void (*on_stream_room)(void *ctx);
	/*
	 * The peer sent GOAWAY: no new streams here (h2_can_open() is false).
	 * Streams above last_stream_id get on_reset(REFUSED_STREAM). May come twice.
	 */
	void (*on_goaway)(void *ctx, uint32_t last_stream_id, uint32_t code);
};

/*
 * Make a session; SETTINGS (and the client preface) wait in the output at once.
 * `env` and `ops` must outlive it; `ctx` is borrowed. now_ms: monotonic
 * milliseconds, as everywhere below. Returns 0, -ENOMEM or -EINVAL (a config
 * that HTTP/2 forbids).
 */
int h2_session_new(struct h2_env *env, const struct h2_config *config, const struct h2_session_ops *ops,
        void *ctx, uint64_t now_ms, struct h2_session **ret_session);

/*
 * Free a session and every stream of it, released or not, without callbacks;
 * call h2_abort() first when stream owners must learn of it. Accepts NULL.
 */
void h2_session_free(struct h2_session *session);

/*
 * Give bytes from the peer; all are taken. Returns 0 also when the peer broke
 * the protocol (GOAWAY is then in the output and h2_is_over() becomes true
 * after it was pulled; input is ignored from there), or an error after which
 * the session is unusable and the transport should be closed:
 *   -EPROTO  bad client preface, or a flood against which nothing can be queued
 *   -ENOMEM  out of memory
 * h2_fault() tells what was wrong.
 */
int h2_feed(struct h2_session *session, const uint8_t *bytes, size_t len, uint64_t now_ms);

/*
 * Take the next piece of output: contiguous, at most H2_PIECE_MAX bytes, meant
 * to be one TLS record. Returns 1 and the piece, 0 when there is nothing to
 * send now, -ENOMEM or -EPROTO as h2_feed(). The piece is borrowed and valid
 * until the next h2_* call on any session of the env: encrypt or copy it at
 * once. Full DATA frames are not copied: the frame header is written in front
 * of the payload inside the queued chunk, over bytes already sent. Call it in
 * a loop while the transport's queue has room: what is not pulled stays in the
 * streams' queues, and that is the back-pressure.
 */
int h2_pull(struct h2_session *session, const uint8_t **ret_piece, size_t *ret_len);

/* Whether h2_pull() would give something (may rarely say true and then give nothing). */
bool h2_wants_pull(const struct h2_session *session);

/*
 * Do what time demands: PINGs. Returns 0, or -ETIMEDOUT when a PONG is overdue:
 * a server then calls h2_goaway(H2_NO_ERROR), pulls, and h2_abort(); a client
 * just h2_abort().
 */
int h2_tick(struct h2_session *session, uint64_t now_ms);

/* When h2_tick() wants to be called next, monotonic ms, or H2_NEVER. Changes after feed and tick. */
uint64_t h2_deadline(const struct h2_session *session);

/*
 * Graceful drain (server): GOAWAY 2^31-1, a PING, the final GOAWAY after its
 * PONG; keepalive PINGs stop, streams go on. Streams that arrive meanwhile are
 * delivered: the peer could not know. Idempotent. Returns 0 or -ENOMEM.
 */
int h2_drain(struct h2_session *session);

/*
 * GOAWAY with `code` now; nothing but it leaves after this and input is
 * ignored. Streams are not told: h2_abort() after pulling. Returns 0 or -ENOMEM.
 */
int h2_goaway(struct h2_session *session, uint32_t code);

/*
 * GOAWAY NO_ERROR when the owner has no more use for an idle client session:
 * no new streams here; running streams go on. Returns 0 or -ENOMEM.
 */
int h2_close_when_idle(struct h2_session *session);

/*
 * The transport is gone: every unreleased stream gets on_reset with
 * transport_err = `err` (negative errno). When err is 0: the peer closed the
 * connection; after a GOAWAY NO_ERROR streams then see a clean end, otherwise
 * -EPIPE. Nothing can be sent afterwards.
 */
void h2_abort(struct h2_session *session, int err);

/*
 * Nothing more to send or to expect: both sides are done (GOAWAY and no
 * streams), or the session failed. The owner closes the transport.
 */
bool h2_is_over(const struct h2_session *session);

/* Text of the fault that ended the session ("" if none). Borrowed, lives as long as the session. */
const char *h2_fault(const struct h2_session *session);

/* Whether h2_connect() would be accepted now: no GOAWAY either way, stream room, ids left. */
bool h2_can_open(const struct h2_session *session);

/* Streams now open or opening, whoever opened them (released ones count until they are closed). */
uint32_t h2_streams_in_use(const struct h2_session *session);

/* The peer's MAX_CONCURRENT_STREAMS; before its SETTINGS the configured assumption. */
uint32_t h2_peer_max_streams(const struct h2_session *session);

/* Whether the peer's SETTINGS have arrived. */
bool h2_settings_seen(const struct h2_session *session);

/* Whether a GOAWAY from the peer has arrived. */
bool h2_goaway_seen(const struct h2_session *session);

/* Round trip of the last PING in ms, or -1 if none was answered yet. */
int64_t h2_rtt_ms(const struct h2_session *session);

/* What the peer may have sent on this connection before we consume, in bytes: its share of the budget. */
size_t h2_window(const struct h2_session *session);

/*
 * A request to send. CONNECT has method "CONNECT" and authority only; scheme
 * and path stay NULL. All strings are borrowed for the call.
 */
struct h2_request {
	const char *method;
	const char *scheme;    /* NULL for CONNECT */
	const char *authority; /* NULL = not sent */
	const char *path;      /* NULL for CONNECT */
	const struct h2_header *headers;
	size_t header_cnt;
};

/*
 * Client: open a stream with this request, without END_STREAM. `ops` must
 * outlive the stream. Returns 0 and the stream, -EAGAIN when h2_can_open() is
 * false, -EINVAL (a header that HTTP/2 forbids), -ENOMEM.
 */
int h2_request(struct h2_session *session, const struct h2_request *request, const struct h2_stream_ops *ops,
        void *user, struct h2_stream **ret_stream);

/* h2_request() for CONNECT `authority`. */
int h2_connect(struct h2_session *session, const char *authority, const struct h2_header *headers,
        size_t header_cnt, const struct h2_stream_ops *ops, void *user, struct h2_stream **ret_stream);

/* Give a stream its owner; also to change it later. `ops` must outlive the stream or the next bind. */
void h2_stream_bind(struct h2_stream *stream, const struct h2_stream_ops *ops, void *user);

/* What was bound. */
void *h2_stream_user(const struct h2_stream *stream);

/* The session that owns the stream. */
struct h2_session *h2_stream_session(const struct h2_stream *stream);

/* Its number on the wire. */
uint32_t h2_stream_id(const struct h2_stream *stream);

/*
 * Server: send the answer; `end` = with END_STREAM, no data follows. Once.
 * Returns 0, -EPIPE (the stream is dead), -EINVAL, -ENOMEM.
 */
int h2_respond(
        struct h2_stream *stream, int status, const struct h2_header *headers, size_t header_cnt, bool end);

/*
 * Queue data: all chunks of `data` move into the stream's queue and `data` is
 * empty afterwards. Frame headers are written into the chunks. Chunks whose
 * length is a multiple of H2_DATA_MAX make full frames. Returns 0 = go on,
 * 1 = queued, but stop until on_writable; or, `data` untouched, -EPIPE (dead,
 * or ended on our side), -ENOBUFS (H2_QUEUE_SLACK above the high mark: the
 * caller ignores back-pressure), or the session's error as h2_feed().
 */
int h2_stream_write(struct h2_stream *stream, struct chain *data);

/* Bytes in the output queue. */
size_t h2_stream_queued(const struct h2_stream *stream);

/* END_STREAM after the queue. Returns 0 (also when already ended), -EPIPE (dead) or -ENOMEM. */
int h2_stream_end(struct h2_stream *stream);

/*
 * Server: these lines (copied) follow the queue when the stream ends, as
 * trailers that carry END_STREAM (RFC 9113 section 8.1). Once, before
 * h2_stream_end(). Returns 0, -EPIPE (dead or ended), -EINVAL (a header that
 * HTTP/2 forbids, a client, a second time), -ENOMEM.
 */
int h2_stream_trailers(struct h2_stream *stream, const struct h2_header *headers, size_t header_cnt);

/*
 * Give back receive credit for `len` bytes that on_data delivered; window
 * updates go out batched. Allowed on dead streams too.
 */
void h2_stream_consume(struct h2_stream *stream, size_t len);

/* Bytes delivered by on_data and not consumed yet. */
size_t h2_stream_unconsumed(const struct h2_stream *stream);

/*
 * RST_STREAM with `code`, the queue is dropped, and the stream is released:
 * no callback comes any more and the pointer is dead. Accepts NULL.
 */
void h2_stream_reset(struct h2_stream *stream, uint32_t code);

/*
 * The owner lets go: no callback comes any more and the pointer is dead. A
 * stream whose both directions are finished just ends. Else, if our own
 * direction was ended, its queue is still sent and then, if the peer has not
 * finished, RST_STREAM goes out: NO_ERROR by a server, CANCEL by a client. If
 * our direction was not ended: RST_STREAM CANCEL now. Credit of unconsumed
 * bytes is given back. Accepts NULL.
 */
void h2_stream_release(struct h2_stream *stream);

#endif
