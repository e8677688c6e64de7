/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Endpoint choice, reference dataplane.md 4.3 and 4.4: filter by port and
 * reachability, rank by locality, pick by weight. No state, so no stickiness
 * and no round robin, as upstream.
 */
#include "mesh/lb.h"

#include <string.h>

struct lb_place lb_place_of(const struct workload *workload)
{
	return (struct lb_place){
	        .network = workload->network,
	        .node = workload->node,
	        .cluster_id = workload->cluster_id,
	        .locality = workload->locality,
	};
}

static bool scope_matches(enum lb_scope scope, const struct lb_place *a, const struct lb_place *b)
{
	switch (scope) {
	case LB_SCOPE_REGION:
		return strcmp(a->locality.region, b->locality.region) == 0;
	case LB_SCOPE_ZONE:
		return strcmp(a->locality.zone, b->locality.zone) == 0;
	case LB_SCOPE_SUBZONE:
		return strcmp(a->locality.subzone, b->locality.subzone) == 0;
	case LB_SCOPE_NODE:
		return strcmp(a->node, b->node) == 0;
	case LB_SCOPE_CLUSTER:
		return strcmp(a->cluster_id, b->cluster_id) == 0;
	case LB_SCOPE_NETWORK:
		return strcmp(a->network, b->network) == 0;
	}
	return false;
}

unsigned lb_rank(
        const struct service *service, const struct lb_place *from, const struct lb_place *to, bool *ret_full)
{
	unsigned matches = 0, bonus = 0;
	bool is_full = true;

	for (size_t i = 0; i < service->scope_cnt; i++) {
		bool is_first_network = i == 0 && service->scopes[i] == LB_SCOPE_NETWORK;
		if (scope_matches(service->scopes[i], from, to)) {
			matches++;
			if (is_first_network)
				bonus = (unsigned)service->scope_cnt - 1;
			continue;
		}
		is_full = false;
		if (!is_first_network)
			break;
	}
	if (ret_full)
		*ret_full = is_full;
	return matches + bonus;
}

bool lb_port_find(const struct port_map *ports, size_t port_cnt, uint16_t service_port, uint16_t *ret_target)
{
	for (size_t i = 0; i < port_cnt; i++) {
		if (ports[i].service_port != service_port)
			continue;
		*ret_target = ports[i].target_port;
		return true;
	}
	return false;
}

uint16_t lb_target_port(const struct service *service, const struct endpoint *endpoint, uint16_t service_port)
{
	uint16_t target;

	if (lb_port_find(endpoint->ports, endpoint->port_cnt, service_port, &target))
		return target;
	if (lb_port_find(service->ports, service->port_cnt, service_port, &target) && target != 0)
		return target;
	if (endpoint->workload->has_app_tunnel && endpoint->workload->app_tunnel_port != 0)
		return service_port;
	return 0;
}

/* SplitMix64 (Steele, Lea, Flood): every output bit depends on every input bit. */
uint64_t lb_mix(uint64_t random, uint64_t step)
{
	uint64_t z = random + (step + 1) * 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Maps 64 random bits to [0, total); the bias of at most total/2^64 is far below anything measurable. */
static uint64_t scale(uint64_t random, uint64_t total)
{
	return (uint64_t)(((unsigned __int128)random * total) >> 64);
}

int lb_pick_weighted(const uint32_t *weights, size_t cnt, uint64_t random)
{
	uint64_t total = 0;

	for (size_t i = 0; i < cnt; i++)
		total += weights[i];
	if (total == 0)
		return -1;
	uint64_t at = scale(random, total);
	size_t i = 0;
	while (at >= weights[i])
		at -= weights[i++];
	return (int)i;
}

/* A choice under way: the service's side of it, looked up once. */
struct choice {
	const struct service *service;
	const struct lb_query *query;
	struct lb_place place;
	bool has_port;   /* the service has the port */
	uint16_t target; /* its target, 0 = named */
	unsigned best;   /* highest rank among the candidates */
};

static bool is_avoided(const struct lb_query *query, const struct workload *w)
{
	for (size_t i = 0; i < query->avoid_cnt; i++) {
		if (strcmp(query->avoid[i], w->uid) == 0)
			return true;
	}
	return false;
}

/* The filter of dataplane.md 4.3, before any ranking. */
static bool is_candidate(const struct choice *c, const struct endpoint *ep)
{
	const struct workload *w = ep->workload;
	uint16_t unused;

	if (w->ip_cnt == 0 && w->hostname[0] == 0 &&
	        (strcmp(w->network, c->query->source->network) == 0 || !w->has_network_gateway))
		return false;
	if (is_avoided(c->query, w))
		return false;
	if (c->query->resolution == LB_RESOLVE_WAYPOINT)
		return c->has_port || w->has_app_tunnel;
	return c->target != 0 || lb_port_find(ep->ports, ep->port_cnt, c->query->port, &unused);
}

/* Whether the endpoint may be chosen, and its rank. */
static bool ranked(const struct choice *c, const struct endpoint *ep, unsigned *ret_rank)
{
	*ret_rank = 0;
	if (!is_candidate(c, ep))
		return false;
	if (!c->service->has_lb || c->service->lb_mode == LB_MODE_STANDARD)
		return true;
	struct lb_place to = lb_place_of(ep->workload);
	bool is_full;
	*ret_rank = lb_rank(c->service, &c->place, &to, &is_full);
	return is_full || c->service->lb_mode != LB_MODE_STRICT;
}

/* Sum of the weights of the best rank, which is found on the way. */
static uint64_t weigh(struct choice *c, const struct endpoint *endpoints, size_t cnt)
{
	uint64_t total = 0;
	bool any = false;

	for (size_t i = 0; i < cnt; i++) {
		unsigned rank;
		if (!ranked(c, &endpoints[i], &rank))
			continue;
		if (!any || rank > c->best) {
			c->best = rank;
			total = 0;
			any = true;
		}
		if (rank == c->best)
			total += endpoints[i].workload->capacity;
	}
	return total;
}

const struct endpoint *lb_choose(const struct service *service, const struct endpoint *endpoints,
        size_t endpoint_cnt, const struct lb_query *query)
{
	struct choice c = {.service = service, .query = query, .place = lb_place_of(query->source)};

	c.has_port = lb_port_find(service->ports, service->port_cnt, query->port, &c.target);
	if (!c.has_port && query->resolution == LB_RESOLVE_STANDARD)
		return NULL;
	uint64_t total = weigh(&c, endpoints, endpoint_cnt);
	if (total == 0)
		return NULL;
	uint64_t at = scale(query->random, total);
	for (size_t i = 0; i < endpoint_cnt; i++) {
		unsigned rank;
		if (!ranked(&c, &endpoints[i], &rank) || rank != c.best)
			continue;
		if (at < endpoints[i].workload->capacity)
			return &endpoints[i];
		at -= endpoints[i].workload->capacity;
	}
	return NULL;
}
