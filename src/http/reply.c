/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies: status line, fields, body whole or in pieces. Framing is decided here and nowhere else. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "http/server.h"

/* Fields of one reply; ours are a few short ones. */
#define REPLY_HEAD_MAX 4096

const char *http_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} rows[] = {
	        {200, "OK"},
	        {204, "No Content"},
	        {400, "Bad Request"},
	        {404, "Not Found"},
	        {405, "Method Not Allowed"},
	        {408, "Request Timeout"},
	        {411, "Length Required"},
	        {413, "Content Too Large"},
	        {431, "Request Header Fields Too Large"},
	        {500, "Internal Server Error"},
	        {501, "Not Implemented"},
	        {503, "Service Unavailable"},
	        {505, "HTTP Version Not Supported"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].status == status)
			return rows[i].text;
	return "Unknown";
}

/* A value that cannot end its line early. */
static void add_value(struct buf *out, const char *value)
{
	for (; *value; value++)
		buf_add_u8(out, (unsigned char)*value < ' ' || *value == 0x7f ? ' ' : (uint8_t)*value);
}

static void add_field(struct buf *out, const char *name, const char *value)
{
	buf_add_str(out, name);
	buf_add_str(out, ": ");
	add_value(out, value);
	buf_add_str(out, "\r\n");
}

static void add_connection(struct buf *out, const struct http_request *r)
{
	if (!r->keep_alive)
		add_field(out, "connection", "close");
	else if (r->minor == 0)
		add_field(out, "connection", "keep-alive");
}

/* Writes the head; framing is the Content-Length or Transfer-Encoding line, "" for none. */
static int put_head(struct http_server *server, unsigned status, const struct http_header *headers,
        size_t header_cnt, const char *framing)
{
	struct buf head;
	buf_init(&head, REPLY_HEAD_MAX);
	buf_printf(&head, "HTTP/1.1 %u %s\r\n", status, http_reason(status));
	for (size_t i = 0; i < header_cnt; i++)
		add_field(&head, headers[i].name, headers[i].value);
	buf_add_str(&head, framing);
	add_connection(&head, &server->request);
	buf_add_str(&head, "\r\n");
	int rc = head.err ? -ENOMEM : chain_write(&server->out, server->pool, head.data, head.len);
	buf_done(&head);
	return rc;
}

/* The request is answered: on to the next one or to the end. */
static int finish(struct http_server *server, int rc)
{
	if (rc < 0 || !server->request.keep_alive)
		http_server_abort(server);
	else
		server->state = HTTP_STATE_HEAD;
	return rc;
}

int http_reply(struct http_server *server, unsigned status, const struct http_header *headers,
        size_t header_cnt, const void *body, size_t len)
{
	char framing[64] = "";
	if (server->state == HTTP_STATE_CLOSED)
		return ERR_GONE;
	ASSERT(server->state == HTTP_STATE_REPLY);
	bool bodyless = status == 204 || status == 304;
	if (!bodyless)
		snprintf(framing, sizeof(framing), "content-length: %zu\r\n", len);
	int rc = put_head(server, status, headers, header_cnt, framing);
	if (rc == 0 && len && !bodyless && server->request.method != HTTP_HEAD)
		rc = chain_write(&server->out, server->pool, body, len);
	return finish(server, rc);
}

int http_reply_text(struct http_server *server, unsigned status, const char *content_type, const char *body)
{
	const struct http_header type = {"content-type", content_type};
	return http_reply(server, status, &type, content_type ? 1 : 0, body, strlen(body));
}

int http_reply_begin(
        struct http_server *server, unsigned status, const struct http_header *headers, size_t header_cnt)
{
	if (server->state == HTTP_STATE_CLOSED)
		return ERR_GONE;
	ASSERT(server->state == HTTP_STATE_REPLY);
	/* HTTP/1.0 has no chunks: there the end of the connection is the end of the body. */
	server->chunked = server->request.minor > 0;
	if (!server->chunked)
		server->request.keep_alive = false;
	int rc = put_head(
	        server, status, headers, header_cnt, server->chunked ? "transfer-encoding: chunked\r\n" : "");
	if (rc < 0)
		return finish(server, rc);
	server->state = HTTP_STATE_STREAM;
	return 0;
}

int http_reply_piece(struct http_server *server, const void *p, size_t len)
{
	if (server->state == HTTP_STATE_CLOSED)
		return ERR_GONE;
	ASSERT(server->state == HTTP_STATE_STREAM);
	/* An empty chunk would end the body. */
	if (len == 0 || server->request.method == HTTP_HEAD)
		return 0;
	char size[24];
	int n = snprintf(size, sizeof(size), "%zx\r\n", len);
	int rc = server->chunked ? chain_write(&server->out, server->pool, size, (size_t)n) : 0;
	if (rc == 0)
		rc = chain_write(&server->out, server->pool, p, len);
	if (rc == 0 && server->chunked)
		rc = chain_write(&server->out, server->pool, "\r\n", 2);
	return rc < 0 ? finish(server, rc) : 0;
}

int http_reply_end(struct http_server *server)
{
	if (server->state == HTTP_STATE_CLOSED)
		return ERR_GONE;
	ASSERT(server->state == HTTP_STATE_STREAM);
	int rc = 0;
	if (server->chunked && server->request.method != HTTP_HEAD)
		rc = chain_write(&server->out, server->pool, "0\r\n\r\n", 5);
	return finish(server, rc);
}
