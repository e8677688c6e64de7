/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Outbound HBONE tunnels shared by the connections of this workload (reference
 * dataplane.md 5, and better where that section says so): those who wait for
 * one tunnel fail together, the peer's stream limit opens another tunnel, a
 * reused pod address never inherits the old pod's tunnel.
 */
#ifndef CULVERT_SILO_POOL_H
#define CULVERT_SILO_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/list.h"
#include "base/map.h"
#include "conn/link.h"
#include "mesh/route.h"

struct silo;
struct tls_identity;

/* Most tunnels of one silo, idle ones included: each holds some 32 KB. Above it the least recently used idle
 * one goes. */
#define POOL_TUNNELS_MAX 512

/* The pool; embed it. Private. */
struct pool {
	struct silo *silo;
	struct map groups;  /* struct pool_group by key */
	struct list recent; /* tunnels of all groups, most recently used first */
	struct list all;    /* every tunnel, retired ones too */
	size_t tunnel_cnt;  /* tunnels that groups hold */
};

/* Where a tunnel goes and who must be at its end. All borrowed for the call. */
struct pool_target {
	struct addr dst;                       /* the peer's address, port 15008 as a rule */
	const struct route_identities *accept; /* acceptable identities, in order */
	const char *uid;                       /* of the workload at the end */
	struct tls_identity *identity;         /* our certificate, for a new tunnel */
	bool is_local;                         /* the peer is on this node */
};

/* Somebody who wants a stream; embed it. */
struct pool_wait {
	struct list node;           /* at a tunnel, or detached */
	struct pool_tunnel *tunnel; /* waits for this one; NULL = not waiting */
	/* Set before either event: clock_us() when the tunnel was connected and when it was ready, which may
	 * be long ago; 0 = not. */
	uint64_t dialled_us, ready_us;
	/* Exactly one of them comes, unless cancelled, never from inside pool_get(). */
	void (*on_link)(
	        struct pool_wait *wait, struct link *link); /* open the stream now, inside this call */
	void (*on_failed)(
	        struct pool_wait *wait, int code, const char *text); /* words for the access log; borrowed */
};

/* Prepares an empty pool. */
void pool_init(struct pool *pool, struct silo *silo);

/* Drops all tunnels, also those with open streams, and tells no one who waits. */
void pool_done(struct pool *pool);

/* Wants a tunnel with room for one more stream. 0, or -ENOMEM (nobody is told then). */
int pool_get(struct pool *pool, const struct pool_target *target, struct pool_wait *wait);

/* Gives up waiting; fine when not waiting. The tunnel goes on. */
void pool_wait_cancel(struct pool_wait *wait);

/* Closes every tunnel without streams; the others when their last stream ends (graceful drain). */
void pool_drain(struct pool *pool);

#endif
