/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workloads in packed form: one block each, repeated names interned, about
 * 270 bytes for a pod with one address and one service, where the plain
 * record with its strings takes three times as much.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "mesh/store_int.h"

_Static_assert(offsetof(struct addr_slot, ip) == offsetof(struct addr_slot, network) + sizeof(uint32_t),
        "the key of an address is one run of bytes");

/* Where the parts of a block lie. */
struct layout {
	size_t eps, gateways, policies, ports, uid, name, size;
};

static struct layout layout_of(const struct workload *w, size_t port_cnt, bool has_name_in_uid)
{
	size_t gateway_cnt = (size_t)w->has_waypoint + w->has_network_gateway;
	struct layout l;

	l.eps = sizeof(struct pw) + w->ip_cnt * sizeof(struct addr_slot);
	l.gateways = l.eps + w->service_cnt * sizeof(struct pw_ep);
	l.policies = l.gateways + gateway_cnt * sizeof(struct pw_gateway);
	l.ports = l.policies + w->policy_cnt * sizeof(uint32_t);
	l.uid = l.ports + port_cnt * sizeof(struct port_map);
	l.name = l.uid + strlen(w->uid) + 1;
	l.size = l.name + (has_name_in_uid ? 0 : strlen(w->name) + 1);
	return l;
}

/* The parts between eps and uid, found from the front. */
static struct pw_gateway *gateways_of(const struct pw *pw)
{
	return (struct pw_gateway *)(void *)(pw_eps(pw) + pw->ep_cnt);
}

static uint32_t *policies_of(const struct pw *pw)
{
	return (uint32_t *)(void *)(gateways_of(pw) + pw->has_waypoint + pw->has_gateway);
}

static struct port_map *ports_of(const struct pw *pw)
{
	return (struct port_map *)(void *)(policies_of(pw) + pw->policy_cnt);
}

const char *pw_name(const struct pw *pw)
{
	return pw->has_name_in_uid ? strrchr(pw->uid, '/') + 1 : pw->uid + strlen(pw->uid) + 1;
}

/* Whether the name need not be kept beside the uid. */
static bool ends_with_name(const char *uid, const char *name)
{
	const char *slash = strrchr(uid, '/');
	return slash && strcmp(slash + 1, name) == 0;
}

const char *pw_text(const struct store *store, const struct pw *pw, enum pw_str str)
{
	return intern_text(&store->names, pw->ids[str]);
}

const struct port_map *pw_ports(const struct pw *pw, const struct pw_ep *ep)
{
	return ports_of(pw) + ep->port_at;
}

static int check_size(const struct workload *w, size_t *ret_ports)
{
	size_t ports = 0;

	if (w->ip_cnt > STORE_WORKLOAD_IPS_MAX || w->service_cnt > STORE_WORKLOAD_SERVICES_MAX ||
	        w->policy_cnt > STORE_WORKLOAD_POLICIES_MAX)
		return ERR_TOO_MANY;
	for (size_t i = 0; i < w->service_cnt; i++) {
		if (w->services[i].port_cnt > UINT16_MAX)
			return ERR_TOO_MANY;
		ports += w->services[i].port_cnt;
	}
	/* A block stays far below 4 GB, the type of its size. */
	if (ports > (1u << 24) || strlen(w->uid) > (1u << 20) || strlen(w->name) > (1u << 20))
		return ERR_TOO_MANY;
	*ret_ports = ports;
	return 0;
}

static int intern_strings(struct intern *names, const struct workload *w, struct pw *pw)
{
	const char *const texts[PW_STR_CNT] = {
	        [PW_NS] = w->ns,
	        [PW_TRUST_DOMAIN] = w->trust_domain,
	        [PW_SERVICE_ACCOUNT] = w->service_account,
	        [PW_NETWORK] = w->network,
	        [PW_WORKLOAD_NAME] = w->workload_name,
	        [PW_WORKLOAD_TYPE] = w->workload_type,
	        [PW_CANONICAL_NAME] = w->canonical_name,
	        [PW_CANONICAL_REVISION] = w->canonical_revision,
	        [PW_HOSTNAME] = w->hostname,
	        [PW_NODE] = w->node,
	        [PW_CLUSTER] = w->cluster_id,
	        [PW_REGION] = w->locality.region,
	        [PW_ZONE] = w->locality.zone,
	        [PW_SUBZONE] = w->locality.subzone,
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < PW_STR_CNT; i++)
		rc = intern_get(names, texts[i], &pw->ids[i]);
	for (size_t i = 0; rc == 0 && i < w->policy_cnt; i++)
		rc = intern_get(names, w->policies[i], &policies_of(pw)[i]);
	return rc;
}

