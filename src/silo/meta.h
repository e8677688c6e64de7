/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The headers that HBONE carries beside the authority: baggage, forwarded,
 * traceparent (dataplane.md 19). Text in, text out; nothing here is trusted
 * for authorization.
 */
#ifndef CULVERT_SILO_META_H
#define CULVERT_SILO_META_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/arena.h"
#include "culvert/records.h"

/* Room for a baggage header we make; its seven values are names of at most 253 bytes. */
#define META_BAGGAGE_MAX 2048
/* Room for a forwarded header we make: address, and a host name of at most 253 bytes. */
#define META_FORWARDED_MAX 360
/* Length of a traceparent, and room for one. */
#define META_TRACEPARENT_LEN 55
#define META_TRACEPARENT_MAX (META_TRACEPARENT_LEN + 1)
/* Longest baggage that is looked at, bytes over all lines. */
#define META_BAGGAGE_IN_MAX 16384

/* Writes the baggage of `workload` into dst; empty values are skipped, so dst may be "". Cut values make it
 * "" as a whole. */
void meta_baggage_format(const struct workload *workload, char dst[META_BAGGAGE_MAX]);

/* Collects what baggage lines say; zero it first. */
struct meta_baggage {
	const char *cluster, *ns, *workload_type, *workload_name, *service_name, *revision, *region,
	        *zone; /* NULL = not said */
	bool is_bad;   /* some line was not visible ASCII: nothing counts */
};

/* Takes one baggage line of `len` bytes; values are copied into `arena`. Later lines win; an empty value
 * clears. */
void meta_baggage_parse(struct meta_baggage *baggage, struct arena *arena, const char *line, size_t len);

/* A workload record made of what baggage says, in `arena`; NULL when it says nothing usable or memory is
 * short. */
const struct workload *meta_baggage_workload(const struct meta_baggage *baggage, struct arena *arena);

/* Writes `for="ip:port"` and, when host is not NULL, `;host=<host>` into dst. */
void meta_forwarded_format(const struct addr *client, const char *host, char dst[META_FORWARDED_MAX]);

/* Finds host= in a forwarded line of `len` bytes; copies it to dst (cap bytes). Returns whether there was one
 * that fits. */
bool meta_forwarded_host(const char *line, size_t len, char *dst, size_t cap);

/* Makes a new traceparent: version 00, random ids, flags 00. */
void meta_traceparent_make(char dst[META_TRACEPARENT_MAX]);

/* Whether a traceparent of `len` bytes is well formed: 55 characters, four parts of lower-case hex of the
 * right length. */
bool meta_traceparent_ok(const char *line, size_t len);

#endif
