/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules for header blocks (RFC 9113 sections 8.2, 8.3, 8.5). Uses nghttp2's
 * character tables only. Knows nothing of streams or what is answered to a
 * malformed message.
 */
#include "h2/message.h"

#include <errno.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

/* RFC 9113 section 6.5.2: what each line costs besides its bytes. */
#define LINE_COST 32u

enum pseudo { PSEUDO_METHOD, PSEUDO_SCHEME, PSEUDO_AUTHORITY, PSEUDO_PATH, PSEUDO_STATUS, PSEUDO_CNT };

static const char *const pseudo_names[PSEUDO_CNT] = {":method", ":scheme", ":authority", ":path", ":status"};

/* Fields that speak of an HTTP/1 connection (RFC 9113 section 8.2.2). */
static const char *const connection_names[] = {
        "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", NULL};

void h2_message_begin(
        struct h2_message *message, enum h2_message_kind kind, const char *const *keep, uint32_t max)
{
	*message = (struct h2_message){.kind = kind, .keep = keep, .max = max};
	h2_headers_init(&message->headers, max);
}

void h2_message_done(struct h2_message *message)
{
	h2_headers_done(&message->headers);
}

static bool is_name(const char *name, size_t name_len, const char *want)
{
	return strlen(want) == name_len && memcmp(name, want, name_len) == 0;
}

static bool is_listed(const char *const *list, const char *name, size_t name_len)
{
	for (; *list; list++)
		if (is_name(name, name_len, *list))
			return true;
	return false;
}

static bool is_authority_char(unsigned char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return true;
	return c && strchr("-._~!$&'()*+,;=:[]@%", c);
}

bool h2_authority_is_valid(const char *value, size_t len)
{
	int colons = 0;
	int opened = 0;
	int closed = 0;
	bool is_percent = false;

	for (size_t i = 0; i < len; i++) {
		char c = value[i];

		if (!is_authority_char((unsigned char)c))
			return false;
		if (c == '[' && (is_percent || opened++))
			return false;
		if (c == ']' && (!opened || closed++))
			return false;
		if (c == ':')
			colons++;
		else if (c == '%')
			is_percent = true;
		if (c == '@' || c == ']') {
			colons = 0;
			is_percent = false;
		}
	}
	return len > 0 && opened == closed && colons <= 1 && !is_percent && value[len - 1] != '@';
}

static bool scheme_is_valid(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = value[i];
		bool is_alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!is_alpha && (i == 0 || !c || !strchr("0123456789+-.", c)))
			return false;
	}
	return len > 0;
}

static int status_parse(const char *value, size_t len)
{
	if (len != 3 || value[0] < '1' || value[0] > '9')
		return 0;
	for (size_t i = 1; i < len; i++)
		if (value[i] < '0' || value[i] > '9')
			return 0;
	return (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
}

static bool pseudo_value_is_valid(
        struct h2_message *message, enum pseudo which, const char *value, size_t len)
{
	const uint8_t *bytes = (const uint8_t *)value;

	switch (which) {
	case PSEUDO_METHOD:
		message->is_connect = is_name(value, len, "CONNECT");
		return len > 0 && nghttp2_check_method(bytes, len);
	case PSEUDO_SCHEME:
		return scheme_is_valid(value, len);
	case PSEUDO_AUTHORITY:
		return h2_authority_is_valid(value, len);
	case PSEUDO_PATH:
		return len > 0 && (value[0] == '/' || is_name(value, len, "*")) &&
		       nghttp2_check_path(bytes, len);
	case PSEUDO_STATUS:
		message->status = status_parse(value, len);
		return message->status != 0;
	case PSEUDO_CNT:
		break;
	}
	return false;
}

static bool pseudo_is_valid(
        struct h2_message *message, const char *name, size_t name_len, const char *value, size_t value_len)
{
	bool is_status;
	int which = 0;

	while (which < PSEUDO_CNT && !is_name(name, name_len, pseudo_names[which]))
		which++;
	if (which == PSEUDO_CNT || message->is_regular_seen || message->kind == H2_MESSAGE_TRAILERS)
		return false;
	is_status = which == PSEUDO_STATUS;
	if (is_status != (message->kind == H2_MESSAGE_RESPONSE) || message->pseudo & (1 << which))
		return false;
	message->pseudo |= (uint8_t)(1 << which);
	return pseudo_value_is_valid(message, (enum pseudo)which, value, value_len);
}

static bool regular_is_valid(const char *name, size_t name_len, const char *value, size_t value_len)
{
	if (!nghttp2_check_header_name((const uint8_t *)name, name_len) ||
	        !nghttp2_check_header_value((const uint8_t *)value, value_len))
		return false;
	if (is_listed(connection_names, name, name_len))
		return false;
	return !is_name(name, name_len, "te") || is_name(value, value_len, "trailers");
}

int h2_message_line(
        struct h2_message *message, const char *name, size_t name_len, const char *value, size_t value_len)
{
	bool is_pseudo = name_len > 0 && name[0] == ':';
	int err;

	message->list_len += name_len + value_len + LINE_COST;
	if (message->list_len > (uint64_t)message->max * H2_MESSAGE_BOMB)
		return -E2BIG;
	if (message->is_malformed || message->list_len > message->max)
		return 0;
	if (is_pseudo) {
		message->is_malformed = !pseudo_is_valid(message, name, name_len, value, value_len);
	} else {
		message->is_regular_seen = true;
		message->is_malformed = !regular_is_valid(name, name_len, value, value_len);
	}
	if (message->is_malformed || (!is_pseudo && !is_listed(message->keep, name, name_len)))
		return 0;
	/* Two NULs a line are less than LINE_COST: what passes the limit above fits. */
	err = h2_headers_add(&message->headers, name, name_len, value, value_len);
	return err == -ENOMEM ? err : 0;
}

static bool request_is_complete(const struct h2_message *message)
{
	unsigned url = 1 << PSEUDO_SCHEME | 1 << PSEUDO_PATH;

	if (!(message->pseudo & 1 << PSEUDO_METHOD))
		return false;
	/* A CONNECT without :authority is the application's to refuse. */
	return (message->pseudo & url) == (message->is_connect ? 0 : url);
}

int h2_message_end(const struct h2_message *message)
{
	if (message->is_malformed)
		return -EPROTO;
	if (message->list_len > message->max)
		return -E2BIG;
	if (message->kind == H2_MESSAGE_REQUEST && !request_is_complete(message))
		return -EPROTO;
	if (message->kind == H2_MESSAGE_RESPONSE && message->status == 0)
		return -EPROTO;
	return 0;
}

bool h2_header_is_sendable(const struct h2_header *header)
{
	return header->name && header->value && header->name[0] != ':' &&
	       regular_is_valid(header->name, strlen(header->name), header->value, strlen(header->value));
}
