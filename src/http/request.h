/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The head of an HTTP/1 request (RFC 9112) and form-encoded parameters. Pure:
 * bytes in, struct out. For the admin, readiness and metrics endpoints; not a
 * proxy, so what is ambiguous is refused instead of passed on.
 */
#ifndef CULVERT_HTTP_REQUEST_H
#define CULVERT_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "culvert/limits.h"

/* Methods that handlers tell apart. */
enum http_method { HTTP_OTHER = 0, HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP_OPTIONS };

/* A header field. */
struct http_header {
	const char *name;  /* lower case in requests; as given in replies */
	const char *value; /* without blanks around it */
};

/* A request. Strings are terminated and live as long as the buffer it was parsed from. */
struct http_request {
	enum http_method method;
	const char *method_text; /* as sent */
	const char *path;        /* without query, not percent-decoded; "/" at least */
	const char *query;       /* behind the "?", form-encoded; "" when there is none */
	unsigned minor;          /* HTTP/1.minor: 0 or 1 */
	bool keep_alive;         /* the connection may serve another request */
	bool expects_continue;   /* waits for 100 before it sends the body (RFC 9110 10.1.1) */
	size_t body_len;         /* Content-Length, <= LIMIT_HTTP_BODY */
	const uint8_t *body;     /* body_len bytes; set by the server once they are here */
	struct http_header headers[LIMIT_HTTP_HEADERS];
	size_t header_cnt;
};

/*
 * Looks for the end of a head in len bytes, of which the first *scanned hold
 * none. Returns the head's length with its empty line, or 0 when it is not
 * complete; *scanned then says where to go on.
 */
size_t http_head_len(const char *text, size_t len, size_t *scanned);

/*
 * Parses a complete head in place (text is changed: separators become
 * terminators). Returns 0, or the status to answer with: 400, 411
 * (Transfer-Encoding), 413, 431, 505.
 */
int http_parse_head(char *text, size_t len, struct http_request *ret_request);

/*
 * Value of the next header of that (lower-case) name. Start with *cursor = 0;
 * NULL at the end.
 */
const char *http_header_next(const struct http_request *request, const char *name, size_t *cursor);

/*
 * Looks up a parameter in form-encoded text (a query or a body) and decodes it
 * into dst, terminated. The last one of that name wins; a name without "=" has
 * the value "". Returns 1 when present, 0 when absent, -EMSGSIZE when it does
 * not fit cap bytes, -EINVAL when it holds a zero byte.
 */
int http_form_get(const char *form, size_t len, const char *name, char *dst, size_t cap);

/* http_form_get on the request's query. */
int http_query_get(const struct http_request *request, const char *name, char *dst, size_t cap);

#endif
