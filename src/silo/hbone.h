/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way out through HBONE: our certificate, a tunnel from the pool, CONNECT,
 * and, through a network gateway, a second tunnel inside of the first
 * (reference dataplane.md 4.7, 4.8). Knows nothing of routing, copying and the
 * log: it opens one stream or says why not.
 */
#ifndef CULVERT_SILO_HBONE_H
#define CULVERT_SILO_HBONE_H

#include "base/addr.h"
#include "conn/stream.h"
#include "mesh/route.h"
#include "silo/context.h"
#include "silo/recorder.h"

struct hbone;
struct silo;

/* What a failure means for another try. Nothing of the application's has moved in any case. */
enum hbone_fault {
	HBONE_FINAL, /* a verdict (policy, identity, inner tunnel) or our own trouble: another try is useless
	              */
	HBONE_PEER,  /* this endpoint cannot be reached, or cannot serve now: another one may */
	HBONE_LOST,  /* the tunnel ended under the request: the same endpoint may take it over a new one */
};

/* Who is at the end of an open stream. Everything is borrowed until hbone_free(). */
struct hbone_end {
	const char *identity; /* SPIFFE id of the (inner) peer */
	/* Through a gateway: the destination as the inner answer's baggage describes it, NULL when it does
	 * not. Not set otherwise. */
	const struct workload *workload;
};

/* The end of the attempt, exactly one of them and once, never from inside hbone_start(). */
struct hbone_events {
	/* CONNECT was answered 200: `stream` is the owner's. The hbone must outlive it. */
	void (*on_open)(void *ctx, struct stream *stream, const struct hbone_end *end);
	/* `text` (valid during the call) is the words for the access log. */
	void (*on_failed)(void *ctx, enum hbone_fault fault, const char *text);
};

/* What is wanted; all pointers outlive the hbone. */
struct hbone_opts {
	const struct route *route;      /* of kind ROUTE_HBONE or ROUTE_DOUBLE_HBONE */
	const struct own_workload *own; /* for the baggage */
	const struct addr *src;         /* the application's address, for the forwarded header */
	const char *traceparent;        /* of the application's connection; both tunnels carry it */
	struct record_clock *clock;     /* of the application's connection: certificate to CONNECT */
};

/* Starts; `events` is borrowed. 0 or -ENOMEM. */
int hbone_start(struct silo *silo, const struct hbone_opts *opts, const struct hbone_events *events,
        void *ctx, struct hbone **ret_hbone);

/* How far an attempt is. */
enum hbone_stage {
	HBONE_PREPARES, /* our certificate is awaited */
	HBONE_CONNECTS, /* the pool's tunnel is awaited */
	HBONE_TALKS,    /* the peer is there and has been asked */
};

/* Where the attempt stands. */
enum hbone_stage hbone_stage(const struct hbone *hbone);

/*
 * Lets go: an attempt is given up; the inner tunnel of an open stream, which
 * the owner has freed before, says goodbye. The outer one stays with the pool.
 * NULL is fine.
 */
void hbone_free(struct hbone *hbone);

#endif