static int pack_gateway(struct intern *names, const struct gateway_ref *ref, struct pw_gateway *ret_gateway)
{
	*ret_gateway = (struct pw_gateway){.is_host = ref->is_host, .port = ref->hbone_port};
	if (!ref->is_host)
		ret_gateway->ip = ref->addr.ip;
	int rc = intern_get(names, ref->is_host ? ref->ns : ref->addr.network, &ret_gateway->a);
	if (rc == 0)
		rc = intern_get(names, ref->is_host ? ref->host : "", &ret_gateway->b);
	return rc;
}

static int pack_gateways(struct intern *names, const struct workload *w, struct pw *pw)
{
	struct pw_gateway *at = gateways_of(pw);
	int rc = 0;

	if (w->has_waypoint)
		rc = pack_gateway(names, &w->waypoint, at++);
	if (rc == 0 && w->has_network_gateway)
		rc = pack_gateway(names, &w->network_gateway, at);
	return rc;
}

/* A second entry for the same service takes the place of the first, as in a map. */
static void join_service(struct pw_ep *ep)
{
	struct list *eps = &ep->svc->eps;

	if (!list_empty(eps)) {
		struct pw_ep *last = list_entry(eps->prev, struct pw_ep, in_svc);
		if (last->owner == ep->owner) {
			list_del(&last->in_svc);
			last->svc = NULL;
		}
	}
	list_add_tail(eps, &ep->in_svc);
}

static int pack_services(struct store *store, const struct workload *w, struct pw *pw)
{
	struct port_map *ports = ports_of(pw);
	uint32_t at = 0;
	int rc = 0;

	for (size_t i = 0; i < w->service_cnt; i++) {
		const struct workload_service *s = &w->services[i];
		pw_eps(pw)[i].svc = svc_get(store, s->ns, s->hostname, &rc);
		if (!pw_eps(pw)[i].svc)
			return rc;
		join_service(&pw_eps(pw)[i]);
		pw_eps(pw)[i].port_at = at;
		pw_eps(pw)[i].port_cnt = (uint16_t)s->port_cnt;
		if (s->port_cnt)
			memcpy(ports + at, s->ports, s->port_cnt * sizeof(*ports));
		at += (uint32_t)s->port_cnt;
	}
	return 0;
}

static void pack_plain(const struct workload *w, struct pw *pw, enum store_origin origin)
{
	pw->capacity = w->capacity;
	pw->app_port = w->app_tunnel_port;
	pw->protocol = (uint8_t)w->protocol;
	pw->app_protocol = (uint8_t)w->app_tunnel_protocol;
	pw->is_host_network = w->network_mode == NETWORK_MODE_HOST;
	pw->is_unhealthy = w->status == WORKLOAD_UNHEALTHY;
	pw->is_native = w->native_tunnel;
	pw->has_app_tunnel = w->has_app_tunnel;
	pw->origin = origin;
	for (size_t i = 0; i < w->ip_cnt; i++) {
		pw->addrs[i].owner = pw;
		pw->addrs[i].network = pw->ids[PW_NETWORK];
		pw->addrs[i].ip = w->ips[i];
	}
}

/* A block with its lists laid out, empty of all that is counted elsewhere. NULL when out of memory. */
static struct pw *make_block(const struct workload *w, size_t port_cnt)
{
	bool in_uid = ends_with_name(w->uid, w->name);
	struct layout l = layout_of(w, port_cnt, in_uid);
	struct pw *pw = mem_zalloc(1, l.size);
	char *base = (char *)pw;

	if (!pw)
		return NULL;
	pw->uid = base + l.uid;
	memcpy(pw->uid, w->uid, strlen(w->uid));
	pw->has_name_in_uid = in_uid;
	if (!in_uid)
		memcpy(base + l.name, w->name, strlen(w->name));
	pw->size = (uint32_t)l.size;
	pw->ip_cnt = (uint16_t)w->ip_cnt;
	pw->ep_cnt = (uint16_t)w->service_cnt;
	pw->policy_cnt = (uint16_t)w->policy_cnt;
	pw->port_cnt = (uint32_t)port_cnt;
	pw->has_waypoint = w->has_waypoint;
	pw->has_gateway = w->has_network_gateway;
	list_init(&pw->in_ident);
	for (size_t i = 0; i < pw->ep_cnt; i++) {
		list_init(&pw_eps(pw)[i].in_svc);
		pw_eps(pw)[i].owner = pw;
	}
	return pw;
}

int pw_new(struct store *store, const struct workload *w, enum store_origin origin, struct pw **ret_pw)
{
	size_t port_cnt;
	int rc = check_size(w, &port_cnt);

	if (rc < 0)
		return rc;
	struct pw *pw = make_block(w, port_cnt);
	if (!pw)
		return -ENOMEM;
	store->workload_bytes += pw->size;
	rc = intern_strings(&store->names, w, pw);
	if (rc == 0)
		rc = pack_gateways(&store->names, w, pw);
	if (rc == 0)
		rc = pack_services(store, w, pw);
	if (rc < 0) {
		pw_free(store, pw);
		return rc;
	}
	pack_plain(w, pw, origin);
	pw->seq = ++store->seq;
	*ret_pw = pw;
	return 0;
}

