/* SPDX-License-Identifier: GPL-2.0-only */
/* Counting of offers. */
#include "offer.h"

#include "base/fd.h"
#include "base/mem.h"

struct offer *offer_new(const struct pod_spec *spec, int netns_fd, const struct netns_id *netns_id)
{
	struct offer *offer = mem_zalloc(1, sizeof(*offer));
	if (!offer) {
		fd_close(&netns_fd);
		return NULL;
	}
	*offer = (struct offer){.refs = 1, .spec = pod_spec_ref(spec), .netns_fd = netns_fd};
	if (netns_id)
		offer->netns_id = *netns_id;
	return offer;
}

struct offer *offer_ref(struct offer *offer)
{
	offer->refs++;
	return offer;
}

void offer_unref(struct offer *offer)
{
	if (!offer || --offer->refs > 0)
		return;
	fd_close(&offer->netns_fd);
	pod_spec_unref(offer->spec);
	mem_free(offer);
}
