/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What DNS proxies need to know of the daemon's resolver: resolv.conf
 * and hosts, read anew for every ask, so that a change needs no watching.
 */
#ifndef CULVERT_BROKER_RESOLV_SEND_H
#define CULVERT_BROKER_RESOLV_SEND_H

#include <stdint.h>

#include "broker/resolv_conf.h"
#include "dns/names.h"
#include "ipc/ring_chan.h"

/* The search list of resolv.conf(5) for a walk over names. */
struct resolv_search {
	char text[RESOLV_SEARCH_MAX][DNS_TEXT_MAX]; /* lower case, no dot at the end */
	const char *domains[RESOLV_SEARCH_MAX];     /* into text */
};

/* Lets `names` use the search list of resolv.conf as it is now, through *search, which must live as long. */
void resolv_search(struct resolv_search *search, struct dns_names *names);

/* Answers the ask `id` of a silo. Without a resolv.conf there are no servers. 0, -ENOMEM, or as
 * ring_chan_send. */
int resolv_send(struct ring_chan *chan, uint32_t id, struct err *err);

#endif