void pw_free(struct store *store, struct pw *pw)
{
	if (!pw)
		return;
	for (size_t i = 0; i < pw->ep_cnt; i++) {
		list_del(&pw_eps(pw)[i].in_svc);
		if (pw_eps(pw)[i].svc)
			svc_settle(store, pw_eps(pw)[i].svc);
	}
	for (size_t i = 0; i < PW_STR_CNT; i++)
		intern_put(&store->names, pw->ids[i]);
	for (size_t i = 0; i < pw->policy_cnt; i++)
		intern_put(&store->names, policies_of(pw)[i]);
	for (size_t i = 0; i < (size_t)pw->has_waypoint + pw->has_gateway; i++) {
		intern_put(&store->names, gateways_of(pw)[i].a);
		intern_put(&store->names, gateways_of(pw)[i].b);
	}
	store->workload_bytes -= pw->size;
	mem_free(pw);
}

static bool same_gateways(const struct pw *a, const struct pw *b)
{
	const struct pw_gateway *ga = gateways_of(a), *gb = gateways_of(b);

	if (a->has_waypoint != b->has_waypoint || a->has_gateway != b->has_gateway)
		return false;
	for (size_t i = 0; i < (size_t)a->has_waypoint + a->has_gateway; i++) {
		if (ga[i].a != gb[i].a || ga[i].b != gb[i].b || ga[i].is_host != gb[i].is_host ||
		        ga[i].port != gb[i].port || !ip_eq(&ga[i].ip, &gb[i].ip))
			return false;
	}
	return true;
}

static bool same_eps(const struct pw *a, const struct pw *b)
{
	if (a->ep_cnt != b->ep_cnt || a->port_cnt != b->port_cnt)
		return false;
	for (size_t i = 0; i < a->ep_cnt; i++) {
		if (pw_eps(a)[i].svc != pw_eps(b)[i].svc || pw_eps(a)[i].port_cnt != pw_eps(b)[i].port_cnt)
			return false;
	}
	return memcmp(ports_of(a), ports_of(b), a->port_cnt * sizeof(struct port_map)) == 0;
}

static bool same_addrs(const struct pw *a, const struct pw *b)
{
	for (size_t i = 0; i < a->ip_cnt; i++) {
		if (!ip_eq(&a->addrs[i].ip, &b->addrs[i].ip))
			return false;
	}
	return true;
}

bool pw_same(const struct pw *a, const struct pw *b)
{
	return a->size == b->size && a->ip_cnt == b->ip_cnt && a->policy_cnt == b->policy_cnt &&
	       memcmp(a->ids, b->ids, sizeof(a->ids)) == 0 && a->capacity == b->capacity &&
	       a->app_port == b->app_port && a->protocol == b->protocol &&
	       a->app_protocol == b->app_protocol && a->is_host_network == b->is_host_network &&
	       a->is_unhealthy == b->is_unhealthy && a->is_native == b->is_native &&
	       a->has_app_tunnel == b->has_app_tunnel && strcmp(a->uid, b->uid) == 0 &&
	       strcmp(pw_name(a), pw_name(b)) == 0 && same_gateways(a, b) && same_eps(a, b) &&
	       same_addrs(a, b) &&
	       memcmp(policies_of(a), policies_of(b), a->policy_cnt * sizeof(uint32_t)) == 0;
}

/* A copy out of the store under way; the first failure sticks. */
struct unpacker {
	const struct intern *names;
	struct arena *arena;
	bool failed;
};

static const char *copy_text(struct unpacker *u, const char *text, const char *like)
{
	if (text[0] == 0)
		return "";
	if (like && strcmp(text, like) == 0)
		return like;
	const char *copy = u->failed ? NULL : arena_strdup(u->arena, text);
	if (!copy)
		u->failed = true;
	return copy ? copy : "";
}

static const char *copy_id(struct unpacker *u, uint32_t id, const char *like)
{
	return copy_text(u, intern_text(u->names, id), like);
}

static void *copy_array(struct unpacker *u, size_t cnt, size_t size)
{
	void *p = cnt && !u->failed ? arena_zalloc(u->arena, cnt, size) : NULL;
	if (cnt && !p)
		u->failed = true;
	return p;
}

static struct gateway_ref copy_gateway(
        struct unpacker *u, const struct pw_gateway *g, const struct gateway_ref *like)
{
	struct gateway_ref ref = {.is_host = g->is_host, .hbone_port = g->port};

