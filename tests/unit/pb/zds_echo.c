/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Our side of peer.py. `request`: decodes the request on stdin and encodes it
 * again; `response`: an answer with the text on stdin; `hello`: a hello.
 * To stdout.
 */
#include <stdio.h>
#include <string.h>

#include "pb/zds.h"

static int run(const char *what, char *in, size_t in_len, uint8_t *out, size_t *len, struct err *err)
{
	if (strcmp(what, "hello") == 0)
		return zds_encode_hello(ZDS_V1, out, ZDS_PACKET_MAX, len);
	if (strcmp(what, "response") == 0)
		return zds_encode_response(in, out, ZDS_PACKET_MAX, len);
	struct zds_request req;
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	int rc = zds_decode_request((const uint8_t *)in, in_len, arena, &req, err);
	if (rc == 0)
		rc = zds_encode_request(&req, out, ZDS_PACKET_MAX, len, err);
	arena_unref(arena);
	return rc;
}

int main(int argc, char **argv)
{
	char in[ZDS_PACKET_MAX + 1];
	uint8_t out[ZDS_PACKET_MAX];
	struct err err = {0};
	size_t len;
	size_t in_len = fread(in, 1, ZDS_PACKET_MAX, stdin);
	in[in_len] = '\0';
	if (argc != 2 || run(argv[1], in, in_len, out, &len, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return fwrite(out, 1, len, stdout) == len ? 0 : 1;
}
