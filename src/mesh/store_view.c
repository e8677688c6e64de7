/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Views cut from the store: who owns an address or a name, as the asker may
 * see it (reference dataplane.md 3.4, 3.5), and which endpoints of a large
 * service the asker is told of. Reads only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "culvert/limits.h"
#include "mesh/lb.h"
#include "mesh/record.h"
#include "mesh/store_int.h"

/* Ceiling of a view: every endpoint of the largest record, plus service and workload. */
#define VIEW_ARENA_MAX ((size_t)(LIMIT_VIEW_ENDPOINTS + 2) * LIMIT_RECORD_ARENA)

/* The slots of an address in one of the two indices. */
static struct multi *slots_of(
        const struct store *store, const struct map *index, const char *network, const struct ip *ip)
{
	struct addr_slot key = {.ip = *ip};
	if (intern_find(&store->names, network, &key.network) < 0)
		return NULL;
	return multi_get(index, &key.network, ADDR_KEY_LEN);
}

/* Rank of a workload among those with the same address (control.md 8.2). */
static unsigned claim(const struct pw *pw)
{
	return (strstr(pw->uid, "//Pod/") ? 2u : 0u) + (pw->protocol == WORKLOAD_HBONE ? 1u : 0u);
}

const struct pw *view_find_workload(const struct store *store, const char *network, const struct ip *ip)
{
	const struct pw *best = NULL;

	for (struct multi *m = slots_of(store, &store->addresses, network, ip); m; m = m->next) {
		const struct pw *pw = ((struct addr_slot *)(void *)m)->owner;
		if (!best || claim(pw) > claim(best) || (claim(pw) == claim(best) && pw->seq > best->seq))
			best = pw;
	}
	return best;
}

/* Whose eyes a service is looked at with. */
struct eyes {
	const char *ns; /* namespace of the asker; NULL: nothing is hidden and nobody preferred */
};

static bool is_visible(const struct eyes *eyes, const struct service *s)
{
	return s->visibility == VISIBILITY_PUBLIC || !eyes->ns || strcmp(s->ns, eyes->ns) == 0;
}

static bool is_own(const struct eyes *eyes, const struct service *s)
{
	return eyes->ns && strcmp(s->ns, eyes->ns) == 0;
}

/*
 * Of two services with the same address or name the better one: the asker's
 * namespace, else canonical (the later one), else the one inserted first.
 */
static const struct svc_node *better(
        const struct eyes *eyes, const struct svc_node *a, const struct svc_node *b)
{
	bool own_a = is_own(eyes, a->record), own_b = is_own(eyes, b->record);

	if (own_a != own_b)
		return own_a ? a : b;
	if (a->record->canonical != b->record->canonical)
		return a->record->canonical ? a : b;
	if (own_a || a->record->canonical)
		return a->seq > b->seq ? a : b;
	return a->seq < b->seq ? a : b;
}

/* One namespace has one slot per address: its newest service (dataplane.md 3.4). */
static bool is_shadowed(const struct multi *slots, const struct svc_node *svc)
{
	for (const struct multi *m = slots; m; m = m->next) {
		const struct svc_node *other = ((const struct addr_slot *)(const void *)m)->owner;
		if (other->seq > svc->seq && strcmp(other->ns, svc->ns) == 0)
			return true;
	}
	return false;
}

static const struct svc_node *find_vip(
        const struct store *store, const struct eyes *eyes, const char *network, const struct ip *ip)
{
	struct multi *slots = slots_of(store, &store->vips, network, ip);
	const struct svc_node *best = NULL;

	for (struct multi *m = slots; m; m = m->next) {
		const struct svc_node *svc = ((struct addr_slot *)(void *)m)->owner;
		if (!is_visible(eyes, svc->record) || is_shadowed(slots, svc))
			continue;
		best = best ? better(eyes, best, svc) : svc;
	}
	return best;
}

/* Longest matching range of a service, or -1. */
static int cidr_len(const struct service *s, const char *network, const struct ip *ip)
{
	int best = -1;

	for (size_t i = 0; i < s->cidr_cnt; i++) {
		const struct net_cidr *c = &s->cidrs[i];
		if ((int)c->cidr.len > best && cidr_contains(&c->cidr, ip) &&
		        strcmp(c->network, network) == 0)
			best = c->cidr.len;
	}
	return best;
}

