/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The outbound decision tree, reference dataplane.md 4.1; step numbers below
 * are those of its table. Everything is looked up through the source of
 * views, so that the same code serves whatever the silo holds.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mesh/route_int.h"

bool route_is_illegal_port(const struct route_env *env, uint16_t port)
{
	return port == ROUTE_PORT_OUTBOUND || port == ROUTE_PORT_PASSTHROUGH || port == ROUTE_PORT_INBOUND ||
	       (env->has_socks && port == ROUTE_PORT_SOCKS);
}

/* A decision as it comes out of the tree, before it is given memory of its own. */
struct plan {
	enum route_kind kind;
	struct addr tcp_dst;
	const struct workload *workload;    /* for telemetry and, with a tunnel, the peer */
	const struct service *peer_service; /* whose names the peer may show besides */
	const struct service *service;      /* for telemetry */
	const struct service *inner;        /* whose names the inner peer may show */
	bool is_waypoint;
	char authority[ROUTE_AUTHORITY_MAX];
};

/* Names that parse as identities; others never match anything (dataplane.md 4.2). */
static size_t usable_sans(const struct service *service, const char **dst)
{
	size_t n = 0;

	for (size_t i = 0; service && i < service->san_cnt; i++) {
		struct identity id;
		if (identity_parse(service->sans[i], strlen(service->sans[i]), &id) < 0)
			continue;
		if (dst)
			dst[n] = service->sans[i];
		n++;
	}
	return n;
}

/* Lays out names and the peer's identity behind the views. */
static void fill_identities(const struct plan *plan, size_t outer, size_t inner, const char *identity,
        size_t len, struct route *route)
{
	const char **texts = (const char **)(void *)(route->views + route->view_cnt);
	char *text = (char *)(texts + outer + 1 + inner);

	memcpy(text, identity, len);
	usable_sans(plan->peer_service, texts);
	texts[outer] = text;
	route->identities = (struct route_identities){texts, outer + 1};
	usable_sans(plan->inner, texts + outer + 1);
	route->inner = (struct route_identities){texts + outer + 1, inner};
}

/* Gives the decision its memory and hands it over. */
static int finish(struct routing *r, const struct plan *plan, struct route *ret_route)
{
	struct route route = {
	        .kind = plan->kind,
	        .tcp_dst = plan->tcp_dst,
	        .workload = plan->workload,
	        .service = plan->service,
	        .is_waypoint = plan->is_waypoint,
	};
	bool has_tunnel = plan->kind == ROUTE_HBONE || plan->kind == ROUTE_DOUBLE_HBONE;
	size_t outer = has_tunnel ? usable_sans(plan->peer_service, NULL) : 0;
	size_t inner = plan->kind == ROUTE_DOUBLE_HBONE ? usable_sans(plan->inner, NULL) : 0;
	char identity[IDENTITY_STR_MAX];
	int len = 0;

	if (has_tunnel) {
		struct identity id = identity_of(plan->workload);
		len = identity_format(&id, identity, sizeof(identity));
		if (len < 0)
			return routing_deny(r, ERR_NO_DESTINATION, "%s", plan->workload->name);
	}
	memcpy(route.authority, plan->authority, sizeof(route.authority));
	int rc = routing_keep(r, (outer + 1 + inner) * sizeof(char *) + (size_t)len + 1, &route.views,
	        &route.view_cnt, &route.block);
	if (rc < 0)
		return rc;
	if (has_tunnel)
		fill_identities(plan, outer, inner, identity, (size_t)len + 1, &route);
	*ret_route = route;
	return 0;
}

static bool is_foreign(const struct routing *r, const struct upstream *up)
{
	return strcmp(up->workload->network, r->self->network) != 0;
}

static int no_destination(struct routing *r, const struct upstream *up)
{
	return routing_deny(r, ERR_NO_DESTINATION, "%s", up->workload->name);
}

