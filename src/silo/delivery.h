/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The last leg of an inbound connection, the same for HBONE and plaintext:
 * policy, connect to the application with the client's source address, copy,
 * log (reference dataplane.md 8.2 from check 6, and 9 from step 5).
 */
#ifndef CULVERT_SILO_DELIVERY_H
#define CULVERT_SILO_DELIVERY_H

#include "base/arena.h"
#include "conn/dial.h"
#include "conn/pump.h"
#include "mesh/route.h"
#include "silo/access.h"
#include "silo/context.h"
#include "silo/metrics.h"
#include "silo/recorder.h"
#include "silo/track.h"

struct silo;
struct delivery;

/* What a delivery tells its owner; each may free it by delivery_done() and itself. */
struct delivery_events {
	/* The application's connection is up: answer the client. Negative = it is gone; the delivery then
	 * ends. */
	int (*connected)(struct delivery *delivery);
	/* Refused before that: status 401 (policy) or 503 (connect). Answer the client, then `ended` comes.
	 */
	void (*refused)(struct delivery *delivery, int status);
	/* It is over and logged. */
	void (*ended)(struct delivery *delivery);
};

/* One delivery; embed it, zeroed. The owner fills the first part before delivery_start(). */
struct delivery {
	struct silo *silo;
	const struct delivery_events *events;
	struct stream *down;        /* from the client; becomes the pump's */
	struct addr upstream;       /* where the application is */
	struct ip source;           /* address to preserve; family 0 = none */
	struct own_workload *own;   /* a reference of the owner's that the delivery takes over */
	struct arena *arena;        /* holds strings that access points to; taken over; may be NULL */
	struct view *src_view;      /* holds access.src_workload; taken over; may be NULL */
	struct route_inbound route; /* taken over; zeroed if none */
	struct access access;       /* for the line */
	struct track track;         /* conn part filled in */
	uint64_t start_ms;
	struct record_clock clock; /* started */
	const char *original_dst;  /* for the dump: forwarded host or NULL */

	struct dial *dial; /* private from here on */
	struct pump *pump;
	struct metrics_conn metrics;
	struct list node;    /* in silo.deliveries */
	bool is_dialled;     /* the application was asked to take it */
	bool is_denied_late; /* policy changed while we were connecting */
};

/* Judges and goes on. The owner hears of it later or before this returns. */
void delivery_start(struct delivery *delivery);

/* Ends now with `error` in the line. `ended` comes before this returns. */
void delivery_cut(struct delivery *delivery, const char *error);

/* Frees what it holds, without a line and without telling; for `ended`, and for owners that never started. */
void delivery_done(struct delivery *delivery);

#endif
