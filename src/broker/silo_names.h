/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host names that one silo wants resolved (reference dataplane.md 4.6, step
 * 4): each ask becomes a lookup of the broker's and is answered on the silo's
 * channel. Must not cache: the silo does, and the DNS server behind us.
 */
#ifndef CULVERT_BROKER_SILO_NAMES_H
#define CULVERT_BROKER_SILO_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "io/ring.h"
#include "ipc/ring_chan.h"

/* Lookups of one silo under way; what comes above it is answered with a failure at once. */
#define SILO_NAMES_MAX 64
/* Time for a lookup, ms: below what a connection waits for it (5 s), so that the failure has its own words.
 */
#define SILO_NAMES_DEADLINE_MS 4500

/* The lookups of one silo; embed it, silo_names_init(). Private. */
struct silo_names {
	struct io *io;
	struct ring_chan *chan; /* outlives the lookups */
	bool has_v6;            /* IPv6 addresses are looked up too */
	struct list lookups;
	size_t lookup_cnt;
};

/* Prepares an empty set for a channel; `has_v6` is IPV6_ENABLED. */
void silo_names_init(struct silo_names *names, struct io *io, struct ring_chan *chan, bool has_v6);

/* Looks `host` up and answers ask `id`. 0, or a failure of sending the answer (the channel is to be closed).
 */
int silo_names_ask(struct silo_names *names, uint32_t id, const char *host, struct err *err);

/* Gives up all lookups. Fine on a zeroed one. */
void silo_names_done(struct silo_names *names);

#endif
