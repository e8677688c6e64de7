/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The traffic listeners of a pod: which there are, and how each is made. Made
 * by the spawning child inside the pod's namespace as uid 0, because
 * SO_REUSEPORT beside another daemon demands the same uid (reference
 * node-agent.md 2.4, dataplane.md 2.1, 2.2). Must not accept anything.
 */
#ifndef CULVERT_WARDEN_LISTEN_H
#define CULVERT_WARDEN_LISTEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/param.h"
#include "pb/ipc.h"

/* Most listeners of one pod: three captures, SOCKS5, DNS over UDP and TCP on two loopback addresses. */
#define LISTEN_MAX 8

/* One row: what a silo listens on. */
struct listen_spec {
	enum ipc_fd_kind kind;
	struct addr addr; /* IPv6 wildcard means dual stack */
	int type;         /* SOCK_STREAM or SOCK_DGRAM */
	bool is_optional; /* left out where the namespace has no such address */
	bool is_plain;    /* neither marked, shared nor transparent: nothing of its namespace is captured */
};

/* Fills specs with what the settings ask for, in upstream's order of creation; returns how many. */
size_t listen_table(const struct settings *settings, struct listen_spec specs[LISTEN_MAX]);

/* The same for the daemon's own pod: HBONE alone (dataplane.md 2.9). */
size_t listen_table_self(const struct settings *settings, struct listen_spec specs[LISTEN_MAX]);

/*
 * Makes one listener in the namespace of the calling process: close-on-exec,
 * non-blocking; *ret_fd = -1 for an optional one that cannot be. -errno with the text that goes into the Ack,
 * e.g. Bind([::]:15008, Os { code: 98, kind: AddrInUse, message: "Address already in use" }).
 */
int listen_open(
        const struct settings *settings, const struct listen_spec *spec, int *ret_fd, struct err *err);

#endif
