/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The silo: everything that one workload's proxy owns, tied together. One per
 * process, made in main.c and handed down by pointer; nothing is file scope.
 */
#ifndef CULVERT_SILO_SILO_H
#define CULVERT_SILO_SILO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/log.h"
#include "base/param.h"
#include "conn/dial.h"
#include "conn/listen.h"
#include "culvert/records.h"
#include "h2/session.h"
#include "io/ring.h"
#include "ipc/chan.h"
#include "mesh/route.h"
#include "silo/cache.h"
#include "silo/context.h"
#include "silo/pool.h"
#include "silo/resolver.h"

struct broker_link;
struct tls_revocation;
struct dns;
struct metrics;
struct recorder;
struct warden_link;
struct web;

/* How long a connection waits for an answer about the mesh, ms (reference dataplane.md 3.2: 5 s). */
#define SILO_FETCH_MS 5000
/* Most connections a silo carries at once: below the usual limit of descriptors (1,048,576), two of them
 * each. */
#define SILO_CONN_MAX 400000

/* Where a silo is in its life. */
enum silo_phase {
	SILO_STARTING, /* heritage not read yet */
	SILO_SERVING,  /* listeners accept */
	SILO_DRAINING, /* listeners closed, connections end */
	SILO_ENDED,    /* nothing left, the process is about to exit */
};

/* The listeners of a silo, by what arrives there. */
enum silo_port { SILO_PORT_OUTBOUND, SILO_PORT_PLAINTEXT, SILO_PORT_HBONE, SILO_PORT_SOCKS, SILO_PORT_CNT };

struct silo;
struct conn;

/* What every connection of a silo can be told, whatever its kind. */
struct conn_ops {
	/* End now (immediate drain, deadline): logs as such and frees itself before it returns. */
	void (*cut)(struct conn *conn);
	/* A graceful drain has begun: an inbound tunnel says GOAWAY; others go on. May be NULL. */
	void (*drain)(struct conn *conn);
};

/* The part common to all connections; embedded first in outbound, inbound tunnel, plaintext. */
struct conn {
	struct list node; /* in silo.conns */
	struct silo *silo;
	const struct conn_ops *ops;
};

/* The silo. */
struct silo {
	struct io *io;
	struct log log;
	struct settings settings;
	struct h2_env *h2_env;       /* shared part of all HTTP/2 sessions */
	struct chan_scratch scratch; /* working memory of the channels */

	struct arena *arena;       /* holds uid, info, run_name */
	const char *uid;           /* the workload's ZDS uid */
	struct workload_info info; /* as the node agent said it */
	bool is_self; /* the daemon's own pod: no source preservation, no policy watch (dataplane 2.9) */
	int netns_fd; /* for a later warden; -1 = none */
	uint64_t netns_dev, netns_ino; /* identity of that namespace */
	uint64_t start_time;           /* of this process, proc_start_time: a later warden checks it */

	struct workload_context context;   /* the awaitable fetches */
	struct tls_revocation *revocation; /* NULL = no CRLs */
	struct cache cache;                /* views by key */
	struct resolver resolver;          /* addresses of host names that the mesh does not resolve */
	struct pool pool;                  /* outbound tunnels */
	struct dial_ports dial_ports;      /* for clients' addresses, towards the application */
	struct broker_link *broker;
	struct dns *dns; /* NULL = no DNS listener was inherited, or closed */
	struct warden_link *warden;
	struct web *admin; /* the pod's admin socket; NULL = none was inherited */

	struct listener *listeners[SILO_PORT_CNT]; /* NULL = not there, or closed */
	struct list conns;                         /* struct conn */
	size_t conn_cnt;                           /* length of conns */
	struct list tracked;                       /* struct track: inbound connections under policy */
	struct list outbounds;                     /* struct outbound, for the dump */
	struct list deliveries;                    /* struct delivery, for the dump */
	struct list walks;                         /* struct silo_walk: who stands in one of the two */

	struct metrics *metrics;   /* what was counted; NULL = nothing yet */
	struct recorder *recorder; /* the last connections; NULL = none yet */

	struct fetch_watch policies_watch; /* re-evaluates connections */

	enum silo_phase phase;
	struct timer drain_timer; /* the deadline of a graceful drain */
	bool drain_forced;        /* connections were cut at the deadline */
};

/* A place in silo.outbounds or silo.deliveries that survives turns of the loop; embed it. */
struct silo_walk {
	struct list node;        /* in silo.walks */
	const struct list *next; /* the entry that comes next, or the list's head: none does */
};

/* Takes an entry out of silo.outbounds or silo.deliveries; who stands there moves on. */
void silo_walk_del(struct silo *silo, struct list *entry);

/* Graceful end of what is open now, while new connections are still accepted: tunnels of peers are told
 * GOAWAY, our own get no new streams; each closes with its last stream. */
void silo_drain_tunnels(struct silo *silo);

/* Enters a connection into the silo's list; false when the ceiling is reached (the caller closes it). */
bool silo_conn_add(struct silo *silo, struct conn *conn, const struct conn_ops *ops);

/* Takes it out again; a drain may end with the last one. */
void silo_conn_del(struct conn *conn);

/* Starts to accept on descriptor `fd` for `port`. 0 or a negative errno. */
int silo_listen(struct silo *silo, enum silo_port port, int fd);

/* Ends accepting and connections: gracefully until the deadline, or at once. The loop stops when all is done.
 */
void silo_drain(struct silo *silo, bool is_graceful, uint64_t deadline_ms);

/* Options of a dialled socket: mark, keepalive, deadline; destination filled in. */
struct dial_opts silo_dial_opts(const struct silo *silo, const struct addr *dst);

/* Environment of a routing decision; draws the random bits of one connection. */
struct route_env silo_route_env(const struct silo *silo, const struct ip *source);

/* Whether `workload` (NULL = unknown) runs on this silo's node, as the control plane has it: what goes there
 * stays on this machine. */
bool silo_shares_node(struct silo *silo, const struct workload *workload);

/* HTTP/2 settings of a tunnel as the environment has them. */
void silo_h2_config(const struct silo *silo, bool is_server, struct h2_config *ret_config);

/* Whether inbound connections keep the client's source address. */
bool silo_keeps_source(const struct silo *silo);

#endif
