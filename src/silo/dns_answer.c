/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses that the mesh has for a name (control.md 10.3, answer rules). Pure but for chance. */
#include <string.h>

#include "base/rand.h"
#include "silo/dns_int.h"

static size_t take_vips(
        const struct service *service, const struct workload *own, uint8_t family, struct ip *ips, size_t cap)
{
	size_t cnt = 0;
	for (size_t i = 0; i < service->vip_cnt && cnt < cap; i++) {
		const struct net_addr *vip = &service->vips[i];
		if (vip->ip.family == family && strcmp(vip->network, own->network) == 0)
			ips[cnt++] = vip->ip;
	}
	return cnt;
}

/* Without addresses of its own a service is its endpoints: the first of each that has the family. */
static size_t take_endpoints(const struct view *view, uint8_t family, struct ip *ips, size_t cap)
{
	size_t cnt = 0;
	for (size_t i = 0; i < view->endpoint_cnt && cnt < cap; i++) {
		const struct workload *workload = view->endpoints[i].workload;
		for (size_t k = 0; k < workload->ip_cnt; k++) {
			if (workload->ips[k].family != family)
				continue;
			ips[cnt++] = workload->ips[k];
			break;
		}
	}
	return cnt;
}

static void shuffle(struct ip *ips, size_t cnt)
{
	for (size_t i = cnt; i > 1; i--) {
		size_t k = (size_t)rand_below(i);
		struct ip spare = ips[i - 1];
		ips[i - 1] = ips[k];
		ips[k] = spare;
	}
}

size_t dns_answer_ips(const struct view *view, const struct workload *own, uint16_t type, bool has_ipv6,
        struct ip *ips, size_t cap, bool *ret_is_refused)
{
	const struct service *service = view->service;
	uint8_t family = type == DNS_A ? 4 : 6;
	enum ip_families other = family == 4 ? IP_FAMILIES_V6 : IP_FAMILIES_V4;
	*ret_is_refused = (family == 6 && !has_ipv6) || service->families == other;
	if (*ret_is_refused)
		return 0;
	size_t cnt = service->vip_cnt ? take_vips(service, own, family, ips, cap)
	                              : take_endpoints(view, family, ips, cap);
	shuffle(ips, cnt);
	return cnt;
}
