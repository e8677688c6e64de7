/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The message reader, fed in cuts that the first byte chooses; what it gives
 * must not depend on the cuts. The same bytes go through the parsers of header
 * texts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "grpc/frame.h"
#include "grpc/text.h"

/* Ceiling of the reader here: long and short messages both fit inputs. */
#define MESSAGE_MAX 300u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A sum over everything that came out, and how it ended. */
struct outcome {
	uint64_t sum;
	int end;
	bool is_between;
};

static struct outcome run(const uint8_t *data, size_t len, size_t step)
{
	struct outcome out = {0};
	struct grpc_reader reader;
	struct grpc_status status;

	grpc_reader_init(&reader, MESSAGE_MAX);
	for (size_t i = 0; i < len && out.end == 0; i += step) {
		const uint8_t *at = data + i;
		size_t left = len - i < step ? len - i : step;
		struct grpc_piece piece;
		int r;

		while ((r = grpc_reader_next(&reader, &at, &left, &piece, &status)) > 0) {
			if (piece.is_begin && piece.len > MESSAGE_MAX)
				abort();
			if (piece.is_begin)
				out.sum = out.sum * 31 + 1000 + piece.len;
			for (size_t j = 0; !piece.is_begin && j < piece.len; j++)
				out.sum = out.sum * 31 + piece.bytes[j];
			if (piece.is_last)
				out.sum = out.sum * 31 + 777;
		}
		out.end = r;
	}
	out.is_between = grpc_reader_is_between(&reader);
	return out;
}

static void texts(const uint8_t *data, size_t len)
{
	struct grpc_trailers trailers;
	struct grpc_status status;
	struct grpc_status again;
	uint64_t ms;
	char *text = malloc(len + 1);

	if (!text)
		abort();
	if (len > 0)
		memcpy(text, data, len);
	text[len] = '\0';
	grpc_status_parse(text, text, &status);
	if (!utf8_valid(status.message, strlen(status.message)))
		abort();
	grpc_trailers_make(&status, &trailers);
	grpc_status_parse(trailers.code, trailers.message, &again);
	if (again.code != status.code || strcmp(again.message, status.message) != 0)
		abort();
	(void)grpc_timeout_parse(text, &ms);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	struct outcome whole = run(data + 1, len - 1, len);
	struct outcome cut = run(data + 1, len - 1, (size_t)data[0] % 9 + 1);
	if (whole.sum != cut.sum || whole.end != cut.end || whole.is_between != cut.is_between)
		abort();
	texts(data + 1, len - 1);
	return 0;
}
