/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy route of a pod and its addresses, over a hand-made rtnetlink
 * socket (rtnetlink(7)). Blocking, for the short-lived child of job.c, which
 * is in the pod's namespace. Knows no pod.
 */
#ifndef CULVERT_CNI_AGENT_ROUTE_H
#define CULVERT_CNI_AGENT_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/err.h"

/* Whether an interface carries one of the addresses. -errno with text. */
int route_owns_any(const struct ip *ips, size_t ip_cnt, bool *ret_owns, struct err *err);

/*
 * Adds, for IPv4 and with ipv6 also for IPv6, the default route "local, dev
 * lo" in table 100 and the rule that sends packets with the reply mark there
 * (reference node-agent.md 2.2). There already is fine. IPv6 is passed over
 * where lo has it disabled. -errno with text.
 */
int route_apply(bool ipv6, struct err *err);

/* Removes rule and route of both families; not there is fine. -errno with text. */
int route_undo(struct err *err);

#endif
