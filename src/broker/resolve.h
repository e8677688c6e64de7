/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host names to addresses without ever blocking the loop: literals,
 * /etc/hosts, then the servers of /etc/resolv.conf over UDP, A and AAAA at
 * once. Both files are read for every name. Knows neither who asks nor what
 * for; caches nothing.
 */
#ifndef CULVERT_BROKER_RESOLVE_H
#define CULVERT_BROKER_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "io/ring.h"

/* Addresses of one name that are used; the rest is dropped. */
#define RESOLVE_ADDR_MAX 32

struct resolve;

/* What is asked for. */
struct resolve_opts {
	const char *name;     /* host name or IP literal without brackets; copied */
	bool v4;              /* IPv4 addresses are wanted */
	bool v6;              /* IPv6 addresses are wanted */
	uint32_t deadline_ms; /* from now to the end */
};

/*
 * The end, exactly once unless cancelled: code 0 and at least one address,
 * IPv4 first (borrowed for the call); or a negative code (-ENOENT: the name
 * does not exist or has no address; -ETIMEDOUT, -EAGAIN: no server gave an answer) and its
 * words. The resolve is gone afterwards.
 */
typedef void resolve_done(void *ctx, int code, const struct ip *ips, size_t cnt, const char *text);

/* Starts; `done` never comes from inside this call. 0, -EINVAL (no name), -ENOMEM. */
int resolve_start(struct io *io, const struct resolve_opts *opts, resolve_done *done, void *ctx,
        struct resolve **ret_resolve);

/* Gives up: `done` does not come. NULL is fine. */
void resolve_cancel(struct resolve *resolve);

#endif
