/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP over streams; see web.h. */
#include "conn/web.h"

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
	struct timer clock; /* a head is awaited, a reply is not taken, or the client has not closed after our
	                       end */
	struct timer turn;  /* the next piece, in the next turn */
	unsigned stalls;    /* times in a row that the clock found output waiting */
	uint64_t taken;     /* bytes taken by the client when the clock was last set */
	struct web_wait *wait;     /* a reply under way, or NULL */
	struct web_source *source; /* a streamed one, or NULL */
	bool is_closing;           /* our end has been sent */
	bool is_sent;              /* and handed to the kernel with all before it */
	bool has_eof;              /* the client has ended its direction */
	bool is_serving;           /* inside of serve_all() */
};

/* Nothing of the reply under way will be used any more. */
static void drop_reply(struct web_conn *conn)
{
	struct web_wait *wait = conn->wait;
	struct web_source *source = conn->source;
	conn->wait = NULL;
	conn->source = NULL;
	if (wait) {
		wait->conn = NULL;
		wait->gone(wait);
	}
	if (source)
		source->done(source);
}

static void conn_free(struct web_conn *conn)
{
	struct web *web = conn->web;
	drop_reply(conn);
	io_timer_stop(web->io, &conn->clock);
	io_timer_stop(web->io, &conn->turn);
	http_server_done(&conn->http);
	stream_free(conn->stream);
	list_del(&conn->node);
	web->conn_cnt--;
	mem_free(conn);
}

/* Whether somebody else is to act: the client, or the network to it. */
static bool is_expectant(const struct web_conn *conn)
{
	return stream_queued(conn->stream) > 0 || http_server_is_waiting(&conn->http) || conn->is_closing;
}

static void set_clock(struct web_conn *conn)
{
	conn->taken = conn->stream->taken;
	if (is_expectant(conn))
		io_timer_start(conn->web->io, &conn->clock, WEB_HEAD_MS);
	else
		io_timer_stop(conn->web->io, &conn->clock);
}

static void clock_expired(struct timer *timer, uint64_t now)
{
	struct web_conn *conn = list_entry(timer, struct web_conn, clock);
	bool was_reading = conn->stalls > 0;
	(void)now;
	if (stream_queued(conn->stream) > 0) {
		/* A slow reader has its time as long as it reads. */
		conn->stalls = conn->stream->taken != conn->taken ? 1 : conn->stalls + 1;
		if (conn->stalls > WEB_STALL_MS / WEB_HEAD_MS)
			conn_free(conn);
		else
			set_clock(conn);
		return;
	}
	conn->stalls = 0;
	if (is_expectant(conn) && !was_reading)
		conn_free(conn);
	else
		set_clock(conn);
}

/* Hands the output over and sees how the connection goes on. */
static void push(struct web_conn *conn)
{
	bool has_sent = !chain_empty(&conn->http.out);
	if (has_sent)
		stream_write(conn->stream, &conn->http.out);
	bool ends_now = http_server_is_closed(&conn->http) && !conn->is_closing;
	if (ends_now) {
		conn->is_closing = true;
		/* Closing over unread bytes would reset the connection and take the reply along: the client
		 * closes first, or the clock. */
		stream_shutdown(conn->stream);
	}
	/* A head that comes byte by byte gets no more time. */
	if (has_sent || ends_now || !timer_is_set(&conn->clock) || !is_expectant(conn))
		set_clock(conn);
}

/* --- streamed replies ---------------------------------------------------- */

static void serve_all(struct web_conn *conn);

/* The body is complete (r == 0) or cannot be completed. */
static void end_stream(struct web_conn *conn, int r)
{
	struct web_source *source = conn->source;
	conn->source = NULL;
	if (r == 0)
		http_reply_end(&conn->http);
	else
		http_server_abort(&conn->http);
	source->done(source);
	serve_all(conn);
}

