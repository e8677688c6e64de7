/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts in header lines; see text.h. */
#include "grpc/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"

/* Largest number in a grpc-timeout: eight digits. */
#define TIMEOUT_MAX 99999999u

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t grpc_message_decode(const char *text, char *dst, size_t cap)
{
	size_t len = 0;

	for (; *text && len + 1 < cap; text++) {
		int high = *text == '%' ? hex_digit(text[1]) : -1;
		int low = high >= 0 ? hex_digit(text[2]) : -1;
		char c = *text;
		if (low >= 0) {
			c = (char)(high << 4 | low);
			text += 2;
		}
		dst[len++] = c ? c : '?';
	}
	if (*text && len > 0)
		len = utf8_cut(dst, len, len - 1);
	dst[len] = '\0';
	return len;
}

size_t grpc_message_encode(const char *text, char *dst, size_t cap)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t len = 0;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool is_plain = c >= ' ' && c <= '~' && c != '%';
		if (len + (is_plain ? 1 : 3) >= cap)
			break;
		dst[len++] = is_plain ? (char)c : '%';
		if (is_plain)
			continue;
		dst[len++] = digits[c >> 4];
		dst[len++] = digits[c & 15];
	}
	dst[len] = '\0';
	return len;
}

struct timeout_unit {
	char name;
	uint64_t ms;       /* milliseconds of one; 0 = less than one */
	uint64_t fraction; /* how many make a millisecond */
};

static const struct timeout_unit units[] = {
        {'n', 0, 1000000},
        {'u', 0, 1000},
        {'m', 1, 1},
        {'S', 1000, 1},
        {'M', 60 * 1000, 1},
        {'H', 3600 * 1000, 1},
};

#define UNIT_CNT (sizeof(units) / sizeof(units[0]))

int grpc_timeout_parse(const char *text, uint64_t *ret_ms)
{
	size_t len = strlen(text);
	uint64_t value;

	if (len < 2 || num_parse(text, len - 1, TIMEOUT_MAX, &value) < 0 || len > 9)
		return -EINVAL;
	for (size_t i = 0; i < UNIT_CNT; i++) {
		if (units[i].name != text[len - 1])
			continue;
		*ret_ms = units[i].ms ? value * units[i].ms
		                      : (value + units[i].fraction - 1) / units[i].fraction;
		return 0;
	}
	return -EINVAL;
}

void grpc_timeout_format(uint64_t ms, char *dst)
{
	size_t i = 2;

	while (i + 1 < UNIT_CNT && ms > TIMEOUT_MAX * units[i].ms)
		i++;
	uint64_t value = ms / units[i].ms + (ms % units[i].ms != 0);
	(void)snprintf(dst, GRPC_TIMEOUT_STR_MAX, "%u%c", value > TIMEOUT_MAX ? TIMEOUT_MAX : (unsigned)value,
	        units[i].name);
}

bool grpc_content_type_is_fine(const char *value)
{
	static const char want[] = "application/grpc";

	if (!value || strncmp(value, want, sizeof(want) - 1) != 0)
		return false;
	char next = value[sizeof(want) - 1];
	return next == '\0' || next == '+' || next == ';';
}

int grpc_request_check(
        const struct grpc_request_head *head, uint64_t *ret_timeout_ms, struct grpc_status *ret_status)
{
	uint64_t timeout_ms = GRPC_NO_TIMEOUT;

	if (!head->method || strcmp(head->method, "POST") != 0)
		return 405;
	if (!grpc_content_type_is_fine(head->content_type))
		return 415;
	if (head->encoding && strcmp(head->encoding, "identity") != 0) {
		grpc_status_set(ret_status, GRPC_UNIMPLEMENTED,
		        "Content is compressed with `%.64s` which isn't supported", head->encoding);
		return -EINVAL;
	}
	if (head->timeout && grpc_timeout_parse(head->timeout, &timeout_ms) < 0) {
		grpc_status_set(ret_status, GRPC_INTERNAL, "malformed grpc-timeout");
		return -EINVAL;
	}
	*ret_timeout_ms = timeout_ms;
	return 0;
}

void grpc_trailers_make(const struct grpc_status *status, struct grpc_trailers *ret_trailers)
{
	(void)snprintf(ret_trailers->code, sizeof(ret_trailers->code), "%u", (unsigned)status->code % 100);
	grpc_message_encode(status->message, ret_trailers->message, sizeof(ret_trailers->message));
}