/* Own namespace, then prefix length, then canonical; the earliest wins a tie, and the list is in that order.
 */
static const struct svc_node *find_cidr(
        const struct store *store, const struct eyes *eyes, const char *network, const struct ip *ip)
{
	const struct svc_node *best = NULL;
	int best_rank = -1;

	list_for_each(node, &store->cidr_svcs)
	{
		const struct svc_node *svc = list_entry(node, struct svc_node, in_cidrs);
		int len = is_visible(eyes, svc->record) ? cidr_len(svc->record, network, ip) : -1;
		if (len < 0)
			continue;
		int rank = is_own(eyes, svc->record) * 1024 + len * 2 + svc->record->canonical;
		if (rank > best_rank) {
			best = svc;
			best_rank = rank;
		}
	}
	return best;
}

static const struct svc_node *find_hostname(
        const struct store *store, const struct eyes *eyes, const char *hostname)
{
	const struct svc_node *best = NULL;

	for (struct multi *m = multi_get(&store->hosts, hostname, strlen(hostname)); m; m = m->next) {
		const struct svc_node *svc = ((struct host_slot *)(void *)m)->svc;
		if (is_visible(eyes, svc->record))
			best = best ? better(eyes, best, svc) : svc;
	}
	return best;
}

/* Whether the name of a service ends with .svc.<domain>. */
static bool is_cluster_name(const char *hostname, const char *domain)
{
	size_t len = strlen(hostname), domain_len = strlen(domain);
	if (len < domain_len + 5)
		return false;
	const char *tail = hostname + len - domain_len - 5;
	return strncmp(tail, ".svc.", 5) == 0 && strcmp(tail + 5, domain) == 0;
}

/* As find_hostname, among services that DNS answers for (control.md 10.3, 5). */
static const struct svc_node *find_name(
        const struct store *store, const struct eyes *eyes, const struct store_dns *dns, const char *hostname)
{
	const struct svc_node *best = NULL, *preferred = NULL;

	for (struct multi *m = multi_get(&store->hosts, hostname, strlen(hostname)); m; m = m->next) {
		const struct svc_node *svc = ((struct host_slot *)(void *)m)->svc;
		if (!is_visible(eyes, svc->record) ||
		        (svc->record->vip_cnt == 0 && !is_cluster_name(hostname, dns->domain)))
			continue;
		best = best ? better(eyes, best, svc) : svc;
		if (dns->preferred && strcmp(svc->ns, dns->preferred) == 0)
			preferred = svc;
	}
	if (!best || !preferred || is_own(eyes, best->record) || best->record->canonical)
		return best;
	return preferred;
}

/* Workloads have no index by host name (control.md 8.1): numbers of interned strings make the walk cheap. */
static const struct pw *scan_hostname(const struct store *store, const char *ns, const char *hostname)
{
	uint32_t ns_id, host_id;
	size_t cursor = 0;
	const struct pw *pw, *best = NULL;

	if (hostname[0] == 0 || intern_find(&store->names, ns, &ns_id) < 0 ||
	        intern_find(&store->names, hostname, &host_id) < 0)
		return NULL;
	while ((pw = map_next(&store->workloads, &cursor))) {
		if (pw->ids[PW_HOSTNAME] == host_id && pw->ids[PW_NS] == ns_id &&
		        (!best || pw->seq < best->seq))
			best = pw;
	}
	return best;
}

const struct pw *view_extra_workload(
        const struct store *store, const struct svc_node *svc, const struct service_endpoint *extra)
{
	const struct pw *pw = map_get_str(&store->workloads, extra->workload_uid);

	for (size_t i = 0; pw && i < pw->ep_cnt; i++) {
		if (pw_eps(pw)[i].svc == svc)
			return NULL;
	}
	return pw;
}

/* An endpoint that may go into a view. */
struct candidate {
	const struct pw *pw;
	const struct port_map *ports;
	size_t port_cnt;
	uint64_t order; /* chance, the same for the same asker */
	unsigned rank;  /* by locality; 0 where it does not count */
	bool is_self;
	bool has_weight;
	bool is_unhealthy;
};

/* Candidates being collected. */
struct selection {
	const struct store *store;
	const struct service *service;
	struct lb_place place; /* of the asker */
	const char *self;      /* uid of the asker, "" = none */
	struct hash_seed seed;
	bool by_rank;
	struct candidate *list;
	size_t cnt;
	size_t cap;
};

