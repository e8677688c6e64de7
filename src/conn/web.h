/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HTTP/1 endpoints on a listening socket, TCP or unix: readiness, metrics and
 * admin of the broker, the admin socket of a silo. One table of paths a
 * server; limits and time-outs as upstream's (reference control.md 11.1).
 */
#ifndef CULVERT_CONN_WEB_H
#define CULVERT_CONN_WEB_H

#include "base/list.h"
#include "http/server.h"
#include "io/ring.h"

struct web;
struct web_conn;

/* Time for a request's head, and for idle keep-alive, ms. */
#define WEB_HEAD_MS 2000
/* A client that takes no byte of its reply for that long is cut, ms. */
#define WEB_STALL_MS 30000

/* A path and who serves it. */
struct web_route {
	const char *path; /* exact */
	unsigned methods; /* bit (1 << enum http_method) of those served; 0 = all; others get 405 */
	/*
	 * Replies by web_reply_*() before it returns, or takes its time: then it sets web_conn_wait() and
	 * replies later.
	 */
	void (*serve)(void *ctx, struct web_conn *conn, const struct http_request *request);
};

/* Serves `routes` (of `cnt`, borrowed) on listening socket `fd`, which it takes over on success. 0 or
 * -ENOMEM. */
int web_new(
        struct io *io, int fd, const struct web_route *routes, size_t cnt, void *ctx, struct web **ret_web);

/* The listening socket, for its address; -1 once it has stopped. Borrowed. */
int web_fd(const struct web *web);

/* Stops listening at once; requests under way are still answered, then their connections close (reference
 * control.md 11.1). web_free() follows. NULL is fine. */
void web_drain(struct web *web);

/* Stops listening at once, closes the connections. NULL is fine. */
void web_free(struct web *web);

/* A whole reply; content_type NULL = none. */
void web_reply(
        struct web_conn *conn, unsigned status, const char *content_type, const void *body, size_t len);

/* The same with a string. */
void web_reply_text(struct web_conn *conn, unsigned status, const char *content_type, const char *body);

/* The same as web_reply with any header fields (Content-Length and Connection are added). */
void web_reply_fields(struct web_conn *conn, unsigned status, const struct http_header *headers, size_t cnt,
        const void *body, size_t len);

/* Bytes of a streamed body that wait in a connection; the next piece is asked for below them. */
#define WEB_AHEAD (256u * 1024)
/* About how long a piece should be: some 0.3 ms of work, so that the loop turns in between. */
#define WEB_PIECE_LEN (64u * 1024)
/* Hard ceiling of one piece. */
#define WEB_PIECE_MAX (16u << 20)

/* A body that is made piece by piece as the client reads; embed it. */
struct web_source {
	/*
	 * Adds the next piece to `out`, which is empty: about WEB_PIECE_LEN bytes, at most WEB_PIECE_MAX. At
	 * most one piece is asked for in one turn of the loop. Returns 1 (more follows), 0 (that was the
	 * last; `out` may be empty), or a negative errno: the connection is cut, so that the client sees an
	 * incomplete body.
	 */
	int (*next)(struct web_source *source, struct buf *out);
	/* Once, at the end: sent whole, cut, or the client left. The owner may free the source. */
	void (*done)(struct web_source *source);
};

/*
 * A streamed reply, at once or after web_conn_wait(): chunked, or up to the close for HTTP/1.0. `source` is
 * borrowed until its done(); done() may come before this returns.
 */
void web_stream(struct web_conn *conn, unsigned status, const struct http_header *headers, size_t cnt,
        struct web_source *source);

/* A reply that comes later hangs on this; embed it. */
struct web_wait {
	struct web_conn *conn;               /* NULL once the connection is gone */
	void (*gone)(struct web_wait *wait); /* the client left: no reply is wanted any more */
};

/* The request will be answered later by web_reply(); tells if the client leaves before. */
void web_conn_wait(struct web_conn *conn, struct web_wait *wait);

#endif
