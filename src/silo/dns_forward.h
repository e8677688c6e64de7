/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asking the daemon's name servers from the pod's network (control.md 10.4):
 * UDP with a new socket, port and id for every attempt, again, then TCP; TCP at
 * once for a truncated reply. Replies are remembered. Knows no client.
 */
#ifndef CULVERT_SILO_DNS_FORWARD_H
#define CULVERT_SILO_DNS_FORWARD_H

#include "dns/message.h"
#include "io/ring.h"
#include "silo/dns_cache.h"

/* Servers that are used, as resolv.conf(5) has it. */
#define DNS_SERVERS_MAX 3
/* Patience with the first attempts while there are other servers, ms. */
#define DNS_FIRST_TRY_MS 1500
/* Bounds of what resolv.conf may say. */
#define DNS_TIMEOUT_MAX_MS 30000
#define DNS_ATTEMPTS_MAX 5

/* Who is asked and how; embed it. */
struct dns_forwarder {
	struct io *io;
	uint32_t mark; /* of the sockets, or they would be captured again; 0 = none */
	struct addr servers[DNS_SERVERS_MAX];
	size_t server_cnt;
	uint64_t timeout_ms; /* of one attempt */
	unsigned attempts;   /* over UDP with each server */
	bool has_edns;       /* questions carry EDNS */
	size_t first;        /* server that answered last; is asked first */
	struct dns_cache cache;
};

struct dns_forward;

/*
 * The end: code 0 and the reply (dns_reply_read took it, or only its header when that says
 * an error), borrowed; or -ETIMEDOUT, -ECONNREFUSED ...: no server gave one. The forward is gone afterwards.
 */
typedef void dns_forward_done(void *ctx, int code, const uint8_t *data, size_t len);

/* Asks. `done` never comes from inside this call. 0, -EHOSTUNREACH (no servers), -ENOMEM. */
int dns_forward_start(struct dns_forwarder *forwarder, const struct dns_question *question,
        dns_forward_done *done, void *ctx, struct dns_forward **ret_forward);

/* Gives up: `done` does not come. NULL is fine. */
void dns_forward_cancel(struct dns_forward *forward);

#endif