/* Another network: a tunnel to its gateway, a second one inside (4.7). */
static int plan_gateway(struct routing *r, const struct addr *dst, const struct service *service,
        const struct upstream *up, struct plan *plan)
{
	struct upstream gateway;

	if (!up->workload->has_network_gateway)
		return no_destination(r, up);
	int rc = routing_resolve(r, &up->workload->network_gateway, dst, LB_RESOLVE_STANDARD, STEP_GATEWAY,
	        ERR_UNKNOWN_GATEWAY, &gateway);
	if (rc < 0)
		return rc;
	if (gateway.ip.family == 0)
		return no_destination(r, &gateway);
	int len = snprintf(plan->authority, sizeof(plan->authority), "%s:%u", service->hostname, dst->port);
	if (len < 0 || (size_t)len >= sizeof(plan->authority))
		return no_destination(r, up);
	plan->kind = ROUTE_DOUBLE_HBONE;
	plan->tcp_dst = (struct addr){.ip = gateway.ip, .port = gateway.port};
	plan->workload = gateway.workload;
	plan->peer_service = gateway.service;
	plan->service = service;
	plan->inner = up->service;
	return 0;
}

/* HBONE to a resolved waypoint, which is asked for the address that was dialled. */
static int plan_waypoint(struct routing *r, const struct addr *dst, const struct service *service,
        const struct upstream *waypoint, struct plan *plan)
{
	if (waypoint->ip.family == 0)
		return no_destination(r, waypoint);
	plan->kind = ROUTE_HBONE;
	plan->tcp_dst = (struct addr){.ip = waypoint->ip, .port = waypoint->port};
	plan->workload = waypoint->workload;
	plan->peer_service = waypoint->service;
	plan->service = service;
	plan->is_waypoint = true;
	addr_format(dst, plan->authority);
	return 0;
}

/* Straight to the workload, steps 12 to 14. */
static int plan_direct(struct routing *r, const struct upstream *up, struct plan *plan)
{
	struct addr target = {.ip = up->ip, .port = up->port};

	if (up->ip.family == 0)
		return no_destination(r, up);
	plan->kind = up->workload->protocol == WORKLOAD_HBONE ? ROUTE_HBONE : ROUTE_TCP;
	plan->tcp_dst = target;
	plan->workload = up->workload;
	plan->service = up->service;
	if (plan->kind == ROUTE_TCP)
		return 0;
	plan->tcp_dst.port = ROUTE_PORT_INBOUND;
	plan->peer_service = up->service;
	addr_format(&target, plan->authority);
	return 0;
}

/* The waypoint reference of a service for this connection (4.5), or NULL. */
static const struct gateway_ref *pick_waypoint(const struct routing *r, const struct service *service)
{
	uint64_t total = 0;
	size_t i = 0;

	for (size_t k = 0; k < service->weighted_cnt; k++)
		total += service->weighted[k].weight;
	/* Zero, or a sum that upstream cannot hold in 32 bits: the set is not usable. */
	if (total == 0 || total > UINT32_MAX)
		return service->has_waypoint ? &service->waypoint : NULL;
	uint64_t at = (uint64_t)(((unsigned __int128)lb_mix(r->env->random, STEP_WEIGHTED) * total) >> 64);
	while (at >= service->weighted[i].weight)
		at -= service->weighted[i++].weight;
	return &service->weighted[i].ref;
}

/* Step 5: the service behind the address, unless a workload owns it. */
static int what_is(struct routing *r, const struct addr *dst, const struct service **ret_service)
{
	struct view_key key = view_key_address(r->env->network, &dst->ip);
	const struct view *view;
	int rc = routing_view(r, &key, &view);

	if (rc == 0)
		*ret_service = view->workload ? NULL : view->service;
	return rc;
}

static bool is_us(const struct routing *r, const struct workload *w)
{
	struct identity theirs = identity_of(w), ours = identity_of(r->self);
	return routing_owns(w, &r->env->source_ip) && identity_eq(&theirs, &ours);
}

/* Whether we are a workload behind that waypoint reference (4.6). */
static int are_we(struct routing *r, const struct gateway_ref *ref, bool *ret_are)
{
	struct view_key key = ref->is_host ? view_key_host(ref->ns, ref->host)
	                                   : view_key_address(ref->addr.network, &ref->addr.ip);
	const struct view *view;
	int rc = routing_view(r, &key, &view);

	if (rc < 0)
		return rc;
	*ret_are = false;
	/* A name means a service first, an address a workload first. */
	if (view->workload && (!ref->is_host || !view->service)) {
		*ret_are = is_us(r, view->workload);
		return 0;
	}
	for (size_t i = 0; view->service && i < view->endpoint_cnt && !*ret_are; i++)
		*ret_are = is_us(r, view->endpoints[i].workload);
	return 0;
}

