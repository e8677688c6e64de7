/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Choice of one endpoint of a service for one source workload: filter, rank
 * by locality, weight, port (reference dataplane.md 4.3, 4.4). Pure: chance is
 * an argument.
 */
#ifndef CULVERT_MESH_LB_H
#define CULVERT_MESH_LB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "culvert/records.h"

/* How a service is looked at (dataplane.md 4.3). */
enum lb_resolution {
	LB_RESOLVE_STANDARD = 0, /* the port must exist on the service */
	LB_RESOLVE_WAYPOINT = 1, /* an application tunnel may stand in for it */
};

/* What the scopes of a routing preference compare. Strings are never NULL. */
struct lb_place {
	const char *network;
	const char *node;
	const char *cluster_id;
	struct locality locality;
};

/* The place of a workload; borrows its strings. */
struct lb_place lb_place_of(const struct workload *workload);

/*
 * Rank of `to` as seen from `from`: the higher the nearer, 0 without scopes.
 * *ret_full says whether every scope matches (what STRICT demands); may be
 * NULL. The rule of a leading NETWORK scope is dataplane.md 4.3's.
 */
unsigned lb_rank(const struct service *service, const struct lb_place *from, const struct lb_place *to,
        bool *ret_full);

/* What a choice is made for; all borrowed for the call. */
struct lb_query {
	const struct workload *source; /* who connects */
	uint16_t port;                 /* of the service */
	enum lb_resolution resolution;
	uint64_t random; /* 64 uniform bits; the same bits choose the same endpoint of the same list */
	const char *const *avoid; /* uids of workloads that are no candidates: they failed just now */
	size_t avoid_cnt;
};

/*
 * Chooses among the endpoints, at random in proportion to capacity among the
 * candidates of the best rank. Returns NULL when there is none.
 */
const struct endpoint *lb_choose(const struct service *service, const struct endpoint *endpoints,
        size_t endpoint_cnt, const struct lb_query *query);

/* Target port of an endpoint for a service port, in the order of dataplane.md 4.4; 0 = none. */
uint16_t lb_target_port(
        const struct service *service, const struct endpoint *endpoint, uint16_t service_port);

/* Looks a service port up in a map; true and *ret_target (0 = named port) when it is there. */
bool lb_port_find(const struct port_map *ports, size_t port_cnt, uint16_t service_port, uint16_t *ret_target);

/*
 * Index of one of `cnt` weights in proportion, or -1 when all are zero.
 * Zero weights are never chosen.
 */
int lb_pick_weighted(const uint32_t *weights, size_t cnt, uint64_t random);

/* Mixes 64 random bits with a step number, so that one draw per connection serves several choices. */
uint64_t lb_mix(uint64_t random, uint64_t step);

#endif
