/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the DNS proxy share; nobody else includes this. */
#ifndef CULVERT_SILO_DNS_INT_H
#define CULVERT_SILO_DNS_INT_H

#include "base/addr.h"
#include "conn/listen.h"
#include "dns/message.h"
#include "dns/names.h"
#include "silo/dns.h"
#include "silo/dns_forward.h"
#include "silo/dns_watch.h"
#include "silo/silo.h"

/* Sockets of one kind: two loopback addresses; a newer warden may give more. */
#define DNS_SOCKETS_MAX 4

/* A UDP socket. */
struct dns_udp {
	struct dns_watch watch;
	struct dns *dns; /* invalid once the watch is closed */
};

/* The proxy. */
struct dns {
	struct silo *silo;
	struct dns_udp *udp[DNS_SOCKETS_MAX];
	size_t udp_cnt;
	struct listener *tcp[DNS_SOCKETS_MAX];
	size_t tcp_cnt;
	struct list requests; /* struct dns_request */
	size_t request_cnt;
	struct list conns; /* struct dns_conn */
	size_t conn_cnt;
	struct dns_forwarder forwarder;
	bool has_resolver;          /* the broker has said how to forward */
	bool asks_resolver;         /* and is being asked */
	uint64_t resolver_asked_ms; /* when it was asked last */
	char *hosts;                /* text of the hosts file, owned; NULL = none */
};

struct dns_conn;

/* A query in flight. */
struct dns_request {
	struct list node; /* in dns.requests */
	struct dns *dns;
	struct dns_query query;
	struct dns_udp *udp;     /* UDP: where the answer goes from */
	struct addr client;      /* and to */
	struct dns_conn *conn;   /* TCP */
	char host[DNS_TEXT_MAX]; /* lower-case name; "" when it can be no host's */
	struct fetch_wait wait;  /* for our record, then for the name */
	struct timer timer;      /* for the resolver's configuration */
	struct own_workload *own;
	bool needs_resolver;
	struct dns_forward *forward;
	uint64_t forwarded_us; /* when forwarding began */
};

/* Takes a message from a client; `udp` and `client`, or `conn`. An answer may be sent from inside this call.
 */
void dns_request_take(struct dns *dns, const uint8_t *data, size_t len, struct dns_udp *udp,
        const struct addr *client, struct dns_conn *conn);

/* Ends a request without an answer. */
void dns_request_free(struct dns_request *request);

/* A TCP connection was accepted. */
void dns_conn_accept(struct dns *dns, int fd);

/* The answer to a connection's present query (out->len 0: none is due), copied. */
void dns_conn_answer(struct dns_conn *conn, const struct buf *out);

/* Closes a connection; its request goes along. */
void dns_conn_close(struct dns_conn *conn);

/* The TCP connection at that place in dns.conns. */
struct dns_conn *dns_conn_of(struct list *node);

/*
 * What the mesh answers to a question for A or AAAA. The view belongs to the
 * name; ips takes up to LIMIT_VIEW_ENDPOINTS or the service's addresses, at most cap. Returns how many, in an
 * order of chance; *ret_is_refused: the service has no such family.
 */
size_t dns_answer_ips(const struct view *view, const struct workload *own, uint16_t type, bool has_ipv6,
        struct ip *ips, size_t cap, bool *ret_is_refused);

#endif
