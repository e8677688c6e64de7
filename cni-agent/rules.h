/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules inside a pod as nftables text (reference node-agent.md 2.2, 2.3):
 * what to capture and where to send it. Pure: text out of a description; who
 * applies it is not known here.
 */
#ifndef CULVERT_CNI_AGENT_RULES_H
#define CULVERT_CNI_AGENT_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/buf.h"

/* Marks and the mask under which they are compared (2.1). */
#define RULES_MARK_PROXY 0x539 /* on every packet of the data plane */
#define RULES_MARK_REPLY 0x111 /* on the application's answers to it */
#define RULES_MARK_MASK 0xfff

/* The policy route of such answers (2.1). */
#define RULES_ROUTE_TABLE 100
#define RULES_ROUTE_PRIORITY 32764

/* Bytes of rule text at most: 32 interfaces take 8 KiB. */
#define RULES_TEXT_MAX 32768

/* How one pod is captured. */
struct rules {
	bool dns;               /* N5, N6, R1, R2: take DNS too */
	bool is_ingress;        /* leave N2 and N3 out: inbound traffic stays untouched */
	bool ipv6;              /* false: the pod's IPv6 is not captured at all */
	struct ip probe4;       /* source of the node's own probes */
	struct ip probe6;       /* the same for IPv6 */
	const char *const *ifs; /* virtual interfaces, names checked by pod_if_valid */
	size_t if_cnt;
};

/* Upstream's probe addresses (2.1). */
struct ip rules_probe4(void);
struct ip rules_probe6(void);

/*
 * Appends the transaction that makes tables, chains and rules whatever was
 * there of ours before; without dns an old raw table goes (upstream leaves it
 * behind). Errors stick in out.
 */
void rules_apply_text(const struct rules *rules, struct buf *out);

/* Appends the transaction that removes all three tables, there or not. */
void rules_undo_text(struct buf *out);

#endif
