/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server side of one HTTP/1 connection, sans I/O: bytes go in, whole
 * requests come out, replies are written into a chain. One request at a time;
 * pipelined ones wait. Behaviour: reference control.md 11.1; the 2 s limit on
 * a request is the caller's timer (http_server_is_waiting says when it runs).
 */
#ifndef CULVERT_HTTP_SERVER_H
#define CULVERT_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/chain.h"
#include "http/request.h"

/* Most bytes that one http_server_feed call takes. */
#define HTTP_FEED_MAX 65536

enum http_state {
	HTTP_STATE_HEAD,   /* waiting for a head */
	HTTP_STATE_BODY,   /* head parsed, waiting for the body */
	HTTP_STATE_REPLY,  /* a request was handed out, no reply yet */
	HTTP_STATE_STREAM, /* between http_reply_begin and http_reply_end */
	HTTP_STATE_CLOSED, /* nothing more will be read; flush out, then close */
};

/* One connection. `out` is taken by the caller, the rest is private. */
struct http_server {
	struct chain out;        /* bytes to send, in order */
	struct chunk_pool *pool; /* where they come from */
	struct buf in;           /* bytes not yet dealt with */
	struct buf head;         /* the present request's head, whose strings `request` uses */
	struct buf body;         /* its body */
	enum http_state state;
	size_t scanned; /* bytes of `in` searched for the end of the head */
	bool eof;       /* the peer sends nothing more */
	bool chunked;   /* the streamed body is chunked (RFC 9112 7.1) */
	struct http_request request;
};

/* A connection that takes its output memory from pool (borrowed). */
void http_server_init(struct http_server *server, struct chunk_pool *pool);

/* Frees everything, unsent output included. */
void http_server_done(struct http_server *server);

/*
 * Takes len <= HTTP_FEED_MAX bytes from the peer. 0, -ENOMEM, -EMSGSIZE (the
 * caller fed although http_server_wants_input said no); the connection is then
 * CLOSED. Bytes after CLOSED are dropped.
 */
int http_server_feed(struct http_server *server, const void *p, size_t len);

/* The peer has sent its last byte: what is complete is still served, then the connection closes. */
void http_server_eof(struct http_server *server);

/*
 * The next complete request, once; NULL when there is none (yet). A malformed
 * one has been answered with its status already and the connection closes. The
 * request lives until its reply is complete. Call again after each reply.
 */
const struct http_request *http_server_next(struct http_server *server);

/*
 * The whole reply to the present request. Content-Length and Connection are
 * added; control characters in header values become blanks. The body is left
 * out for HEAD. This and the next four return 0, -ENOMEM (CLOSED then), or
 * ERR_GONE when the connection was closed meanwhile: nothing is left to do.
 */
int http_reply(struct http_server *server, unsigned status, const struct http_header *headers,
        size_t header_cnt, const void *body, size_t len);

/* A whole reply with a Content-Type (NULL: none) and a string as body. */
int http_reply_text(struct http_server *server, unsigned status, const char *content_type, const char *body);

/* Starts a reply whose body comes in pieces: chunked, or up to the close for HTTP/1.0. */
int http_reply_begin(
        struct http_server *server, unsigned status, const struct http_header *headers, size_t header_cnt);

/* A piece of the body; watch server->out.len and wait while it is long. */
int http_reply_piece(struct http_server *server, const void *p, size_t len);

/* Ends the streamed body. */
int http_reply_end(struct http_server *server);

/* Gives up the connection after what is in out, e.g. when a streamed body cannot be completed: the peer sees
 * it cut. */
void http_server_abort(struct http_server *server);

/* On drain: the present request is still answered, with Connection: close; without one the connection closes
 * now. */
void http_server_drain(struct http_server *server);

/* Whether more bytes of the peer are of use now. */
bool http_server_wants_input(const struct http_server *server);

/* Whether it waits for a request or the rest of one: the caller's timer runs while this is true. */
bool http_server_is_waiting(const struct http_server *server);

/*
 * Whether to close the socket once out is empty. Shut down writing first and
 * read on for a moment: closing over unread bytes would reset the connection
 * and may take the last reply with it.
 */
bool http_server_is_closed(const struct http_server *server);

/* Reason phrase of a status, "Unknown" when we never send it; static. */
const char *http_reason(unsigned status);

#endif
