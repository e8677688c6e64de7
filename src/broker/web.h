/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HTTP endpoints of the broker: readiness on TCP, admin on a unix socket. One
 * table of paths a server; limits and time-outs as upstream's (reference
 * control.md 11.1).
 */
#ifndef CULVERT_BROKER_WEB_H
#define CULVERT_BROKER_WEB_H

#include "base/list.h"
#include "http/server.h"
#include "io/ring.h"

struct web;
struct web_conn;

/* Time for a request's head, and for idle keep-alive, ms. */
#define WEB_HEAD_MS 2000

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

/* Stops listening at once, closes the connections. NULL is fine. */
void web_free(struct web *web);

/* A whole reply; content_type NULL = none. */
void web_reply(
        struct web_conn *conn, unsigned status, const char *content_type, const void *body, size_t len);

/* The same with a string. */
void web_reply_text(struct web_conn *conn, unsigned status, const char *content_type, const char *body);

/* A reply that comes later hangs on this; embed it. */
struct web_wait {
	struct web_conn *conn;               /* NULL once the connection is gone */
	void (*gone)(struct web_wait *wait); /* the client left: no reply is wanted any more */
};

/* The request will be answered later by web_reply(); tells if the client leaves before. */
void web_conn_wait(struct web_conn *conn, struct web_wait *wait);

#endif
