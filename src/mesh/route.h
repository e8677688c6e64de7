/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a connection goes: the outbound decision tree (reference dataplane.md
 * 4.1 to 4.7) and the inbound checks and next hop (8.3, 8.4, 8.7), as pure
 * functions over a source of views. No descriptor, no clock, no log; chance
 * is an argument, waiting is a return value.
 */
#ifndef CULVERT_MESH_ROUTE_H
#define CULVERT_MESH_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "culvert/records.h"
#include "mesh/view.h"

/* Room for a CONNECT authority with terminator: host name (RFC 1035), colon, port; or "[v6]:port". */
#define ROUTE_AUTHORITY_MAX 280
/* Most addresses that a resolver hands in for one host name; routing takes one of them. */
#define ROUTE_RESOLVED_MAX 32

/* Ports of our own listeners: never a destination (dataplane.md 2.8). */
#define ROUTE_PORT_OUTBOUND 15001
#define ROUTE_PORT_PASSTHROUGH 15006
#define ROUTE_PORT_INBOUND 15008
#define ROUTE_PORT_SOCKS 15080

/*
 * Where views come from. Both functions return 0, a negative error (the
 * connection fails with it), or -EAGAIN: not here yet. After -EAGAIN the
 * caller of the routing function waits for an answer to (one of) what was
 * asked and calls again with the same arguments, `random` included.
 */
struct mesh_source {
	void *ctx;
	/* The view of a key; *ret_view carries a reference for routing. Known or not, it is an answer. */
	int (*view)(void *ctx, const struct view_key *key, struct view **ret_view);
	/*
	 * Addresses of a workload's host name: fills at most `max` of `ret_ips`
	 * and *ret_cnt (0 = the answer held no A/AAAA). -EHOSTUNREACH: the lookup
	 * failed. May be NULL: every lookup fails.
	 */
	int (*resolve)(void *ctx, const char *hostname, struct ip *ret_ips, size_t max, size_t *ret_cnt);
};

/* What routing must know of this proxy. */
struct route_env {
	const char *network;   /* NETWORK; never NULL */
	bool has_socks;        /* port 15080 is ours too */
	bool local_app_tunnel; /* LOCALHOST_APP_TUNNEL: PROXY tunnels are dialled over loopback */
	struct ip source_ip;   /* outbound: address of the application's socket */
	uint64_t random;       /* 64 uniform bits, drawn once per connection */
	/* Outbound, a second try: uids of endpoints that failed. They are not chosen again where a service
	 * offers others; a workload that was addressed itself is not replaced. */
	const char *const *avoid;
	size_t avoid_cnt;
};

/* How the connection goes on (dataplane.md 4.2). */
enum route_kind {
	ROUTE_PASSTHROUGH = 0,  /* plain TCP to the address dialled, nothing known of it */
	ROUTE_TCP = 1,          /* plain TCP to a workload */
	ROUTE_HBONE = 2,        /* one tunnel */
	ROUTE_DOUBLE_HBONE = 3, /* a tunnel to a gateway, a second one inside */
};

/* The texts of identities that a peer may show; "spiffe://..." each, valid as such. */
struct route_identities {
	const char *const *texts; /* in the order that the pool key keeps */
	size_t cnt;
};

/* An outbound decision. Borrowed records live as long as it, through `views`. */
struct route {
	enum route_kind kind;
	struct addr tcp_dst;                 /* what to connect to */
	char authority[ROUTE_AUTHORITY_MAX]; /* CONNECT authority of the (both) tunnels; "" without tunnel */
	struct route_identities identities;  /* of the peer of the (outer) tunnel; none without tunnel */
	struct route_identities inner; /* ROUTE_DOUBLE_HBONE: of the peer of the inner tunnel; may be empty,
	                                  then nothing matches */
	const struct workload
	        *workload; /* destination for telemetry: endpoint, waypoint or gateway; NULL = unknown */
	const struct service
	        *service;    /* destination service for telemetry and the forwarded header; NULL = none */
	bool is_waypoint;    /* the peer is a waypoint */
	struct view **views; /* references held; private */
	size_t view_cnt;
	void *block; /* memory of texts and views; private */
};

/*
 * Decides where a connection of `self` to `dst` goes. 0 and *ret_route (free
 * with route_done); -EAGAIN as described above; otherwise an early denial:
 * err->code is the code returned and err->text the text of dataplane.md 17.
 */
int route_outbound(const struct route_env *env, const struct mesh_source *source, const struct workload *self,
        const struct addr *dst, struct route *ret_route, struct err *err);

/* Drops what a route holds; harmless on a zeroed one and when called twice. */
void route_done(struct route *route);

/* An authority as a CONNECT request carries it. */
struct route_authority {
	bool is_host; /* true: host is set; false: ip is set */
	struct ip ip;
	char host[ROUTE_AUTHORITY_MAX]; /* as sent, no lower-casing */
	uint16_t port;
};

/* Parses "ip:port", "[v6]:port" or "host:port" of `len` bytes; the port is mandatory. 0 or -EINVAL. */
int route_authority_parse(const char *text, size_t len, struct route_authority *ret_authority);

/* HTTP status of a refused CONNECT (dataplane.md 8.2). */
#define ROUTE_STATUS_BAD 400
#define ROUTE_STATUS_UNAVAILABLE 503

/* An inbound request. */
struct route_request {
	struct addr local;          /* address the TCP connection was made to */
	const char *authority;      /* of the CONNECT request */
	size_t authority_len;       /* bytes */
	const char *forwarded_host; /* host= of the forwarded header, or "" */
};

/* An inbound decision. Borrowed records live as long as it. */
struct route_inbound {
	struct addr upstream;  /* what to connect to */
	struct addr rbac_dst;  /* destination that policies see (dataplane.md 8.4, last line) */
	struct addr requested; /* pod address and resolved port, before any tunnel: the log's original
	                          destination */
	bool is_loopback;      /* upstream is loopback: dial from loopback, do not preserve the source */
	bool has_proxy_header; /* write a PROXY v2 header first */
	struct addr proxy_dst; /* destination in that header */
	const struct service *service; /* for telemetry, or NULL */
	struct view **views;           /* references held; private */
	size_t view_cnt;
	void *block; /* private */
};

/*
 * Checks the destination of a CONNECT request and finds the next hop. 0 and
 * *ret_route (free with route_inbound_done); -EAGAIN as above; otherwise the
 * code, *ret_status (400 or 503) and the text.
 */
int route_inbound(const struct route_env *env, const struct mesh_source *source, const struct workload *self,
        const struct route_request *request, struct route_inbound *ret_route, int *ret_status,
        struct err *err);

/*
 * Plaintext that was captured on its way to `dst` (dataplane.md 9): refuses
 * illegal ports, guesses the service for telemetry. The connection goes to
 * `dst` itself. 0, -EAGAIN, or an early denial.
 */
int route_plaintext(const struct route_env *env, const struct mesh_source *source,
        const struct workload *self, const struct addr *dst, struct route_inbound *ret_route,
        struct err *err);

/* Drops what an inbound route holds; harmless on a zeroed one and when called twice. */
void route_inbound_done(struct route_inbound *route);

/* Whether the port belongs to one of our listeners. */
bool route_is_illegal_port(const struct route_env *env, uint16_t port);

#endif