static struct lb_place place_of(const struct store *store, const struct pw *pw)
{
	return (struct lb_place){
	        .network = pw_text(store, pw, PW_NETWORK),
	        .node = pw_text(store, pw, PW_NODE),
	        .cluster_id = pw_text(store, pw, PW_CLUSTER),
	        .locality = {.region = pw_text(store, pw, PW_REGION),
	                .zone = pw_text(store, pw, PW_ZONE),
	                .subzone = pw_text(store, pw, PW_SUBZONE)},
	};
}

static int add_candidate(struct selection *sel, const struct pw *pw, const struct port_map *ports,
        size_t port_cnt, bool is_unhealthy)
{
	if (sel->cnt == sel->cap) {
		size_t cap = sel->cap ? sel->cap * 2 : 32;
		struct candidate *list = mem_realloc(sel->list, cap * sizeof(*list));
		if (!list)
			return -ENOMEM;
		sel->list = list;
		sel->cap = cap;
	}
	struct candidate *c = &sel->list[sel->cnt++];
	*c = (struct candidate){
	        .pw = pw,
	        .ports = ports,
	        .port_cnt = port_cnt,
	        .is_self = sel->self[0] && strcmp(pw->uid, sel->self) == 0,
	        .has_weight = pw->capacity > 0,
	        .is_unhealthy = is_unhealthy,
	};
	if (sel->by_rank) {
		struct lb_place to = place_of(sel->store, pw);
		c->rank = lb_rank(sel->service, &sel->place, &to, NULL);
	}
	return 0;
}

static int collect(struct selection *sel, const struct svc_node *svc)
{
	int rc = 0;

	for (const struct list *it = svc->eps.next; rc == 0 && it != &svc->eps; it = it->next) {
		const struct pw_ep *ep = list_entry(it, struct pw_ep, in_svc);
		if (!ep->is_dropped)
			rc = add_candidate(sel, ep->owner, pw_ports(ep->owner, ep), ep->port_cnt,
			        ep->owner->is_unhealthy);
	}
	for (size_t i = 0; rc == 0 && i < svc->extra_cnt; i++) {
		const struct service_endpoint *e = svc->extras[i].record;
		const struct pw *pw = view_extra_workload(sel->store, svc, e);
		if (pw)
			rc = add_candidate(sel, pw, e->ports, e->port_cnt, e->status == WORKLOAD_UNHEALTHY);
	}
	return rc;
}

static int by_usefulness(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->is_self != y->is_self)
		return x->is_self ? -1 : 1;
	if (x->has_weight != y->has_weight)
		return x->has_weight ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return strcmp(x->pw->uid, y->pw->uid);
}

static int by_uid(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	return strcmp(x->pw->uid, y->pw->uid);
}

/* First candidate of [from, to) that maps the port, or `to`. */
static size_t find_mapping(const struct selection *sel, size_t from, size_t to, uint16_t port)
{
	uint16_t target;
	while (from < to && !lb_port_find(sel->list[from].ports, sel->list[from].port_cnt, port, &target))
		from++;
	return from;
}

/*
 * A named port is served only by endpoints that map it. When none made it
 * into the view, the best of the rest takes one of the last places.
 */
static void keep_named_ports(struct selection *sel)
{
	size_t place = LIMIT_VIEW_ENDPOINTS;

	for (size_t i = 0; i < sel->service->port_cnt && place > LIMIT_VIEW_ENDPOINTS / 2; i++) {
		const struct port_map *port = &sel->service->ports[i];
		if (port->target_port != 0)
			continue;
		if (find_mapping(sel, 0, LIMIT_VIEW_ENDPOINTS, port->service_port) < LIMIT_VIEW_ENDPOINTS)
			continue;
		size_t at = find_mapping(sel, LIMIT_VIEW_ENDPOINTS, sel->cnt, port->service_port);
		if (at == sel->cnt)
			continue;
		struct candidate spare = sel->list[--place];
		sel->list[place] = sel->list[at];
		sel->list[at] = spare;
	}
}