	ref.addr.ip = g->ip;
	ref.addr.network = g->is_host ? "" : copy_id(u, g->a, like ? like->addr.network : NULL);
	ref.ns = g->is_host ? copy_id(u, g->a, like ? like->ns : NULL) : "";
	ref.host = g->is_host ? copy_id(u, g->b, like ? like->host : NULL) : "";
	return ref;
}

/* Copies the interned strings, sharing with `like` where it has the same. */
static void copy_strings(
        struct unpacker *u, const struct pw *pw, const struct workload *like, struct workload *w)
{
#define COPY(field, str) w->field = copy_id(u, pw->ids[str], like ? like->field : NULL)
	COPY(ns, PW_NS);
	COPY(trust_domain, PW_TRUST_DOMAIN);
	COPY(service_account, PW_SERVICE_ACCOUNT);
	COPY(network, PW_NETWORK);
	COPY(workload_name, PW_WORKLOAD_NAME);
	COPY(workload_type, PW_WORKLOAD_TYPE);
	COPY(canonical_name, PW_CANONICAL_NAME);
	COPY(canonical_revision, PW_CANONICAL_REVISION);
	COPY(hostname, PW_HOSTNAME);
	COPY(node, PW_NODE);
	COPY(cluster_id, PW_CLUSTER);
	COPY(locality.region, PW_REGION);
	COPY(locality.zone, PW_ZONE);
	COPY(locality.subzone, PW_SUBZONE);
#undef COPY
}

static void copy_lists(struct unpacker *u, const struct pw *pw, struct workload *w)
{
	const char **policies = copy_array(u, pw->policy_cnt, sizeof(*policies));
	struct workload_service *services = copy_array(u, pw->ep_cnt, sizeof(*services));
	size_t n = 0;

	for (size_t i = 0; policies && i < pw->policy_cnt; i++)
		policies[i] = copy_id(u, policies_of(pw)[i], NULL);
	for (size_t i = 0; services && i < pw->ep_cnt; i++) {
		const struct pw_ep *ep = &pw_eps(pw)[i];
		if (!ep->svc)
			continue;
		struct port_map *ports = copy_array(u, ep->port_cnt, sizeof(*ports));
		if (ports)
			memcpy(ports, pw_ports(pw, ep), ep->port_cnt * sizeof(*ports));
		services[n++] = (struct workload_service){
		        .ns = copy_text(u, ep->svc->ns, w->ns),
		        .hostname = copy_text(u, ep->svc->hostname, NULL),
		        .ports = ports,
		        .port_cnt = ports ? ep->port_cnt : 0,
		};
	}
	w->policies = policies;
	w->policy_cnt = pw->policy_cnt;
	w->services = services;
	w->service_cnt = n;
}

int pw_unpack(const struct store *store, const struct pw *pw, struct arena *arena, enum pw_detail detail,
        const struct workload *like, struct workload *ret_workload)
{
	struct unpacker u = {.names = &store->names, .arena = arena};
	const struct pw_gateway *gateway = gateways_of(pw);
	struct workload w = {
	        .capacity = pw->capacity,
	        .protocol = (enum workload_protocol)pw->protocol,
	        .network_mode = pw->is_host_network ? NETWORK_MODE_HOST : NETWORK_MODE_STANDARD,
	        .status = pw->is_unhealthy ? WORKLOAD_UNHEALTHY : WORKLOAD_HEALTHY,
	        .native_tunnel = pw->is_native,
	        .has_waypoint = pw->has_waypoint,
	        .waypoint = {.addr.network = "", .ns = "", .host = ""},
	        .has_network_gateway = pw->has_gateway,
	        .network_gateway = {.addr.network = "", .ns = "", .host = ""},
	        .has_app_tunnel = pw->has_app_tunnel,
	        .app_tunnel_protocol = (enum app_tunnel_protocol)pw->app_protocol,
	        .app_tunnel_port = pw->app_port,
	};

	w.uid = copy_text(&u, pw->uid, NULL);
	w.name = copy_text(&u, pw_name(pw), NULL);
	copy_strings(&u, pw, like, &w);
	if (pw->has_waypoint)
		w.waypoint = copy_gateway(&u, gateway++, like ? &like->waypoint : NULL);
	if (pw->has_gateway)
		w.network_gateway = copy_gateway(&u, gateway, like ? &like->network_gateway : NULL);
	struct ip *ips = copy_array(&u, pw->ip_cnt, sizeof(*ips));
	for (size_t i = 0; ips && i < pw->ip_cnt; i++)
		ips[i] = pw->addrs[i].ip;
	w.ips = ips;
	w.ip_cnt = ips ? pw->ip_cnt : 0;
	if (detail == PW_FULL)
		copy_lists(&u, pw, &w);
	if (u.failed)
		return -ENOMEM;
	*ret_workload = w;
	return 0;
}
