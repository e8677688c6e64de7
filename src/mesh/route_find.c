/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lookups of routing, reference dataplane.md 4.3 to 4.6: an address or a
 * reference becomes a workload, a port and an address to connect to.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "mesh/route_int.h"

int routing_deny(struct routing *r, int code, const char *fmt, ...)
{
	char detail[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	return err_set(r->err, code, "%s: %s", err_str(code), detail);
}

int routing_view(struct routing *r, const struct view_key *key, const struct view **ret_view)
{
	for (size_t i = 0; i < r->view_cnt; i++) {
		if (view_key_eq(&r->views[i]->key, key)) {
			*ret_view = r->views[i];
			return 0;
		}
	}
	if (r->view_cnt == ROUTING_VIEWS_MAX)
		return err_set(r->err, ERR_TOO_MANY, "one decision needs too many lookups");
	struct view *view;
	int rc = r->source->view(r->source->ctx, key, &view);
	if (rc < 0)
		return rc == -EAGAIN ? rc : err_set(r->err, rc, "%s", err_str(rc));
	r->views[r->view_cnt++] = view;
	*ret_view = view;
	return 0;
}

void routing_drop_last(struct routing *r)
{
	view_unref(r->views[--r->view_cnt]);
}

void routing_drop(struct routing *r)
{
	while (r->view_cnt)
		routing_drop_last(r);
}

bool routing_owns(const struct workload *workload, const struct ip *ip)
{
	for (size_t i = 0; i < workload->ip_cnt; i++) {
		if (ip_eq(&workload->ips[i], ip))
			return true;
	}
	return false;
}

static uint64_t chance(const struct routing *r, enum routing_step step)
{
	return lb_mix(r->env->random, step);
}

/* One endpoint of a service, with its port. */
static void from_service(struct routing *r, const struct view *view, uint16_t port,
        enum lb_resolution resolution, enum routing_step step, struct upstream *ret_upstream)
{
	const struct lb_query query = {
	        .source = r->self,
	        .port = port,
	        .resolution = resolution,
	        .random = chance(r, step),
	        .avoid = r->env->avoid,
	        .avoid_cnt = r->env->avoid_cnt,
	};
	const struct endpoint *ep = lb_choose(view->service, view->endpoints, view->endpoint_cnt, &query);
	uint16_t target = ep ? lb_target_port(view->service, ep, port) : 0;

	if (target == 0)
		return;
	ret_upstream->workload = ep->workload;
	ret_upstream->service = view->service;
	ret_upstream->port = target;
}

int routing_find(struct routing *r, const char *network, const struct addr *dst,
        enum lb_resolution resolution, enum routing_step step, struct upstream *ret_upstream)
{
	struct view_key key = view_key_address(network, &dst->ip);
	const struct view *view;
	int rc = routing_view(r, &key, &view);

	if (rc < 0)
		return rc;
	*ret_upstream = (struct upstream){0};
	if (view->service) {
		/* By its address a PASSTHROUGH service is never balanced (4.3). */
		if (!view->service->has_lb || view->service->lb_mode != LB_MODE_PASSTHROUGH)
			from_service(r, view, dst->port, resolution, step, ret_upstream);
	} else if (view->workload) {
		ret_upstream->workload = view->workload;
		ret_upstream->port = dst->port;
	}
	return 0;
}

static bool family_allowed(enum ip_families families, const struct ip *ip)
{
	switch (families) {
	case IP_FAMILIES_V4:
		return ip->family == 4;
	case IP_FAMILIES_V6:
		return ip->family == 6;
	case IP_FAMILIES_AUTOMATIC:
	case IP_FAMILIES_DUAL:
		break;
	}
	return true;
}

/* The first allowed address of the family, else the first allowed one. */
static const struct ip *prefer(const struct workload *w, enum ip_families families, uint8_t family)
{
	const struct ip *first = NULL;

	for (size_t i = 0; i < w->ip_cnt; i++) {
		if (!family_allowed(families, &w->ips[i]))
			continue;
		if (w->ips[i].family == family)
			return &w->ips[i];
		if (!first)
			first = &w->ips[i];
	}
	return first;
}

/* A random one of those with (or without) the family; NULL when there is none. */
static const struct ip *draw(const struct ip *ips, size_t cnt, uint8_t family, bool same, uint64_t random)
{
	uint32_t weights[ROUTE_RESOLVED_MAX];

	for (size_t i = 0; i < cnt; i++)
		weights[i] = (ips[i].family == family) == same;
	int at = lb_pick_weighted(weights, cnt, random);
	return at < 0 ? NULL : &ips[at];
}

static int resolve_hostname(struct routing *r, const struct workload *w, uint8_t family, struct ip *ret_ip)
{
	struct ip ips[ROUTE_RESOLVED_MAX];
	size_t cnt = 0;
	int rc = -EHOSTUNREACH;

	if (r->source->resolve)
		rc = r->source->resolve(r->source->ctx, w->hostname, ips, ROUTE_RESOLVED_MAX, &cnt);
	if (rc == -EAGAIN)
		return rc;
	if (rc < 0 || cnt > ROUTE_RESOLVED_MAX)
		return routing_deny(r, ERR_NO_RESOLVED_IP, "%s", w->name);
	const struct ip *ip = draw(ips, cnt, family, true, chance(r, STEP_RESOLVED));
	if (!ip)
		ip = draw(ips, cnt, family, false, chance(r, STEP_RESOLVED));
	if (!ip)
		return err_set(r->err, ERR_NO_A_RECORDS,
		        "ip addresses were resolved for workload %s, but valid dns response had no A/AAAA records",
		        w->name);
	*ret_ip = *ip;
	return 0;
}

int routing_pick_ip(struct routing *r, const struct ip *dialled, struct upstream *up)
{
	const struct workload *w = up->workload;

	if (routing_owns(w, dialled)) {
		up->ip = *dialled;
		return 0;
	}
	const struct ip *ip =
	        prefer(w, up->service ? up->service->families : IP_FAMILIES_AUTOMATIC, dialled->family);
	if (ip) {
		up->ip = *ip;
		return 0;
	}
	if (w->hostname[0])
		return resolve_hostname(r, w, dialled->family, &up->ip);
	if (!w->has_network_gateway)
		return routing_deny(r, ERR_NO_DESTINATION, "%s", w->name);
	up->ip = (struct ip){0};
	return 0;
}

static int unresolved(struct routing *r, const struct gateway_ref *ref, int code)
{
	char ip[IP_STR_MAX];

	if (ref->is_host)
		return routing_deny(r, code, "%s/%s:%u", ref->ns, ref->host, ref->hbone_port);
	return routing_deny(
	        r, code, "%s/%s:%u", ref->addr.network, ip_format(&ref->addr.ip, ip), ref->hbone_port);
}

int routing_resolve(struct routing *r, const struct gateway_ref *ref, const struct addr *dialled,
        enum lb_resolution resolution, enum routing_step step, int code, struct upstream *ret_upstream)
{
	struct upstream up = {0};
	const struct ip *target = &dialled->ip;
	int rc;

	if (ref->is_host) {
		struct view_key key = view_key_host(ref->ns, ref->host);
		const struct view *view;
		rc = routing_view(r, &key, &view);
		if (rc == 0 && view->service) {
			from_service(r, view, ref->hbone_port, resolution, step, &up);
		} else if (rc == 0) {
			up.workload = view->workload;
			up.port = ref->hbone_port;
		}
	} else {
		struct addr addr = {.ip = ref->addr.ip, .port = ref->hbone_port};
		target = &ref->addr.ip;
		rc = routing_find(r, ref->addr.network, &addr, resolution, step, &up);
	}
	if (rc == 0 && !up.workload)
		rc = unresolved(r, ref, code);
	if (rc == 0)
		rc = routing_pick_ip(r, target, &up);
	if (rc == 0)
		*ret_upstream = up;
	return rc;
}

int routing_keep(struct routing *r, size_t extra, struct view ***ret_views, size_t *ret_cnt, void **ret_block)
{
	size_t views_len = r->view_cnt * sizeof(struct view *);
	struct view **views = mem_alloc(views_len + extra + 1);

	if (!views)
		return err_set(r->err, -ENOMEM, "%s", err_str(-ENOMEM));
	memcpy(views, r->views, views_len);
	*ret_views = views;
	*ret_cnt = r->view_cnt;
	*ret_block = views;
	r->view_cnt = 0;
	return 0;
}

void routing_release(struct view ***views, size_t *cnt, void **block)
{
	for (size_t i = 0; i < *cnt; i++)
		view_unref((*views)[i]);
	mem_free(*block);
	*views = NULL;
	*cnt = 0;
	*block = NULL;
}
