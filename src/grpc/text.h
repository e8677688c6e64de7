/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The texts in gRPC's header lines: percent-coded messages, timeouts, content
 * types, and the trailers that a server ends a call with (gRPC over HTTP/2).
 * Strings only.
 */
#ifndef CULVERT_GRPC_TEXT_H
#define CULVERT_GRPC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grpc/status.h"

/* No timeout was given. */
#define GRPC_NO_TIMEOUT UINT64_MAX
/* Room for a grpc-timeout value with terminator: eight digits and a unit. */
#define GRPC_TIMEOUT_STR_MAX 10
/* Room for a grpc-status value with terminator. */
#define GRPC_CODE_STR_MAX 4

/* Percent-decodes `text` into dst of cap bytes, terminated; what is too long is cut at a character, a bad
 * escape stays as it is, a zero byte becomes a question mark. Returns the length. */
size_t grpc_message_decode(const char *text, char *dst, size_t cap);

/* Percent-encodes everything but printable ASCII, and the percent sign; dst needs 3 bytes for one, plus one.
 * Cut between characters of the code when cap is smaller. Returns the length. */
size_t grpc_message_encode(const char *text, char *dst, size_t cap);

/* Parses a grpc-timeout ("10S", "500m") into milliseconds, rounded up. -EINVAL. */
int grpc_timeout_parse(const char *text, uint64_t *ret_ms);

/* Prints milliseconds as a grpc-timeout into dst of GRPC_TIMEOUT_STR_MAX bytes, in the smallest unit that
 * fits, rounded up. */
void grpc_timeout_format(uint64_t ms, char *dst);

/* Whether a content-type is gRPC's: "application/grpc", alone or with "+..." or ";...". */
bool grpc_content_type_is_fine(const char *value);

/* A request as its headers have it; all strings are borrowed, NULL = not there. */
struct grpc_request_head {
	const char *method;       /* :method */
	const char *path;         /* :path */
	const char *content_type; /* content-type */
	const char *encoding;     /* grpc-encoding */
	const char *timeout;      /* grpc-timeout */
};

/*
 * Server: judges a request. Returns 0 with the time it may take in
 * milliseconds (GRPC_NO_TIMEOUT = none); an HTTP status to answer with, 405 or
 * 415, when it is no gRPC; or -EINVAL with the status to end the call with in
 * ret_status.
 */
int grpc_request_check(
        const struct grpc_request_head *head, uint64_t *ret_timeout_ms, struct grpc_status *ret_status);

/* What ends a call, ready to be sent as header lines grpc-status and grpc-message (left out when ""). */
struct grpc_trailers {
	char code[GRPC_CODE_STR_MAX];
	char message[3 * GRPC_MESSAGE_MAX + 1];
};

/* Fills the trailers of a status. */
void grpc_trailers_make(const struct grpc_status *status, struct grpc_trailers *ret_trailers);

#endif
