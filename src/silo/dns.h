/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The DNS proxy of a silo (control.md 10): listeners of port 15053, queries in
 * flight, answers out of the mesh, and forwarding of everything else. Made
 * when the first listener is inherited.
 */
#ifndef CULVERT_SILO_DNS_H
#define CULVERT_SILO_DNS_H

#include "pb/ipc.h"

struct silo;
struct dns;

/* Queries in flight, over UDP and TCP: further ones over UDP are not read up, clients ask again. */
#define DNS_REQUESTS_MAX 512
/* TCP connections; further ones are closed at once. */
#define DNS_CONNS_MAX 64
/* Idle time of a TCP connection, and patience with one that does not read, ms (control.md 10.1). */
#define DNS_CONN_IDLE_MS 5000
/* Patience with the broker: own workload, a name, the resolver's configuration, ms (control.md 10.1). */
#define DNS_WAIT_MS 5000
/* Age at which the resolver's configuration is asked for again, ms: a change of the file is seen that soon.
 */
#define DNS_RESOLVER_AGE_MS 5000

/* Serves on an inherited socket, which is taken over on success. 0, -ENOMEM, -ENOSPC. */
int dns_serve(struct silo *silo, int fd, bool is_tcp);

/* The broker's answer: how the daemon resolves names. */
void dns_on_resolver(struct silo *silo, const struct ipc_answer_resolver *answer);

/* Another broker has come, which does not know what the former was asked. NULL is fine. */
void dns_ask_again(struct dns *dns);

/* Closes everything; what is in flight gets no answer. The memory goes when the ring has let go. NULL is
 * fine. */
void dns_stop(struct dns *dns);

#endif
