/* SPDX-License-Identifier: GPL-2.0-or-later */
/* application/x-www-form-urlencoded (URL standard 5.1): "+" is a blank, a bad percent sign stands for itself.
 */
#include <errno.h>
#include <string.h>

#include "http/request.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes one character of s; returns the bytes used. */
static size_t decode_char(const char *s, size_t len, char *ret_char)
{
	if (*s == '%' && len >= 3 && hex_value(s[1]) >= 0 && hex_value(s[2]) >= 0) {
		*ret_char = (char)(hex_value(s[1]) << 4 | hex_value(s[2]));
		return 3;
	}
	*ret_char = *s == '+' ? ' ' : *s;
	return 1;
}

static bool decodes_to(const char *s, size_t len, const char *name)
{
	while (len) {
		char c;
		size_t n = decode_char(s, len, &c);
		if (c == '\0' || c != *name++)
			return false;
		s += n;
		len -= n;
	}
	return *name == '\0';
}

static int decode(const char *s, size_t len, char *dst, size_t cap)
{
	size_t out = 0;
	while (len) {
		char c;
		size_t n = decode_char(s, len, &c);
		if (c == '\0')
			return -EINVAL;
		if (out + 1 >= cap)
			return -EMSGSIZE;
		dst[out++] = c;
		s += n;
		len -= n;
	}
	if (out >= cap)
		return -EMSGSIZE;
	dst[out] = '\0';
	return 1;
}

int http_form_get(const char *form, size_t len, const char *name, char *dst, size_t cap)
{
	const char *value = NULL;
	size_t value_len = 0;
	const char *end = form + len;
	while (form < end) {
		const char *amp = memchr(form, '&', (size_t)(end - form));
		size_t n = (size_t)((amp ? amp : end) - form);
		const char *eq = memchr(form, '=', n);
		size_t name_len = eq ? (size_t)(eq - form) : n;
		if (n && decodes_to(form, name_len, name)) {
			value = eq ? eq + 1 : "";
			value_len = eq ? n - name_len - 1 : 0;
		}
		form += n + 1;
	}
	return value ? decode(value, value_len, dst, cap) : 0;
}

int http_query_get(const struct http_request *request, const char *name, char *dst, size_t cap)
{
	return http_form_get(request->query, strlen(request->query), name, dst, cap);
}
