/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A link: HTTP/2 over TLS over any stream (a socket, or a stream of another
 * link for double HBONE), client or server. Each HTTP/2 stream on it is a
 * struct stream, so that pump works the same on it. Knows no policy, no
 * routing, no pool: who may ask for what is the owner's business.
 *
 * Bytes in: transport -> tls_feed -> tls_read -> h2_feed. Bytes out: h2_pull -> tls_write ->
 * transport queue, once per turn and only while that queue is below its high mark.
 */
#ifndef CULVERT_CONN_LINK_H
#define CULVERT_CONN_LINK_H

#include "base/err.h"
#include "conn/stream.h"
#include "h2/session.h"
#include "io/ring.h"

struct link;
struct tls_identity; /* tls/identity.h */
struct tls_trust;    /* tls/trust.h */

/* How long a closing transport may take to deliver our last words, ms; then it is cut. */
#define LINK_LINGER_MS 1000

/* Time for TCP-connected to TLS-established, ms; upstream has none, which holds applications for ever
 * (dataplane 7). */
#define LINK_HANDSHAKE_MS 10000

/* How a link is made. All pointers are borrowed for the call, except env and h2. */
struct link_opts {
	/* What all links of the process share; outlives them. */
	struct h2_env *env;
	/* Our certificate, client or server; a reference is taken. NULL: see trust. */
	struct tls_identity *identity;
	/* Client with identity: SPIFFE ids of which the server must have one. */
	const char *const *accept;
	size_t accept_cnt;
	/* Client without identity: the control plane's roots and names; a reference is taken. Both NULL = no
	 * TLS at all. */
	struct tls_trust *trust;
	/* true: the peer opened the connection. */
	bool is_server;
	/* HTTP/2 settings other than h2_config_init()'s; NULL = those. Copied, but its keep_headers must
	 * outlive the link. */
	const struct h2_config *h2;
	/* Milliseconds for the handshake; 0 = LINK_HANDSHAKE_MS. */
	uint32_t handshake_ms;
};

/* What a link tells its owner. Any entry may be NULL. The owner may call anything, link_free included, from
 * any of them. */
struct link_events {
	/* The TLS handshake is done: the peer's identity is known, requests may be made. Once. */
	void (*on_ready)(void *ctx);
	/* The peer's first SETTINGS arrived: link_peer_max_streams() is its word now. Once. */
	void (*on_settings)(void *ctx);
	/* Client: a stream ended or the limit moved; link_can_open() may have become true. */
	void (*on_room)(void *ctx);
	/*
	 * Server: a request. `stream` is the owner's from here (stream_free); set its events, answer by
	 * link_respond(), read after stream_read_start(). headers (":method", ":authority"...) are borrowed
	 * for the call.
	 */
	void (*on_request)(void *ctx, struct stream *stream, const struct h2_headers *headers);
	/* The peer sent GOAWAY: no new streams, the open ones go on. */
	void (*on_goaway)(void *ctx);
	/*
	 * The link is over; all its streams have been told before. code 0 = it ended cleanly. -EKEYREJECTED
	 * (peer refused by us), ERR_TIMEOUT_HANDSHAKE, ERR_H2_PING_TIMEOUT, ERR_H2, ERR_TLS_REVOKED (refused)
	 * and ERR_REVOKED (later, by a CRL), -EPROTO, or the transport's error. `text` (never NULL, valid
	 * during the call) is the detail without any prefix of the log. The owner still has to link_free().
	 * Once.
	 */
	void (*on_closed)(void *ctx, int code, const char *text);
};

/* What the answer to one request tells its asker; either may be NULL. */
struct link_answer_events {
	/* The final answer; status 100..599, headers borrowed for the call. */
	void (*on_response)(void *ctx, struct stream *stream, int status, const struct h2_headers *headers);
	/* Lines after the body; on_eof follows. */
	void (*on_trailers)(void *ctx, struct stream *stream, const struct h2_headers *headers);
};

