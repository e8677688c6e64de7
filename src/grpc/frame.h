/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages in a stream: a flag byte, four bytes of length, the message (gRPC
 * over HTTP/2, "Length-Prefixed-Message"). A streaming reader that never holds
 * a message, and the writer's five bytes. Knows no stream and no memory.
 */
#ifndef CULVERT_GRPC_FRAME_H
#define CULVERT_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grpc/status.h"

/* Bytes in front of every message. */
#define GRPC_HEAD_LEN 5u

/* The reader; embed it, start with grpc_reader_init(). */
struct grpc_reader {
	size_t max;                  /* longest message accepted, bytes */
	size_t left;                 /* bytes of the present message still to come */
	uint8_t head[GRPC_HEAD_LEN]; /* of the next message, as far as it is here */
	uint8_t head_len;            /* bytes of head */
	bool is_inside;              /* a message has begun and its last piece was not given */
	bool is_failed;              /* the stream cannot be read on */
};

/* What the reader found. */
struct grpc_piece {
	bool is_begin;        /* a message of `len` bytes begins; bytes is NULL */
	bool is_last;         /* the message ends with these bytes */
	const uint8_t *bytes; /* borrowed from the input */
	size_t len;           /* of bytes, or of the message that begins */
};

/* Starts anew with a ceiling for messages. */
void grpc_reader_init(struct grpc_reader *reader, size_t max);

/*
 * Takes from *at (of *left bytes) up to the next find and moves both on. A
 * message is one piece with is_begin, then bytes until is_last (an empty
 * message has one piece of 0 bytes). Returns 1 and the piece, 0 when the input
 * is used up, -EPROTO with the status that the call ends with: a compressed
 * message though we offered no compression, a flag that is none, a message
 * above the ceiling. After that every call fails.
 */
int grpc_reader_next(struct grpc_reader *reader, const uint8_t **at, size_t *left,
        struct grpc_piece *ret_piece, struct grpc_status *ret_status);

/* Whether the stream may end here: no message is half read. */
bool grpc_reader_is_between(const struct grpc_reader *reader);

/* Writes what stands before a message of `len` bytes (at most UINT32_MAX) to dst, GRPC_HEAD_LEN bytes. */
void grpc_head_write(size_t len, uint8_t *dst);

#endif
