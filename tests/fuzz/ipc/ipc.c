/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records as a process receives them: peek, permits, decoding, gathering. What
 * was understood must be encodable, and encode the same when read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/gather.h"
#include "ipc/guard.h"
#include "pb/ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void judge(const struct ipc_peek *peek, bool has_fd)
{
	struct err err;
	for (enum ipc_role self = IPC_ROLE_WARDEN; self <= IPC_ROLE_SILO; self++) {
		for (enum ipc_role peer = IPC_ROLE_NONE; peer <= IPC_ROLE_CTL; peer++) {
			struct guard guard;
			guard_init(&guard, self, peer, false);
			guard.phase = GUARD_OPEN;
			guard_check(&guard, peek, has_fd, &err);
			guard_check_send(&guard, peek, has_fd, &err);
		}
	}
}

/* Encodes rec and what comes of reading that: the bytes must be the same. */
static void there_and_back(const struct ipc_record *rec, size_t len, struct arena *arena)
{
	static uint8_t first[IPC_RECORD_MAX], second[IPC_RECORD_MAX];
	size_t first_len, second_len;
	struct ipc_record again;
	struct err err;
	int rc = ipc_encode(rec, first, sizeof(first), &first_len, &err);
	/* A number that came outside of a packed list takes a byte more in one. */
	if (rc == ERR_TOO_LARGE && len > IPC_RECORD_MAX / 2)
		return;
	if (rc < 0 || ipc_decode(first, first_len, arena, &again, &err) < 0)
		abort();
	if (ipc_encode(&again, second, sizeof(second), &second_len, &err) < 0 || first_len != second_len ||
	        memcmp(first, second, first_len) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct gather gather = {0};
	struct ipc_record rec, whole;
	struct ipc_peek peek;
	struct err err;
	struct arena *joined = NULL;
	struct arena *arena = arena_new(IPC_ARENA_MAX), *arena2 = arena_new(4 * IPC_ARENA_MAX);
	if (!arena || !arena2 || ipc_peek(data, len, &peek, &err) < 0)
		goto out;
	judge(&peek, len & 1);
	if (ipc_decode(data, len, arena, &rec, &err) < 0)
		goto out;
	if (peek.id != rec.id || peek.type != (uint32_t)rec.type)
		abort();
	there_and_back(&rec, len, arena2);
	if (gather_add(&gather, arena, &rec, &joined, &whole, &err) == 0)
		arena_unref(joined);
out:
	gather_done(&gather);
	arena_unref(arena);
	arena_unref(arena2);
	return 0;
}
