/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening a TCP connection on the ring with a deadline, the options of dialled
 * sockets (dataplane 2.4) and the source-preserving rules (dataplane 2.7).
 * Knows no mesh: who may dial what was decided before.
 */
#ifndef CULVERT_CONN_DIAL_H
#define CULVERT_CONN_DIAL_H

#include "base/addr.h"
#include "conn/sock.h"
#include "io/ring.h"

/* Overall limit of a dial, ms (dataplane 2.4). */
#define DIAL_TIMEOUT_MS 10000

/*
 * Ports for preserved sources: 2^14 of them, below those that kernels choose from by themselves (ip(7),
 * ip_local_port_range: 32768 to 60999). A client's own connection to the same application is in the same
 * network namespace, redirected to us; with its port in our dial there would be two connections with one
 * tuple, which connection tracking takes for one, and neither would go on.
 */
#define DIAL_PORT_MIN 16384
#define DIAL_PORT_CNT 16384

struct dial;

/* Which port a preserved source gets next; one for all dials of a network namespace. */
struct dial_ports {
	/* Offset of the next port, modulo DIAL_PORT_CNT. */
	uint16_t next;
	/* Odd, so that all ports have had their turn before one comes again: one just used is in TIME_WAIT
	 * (RFC 6056 3.3.5, without its repeats). */
	uint16_t step;
};

/* Begins anywhere, with any step. */
void dial_ports_init(struct dial_ports *ports);

/* Where and how to connect. */
struct dial_opts {
	/* Destination. */
	struct addr dst;
	/*
	 * Source to preserve; family 0 = none. Equal to the destination's IP = plain connect. Otherwise the
	 * socket has the source's family, is transparent and free-binding, and is bound to src and one of
	 * `ports`, or a port of the kernel's choice when none of those can be had; a failure of that is a
	 * warning and the connect goes ahead unspoofed (dataplane 2.7).
	 */
	struct ip src;
	/* Ports for the source, borrowed until the end of the dial; NULL = the kernel chooses. */
	struct dial_ports *ports;
	/* true: the destination is on this machine: sock_set_unpaced(). */
	bool is_local;
	/* SO_MARK; 0 = leave alone. A failure fails the dial: an unmarked socket would be captured again. */
	uint32_t mark;
	/* Keepalive and user timeout; failures are ignored. */
	struct sock_keepalive keepalive;
	/* Milliseconds until -ETIMEDOUT; 0 = DIAL_TIMEOUT_MS. */
	uint32_t timeout_ms;
};

/* What a dial tells its owner. */
struct dial_events {
	/*
	 * The end, exactly once unless cancelled: code 0 and a connected stream, now the owner's; or a
	 * negative errno
	 * (-ETIMEDOUT for the deadline, the kernel's otherwise) and NULL. The dial is gone afterwards.
	 */
	void (*on_done)(void *ctx, int code, struct stream *stream);
	/* The source could not be preserved: which step (static text) and negative errno. For the log; may be
	 * NULL. */
	void (*on_warning)(void *ctx, const char *step, int code);
};

/*
 * Starts to connect. Even an immediate failure (no socket, no mark) arrives by on_done; on_warning may be
 * called before this returns. `events` is borrowed until the end. Returns 0, or -ENOMEM when no dial could be
 * made (no event then).
 */
int dial_start(struct io *io, const struct dial_opts *opts, const struct dial_events *events, void *ctx,
        struct dial **ret_dial);

/* Gives up: no event comes after; memory and socket go when the kernel is done. NULL is fine. */
void dial_cancel(struct dial *dial);

#endif