/* Cuts the list to what a view holds and puts it in an order that depends on nothing but its content. */
static void choose(struct selection *sel)
{
	if (sel->cnt > LIMIT_VIEW_ENDPOINTS) {
		for (size_t i = 0; i < sel->cnt; i++)
			sel->list[i].order =
			        hash_bytes(&sel->seed, sel->list[i].pw->uid, strlen(sel->list[i].pw->uid));
		qsort(sel->list, sel->cnt, sizeof(*sel->list), by_usefulness);
		keep_named_ports(sel);
		sel->cnt = LIMIT_VIEW_ENDPOINTS;
	}
	if (sel->cnt)
		qsort(sel->list, sel->cnt, sizeof(*sel->list), by_uid);
}

static int unpack_new(const struct store *store, const struct pw *pw, struct arena *arena,
        enum pw_detail detail, const struct workload *like, const struct workload **ret_workload)
{
	struct workload *w = arena_alloc(arena, sizeof(*w));
	int rc = w ? pw_unpack(store, pw, arena, detail, like, w) : -ENOMEM;
	if (rc == 0)
		*ret_workload = w;
	return rc;
}

static int copy_ports(const struct candidate *c, struct arena *arena, struct endpoint *to)
{
	struct port_map *ports = c->port_cnt ? arena_alloc(arena, c->port_cnt * sizeof(*ports)) : NULL;

	if (c->port_cnt && !ports)
		return -ENOMEM;
	if (ports)
		memcpy(ports, c->ports, c->port_cnt * sizeof(*ports));
	to->ports = ports;
	to->port_cnt = c->port_cnt;
	return 0;
}

static int unpack_endpoints(const struct selection *sel, struct arena *arena, const struct workload *like,
        struct endpoint *endpoints)
{
	for (size_t i = 0; i < sel->cnt; i++) {
		const struct candidate *c = &sel->list[i];
		struct endpoint *e = &endpoints[i];
		int rc = copy_ports(c, arena, e);
		if (rc == 0)
			rc = unpack_new(sel->store, c->pw, arena, PW_VIEW, like, &e->workload);
		if (rc < 0)
			return rc;
		e->status = c->is_unhealthy ? WORKLOAD_UNHEALTHY : WORKLOAD_HEALTHY;
		like = e->workload;
	}
	return 0;
}

/* What a view is made of. */
struct found {
	const struct pw *workload;
	const struct svc_node *service;
};

static int fill(const struct store *store, const struct found *found, struct selection *sel,
        struct arena *arena, const struct view_key *key, struct view **ret_view)
{
	const struct workload *workload = NULL;
	const struct service *service = NULL;
	struct endpoint endpoints[LIMIT_VIEW_ENDPOINTS];
	int rc = 0;

	if (found->workload)
		rc = unpack_new(store, found->workload, arena, PW_VIEW, NULL, &workload);
	if (rc == 0 && found->service)
		rc = record_copy_service(arena, found->service->record, &service);
	if (rc == 0)
		rc = unpack_endpoints(sel, arena, workload, endpoints);
	if (rc == 0)
		rc = view_new(
		        arena, key, store->generation, workload, service, endpoints, sel->cnt, ret_view);
	return rc;
}

static struct found find(
        const struct store *store, const struct store_asker *asker, const struct view_key *key)
{
	struct eyes eyes = {.ns = asker && asker->workload ? asker->workload->ns : NULL};
	struct found found = {0};

	if (key->kind == VIEW_ADDRESS) {
		if (key->unfiltered)
			eyes.ns = NULL;
		found.workload = view_find_workload(store, key->network, &key->ip);
		found.service = find_vip(store, &eyes, key->network, &key->ip);
		if (!found.service)
			found.service = find_cidr(store, &eyes, key->network, &key->ip);
		return found;
	}
	if (key->ns[0] == 0) {
		found.service = find_hostname(store, &eyes, key->hostname);
		return found;
	}
	found.service = svc_find(store, key->ns, key->hostname);
	if (found.service && !found.service->record)
		found.service = NULL;
	if (!found.service)
		found.workload = scan_hostname(store, key->ns, key->hostname);
	return found;
}

/* Prepares and makes the choice of endpoints for a service. */
static int select_endpoints(const struct store *store, const struct store_asker *asker,
        const struct svc_node *svc, struct selection *sel)
{
	static const struct lb_place nowhere = {"", "", "", {"", "", ""}};
	const struct workload *self = asker ? asker->workload : NULL;

	sel->store = store;
	sel->service = svc->record;
	sel->place = self ? lb_place_of(self) : nowhere;
	sel->self = self ? self->uid : "";
	sel->by_rank = self && svc->record->has_lb && svc->record->lb_mode != LB_MODE_STANDARD;
	sel->seed.k0 = asker ? asker->seed : 0;
	sel->seed.k1 = hash_bytes(&sel->seed, sel->self, strlen(sel->self));
	int rc = collect(sel, svc);
	if (rc == 0)
		choose(sel);
	return rc;
}

