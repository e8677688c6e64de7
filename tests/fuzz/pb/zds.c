/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ZDS messages as either end receives them. The first byte chooses the message.
 * What was understood must be encodable, and mean the same when read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pb/zds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void request(const uint8_t *data, size_t len, struct arena *arena)
{
	struct zds_request req, again;
	uint8_t bytes[ZDS_PACKET_MAX];
	struct err err;
	if (zds_decode_request(data, len, arena, &req, &err) < 0)
		return;
	if (zds_encode_request(&req, bytes, sizeof(bytes), &len, &err) < 0 ||
	        zds_decode_request(bytes, len, arena, &again, &err) < 0 || req.type != again.type ||
	        strcmp(req.uid, again.uid) != 0 || req.has_info != again.has_info ||
	        strcmp(req.info.name, again.info.name) != 0 || strcmp(req.info.ns, again.info.ns) != 0 ||
	        strcmp(req.info.service_account, again.info.service_account) != 0)
		abort();
}

static void response(const uint8_t *data, size_t len, struct arena *arena)
{
	const char *text, *again;
	uint8_t bytes[ZDS_PACKET_MAX];
	struct err err;
	if (zds_decode_response(data, len, arena, &text, &err) < 0)
		return;
	if (zds_encode_response(text, bytes, sizeof(bytes), &len) < 0 ||
	        zds_decode_response(bytes, len, arena, &again, &err) < 0 || strcmp(text, again) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	enum zds_version version;
	struct err err;
	struct arena *arena = arena_new(2 * ZDS_ARENA_MAX);
	if (len == 0 || len > ZDS_PACKET_MAX + 1 || !arena)
		goto out;
	if (data[0] == 'h')
		zds_decode_hello(data + 1, len - 1, &version, &err);
	else if (data[0] == 'r')
		response(data + 1, len - 1, arena);
	else
		request(data + 1, len - 1, arena);
out:
	arena_unref(arena);
	return 0;
}
