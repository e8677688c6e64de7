/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server's half of a SOCKS5 negotiation (RFC 1928) as far as reference
 * dataplane.md 18 goes: no authentication, CONNECT. Bytes in, replies out;
 * knows no socket and resolves no name.
 */
#ifndef CULVERT_SILO_SOCKS_H
#define CULVERT_SILO_SOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* Longest message of a client: version, command, reserved, type, length, 255 bytes of name, port. */
#define SOCKS_MESSAGE_MAX 262
/* Longest host name of a request, terminator included. */
#define SOCKS_HOST_MAX 256
/* Length of a reply to a request: always with an IPv4 address of zeros. */
#define SOCKS_REPLY_LEN 10

/* Codes of a reply (RFC 1928 6); the rest of them is never sent. */
enum socks_code {
	SOCKS_SUCCEEDED = 0,
	SOCKS_GENERAL_FAILURE = 1,
	SOCKS_HOST_UNREACHABLE = 4, /* the name does not resolve */
	SOCKS_NOT_SUPPORTED = 7,    /* command, method, or a name that cannot be one */
	SOCKS_TYPE_NOT_SUPPORTED = 8,
};

/* What a step of the negotiation wants. */
enum socks_step {
	SOCKS_MORE, /* more bytes */
	SOCKS_SAY,  /* send the reply, feed the rest */
	SOCKS_DONE, /* the target is known; what follows it is the application's. The reply is the caller's */
	SOCKS_REFUSE, /* send the reply and close */
};

/* A negotiation; zero it. */
struct socks {
	bool is_greeted;                    /* the method is agreed */
	uint8_t message[SOCKS_MESSAGE_MAX]; /* what has arrived of the present message */
	size_t len;
	uint8_t reply[SOCKS_REPLY_LEN]; /* after SOCKS_SAY and SOCKS_REFUSE */
	size_t reply_len;
	/* After SOCKS_DONE: where to. With a name the address holds the port alone. */
	char host[SOCKS_HOST_MAX]; /* "" = the target is an address */
	struct addr dst;
};

/* Takes bytes, at most up to the end of one message; *ret_taken says how many. Not to be called after
 * SOCKS_DONE or SOCKS_REFUSE. */
enum socks_step socks_feed(struct socks *socks, const uint8_t *bytes, size_t len, size_t *ret_taken);

/* Writes the reply to a request: version, code, no address. */
void socks_reply(enum socks_code code, uint8_t reply[SOCKS_REPLY_LEN]);

#endif
