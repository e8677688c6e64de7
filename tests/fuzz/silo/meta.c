/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Headers of a CONNECT request as a stranger sends them: baggage, forwarded, traceparent, authority. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "mesh/route.h"
#include "silo/meta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	struct arena *arena = arena_new(1 << 20);
	struct meta_baggage baggage = {0};
	struct route_authority authority;
	char host[64];
	char again[META_BAGGAGE_MAX];
	if (!arena)
		return 0;
	meta_baggage_parse(&baggage, arena, text, len);
	const struct workload *workload = meta_baggage_workload(&baggage, arena);
	if (workload)
		meta_baggage_format(workload, again);
	meta_forwarded_host(text, len, host, sizeof(host));
	meta_traceparent_ok(text, len);
	route_authority_parse(text, len, &authority);
	arena_unref(arena);
	return 0;
}
