/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What outbound and inbound routing share: views held during a decision, and
 * references to waypoints and gateways turned into upstreams. Internal.
 */
#ifndef CULVERT_MESH_ROUTE_INT_H
#define CULVERT_MESH_ROUTE_INT_H

#include "mesh/identity.h"
#include "mesh/lb.h"
#include "mesh/route.h"

/* Views of one decision: at most address twice, waypoint, gateway, and a few services. */
#define ROUTING_VIEWS_MAX 8

/* Which choice a piece of chance is for; each decision draws once and mixes. */
enum routing_step { STEP_WEIGHTED = 0, STEP_WAYPOINT, STEP_UPSTREAM, STEP_GATEWAY, STEP_RESOLVED };

/* A decision under way. */
struct routing {
	const struct route_env *env;
	const struct mesh_source *source;
	const struct workload *self;
	struct err *err;
	struct view *views[ROUTING_VIEWS_MAX];
	size_t view_cnt;
};

/* A workload to connect to. */
struct upstream {
	const struct workload *workload; /* NULL = none found */
	const struct service *service;   /* that chose it, or NULL */
	uint16_t port;                   /* after all mapping */
	struct ip ip;                    /* family 0: only its network gateway leads there */
};

/* The view of a key, held until the decision is made; the same key is asked once. 0, -EAGAIN or an error. */
int routing_view(struct routing *r, const struct view_key *key, const struct view **ret_view);

/* Drops all held views. */
void routing_drop(struct routing *r);

/* Drops the view that was fetched last. */
void routing_drop_last(struct routing *r);

/*
 * "Route to this address" (dataplane.md 3.6, 4.3): service first, then
 * workload. ret_upstream->workload is NULL when there is none; the address is
 * not chosen yet.
 */
int routing_find(struct routing *r, const char *network, const struct addr *dst,
        enum lb_resolution resolution, enum routing_step step, struct upstream *ret_upstream);

/* Chooses the address to connect to (dataplane.md 4.6) for a connection that was dialled as `dialled`. */
int routing_pick_ip(struct routing *r, const struct ip *dialled, struct upstream *upstream);

/*
 * Resolves a waypoint (4.5) or network gateway (4.7) reference, address
 * included. Not found: `code` with the reference as detail.
 */
int routing_resolve(struct routing *r, const struct gateway_ref *ref, const struct addr *dialled,
        enum lb_resolution resolution, enum routing_step step, int code, struct upstream *ret_upstream);

/* Whether the workload has that address. */
bool routing_owns(const struct workload *workload, const struct ip *ip);

/* Sets "text of code: detail". Returns code. */
int routing_deny(struct routing *r, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Moves the held views into one block of memory with `extra` bytes behind
 * them. 0 or -ENOMEM; the views then belong to the block.
 */
int routing_keep(
        struct routing *r, size_t extra, struct view ***ret_views, size_t *ret_cnt, void **ret_block);

/* Drops what routing_keep made. */
void routing_release(struct view ***views, size_t *cnt, void **block);

#endif
