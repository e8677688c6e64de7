/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Services of the store: records, their indices, and the life of endpoints,
 * which may come before their service and outlive it (reference control.md
 * 8.3). An endpoint entry stays linked to its node whatever happens; whether
 * it counts is a mark on it, so that order of arrival does not matter.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "culvert/limits.h"
#include "mesh/record.h"
#include "mesh/store_int.h"

/* Room for a service with tens of thousands of named endpoints (mesh file); xDS services are far below. */
#define SERVICE_ARENA_MAX (64u << 20)

/* Writes namespace, zero, host name; false when it does not fit. */
static bool make_key(const char *ns, const char *hostname, char *dst, size_t cap, size_t *ret_len)
{
	size_t ns_len = strlen(ns), host_len = strlen(hostname);
	if (ns_len + 1 + host_len > cap)
		return false;
	memcpy(dst, ns, ns_len + 1);
	memcpy(dst + ns_len + 1, hostname, host_len);
	*ret_len = ns_len + 1 + host_len;
	return true;
}

struct svc_node *svc_find(const struct store *store, const char *ns, const char *hostname)
{
	char key[SVC_KEY_MAX];
	size_t len;
	return make_key(ns, hostname, key, sizeof(key), &len) ? map_get(&store->services, key, len) : NULL;
}

struct svc_node *svc_find_name(const struct store *store, const char *name)
{
	char ns[SVC_KEY_MAX];
	const char *slash = strchr(name, '/');

	if (!slash || (size_t)(slash - name) >= sizeof(ns))
		return NULL;
	memcpy(ns, name, (size_t)(slash - name));
	ns[slash - name] = 0;
	return svc_find(store, ns, slash + 1);
}

struct svc_node *svc_get(struct store *store, const char *ns, const char *hostname, int *ret_rc)
{
	struct svc_node *svc = svc_find(store, ns, hostname);
	if (svc)
		return svc;
	size_t len = strlen(ns) + 1 + strlen(hostname);
	if (len > SVC_KEY_MAX) {
		*ret_rc = -ENAMETOOLONG;
		return NULL;
	}
	svc = mem_zalloc(1, sizeof(*svc) + len + 1);
	if (!svc) {
		*ret_rc = -ENOMEM;
		return NULL;
	}
	make_key(ns, hostname, svc->key, len, &svc->key_len);
	svc->ns = svc->key;
	svc->hostname = svc->key + strlen(ns) + 1;
	list_init(&svc->eps);
	list_init(&svc->in_cidrs);
	svc->host.svc = svc;
	*ret_rc = map_put(&store->services, svc, NULL);
	if (*ret_rc < 0) {
		mem_free(svc);
		return NULL;
	}
	return svc;
}

void svc_settle(struct store *store, struct svc_node *svc)
{
	if (svc->record || !list_empty(&svc->eps))
		return;
	map_del(&store->services, svc->key, svc->key_len);
	mem_free(svc);
}

void svc_free(struct svc_node *svc)
{
	mem_free(svc->vips);
	mem_free(svc->extras);
	arena_unref(svc->arena);
	mem_free(svc);
}

/* Whether a service takes an endpoint of that health (control.md 8.3). */
static bool takes(const struct service *service, bool is_unhealthy)
{
	return !is_unhealthy || (service->has_lb && service->lb_health == LB_ALLOW_ALL);
}

void svc_admit(struct pw_ep *ep)
{
	ep->is_dropped = ep->svc->record && !takes(ep->svc->record, ep->owner->is_unhealthy);
}

/* The parts of a node that belong to its record, while they are exchanged. */
struct svc_parts {
	struct arena *arena;
	const struct service *record;
	const struct service_endpoint *endpoints;
	size_t endpoint_cnt;
	struct addr_slot *vips;
	struct extra_slot *extras;
	size_t extra_cnt;
};

static void parts_free(struct store *store, struct svc_parts *p)
{
	for (size_t i = 0; p->vips && i < p->record->vip_cnt; i++)
		intern_put(&store->names, p->vips[i].network);
	mem_free(p->vips);
	mem_free(p->extras);
	arena_unref(p->arena);
}

/* Copies into an arena of exactly the right size: services are many and live long. */
static int copy_record(struct arena *arena, const struct service *service,
        const struct service_endpoint *endpoints, size_t cnt, struct svc_parts *p)
{
	int rc = record_copy_service(arena, service, &p->record);
	if (rc == 0)
		rc = record_copy_endpoints(arena, endpoints, cnt, &p->endpoints);
	p->endpoint_cnt = cnt;
	return rc;
}

