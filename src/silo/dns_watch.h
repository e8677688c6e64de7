/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One socket of the DNS proxy that is waited for on the ring, one readiness at
 * a time, and closed without losing its owner to a completion that is still to
 * come. Reads and writes nothing itself.
 */
#ifndef CULVERT_SILO_DNS_WATCH_H
#define CULVERT_SILO_DNS_WATCH_H

#include <stdbool.h>

#include "io/ring.h"

/* A socket; embed it in its owner. */
struct dns_watch {
	struct io_op op;
	struct io *io;
	int fd; /* -1 = none */
	/* What was waited for is there, or the socket is broken; waiting has ended. */
	void (*ready)(struct dns_watch *watch);
	/* The end of a closed watch: nothing of it is in flight; the owner may be freed. */
	void (*gone)(struct dns_watch *watch);
	bool is_closed;
};

/* Takes `fd` over. */
void dns_watch_init(struct dns_watch *watch, struct io *io, int fd, void (*ready)(struct dns_watch *watch),
        void (*gone)(struct dns_watch *watch));

/* Waits for POLLIN or POLLOUT; not while it waits already. */
void dns_watch_wait(struct dns_watch *watch, unsigned events);

/* Closes the socket. `gone` comes from inside this call or later, `ready` no more. */
void dns_watch_close(struct dns_watch *watch);

#endif