/*
 * Makes a link over `transport` (whose events it takes over; read_start is done here) and starts the
 * handshake. Takes the transport on success only. `events` is borrowed. Returns 0, or a negative errno with
 * text in `err`.
 */
int link_new(struct io *io, struct stream *transport, const struct link_opts *opts,
        const struct link_events *events, void *ctx, struct link **ret_link, struct err *err);

/*
 * Closes now: streams still owned by others get on_error(-EPIPE) or a clean end first (never from inside this
 * call, and their owners still free them); no event of the link comes after; no GOAWAY, no close_notify. NULL
 * is fine.
 */
void link_free(struct link *link);

/* Sets another owner (a pool hands a link over). */
void link_set_events(struct link *link, const struct link_events *events, void *ctx);

/* Graceful (dataplane 14): server: GOAWAY pair, streams go on; client: no new streams, GOAWAY NO_ERROR.
 * on_closed when the last stream ended. */
void link_drain(struct link *link);

/*
 * Immediate but polite (DelWorkload, revoked or dead peer): GOAWAY NO_ERROR and close_notify are handed to
 * the kernel, streams end, then on_closed. link_free() may follow at once: what can be flushed within the
 * turn is.
 */
void link_goodbye(struct link *link);

/* Whether the handshake is done and the link is not over. */
bool link_is_ready(const struct link *link);

/* Client: whether link_request() would be accepted now; false before on_ready. */
bool link_can_open(const struct link *link);

/* HTTP/2 streams in use. */
uint32_t link_streams(const struct link *link);

/* The peer's limit of concurrent streams; before its SETTINGS the configured assumption. */
uint32_t link_peer_max_streams(const struct link *link);

/* The peer's SPIFFE id: the first URI SAN of its verified certificate; "" without TLS or before on_ready.
 * Borrowed for the life of the link. */
const char *link_peer_identity(const struct link *link);

/* Names of the negotiated version and cipher for logs, "" if none. Borrowed likewise. */
const char *link_tls_version(const struct link *link);
const char *link_tls_cipher(const struct link *link);

/* Name of the key exchange's group, e.g. "X25519MLKEM768"; "" if none. Borrowed likewise. */
const char *link_tls_group(const struct link *link);

/* The stream below (sock_fd() for addresses). Borrowed. */
struct stream *link_transport(const struct link *link);

/*
 * Client: opens a stream with this request. Its answer comes by `answer` (borrowed for the stream's life);
 * data, end and failure by stream_set_events(), which the caller does next; ctx of both may differ. May be
 * called before on_ready: it then waits for the handshake. Returns 0, -EAGAIN (link_can_open() is false),
 * -EPIPE (over), -EINVAL, -ENOMEM.
 */
int link_request(struct link *link, const struct h2_request *request, const struct link_answer_events *answer,
        void *ctx, struct stream **ret_stream);

/* link_request() for CONNECT `authority` (dataplane 4.8). */
int link_connect(struct link *link, const char *authority, const struct h2_header *headers, size_t header_cnt,
        const struct link_answer_events *answer, void *ctx, struct stream **ret_stream);

/* Server: answers a stream of on_request; `end` = nothing follows, stream_free() it then. Returns 0, -EPIPE
 * (dead), -EINVAL, -ENOMEM. */
int link_respond(
        struct stream *stream, int status, const struct h2_header *headers, size_t header_cnt, bool end);

/*
 * Server: ends our direction with these lines (copied) after what was written; on_finished as for
 * stream_shutdown(). Returns 0, -EPIPE, -EINVAL, -ENOMEM.
 */
int link_trailers(struct stream *stream, const struct h2_header *headers, size_t header_cnt);

/* stream_free() that resets with `code` (enum h2_code) whatever the state. */
void link_reset(struct stream *stream, uint32_t code);

/* Inside on_error: whether RST_STREAM (or a GOAWAY that refused it) ended the stream, and its code (enum
 * h2_code); false = the connection went. */
bool link_reset_code(const struct stream *stream, uint32_t *ret_code);

/* The link a stream belongs to; NULL when the link is gone. */
struct link *link_of(const struct stream *stream);

#endif
