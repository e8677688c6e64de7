/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a gRPC call ended: codes, their names and fixed descriptions, and the
 * mapping from HTTP statuses and HTTP/2 reset codes (gRPC over HTTP/2).
 */
#ifndef CULVERT_GRPC_STATUS_H
#define CULVERT_GRPC_STATUS_H

#include <stdint.h>

/* Bytes of a status message that are kept, terminator included; longer ones are cut at a character. */
#define GRPC_MESSAGE_MAX 1024

/* Status codes. */
enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

/* The end of a call. */
struct grpc_status {
	enum grpc_code code;
	char message[GRPC_MESSAGE_MAX]; /* percent-decoded, valid UTF-8; "" = none */
};

/* Name of a code in CamelCase ("Unavailable"); "Unknown" for a number that is none. Static. */
const char *grpc_code_name(enum grpc_code code);

/* What a code means, as upstream words it ("The service is currently unavailable"; reference control.md 6.8).
 * Static. */
const char *grpc_code_text(enum grpc_code code);

/* The code of an answer without grpc-status, by its HTTP status (gRPC "HTTP to gRPC Status Code Mapping"). */
enum grpc_code grpc_code_from_http(int status);

/* The code of a stream that was reset with this HTTP/2 code (gRPC over HTTP/2, "Errors"). */
enum grpc_code grpc_code_from_reset(uint32_t code);

/* Sets code and formatted text; what is too long is cut at a character, what is no UTF-8 is replaced. */
void grpc_status_set(struct grpc_status *status, enum grpc_code code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/*
 * The status out of header or trailer lines: `code` is the value of
 * grpc-status, `message` that of grpc-message; either may be NULL. No
 * grpc-status, or one that is no number: UNKNOWN. Fills `ret_status`.
 */
void grpc_status_parse(const char *code, const char *message, struct grpc_status *ret_status);

#endif