static void next_piece(struct timer *timer, uint64_t now)
{
	struct web_conn *conn = list_entry(timer, struct web_conn, turn);
	struct buf piece;
	(void)now;
	buf_init(&piece, WEB_PIECE_MAX);
	int r = conn->source->next(conn->source, &piece);
	if (piece.err)
		r = piece.err;
	if (r >= 0 && http_reply_piece(&conn->http, piece.data, piece.len) < 0)
		r = -ENOMEM;
	buf_done(&piece);
	if (r <= 0) {
		end_stream(conn, r);
		return;
	}
	push(conn);
	if (!stream_is_high(conn->stream))
		io_timer_start(conn->web->io, &conn->turn, 0);
}

static void on_drained(void *ctx)
{
	struct web_conn *conn = ctx;
	if (conn->source)
		io_timer_start(conn->web->io, &conn->turn, 0);
}

void web_stream(struct web_conn *conn, unsigned status, const struct http_header *headers, size_t cnt,
        struct web_source *source)
{
	conn->wait = NULL;
	conn->source = source;
	int r = http_reply_begin(&conn->http, status, headers, cnt);
	if (r < 0 || conn->http.request.method == HTTP_HEAD)
		end_stream(conn, r);
	else
		io_timer_start(conn->web->io, &conn->turn, 0);
}

/* --- whole replies ------------------------------------------------------- */

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
	while (!conn->wait && !conn->source && (request = http_server_next(&conn->http)))
		route(conn, request);
	conn->is_serving = false;
	push(conn);
}

void web_reply_fields(struct web_conn *conn, unsigned status, const struct http_header *headers, size_t cnt,
        const void *body, size_t len)
{
	conn->wait = NULL;
	http_reply(&conn->http, status, headers, cnt, body, len);
	serve_all(conn);
}

void web_reply(struct web_conn *conn, unsigned status, const char *content_type, const void *body, size_t len)
{
	const struct http_header type = {.name = "content-type", .value = content_type};
	web_reply_fields(conn, status, &type, content_type ? 1 : 0, body, len);
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

/* Feeds one chunk. What comes during a reply waits, up to the room of one request. */
static int feed(struct web_conn *conn, const uint8_t *p, size_t len)
{
	while (len > 0 && !conn->is_closing) {
		size_t n = len < HTTP_FEED_MAX ? len : HTTP_FEED_MAX;
		int r = http_server_feed(&conn->http, p, n);
		if (r < 0)
			return r;
		serve_all(conn);
		p += n;
		len -= n;
	}
	return 0;
}

static void on_data(void *ctx, struct chain *data)
{
	struct web_conn *conn = ctx;
	struct chunk *chunk;
	while (!conn->is_closing && (chunk = chain_take(data))) {
		int r = feed(conn, chunk_bytes(chunk), chunk->len);
		chunk_free(chunk);
		if (r < 0) {
			conn_free(conn);
			return;
		}
	}
}

static void on_eof(void *ctx)
{
	struct web_conn *conn = ctx;
	conn->has_eof = true;
	if (conn->is_sent) {
		conn_free(conn);
		return;
	}
	http_server_eof(&conn->http);
	serve_all(conn);
}

static void on_finished(void *ctx)
{
	struct web_conn *conn = ctx;
	conn->is_sent = true;
	if (conn->has_eof)
		conn_free(conn);
	else
		set_clock(conn);
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
        .on_drained = on_drained,
        .on_finished = on_finished,
        .on_error = on_error,
};

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
	timer_init(&conn->clock, clock_expired);
	timer_init(&conn->turn, next_piece);
	conn->stream->high = WEB_AHEAD;
	conn->stream->low = WEB_AHEAD / 4;
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

int web_fd(const struct web *web)
{
	return web->listener ? listen_fd(web->listener) : -1;
}

void web_drain(struct web *web)
{
	if (!web || !web->listener)
		return;
	listen_stop(web->listener);
	web->listener = NULL;
	list_for_each_safe(it, &web->conns)
	{
		struct web_conn *conn = list_entry(it, struct web_conn, node);
		http_server_drain(&conn->http);
		push(conn);
	}
}

void web_free(struct web *web)
{
	if (!web)
		return;
	listen_stop(web->listener); /* NULL after web_drain() */
	while (!list_empty(&web->conns))
		conn_free(list_entry(web->conns.next, struct web_conn, node));
	mem_free(web);
}
