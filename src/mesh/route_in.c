/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inbound requests: is the destination ours to serve, and where does it go,
 * reference dataplane.md 8.3, 8.4, 8.7 and, for plaintext, 9. Delivery always
 * goes to the address that the connection was made to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "mesh/route_int.h"

/* Own services looked at when guessing for telemetry; pods are in a few. */
#define GUESS_SERVICES_MAX 64

int route_authority_parse(const char *text, size_t len, struct route_authority *ret_authority)
{
	struct route_authority a = {0};
	struct addr addr;
	uint64_t port;

	if (addr_parse(text, len, &addr) == 0) {
		a.ip = addr.ip;
		a.port = addr.port;
		*ret_authority = a;
		return 0;
	}
	const char *colon = len ? memrchr(text, ':', len) : NULL;
	size_t host_len = colon ? (size_t)(colon - text) : 0;
	if (host_len == 0 || host_len >= sizeof(a.host))
		return -EINVAL;
	for (size_t i = 0; i < host_len; i++) {
		/* RFC 3986 3.2: none of the delimiters of an authority or of what is around it, no blanks,
		 * ASCII only. */
		if (text[i] <= ' ' || text[i] >= 127 || strchr("/?#@[]:\\", text[i]))
			return -EINVAL;
	}
	if (num_parse(colon + 1, len - host_len - 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	a.is_host = true;
	memcpy(a.host, text, host_len);
	a.port = (uint16_t)port;
	*ret_authority = a;
	return 0;
}

static bool has_endpoint(const struct view *view, const struct workload *self)
{
	for (size_t i = 0; i < view->endpoint_cnt; i++) {
		if (strcmp(view->endpoints[i].workload->uid, self->uid) == 0)
			return true;
	}
	return false;
}

/* Rows 5 to 7 of 8.3: does the record's waypoint reference lead to us? */
static int leads_to_us(struct routing *r, const struct view *target, const struct ip *local, bool *ret_does)
{
	const struct gateway_ref *ref = NULL;
	const struct view *view;

	if (target->workload)
		ref = target->workload->has_waypoint ? &target->workload->waypoint : NULL;
	else if (target->service)
		ref = target->service->has_waypoint ? &target->service->waypoint : NULL;
	*ret_does = false;
	if (!ref)
		return 0;
	struct view_key key = ref->is_host ? view_key_host(ref->ns, ref->host)
	                                   : view_key_address(ref->addr.network, &ref->addr.ip);
	key.unfiltered = !ref->is_host;
	int rc = routing_view(r, &key, &view);
	if (rc < 0)
		return rc;
	if (view->workload && (!ref->is_host || !view->service))
		*ret_does = routing_owns(view->workload, local);
	else
		*ret_does = view->service && has_endpoint(view, r->self);
	return 0;
}

/* 8.3 for an authority that is an address. */
static int validate(struct routing *r, const struct route_authority *a, const struct addr *local)
{
	char want[IP_STR_MAX], got[IP_STR_MAX];
	bool does = false;

	if (ip_eq(&a->ip, &local->ip) || r->self->has_app_tunnel)
		return 0;
	struct view_key key = view_key_address(r->env->network, &a->ip);
	key.unfiltered = true;
	const struct view *view;
	int rc = routing_view(r, &key, &view);
	if (rc == 0)
		rc = leads_to_us(r, view, &local->ip, &does);
	if (rc < 0 || does)
		return rc;
	return err_set(r->err, ERR_IP_MISMATCH, "ip mismatch: %s != %s", ip_format(&local->ip, got),
	        ip_format(&a->ip, want));
}

/* Our own port mapping for a service: from our record, else from the service's endpoints. */
static bool own_mapping(const struct routing *r, const struct view *view, uint16_t port, uint16_t *ret_target)
{
	const struct workload *self = r->self;

	for (size_t i = 0; i < self->service_cnt; i++) {
		const struct workload_service *s = &self->services[i];
		if (strcmp(s->hostname, view->service->hostname) == 0 &&
		        strcmp(s->ns, view->service->ns) == 0)
			return lb_port_find(s->ports, s->port_cnt, port, ret_target);
	}
	for (size_t i = 0; i < view->endpoint_cnt; i++) {
		const struct endpoint *e = &view->endpoints[i];
		if (strcmp(e->workload->uid, self->uid) == 0)
			return lb_port_find(e->ports, e->port_cnt, port, ret_target);
	}
	return false;
}

/* The destination of the PROXY header for a name: a VIP on our network first, IPv4 before IPv6 among those.
 */
static const struct ip *pick_vip(const struct route_env *env, const struct service *service)
{
	const struct ip *best = NULL;
	int best_rank = -1;

	for (size_t i = 0; i < service->vip_cnt; i++) {
		const struct net_addr *vip = &service->vips[i];
		bool is_ours = strcmp(vip->network, env->network) == 0;
		int rank = is_ours ? 1 + (vip->ip.family == 4) : 0;
		if (rank > best_rank) {
			best = &vip->ip;
			best_rank = rank;
		}
	}
	return best;
}

/* An inbound decision under way. */
struct hop {
	struct route_authority authority;
	const struct view *view; /* of the service named by a host authority, or NULL */
	uint16_t port;           /* resolved, before any tunnel */
};

/* The port behind a host authority, 8.4. */
static int resolve_port(struct routing *r, struct hop *hop)
{
	const struct route_authority *a = &hop->authority;
	struct view_key key = view_key_host("", a->host);
	int rc = routing_view(r, &key, &hop->view);

	if (rc < 0)
		return rc;
	const struct service *service = hop->view->service;
	if (!service)
		return routing_deny(r, ERR_NO_HOST, "%s", a->host);
	hop->port = 0;
	if (!own_mapping(r, hop->view, a->port, &hop->port))
		(void)lb_port_find(service->ports, service->port_cnt, a->port, &hop->port);
	if (hop->port == 0)
		return err_set(r->err, ERR_NO_PORT, "requested service %s:%u found, but cannot resolve port",
		        a->host, a->port);
	return 0;
}

/* What the application tunnel makes of it. */
static int apply_tunnel(struct routing *r, const struct hop *hop, struct route_inbound *route)
{
	const struct workload *self = r->self;
	const struct route_authority *a = &hop->authority;

	if (!self->has_app_tunnel)
		return 0;
	if (self->app_tunnel_port)
		route->upstream.port = self->app_tunnel_port;
	route->rbac_dst = route->upstream;
	if (self->app_tunnel_protocol != APP_TUNNEL_PROXY)
		return 0;
	const struct ip *dst = a->is_host ? pick_vip(r->env, hop->view->service) : &a->ip;
	if (!dst)
		return err_set(r->err, ERR_NO_ADDRESS, "requested service %s found, but has no IP addresses",
		        a->host);
	route->has_proxy_header = true;
	route->proxy_dst = (struct addr){.ip = *dst, .port = a->port};
	if (!r->env->local_app_tunnel)
		return 0;
	route->is_loopback = true;
	if (route->upstream.ip.family == 6)
		route->upstream.ip = (struct ip){.family = 6, .b[15] = 1};
	else
		route->upstream.ip = ip_v4(127, 0, 0, 1);
	return 0;
}

/* Whether one of the service's ports leads to the port, by its own target or by our endpoint's mapping (8.7).
 */
static bool leads_to_port(const struct routing *r, const struct view *view, uint16_t port)
{
	const struct service *s = view->service;

	for (size_t i = 0; i < s->port_cnt; i++) {
		uint16_t target;
		if (s->ports[i].target_port == port)
			return true;
		if (own_mapping(r, view, s->ports[i].service_port, &target) && target == port)
			return true;
	}
	return false;
}

/*
 * Looks through our services for the one the connection is meant for: the
 * forwarded host, else the first that leads to the port. Asks for all that is
 * missing at once.
 */
static int guess_service(
        struct routing *r, uint16_t port, const char *forwarded_host, const struct service **ret_service)
{
	const struct view *by_port = NULL;
	size_t cnt = r->self->service_cnt < GUESS_SERVICES_MAX ? r->self->service_cnt : GUESS_SERVICES_MAX;
	bool is_waiting = false;

	for (size_t i = 0; i < cnt; i++) {
		const struct workload_service *s = &r->self->services[i];
		struct view_key key = view_key_host(s->ns, s->hostname);
		const struct view *view;
		size_t held = r->view_cnt;
		int rc = routing_view(r, &key, &view);
		if (rc == -EAGAIN)
			is_waiting = true;
		else if (rc < 0)
			return rc;
		if (rc < 0)
			continue;
		if (view->service && forwarded_host[0] &&
		        strcmp(view->service->hostname, forwarded_host) == 0) {
			*ret_service = view->service;
			return is_waiting ? -EAGAIN : 0;
		}
		if (view->service && !by_port && leads_to_port(r, view, port))
			by_port = view;
		else if (r->view_cnt > held)
			routing_drop_last(r);
	}
	if (is_waiting)
		return -EAGAIN;
	*ret_service = by_port ? by_port->service : NULL;
	return 0;
}

/* The service for telemetry: with a host authority only the one it names is considered. */
static int telemetry(
        struct routing *r, const struct hop *hop, const char *forwarded_host, struct route_inbound *route)
{
	if (!hop->view)
		return guess_service(r, route->rbac_dst.port, forwarded_host, &route->service);
	const struct service *s = hop->view->service;
	if (strcmp(s->hostname, forwarded_host) == 0 || leads_to_port(r, hop->view, route->rbac_dst.port))
		route->service = s;
	return 0;
}

static int decide(
        struct routing *r, const struct route_request *request, struct route_inbound *route, int *status)
{
	struct hop hop = {0};
	int rc = route_authority_parse(request->authority, request->authority_len, &hop.authority);

	*status = ROUTE_STATUS_BAD;
	if (rc < 0)
		return routing_deny(r, ERR_BAD_AUTHORITY, "%.*s",
		        request->authority_len < ROUTE_AUTHORITY_MAX ? (int)request->authority_len
		                                                     : ROUTE_AUTHORITY_MAX,
		        request->authority);
	if (!hop.authority.is_host)
		rc = validate(r, &hop.authority, &request->local);
	if (rc < 0)
		return rc;
	*status = ROUTE_STATUS_UNAVAILABLE;
	hop.port = hop.authority.port;
	if (hop.authority.is_host)
		rc = resolve_port(r, &hop);
	if (rc < 0)
		return rc;
	if (route_is_illegal_port(r->env, hop.port))
		return err_set(r->err, ERR_SELF_CALL, "%s", err_str(ERR_SELF_CALL));
	route->upstream = (struct addr){.ip = request->local.ip, .port = hop.port};
	route->requested = route->upstream;
	route->rbac_dst = route->upstream;
	rc = apply_tunnel(r, &hop, route);
	return rc < 0 ? rc : telemetry(r, &hop, request->forwarded_host, route);
}

int route_inbound(const struct route_env *env, const struct mesh_source *source, const struct workload *self,
        const struct route_request *request, struct route_inbound *ret_route, int *ret_status,
        struct err *err)
{
	struct routing r = {.env = env, .source = source, .self = self, .err = err};
	struct route_inbound route = {0};
	int status;
	int rc = decide(&r, request, &route, &status);

	if (rc == 0)
		rc = routing_keep(&r, 0, &route.views, &route.view_cnt, &route.block);
	routing_drop(&r);
	if (rc == 0)
		*ret_route = route;
	else if (rc != -EAGAIN)
		*ret_status = status;
	return rc;
}

int route_plaintext(const struct route_env *env, const struct mesh_source *source,
        const struct workload *self, const struct addr *dst, struct route_inbound *ret_route, struct err *err)
{
	struct routing r = {.env = env, .source = source, .self = self, .err = err};
	struct route_inbound route = {.upstream = *dst, .rbac_dst = *dst, .requested = *dst};

	if (route_is_illegal_port(env, dst->port))
		return err_set(err, ERR_SELF_CALL, "%s", err_str(ERR_SELF_CALL));
	int rc = guess_service(&r, dst->port, "", &route.service);
	if (rc == 0)
		rc = routing_keep(&r, 0, &route.views, &route.view_cnt, &route.block);
	routing_drop(&r);
	if (rc == 0)
		*ret_route = route;
	return rc;
}

void route_inbound_done(struct route_inbound *route)
{
	routing_release(&route->views, &route->view_cnt, &route->block);
	route->service = NULL;
}
