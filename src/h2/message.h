/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One header block while it arrives: checks every line against RFC 9113
 * section 8 and dataplane section 6, keeps the wanted ones. nghttp2's own
 * message checks are off, because they refuse a CONNECT without :authority,
 * which must reach the application. Knows nothing of frames.
 */
#ifndef CULVERT_H2_MESSAGE_H
#define CULVERT_H2_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "h2/headers.h"

/* What a header block is. */
enum h2_message_kind { H2_MESSAGE_REQUEST, H2_MESSAGE_RESPONSE, H2_MESSAGE_TRAILERS };

/* A header list this many times over its limit ends the connection, not just the stream. */
#define H2_MESSAGE_BOMB 16u

/* Embedded; begin, lines, end, done. */
struct h2_message {
	enum h2_message_kind kind;
	struct h2_headers headers; /* lines kept */
	const char *const *keep;   /* names of regular lines to keep, NULL-terminated */
	uint32_t max;              /* ceiling of list_len */
	uint64_t list_len;         /* bytes so far as RFC 9113 6.5.2 counts: name + value + 32 a line */
	int status;                /* response: its :status; 0 = none yet */
	uint8_t pseudo;            /* pseudo headers seen, one bit each */
	bool is_connect;           /* request: :method is CONNECT */
	bool is_regular_seen;      /* no pseudo header may follow */
	bool is_malformed;
};

/* Start a block. `keep` is borrowed until h2_message_done(). */
void h2_message_begin(
        struct h2_message *message, enum h2_message_kind kind, const char *const *keep, uint32_t max);

/*
 * Take one line. Returns 0 (a malformed line is only noted), -E2BIG when the
 * list is H2_MESSAGE_BOMB times too long, or -ENOMEM.
 */
int h2_message_line(
        struct h2_message *message, const char *name, size_t name_len, const char *value, size_t value_len);

/* The block is complete: 0, -EPROTO (malformed) or -E2BIG (over the limit). */
int h2_message_end(const struct h2_message *message);

/* Free what was kept. */
void h2_message_done(struct h2_message *message);

/* Whether the name and value may be sent as a regular header line. */
bool h2_header_is_sendable(const struct h2_header *header);

/* Whether bytes can stand as :authority: characters and brackets of RFC 3986 3.2, at most one port. Host and
 * port are not judged. */
bool h2_authority_is_valid(const char *value, size_t len);

#endif