static int parts_copy(const struct service *service, const struct service_endpoint *endpoints, size_t cnt,
        struct svc_parts *p)
{
	struct arena *scratch = arena_new(SERVICE_ARENA_MAX);
	if (!scratch)
		return -ENOMEM;
	int rc = copy_record(scratch, service, endpoints, cnt, p);
	size_t used = arena_used(scratch);
	arena_unref(scratch);
	if (rc < 0)
		return rc;
	p->arena = arena_new_sized(used, SERVICE_ARENA_MAX);
	return p->arena ? copy_record(p->arena, service, endpoints, cnt, p) : -ENOMEM;
}

static int parts_make(struct store *store, struct svc_node *svc, const struct service *service,
        const struct service_endpoint *endpoints, size_t cnt, struct svc_parts *p)
{
	int rc = parts_copy(service, endpoints, cnt, p);
	if (rc < 0)
		return rc;
	const struct service *s = p->record;
	if (s->vip_cnt && !(p->vips = mem_zalloc(s->vip_cnt, sizeof(*p->vips))))
		return -ENOMEM;
	for (size_t i = 0; i < s->vip_cnt; i++) {
		p->vips[i].owner = svc;
		p->vips[i].ip = s->vips[i].ip;
		rc = intern_get(&store->names, s->vips[i].network, &p->vips[i].network);
		if (rc < 0)
			return rc;
	}
	if (cnt && !(p->extras = mem_zalloc(cnt, sizeof(*p->extras))))
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (takes(s, p->endpoints[i].status == WORKLOAD_UNHEALTHY))
			p->extras[p->extra_cnt++] =
			        (struct extra_slot){.svc = svc, .record = &p->endpoints[i]};
	}
	return 0;
}

static void unlink_slots(struct store *store, struct svc_parts *p, size_t vips, size_t extras)
{
	for (size_t i = 0; i < vips; i++)
		multi_unlink(&store->vips, &p->vips[i].multi);
	for (size_t i = 0; i < extras; i++)
		multi_unlink(&store->extras, &p->extras[i].multi);
}

static int link_slots(struct store *store, struct svc_parts *p)
{
	size_t vips = 0, extras = 0;
	int rc = 0;

	while (rc == 0 && vips < p->record->vip_cnt) {
		rc = multi_link(&store->vips, &p->vips[vips].multi);
		if (rc == 0)
			vips++;
	}
	while (rc == 0 && extras < p->extra_cnt) {
		rc = multi_link(&store->extras, &p->extras[extras].multi);
		if (rc == 0)
			extras++;
	}
	if (rc < 0)
		unlink_slots(store, p, vips, extras);
	return rc;
}

/* The node's record parts, taken out of it. */
static struct svc_parts parts_take(struct svc_node *svc)
{
	struct svc_parts p = {
	        .arena = svc->arena,
	        .record = svc->record,
	        .endpoints = svc->endpoints,
	        .endpoint_cnt = svc->endpoint_cnt,
	        .vips = svc->vips,
	        .extras = svc->extras,
	        .extra_cnt = svc->extra_cnt,
	};
	svc->arena = NULL;
	svc->record = NULL;
	svc->endpoints = NULL;
	svc->endpoint_cnt = 0;
	svc->vips = NULL;
	svc->extras = NULL;
	svc->extra_cnt = 0;
	return p;
}

static void parts_give(struct svc_node *svc, const struct svc_parts *p)
{
	svc->arena = p->arena;
	svc->record = p->record;
	svc->endpoints = p->endpoints;
	svc->endpoint_cnt = p->endpoint_cnt;
	svc->vips = p->vips;
	svc->extras = p->extras;
	svc->extra_cnt = p->extra_cnt;
}

/* Moves a service to the end of everything that goes by order of insertion. */
static void stamp(struct store *store, struct svc_node *svc, enum store_origin origin)
{
	svc->seq = ++store->seq;
	svc->origin = origin;
	svc->is_stale = false;
	list_del(&svc->in_cidrs);
	if (svc->record->cidr_cnt)
		list_add_tail(&store->cidr_svcs, &svc->in_cidrs);
}

/* Carries endpoints over to a new record: filtered again, never brought back but by a full replacement. */
static void refilter(const struct store *store, struct svc_node *svc)
{
	list_for_each(node, &svc->eps)
	{
		struct pw_ep *ep = list_entry(node, struct pw_ep, in_svc);
		if (store->is_replacing)
			ep->is_dropped = false;
		ep->is_dropped = ep->is_dropped || !takes(svc->record, ep->owner->is_unhealthy);
	}
}

