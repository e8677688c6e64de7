/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsing of request heads, in place. Every length comes from the peer; nothing is read past the head. */
#include "http/request.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

size_t http_head_len(const char *text, size_t len, size_t *scanned)
{
	/* Empty lines before the request line do not count (RFC 9112 2.2). */
	size_t start = 0;
	while (start < len && (text[start] == '\r' || text[start] == '\n'))
		start++;
	for (size_t i = *scanned > start ? *scanned : start; i < len; i++) {
		/* A line ends with CRLF or, leniently, LF alone; an empty one ends the head. */
		if (text[i] != '\n')
			continue;
		if (text[i - 1] == '\n' || (text[i - 1] == '\r' && text[i - 2] == '\n'))
			return i + 1;
	}
	*scanned = len;
	return 0;
}

static bool is_token_char(char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return true;
	return c != '\0' && strchr("!#$%&'*+-.^_`|~", c);
}

static bool is_token(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_token_char(s[i]))
			return false;
	return len > 0;
}

static enum http_method find_method(const char *text)
{
	static const char *const names[] = {[HTTP_GET] = "GET",
	        [HTTP_HEAD] = "HEAD",
	        [HTTP_POST] = "POST",
	        [HTTP_PUT] = "PUT",
	        [HTTP_DELETE] = "DELETE",
	        [HTTP_OPTIONS] = "OPTIONS"};
	for (size_t i = HTTP_GET; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], text) == 0)
			return (enum http_method)i;
	return HTTP_OTHER;
}

/* "HTTP/1.0" or "HTTP/1.1". */
static int parse_version(const char *s, size_t len, unsigned *ret_minor)
{
	if (len != 8 || memcmp(s, "HTTP/", 5) != 0 || s[5] < '0' || s[5] > '9' || s[6] != '.' || s[7] < '0' ||
	        s[7] > '9')
		return 400;
	if (s[5] != '1' || s[7] > '1')
		return 505;
	*ret_minor = (unsigned)(s[7] - '0');
	return 0;
}

/* Splits the target; the absolute form (RFC 9112 3.2.2) loses its scheme and authority. */
static int parse_target(char *target, struct http_request *r)
{
	if (strncasecmp(target, "http://", 7) == 0) {
		target += 7 + strcspn(target + 7, "/?");
	} else if (*target != '/' && strcmp(target, "*") != 0 && strcmp(r->method_text, "CONNECT") != 0) {
		return 400;
	}
	char *mark = strchr(target, '?');
	r->query = "";
	if (mark) {
		*mark = '\0';
		r->query = mark + 1;
	}
	r->path = *target ? target : "/";
	return 0;
}

/* METHOD SP target SP version, line without its end and terminated. */
static int parse_request_line(char *line, size_t len, struct http_request *r)
{
	char *first = memchr(line, ' ', len);
	char *second = first ? memchr(first + 1, ' ', len - (size_t)(first + 1 - line)) : NULL;
	if (!second || !is_token(line, (size_t)(first - line)) || second == first + 1)
		return 400;
	for (const char *p = first + 1; p < second; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
			return 400;
	int status = parse_version(second + 1, len - (size_t)(second + 1 - line), &r->minor);
	if (status)
		return status;
	*first = '\0';
	*second = '\0';
	r->method_text = line;
	r->method = find_method(line);
	return parse_target(first + 1, r);
}

/* name ":" value, line without its end and terminated. */
static int parse_field(char *line, size_t len, struct http_request *r)
{
	char *colon = memchr(line, ':', len);
	if (!colon || !is_token(line, (size_t)(colon - line)))
		return 400; /* also a folded line or a blank before the colon: ways to smuggle (RFC
		               9112 5.1, 5.2) */
	if (r->header_cnt == LIMIT_HTTP_HEADERS)
		return 431;
	for (char *p = line; p < colon; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p + ('a' - 'A'));
	char *value = colon + 1;
	char *end = line + len;
	for (const char *p = value; p < end; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
			return 400;
	value += strspn(value, " \t");
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	*colon = '\0';
	r->headers[r->header_cnt++] = (struct http_header){.name = line, .value = value};
	return 0;
}

/* Whether a comma-separated list has that word, in any case. */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	while (*list) {
		list += strspn(list, ", \t");
		size_t n = strcspn(list, ", \t");
		if (n == len && strncasecmp(list, word, len) == 0)
			return true;
		list += n;
	}
	return false;
}

static bool header_lists(const struct http_request *r, const char *name, const char *word)
{
	size_t cursor = 0;
	for (const char *v; (v = http_header_next(r, name, &cursor));)
		if (list_has(v, word))
			return true;
	return false;
}

/* How long the body is (RFC 9112 6.3). Several lengths must agree. */
static int parse_framing(struct http_request *r)
{
	size_t cursor = 0;
	if (http_header_next(r, "transfer-encoding", &cursor))
		return 411;
	bool have = false;
	cursor = 0;
	for (const char *v; (v = http_header_next(r, "content-length", &cursor));) {
		uint64_t n;
		int rc = num_parse(v, strlen(v), LIMIT_HTTP_BODY, &n);
		if (rc == -EINVAL || (rc == 0 && have && n != r->body_len))
			return 400;
		if (rc < 0)
			return 413;
		r->body_len = (size_t)n;
		have = true;
	}
	return 0;
}

static int check_fields(struct http_request *r)
{
	size_t cursor = 0;
	if (http_header_next(r, "host", &cursor) && http_header_next(r, "host", &cursor))
		return 400;
	r->keep_alive = r->minor > 0 ? !header_lists(r, "connection", "close")
	                             : header_lists(r, "connection", "keep-alive");
	r->expects_continue = r->minor > 0 && header_lists(r, "expect", "100-continue");
	return parse_framing(r);
}

int http_parse_head(char *text, size_t len, struct http_request *ret_request)
{
	struct http_request *r = ret_request;
	memset(r, 0, sizeof(*r));
	char *end = text + len;
	bool first = true;
	if (memchr(text, '\0', len))
		return 400;
	while (text < end && (*text == '\r' || *text == '\n'))
		text++;
	for (char *lf; text < end && (lf = memchr(text, '\n', (size_t)(end - text))); text = lf + 1) {
		size_t n = (size_t)(lf - text);
		if (n && text[n - 1] == '\r')
			n--;
		if (n == 0)
			return first ? 400 : check_fields(r);
		text[n] = '\0';
		int status = first ? parse_request_line(text, n, r) : parse_field(text, n, r);
		if (status)
			return status;
		first = false;
	}
	return 400;
}

const char *http_header_next(const struct http_request *request, const char *name, size_t *cursor)
{
	while (*cursor < request->header_cnt) {
		const struct http_header *h = &request->headers[(*cursor)++];
		if (strcmp(h->name, name) == 0)
			return h->value;
	}
	return NULL;
}
