/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses of host names that the mesh names but does not resolve (reference
 * dataplane.md 4.6, step 4). The broker looks them up, a silo never does; the
 * answers, failures too, are kept for a short while under a ceiling.
 */
#ifndef CULVERT_SILO_RESOLVER_H
#define CULVERT_SILO_RESOLVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "pb/ipc.h"
#include "silo/fetch.h"

/* Names kept; a workload talks to a handful of such destinations. */
#define RESOLVER_NAMES_MAX 256
/* How long an answer serves, ms. The broker's resolver does not say how long a record lives: short enough for
 * names that move, long enough to take a burst of connections off the DNS. */
#define RESOLVER_TTL_MS 5000
/* The same for a failure. */
#define RESOLVER_FAILURE_TTL_MS 1000

struct silo;

/* The resolver; embed it. Private. */
struct resolver {
	struct silo *silo;
	struct map names;   /* struct name by text */
	struct list recent; /* most recently used first */
};

/* Prepares one without names. */
void resolver_init(struct resolver *resolver, struct silo *silo);

/* Frees all names; waiters get -ECANCELED. */
void resolver_done(struct resolver *resolver);

/*
 * Addresses of a name: 0 and at most `max` of them (none: no A/AAAA), -EHOSTUNREACH (the lookup failed), or
 * -EAGAIN and *ret_fetch, which is to be waited for. -ENOMEM, or -ENOSPC when all names are being waited for.
 */
int resolver_get(struct resolver *resolver, const char *host, struct ip *ret_ips, size_t max, size_t *ret_cnt,
        struct fetch **ret_fetch);

/* The broker's answer. What nobody asked for is dropped. */
void resolver_answer(struct resolver *resolver, const struct ipc_answer_resolve *answer);

/* A new broker: asks again for what is awaited. */
void resolver_ask_again(struct resolver *resolver);

#endif