/* Makes the view of what was found. */
static int cut_view(const struct store *store, const struct store_asker *asker, const struct view_key *key,
        const struct found *found, struct view **ret_view)
{
	uint8_t bytes[VIEW_KEY_BYTES_MAX];
	struct selection sel = {0};

	if (view_key_bytes(key, bytes, sizeof(bytes)) < 0)
		return -ENAMETOOLONG;
	struct arena *arena = arena_new(VIEW_ARENA_MAX);
	if (!arena)
		return -ENOMEM;
	int rc = found->service ? select_endpoints(store, asker, found->service, &sel) : 0;
	if (rc == 0)
		rc = fill(store, found, &sel, arena, key, ret_view);
	if (rc < 0)
		arena_unref(arena);
	mem_free(sel.list);
	return rc;
}

int store_view(const struct store *store, const struct store_asker *asker, const struct view_key *key,
        struct view **ret_view)
{
	struct found found = find(store, asker, key);
	return cut_view(store, asker, key, &found, ret_view);
}

static struct eyes eyes_of(const struct store_asker *asker)
{
	return (struct eyes){.ns = asker && asker->workload ? asker->workload->ns : NULL};
}

bool store_has_name(const struct store *store, const struct store_asker *asker, const struct store_dns *dns,
        const char *hostname)
{
	struct eyes eyes = eyes_of(asker);
	return find_name(store, &eyes, dns, hostname) != NULL;
}

int store_view_name(const struct store *store, const struct store_asker *asker, const struct store_dns *dns,
        const struct view_key *key, const char *hostname, struct view **ret_view)
{
	struct eyes eyes = eyes_of(asker);
	struct found found = {.service = hostname ? find_name(store, &eyes, dns, hostname) : NULL};
	return cut_view(store, asker, key, &found, ret_view);
}

int store_view_address(const struct store *store, const struct store_asker *asker, const char *network,
        const struct ip *ip, struct view **ret_view)
{
	struct view_key key = view_key_address(network, ip);
	return store_view(store, asker, &key, ret_view);
}

int store_view_host(const struct store *store, const struct store_asker *asker, const char *ns,
        const char *hostname, struct view **ret_view)
{
	struct view_key key = view_key_host(ns, hostname);
	return store_view(store, asker, &key, ret_view);
}

int store_workload(
        const struct store *store, const char *uid, struct arena *arena, const struct workload **ret_workload)
{
	const struct pw *pw = map_get_str(&store->workloads, uid);
	return pw ? unpack_new(store, pw, arena, PW_FULL, NULL, ret_workload) : -ENOENT;
}

int store_own_workload(const struct store *store, const struct workload_info *info, struct arena *arena,
        const struct workload **ret_workload)
{
	char key[2048];
	size_t ns_len = strlen(info->ns), sa_len = strlen(info->service_account);

	if (ns_len + 1 + sa_len > sizeof(key))
		return -ENOENT;
	memcpy(key, info->ns, ns_len + 1);
	memcpy(key + ns_len + 1, info->service_account, sa_len);
	const struct ident_node *ident = map_get(&store->idents, key, ns_len + 1 + sa_len);
	if (!ident)
		return -ENOENT;
	/* Newest first: of two records of one pod the later one is right. */
	for (const struct list *it = ident->workloads.next; it != &ident->workloads; it = it->next) {
		const struct pw *pw = list_entry(it, struct pw, in_ident);
		if (strcmp(pw_name(pw), info->name) == 0)
			return unpack_new(store, pw, arena, PW_FULL, NULL, ret_workload);
	}
	return -ENOENT;
}

int store_local_workload_at(const struct store *store, const char *network, const struct ip *ip,
        struct arena *arena, const struct workload **ret_workload)
{
	const struct pw *pw = view_find_workload(store, network, ip);
	return pw && pw->ident ? unpack_new(store, pw, arena, PW_FULL, NULL, ret_workload) : -ENOENT;
}