/* Steps 6 and 7: a service with a waypoint. */
static int via_service_waypoint(struct routing *r, const struct addr *dst, const struct service *service,
        const struct gateway_ref *ref, struct plan *plan)
{
	struct upstream waypoint;
	int rc = routing_resolve(
	        r, ref, dst, LB_RESOLVE_WAYPOINT, STEP_WAYPOINT, ERR_UNKNOWN_WAYPOINT, &waypoint);

	if (rc < 0)
		return rc;
	if (is_foreign(r, &waypoint))
		return plan_gateway(r, dst, service, &waypoint, plan);
	return plan_waypoint(r, dst, service, &waypoint, plan);
}

/* Step 9: nothing to route to. */
static int without_upstream(
        struct routing *r, const struct addr *dst, const struct service *service, struct plan *plan)
{
	char text[ADDR_STR_MAX];

	if (service && !(service->has_lb && service->lb_mode == LB_MODE_PASSTHROUGH))
		return routing_deny(r, ERR_NO_HEALTHY, "%s", addr_format(dst, text));
	plan->kind = ROUTE_PASSTHROUGH;
	plan->tcp_dst = *dst;
	return 0;
}

/* Step 11: a workload that was dialled itself and has a waypoint that is not us. *ret_done: the plan is made.
 */
static int via_workload_waypoint(struct routing *r, const struct addr *dst, const struct upstream *up,
        struct plan *plan, bool *ret_done)
{
	const struct gateway_ref *ref = &up->workload->waypoint;
	struct upstream waypoint;
	bool are = false;

	*ret_done = false;
	if (!up->workload->has_waypoint)
		return 0;
	int rc = are_we(r, ref, &are);
	if (rc < 0 || are)
		return rc;
	*ret_done = true;
	rc = routing_resolve(
	        r, ref, dst, LB_RESOLVE_WAYPOINT, STEP_WAYPOINT, ERR_UNKNOWN_WAYPOINT, &waypoint);
	return rc < 0 ? rc : plan_waypoint(r, dst, up->service, &waypoint, plan);
}

/* Steps 8 to 14. */
static int via_upstream(
        struct routing *r, const struct addr *dst, const struct service *service, struct plan *plan)
{
	char text[ADDR_STR_MAX];
	struct upstream up;
	bool is_done = false;
	int rc = routing_find(r, r->self->network, dst, LB_RESOLVE_STANDARD, STEP_UPSTREAM, &up);

	if (rc < 0)
		return rc;
	if (!up.workload)
		return without_upstream(r, dst, service, plan);
	rc = routing_pick_ip(r, &dst->ip, &up);
	if (rc < 0)
		return rc;
	if (is_foreign(r, &up)) {
		if (!service)
			return routing_deny(r, ERR_NO_SERVICE, "%s", addr_format(dst, text));
		return plan_gateway(r, dst, service, &up, plan);
	}
	if (!service)
		rc = via_workload_waypoint(r, dst, &up, plan, &is_done);
	if (rc < 0 || is_done)
		return rc;
	return plan_direct(r, &up, plan);
}

int route_outbound(const struct route_env *env, const struct mesh_source *source, const struct workload *self,
        const struct addr *dst, struct route *ret_route, struct err *err)
{
	struct routing r = {.env = env, .source = source, .self = self, .err = err};
	const struct service *service = NULL;
	struct plan plan = {0};

	if (ip_is_loopback(&dst->ip) && route_is_illegal_port(env, dst->port))
		return err_set(err, ERR_SELF_CALL, "%s", err_str(ERR_SELF_CALL));
	int rc = what_is(&r, dst, &service);
	if (rc == 0) {
		const struct gateway_ref *ref = service ? pick_waypoint(&r, service) : NULL;
		rc = ref ? via_service_waypoint(&r, dst, service, ref, &plan)
		         : via_upstream(&r, dst, service, &plan);
	}
	if (rc == 0)
		rc = finish(&r, &plan, ret_route);
	routing_drop(&r);
	return rc;
}

void route_done(struct route *route)
{
	routing_release(&route->views, &route->view_cnt, &route->block);
	route->identities = route->inner = (struct route_identities){0};
	route->workload = NULL;
	route->service = NULL;
}