/* Whether an address of the service is also another's, so that order decides. */
static bool shares_vip(const struct svc_node *svc)
{
	for (size_t i = 0; i < svc->record->vip_cnt; i++) {
		if (svc->vips[i].multi.next || svc->vips[i].multi.prev)
			return true;
	}
	return svc->record->cidr_cnt > 0 || svc->host.multi.next || svc->host.multi.prev;
}

/* An unchanged record; a full replacement brings endpoints back that a former record had dropped. */
static void refresh(struct store *store, struct svc_node *svc, enum store_origin origin)
{
	stamp(store, svc, origin);
	if (shares_vip(svc))
		store_tell_service(store, svc, svc->record);
	bool was_changed = false;
	if (!store->is_replacing)
		return;
	list_for_each(node, &svc->eps)
	{
		struct pw_ep *ep = list_entry(node, struct pw_ep, in_svc);
		bool was_dropped = ep->is_dropped;
		svc_admit(ep);
		was_changed = was_changed || ep->is_dropped != was_dropped;
	}
	if (was_changed)
		store_tell_service(store, svc, svc->record);
}

/* Puts a new record into a node, the old one aside. On failure the node is as before. */
static int exchange(
        struct store *store, struct svc_node *svc, struct svc_parts *fresh, struct svc_parts *ret_old)
{
	int rc = link_slots(store, fresh);
	if (rc < 0)
		return rc;
	if (!svc->record) {
		rc = multi_link(&store->hosts, &svc->host.multi);
		if (rc < 0) {
			unlink_slots(store, fresh, fresh->record->vip_cnt, fresh->extra_cnt);
			return rc;
		}
		store->service_cnt++;
	}
	*ret_old = parts_take(svc);
	if (ret_old->record)
		unlink_slots(store, ret_old, ret_old->record->vip_cnt, ret_old->extra_cnt);
	parts_give(svc, fresh);
	return 0;
}

int store_insert_service(struct store *store, const struct service *service,
        const struct service_endpoint *endpoints, size_t endpoint_cnt, enum store_origin origin)
{
	int rc;
	struct svc_node *svc = svc_get(store, service->ns, service->hostname, &rc);
	struct svc_parts fresh = {0}, old = {0};

	if (!svc)
		return rc;
	if (svc->record && record_eq_service(svc->record, service) &&
	        record_eq_endpoints(svc->endpoints, svc->endpoint_cnt, endpoints, endpoint_cnt)) {
		refresh(store, svc, origin);
		return 0;
	}
	rc = parts_make(store, svc, service, endpoints, endpoint_cnt, &fresh);
	if (rc == 0)
		rc = exchange(store, svc, &fresh, &old);
	if (rc < 0) {
		parts_free(store, &fresh);
		svc_settle(store, svc);
		return rc;
	}
	stamp(store, svc, origin);
	refilter(store, svc);
	if (old.record)
		store_tell_service(store, svc, old.record);
	store_tell_service(store, svc, svc->record);
	parts_free(store, &old);
	return 0;
}

static void remove_service(struct store *store, struct svc_node *svc)
{
	struct svc_parts old = parts_take(svc);

	unlink_slots(store, &old, old.record->vip_cnt, old.extra_cnt);
	multi_unlink(&store->hosts, &svc->host.multi);
	list_del(&svc->in_cidrs);
	store->service_cnt--;
	list_for_each(node, &svc->eps) list_entry(node, struct pw_ep, in_svc)->is_dropped = true;
	store_tell_service(store, svc, old.record);
	parts_free(store, &old);
	svc->is_stale = false;
	svc_settle(store, svc);
}

int store_remove_service(struct store *store, const char *ns, const char *hostname)
{
	struct svc_node *svc = svc_find(store, ns, hostname);
	if (!svc || !svc->record)
		return -ENOENT;
	remove_service(store, svc);
	return 0;
}

void svc_sweep(struct store *store)
{
	size_t cursor = 0;
	struct svc_node *svc;
	struct list gone, *node;

	list_init(&gone);
	while ((svc = map_next(&store->services, &cursor))) {
		if (!svc->is_stale)
			continue;
		list_del(&svc->in_cidrs);
		list_add_tail(&gone, &svc->in_cidrs);
	}
	while ((node = list_pop(&gone)))
		remove_service(store, list_entry(node, struct svc_node, in_cidrs));
}
