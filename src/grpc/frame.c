/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages in a stream; see frame.h. */
#include "grpc/frame.h"

#include <errno.h>
#include <string.h>

void grpc_reader_init(struct grpc_reader *reader, size_t max)
{
	*reader = (struct grpc_reader){.max = max};
}

static int fail(struct grpc_reader *reader)
{
	reader->is_failed = true;
	return -EPROTO;
}

static int begin(struct grpc_reader *reader, struct grpc_piece *ret_piece, struct grpc_status *ret_status)
{
	const uint8_t *head = reader->head;
	size_t len = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];

	if (head[0] == 1) {
		grpc_status_set(ret_status, GRPC_INTERNAL,
		        "protocol error: received message with compressed-flag but no grpc-encoding was specified");
		return fail(reader);
	}
	if (head[0] != 0) {
		grpc_status_set(ret_status, GRPC_INTERNAL,
		        "protocol error: received message with invalid compression flag: %u (valid flags are 0 and 1)",
		        head[0]);
		return fail(reader);
	}
	if (len > reader->max) {
		grpc_status_set(ret_status, GRPC_RESOURCE_EXHAUSTED,
		        "decoded message length too large: found %zu bytes, the limit is: %zu bytes", len,
		        reader->max);
		return fail(reader);
	}
	reader->head_len = 0;
	reader->left = len;
	reader->is_inside = true;
	*ret_piece = (struct grpc_piece){.is_begin = true, .len = len};
	return 1;
}

static void take_head(struct grpc_reader *reader, const uint8_t **at, size_t *left)
{
	size_t len = GRPC_HEAD_LEN - reader->head_len;

	if (len > *left)
		len = *left;
	memcpy(reader->head + reader->head_len, *at, len);
	reader->head_len = (uint8_t)(reader->head_len + len);
	*at += len;
	*left -= len;
}

int grpc_reader_next(struct grpc_reader *reader, const uint8_t **at, size_t *left,
        struct grpc_piece *ret_piece, struct grpc_status *ret_status)
{
	if (reader->is_failed) {
		grpc_status_set(ret_status, GRPC_INTERNAL, "the stream of messages is broken");
		return -EPROTO;
	}
	if (*left == 0 && !(reader->is_inside && reader->left == 0))
		return 0;
	if (!reader->is_inside) {
		take_head(reader, at, left);
		return reader->head_len < GRPC_HEAD_LEN ? 0 : begin(reader, ret_piece, ret_status);
	}
	size_t len = reader->left < *left ? reader->left : *left;
	reader->left -= len;
	reader->is_inside = reader->left > 0;
	*ret_piece = (struct grpc_piece){.is_last = reader->left == 0, .bytes = *at, .len = len};
	*at += len;
	*left -= len;
	return 1;
}

bool grpc_reader_is_between(const struct grpc_reader *reader)
{
	return !reader->is_failed && !reader->is_inside && reader->head_len == 0;
}

void grpc_head_write(size_t len, uint8_t *dst)
{
	dst[0] = 0;
	dst[1] = (uint8_t)(len >> 24);
	dst[2] = (uint8_t)(len >> 16);
	dst[3] = (uint8_t)(len >> 8);
	dst[4] = (uint8_t)len;
}
