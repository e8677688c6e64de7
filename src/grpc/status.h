/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a gRPC call ended: codes, their names and fixed descriptions, and the
 * mapping from HTTP statuses and HTTP/2 reset codes (gRPC over HTTP/2).
 */
#ifndef CULVERT_GRPC_STATUS_H
#define CULVERT_GRPC_STATUS_H

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

#endif
