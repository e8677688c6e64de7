/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SOCKS5 messages byte by byte; see socks.h. */
#include "silo/socks.h"

#include <string.h>

#include "base/utf8.h"

/* RFC 1928 3 to 5. */
#define VERSION 5
#define METHOD_NONE 0
#define COMMAND_CONNECT 1
#define TYPE_V4 1
#define TYPE_NAME 3
#define TYPE_V6 4
/* Bytes of a request before its address, and behind it. */
#define HEAD_LEN 4
#define PORT_LEN 2

void socks_reply(enum socks_code code, uint8_t reply[SOCKS_REPLY_LEN])
{
	memset(reply, 0, SOCKS_REPLY_LEN);
	reply[0] = VERSION;
	reply[1] = (uint8_t)code;
	reply[3] = TYPE_V4;
}

static enum socks_step refuse(struct socks *socks, enum socks_code code)
{
	socks_reply(code, socks->reply);
	socks->reply_len = SOCKS_REPLY_LEN;
	return SOCKS_REFUSE;
}

/* Length of the message as far as it can be told from what is there; one byte more than that when it cannot.
 */
static size_t message_len(const struct socks *socks)
{
	if (!socks->is_greeted)
		return socks->len < 2 ? 2 : 2u + socks->message[1];
	if (socks->len < HEAD_LEN + 1)
		return HEAD_LEN + 1;
	switch (socks->message[3]) {
	case TYPE_V4:
		return HEAD_LEN + 4 + PORT_LEN;
	case TYPE_V6:
		return HEAD_LEN + 16 + PORT_LEN;
	case TYPE_NAME:
		return HEAD_LEN + 1u + socks->message[4] + PORT_LEN;
	default:
		/* No way to tell where it ends: it is judged as it is. */
		return socks->len;
	}
}

static enum socks_step greet(struct socks *socks)
{
	if (!memchr(socks->message + 2, METHOD_NONE, socks->len - 2))
		return refuse(socks, SOCKS_NOT_SUPPORTED);
	socks->is_greeted = true;
	socks->len = 0;
	socks->reply[0] = VERSION;
	socks->reply[1] = METHOD_NONE;
	socks->reply_len = 2;
	return SOCKS_SAY;
}

/* A name must be text without an end in the midst. */
static enum socks_step take_name(struct socks *socks)
{
	size_t len = socks->message[HEAD_LEN];
	const char *name = (const char *)socks->message + HEAD_LEN + 1;
	if (len == 0 || memchr(name, 0, len) || !utf8_valid(name, len))
		return refuse(socks, SOCKS_NOT_SUPPORTED);
	memcpy(socks->host, name, len);
	socks->host[len] = '\0';
	return SOCKS_DONE;
}

static enum socks_step take_request(struct socks *socks)
{
	const uint8_t *port = socks->message + socks->len - PORT_LEN;
	if (socks->message[1] != COMMAND_CONNECT)
		return refuse(socks, SOCKS_NOT_SUPPORTED);
	socks->dst.port = (uint16_t)(port[0] << 8 | port[1]);
	switch (socks->message[3]) {
	case TYPE_V4:
		return ip_from_bytes(socks->message + HEAD_LEN, 4, &socks->dst.ip) < 0
		               ? refuse(socks, SOCKS_GENERAL_FAILURE)
		               : SOCKS_DONE;
	case TYPE_V6:
		return ip_from_bytes(socks->message + HEAD_LEN, 16, &socks->dst.ip) < 0
		               ? refuse(socks, SOCKS_GENERAL_FAILURE)
		               : SOCKS_DONE;
	case TYPE_NAME:
		return take_name(socks);
	default:
		return refuse(socks, SOCKS_TYPE_NOT_SUPPORTED);
	}
}

enum socks_step socks_feed(struct socks *socks, const uint8_t *bytes, size_t len, size_t *ret_taken)
{
	size_t taken = 0;
	*ret_taken = 0;
	while (taken < len) {
		socks->message[socks->len++] = bytes[taken++];
		*ret_taken = taken;
		if (socks->message[0] != VERSION)
			return refuse(socks, SOCKS_GENERAL_FAILURE);
		if (socks->len >= message_len(socks))
			return socks->is_greeted ? take_request(socks) : greet(socks);
	}
	return SOCKS_MORE;
}
