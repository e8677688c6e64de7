/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ZDS is told of one pod: its description and an open descriptor of its
 * namespace, counted, because a snapshot on its way outlives a change of the
 * pod. Immutable.
 */
#ifndef CULVERT_CNI_AGENT_OFFER_H
#define CULVERT_CNI_AGENT_OFFER_H

#include "netns.h"
#include "pod.h"

/* The offer. */
struct offer {
	unsigned refs;
	const struct pod_spec *spec; /* one reference */
	int netns_fd;                /* owned; -1 = the namespace is not known: goes out as Keep */
	struct netns_id netns_id;    /* of netns_fd */
};

/* An offer with one reference; takes the descriptor over (also on failure). NULL when out of memory. */
struct offer *offer_new(const struct pod_spec *spec, int netns_fd, const struct netns_id *netns_id);

/* One more reference; returns offer. */
struct offer *offer_ref(struct offer *offer);

/* One reference less; the last closes the descriptor. NULL is fine. */
void offer_unref(struct offer *offer);

#endif
