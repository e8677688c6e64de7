/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP over streams; see web.h. */
#include "broker/web.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "conn/listen.h"
#include "conn/sock.h"
#include "culvert/limits.h"

struct web {
	struct io *io;
	struct listener *listener;
	const struct web_route *routes;
	size_t route_cnt;
	void *ctx;
	struct list conns; /* struct web_conn */
	size_t conn_cnt;
};

struct web_conn {
	struct list node;
	struct web *web;
	struct stream *stream;
	struct http_server http;
	struct timer
	        head; /* runs while a head is awaited, and while the client has not closed after our end */
	struct web_wait *wait; /* a reply under way, or NULL */
	bool is_closing;       /* our end has been sent */
	bool is_serving;       /* inside of serve_all() */
};

static void conn_free(struct web_conn *conn)
{
	struct web *web = conn->web;
	if (conn->wait) {
		struct web_wait *wait = conn->wait;
		conn->wait = NULL;
		wait->conn = NULL;
		wait->gone(wait);
	}
	io_timer_stop(web->io, &conn->head);
	http_server_done(&conn->http);
	stream_free(conn->stream);
	list_del(&conn->node);
	web->conn_cnt--;
	mem_free(conn);
}

/* Hands the output over and sees how the connection goes on. */
static void push(struct web_conn *conn)
{
	if (!chain_empty(&conn->http.out))
		stream_write(conn->stream, &conn->http.out);
	if (http_server_is_closed(&conn->http) && !conn->is_closing) {
		conn->is_closing = true;
		/* Closing over unread bytes would reset the connection and take the reply along: the client
		 * closes first, or the timer. */
		stream_shutdown(conn->stream);
		io_timer_stop(conn->web->io, &conn->head);
	}
	bool is_waiting = http_server_is_waiting(&conn->http) || conn->is_closing;
	if (is_waiting && !timer_is_set(&conn->head))
		io_timer_start(conn->web->io, &conn->head, WEB_HEAD_MS);
	else if (!is_waiting)
		io_timer_stop(conn->web->io, &conn->head);
}

static void route(struct web_conn *conn, const struct http_request *request)
{
	struct web *web = conn->web;
	for (size_t i = 0; i < web->route_cnt; i++) {
		const struct web_route *it = &web->routes[i];
		if (strcmp(it->path, request->path) != 0)
			continue;
		if (it->methods && !(it->methods & (1u << request->method)))
			http_reply(&conn->http, 405, NULL, 0, NULL, 0);
		else
			it->serve(web->ctx, conn, request);
		return;
	}
	http_reply(&conn->http, 404, NULL, 0, NULL, 0);
}

/* Serves what is complete; a reply that comes later stops it until then. */
static void serve_all(struct web_conn *conn)
{
	const struct http_request *request;
	if (conn->is_serving)
		return;
	conn->is_serving = true;
	while (!conn->wait && (request = http_server_next(&conn->http)))
		route(conn, request);
	conn->is_serving = false;
	push(conn);
}

void web_reply(struct web_conn *conn, unsigned status, const char *content_type, const void *body, size_t len)
{
	const struct http_header type = {.name = "content-type", .value = content_type};
	conn->wait = NULL;
	http_reply(&conn->http, status, &type, content_type ? 1 : 0, body, len);
	serve_all(conn);
}

void web_reply_text(struct web_conn *conn, unsigned status, const char *content_type, const char *body)
{
	web_reply(conn, status, content_type, body, strlen(body));
}

void web_conn_wait(struct web_conn *conn, struct web_wait *wait)
{
	conn->wait = wait;
	wait->conn = conn;
}

static void on_data(void *ctx, struct chain *data)
{
	struct web_conn *conn = ctx;
	struct chunk *chunk;
	while (!conn->is_closing && (chunk = chain_take(data))) {
		/* A client that sends on without waiting for replies gets no more room than one request
		 * needs. */
		int r = http_server_wants_input(&conn->http) && chunk->len <= HTTP_FEED_MAX
		                ? http_server_feed(&conn->http, chunk_bytes(chunk), chunk->len)
		                : -EMSGSIZE;
		chunk_free(chunk);
		if (r < 0) {
			conn_free(conn);
			return;
		}
		serve_all(conn);
	}
}

static void on_eof(void *ctx)
{
	struct web_conn *conn = ctx;
	if (conn->is_closing) {
		conn_free(conn);
		return;
	}
	http_server_eof(&conn->http);
	serve_all(conn);
}

static void on_error(void *ctx, int code, const char *text)
{
	(void)code;
	(void)text;
	conn_free(ctx);
}

static const struct stream_events STREAM_EVENTS = {
        .on_data = on_data,
        .on_eof = on_eof,
        .on_error = on_error,
};

static void head_late(struct timer *timer, uint64_t now)
{
	(void)now;
	conn_free(list_entry(timer, struct web_conn, head));
}

static void on_accept(void *ctx, int fd)
{
	struct web *web = ctx;
	struct web_conn *conn = web->conn_cnt < LIMIT_HTTP_CONNS ? mem_zalloc(1, sizeof(*conn)) : NULL;
	if (!conn || sock_new(web->io, fd, &conn->stream) < 0) {
		mem_free(conn);
		fd_close(&fd);
		return;
	}
	conn->web = web;
	list_init(&conn->node);
	list_add_tail(&web->conns, &conn->node);
	web->conn_cnt++;
	timer_init(&conn->head, head_late);
	http_server_init(&conn->http, io_pool(web->io));
	stream_set_events(conn->stream, &STREAM_EVENTS, conn);
	stream_read_start(conn->stream);
	push(conn);
}

static const struct listen_events LISTEN_EVENTS = {.on_accept = on_accept};

int web_new(
        struct io *io, int fd, const struct web_route *routes, size_t cnt, void *ctx, struct web **ret_web)
{
	const struct listen_opts opts = {.nodelay = true};
	struct web *web = mem_zalloc(1, sizeof(*web));
	if (!web)
		return -ENOMEM;
	*web = (struct web){.io = io, .routes = routes, .route_cnt = cnt, .ctx = ctx};
	list_init(&web->conns);
	int r = listen_start(io, fd, &opts, &LISTEN_EVENTS, web, &web->listener);
	if (r < 0) {
		mem_free(web);
		return r;
	}
	*ret_web = web;
	return 0;
}

void web_free(struct web *web)
{
	if (!web)
		return;
	listen_stop(web->listener);
	while (!list_empty(&web->conns))
		conn_free(list_entry(web->conns.next, struct web_conn, node));
	mem_free(web);
}
