/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a server connection: head, body, reply, and again. Writing of replies is in reply.c. */
#include "http/server.h"

#include <string.h>

#include "base/check.h"

/* A head that is not complete yet and what came with the last read. */
#define IN_MAX (LIMIT_HTTP_HEAD + HTTP_FEED_MAX)

void http_server_init(struct http_server *server, struct chunk_pool *pool)
{
	memset(server, 0, sizeof(*server));
	server->pool = pool;
	buf_init(&server->in, IN_MAX);
	buf_init(&server->head, LIMIT_HTTP_HEAD);
	buf_init(&server->body, LIMIT_HTTP_BODY);
}

void http_server_done(struct http_server *server)
{
	http_server_abort(server);
	buf_done(&server->head);
	buf_done(&server->body);
	chain_clear(&server->out);
}

void http_server_abort(struct http_server *server)
{
	/* Head and body stay: a handler may hold the request until it returns. */
	buf_done(&server->in);
	server->state = HTTP_STATE_CLOSED;
}

int http_server_feed(struct http_server *server, const void *p, size_t len)
{
	ASSERT(len <= HTTP_FEED_MAX);
	if (server->state == HTTP_STATE_CLOSED)
		return 0;
	int rc = buf_add(&server->in, p, len);
	if (rc < 0)
		http_server_abort(server);
	return rc;
}

void http_server_eof(struct http_server *server)
{
	server->eof = true;
}

/* Answers what cannot be served and closes: where the next request would begin is unknown. */
static void refuse(struct http_server *server, int status)
{
	memset(&server->request, 0, sizeof(server->request));
	server->request.minor = 1;
	server->state = HTTP_STATE_REPLY;
	(void)http_reply(server, (unsigned)status, NULL, 0, NULL, 0);
}

/* Tells a client that asked first to send its body. */
static void send_continue(struct http_server *server)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	if (chain_write(&server->out, server->pool, text, sizeof(text) - 1) < 0)
		http_server_abort(server);
}

static void step_head(struct http_server *server)
{
	struct buf *in = &server->in;
	size_t len = http_head_len((const char *)in->data, in->len, &server->scanned);
	if (len > LIMIT_HTTP_HEAD || (len == 0 && in->len > LIMIT_HTTP_HEAD)) {
		refuse(server, 431);
		return;
	}
	if (len == 0)
		return;
	/* A copy of its own, because `in` may move when more bytes come. */
	buf_clear(&server->head);
	if (buf_add(&server->head, in->data, len) < 0) {
		http_server_abort(server);
		return;
	}
	buf_consume(in, len);
	server->scanned = 0;
	int status = http_parse_head((char *)server->head.data, len, &server->request);
	if (status) {
		refuse(server, status);
		return;
	}
	buf_clear(&server->body);
	server->state = HTTP_STATE_BODY;
	if (server->request.expects_continue && in->len == 0 && server->request.body_len)
		send_continue(server);
}

static void step_body(struct http_server *server)
{
	struct buf *in = &server->in;
	size_t left = server->request.body_len - server->body.len;
	size_t n = in->len < left ? in->len : left;
	if (buf_add(&server->body, in->data, n) < 0) {
		http_server_abort(server);
		return;
	}
	buf_consume(in, n);
	if (n == left) {
		server->request.body = server->body.data;
		server->state = HTTP_STATE_REPLY;
	}
}

const struct http_request *http_server_next(struct http_server *server)
{
	if (!http_server_is_waiting(server))
		return NULL; /* handed out already, or closed */
	if (server->state == HTTP_STATE_HEAD)
		step_head(server);
	if (server->state == HTTP_STATE_BODY)
		step_body(server);
	if (server->state == HTTP_STATE_REPLY)
		return &server->request;
	/* Half a request will never become whole. */
	if (server->eof)
		http_server_abort(server);
	return NULL;
}

void http_server_drain(struct http_server *server)
{
	if (server->state == HTTP_STATE_HEAD)
		http_server_abort(server);
	else
		server->request.keep_alive = false;
}

bool http_server_wants_input(const struct http_server *server)
{
	return !server->eof && http_server_is_waiting(server);
}

bool http_server_is_waiting(const struct http_server *server)
{
	return server->state == HTTP_STATE_HEAD || server->state == HTTP_STATE_BODY;
}

bool http_server_is_closed(const struct http_server *server)
{
	return server->state == HTTP_STATE_CLOSED;
}
