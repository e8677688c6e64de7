/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The store's life, its workloads, and what a change is told as. A new
 * record is built completely before the old one leaves, so that a failure
 * changes nothing. Services, policies and views have files of their own.
 */
#include "mesh/store.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "mesh/store_int.h"

static struct map_key pw_key(const void *item)
{
	return map_key_str(((const struct pw *)item)->uid);
}

static struct map_key addr_key(const void *item)
{
	const struct addr_slot *slot = item;
	return (struct map_key){&slot->network, ADDR_KEY_LEN};
}

static struct map_key ident_key(const void *item)
{
	const struct ident_node *node = item;
	return (struct map_key){node->key, node->key_len};
}

static struct map_key svc_key(const void *item)
{
	const struct svc_node *node = item;
	return (struct map_key){node->key, node->key_len};
}

static struct map_key host_key(const void *item)
{
	return map_key_str(((const struct host_slot *)item)->svc->hostname);
}

static struct map_key extra_key(const void *item)
{
	return map_key_str(((const struct extra_slot *)item)->record->workload_uid);
}

static struct map_key policy_key(const void *item)
{
	return map_key_str(((const struct policy_node *)item)->key);
}

static struct map_key ns_key(const void *item)
{
	return map_key_str(((const struct ns_node *)item)->ns);
}

struct store *store_new(const char *node)
{
	struct store *store = mem_zalloc(1, sizeof(*store));
	if (!store)
		return NULL;
	store->node = mem_strdup(node);
	if (!store->node) {
		mem_free(store);
		return NULL;
	}
	store->generation = 1;
	store->policy_generation = 1;
	intern_init(&store->names);
	list_init(&store->cidr_svcs);
	/* Indices are bounded by what is in the store; their own ceilings only stop the absurd. */
	map_init(&store->workloads, STORE_WORKLOADS_MAX, pw_key);
	map_init(&store->addresses, SIZE_MAX, addr_key);
	map_init(&store->idents, STORE_WORKLOADS_MAX, ident_key);
	map_init(&store->services, SIZE_MAX, svc_key);
	map_init(&store->hosts, STORE_SERVICES_MAX, host_key);
	map_init(&store->vips, SIZE_MAX, addr_key);
	map_init(&store->extras, SIZE_MAX, extra_key);
	map_init(&store->policies, STORE_POLICIES_MAX, policy_key);
	map_init(&store->policy_ns, STORE_POLICIES_MAX, ns_key);
	return store;
}

void store_free(struct store *store)
{
	void *item;

	if (!store)
		return;
	while ((item = map_pop(&store->services)))
		svc_free(item);
	while ((item = map_pop(&store->workloads)))
		mem_free(item);
	while ((item = map_pop(&store->idents)))
		mem_free(item);
	while ((item = map_pop(&store->policies)))
		policy_free(item);
	while ((item = map_pop(&store->policy_ns)))
		mem_free(item);
	map_done(&store->addresses);
	map_done(&store->hosts);
	map_done(&store->vips);
	map_done(&store->extras);
	intern_done(&store->names);
	mem_free((char *)(uintptr_t)store->node);
	mem_free(store);
}

void store_watch(struct store *store, const struct store_watcher *watcher)
{
	store->watcher = watcher ? *watcher : (struct store_watcher){0};
}

uint64_t store_generation(const struct store *store)
{
	return store->generation;
}

uint64_t store_policy_generation(const struct store *store)
{
	return store->policy_generation;
}

struct store_counts store_counts(const struct store *store)
{
	return (struct store_counts){
	        .workloads = map_cnt(&store->workloads),
	        .services = store->service_cnt,
	        .policies = map_cnt(&store->policies),
	        .workload_bytes = store->workload_bytes,
	};
}

/* A change with all strings set, so that nobody meets NULL. */
static struct store_change change_of(enum store_subject subject)
{
	return (struct store_change){
	        .subject = subject,
	        .network = "",
	        .ns = "",
	        .hostname = "",
	        .name = "",
	        .service_account = "",
	        .policy_key = "",
	};
}

void store_tell(struct store *store, const struct store_change *change)
{
	store->generation++;
	if (change->subject == STORE_POLICY)
		store->policy_generation++;
	if (store->watcher.changed)
		store->watcher.changed(store->watcher.ctx, change);
}

void store_tell_service(struct store *store, const struct svc_node *svc, const struct service *s)
{
	struct store_change change = change_of(STORE_HOST);

	if (!s)
		return;
	change.ns = svc->ns;
	change.hostname = svc->hostname;
	store_tell(store, &change);
	for (size_t i = 0; i < s->vip_cnt; i++) {
		change = change_of(STORE_ADDRESS);
		change.network = s->vips[i].network;
		change.ip = s->vips[i].ip;
		store_tell(store, &change);
	}
	for (size_t i = 0; i < s->cidr_cnt; i++) {
		change = change_of(STORE_CIDR);
		change.network = s->cidrs[i].network;
		change.cidr = s->cidrs[i].cidr;
		store_tell(store, &change);
	}
}

static void tell_addresses(struct store *store, const struct pw *pw)
{
	struct store_change change = change_of(STORE_ADDRESS);

	change.network = pw_text(store, pw, PW_NETWORK);
	for (size_t i = 0; !pw->is_host_network && i < pw->ip_cnt; i++) {
		change.ip = pw->addrs[i].ip;
		store_tell(store, &change);
	}
}

static void tell_own(struct store *store, const struct pw *pw)
{
	struct store_change change = change_of(STORE_OWN);

	change.ns = pw_text(store, pw, PW_NS);
	change.name = pw_name(pw);
	change.service_account = pw_text(store, pw, PW_SERVICE_ACCOUNT);
	store_tell(store, &change);
}

/* Everything whose view may differ because this workload came or went. */
static void tell_workload(struct store *store, const struct pw *pw)
{
	struct store_change change;

	tell_addresses(store, pw);
	if (pw->ids[PW_HOSTNAME]) {
		change = change_of(STORE_HOST);
		change.ns = pw_text(store, pw, PW_NS);
		change.hostname = pw_text(store, pw, PW_HOSTNAME);
		store_tell(store, &change);
	}
	if (pw->ident)
		tell_own(store, pw);
	for (size_t i = 0; i < pw->ep_cnt; i++) {
		if (pw_eps(pw)[i].svc)
			store_tell_service(store, pw_eps(pw)[i].svc, pw_eps(pw)[i].svc->record);
	}
	for (struct multi *m = multi_get(&store->extras, pw->uid, strlen(pw->uid)); m; m = m->next) {
		const struct svc_node *svc = ((struct extra_slot *)(void *)m)->svc;
		store_tell_service(store, svc, svc->record);
	}
	store->generation++;
}

/* Every host name that a queried name may mean begins with the same label, or is a wildcard. */
static bool may_mean(const char *name, const char *hostname)
{
	size_t label = strcspn(name, ".");
	if (hostname[0] == '*')
		return true;
	return strncmp(name, hostname, label) == 0 && (hostname[label] == '.' || hostname[label] == '\0');
}

bool store_change_hits(const struct store_change *change, const struct view_key *key)
{
	switch (change->subject) {
	case STORE_ADDRESS:
		return key->kind == VIEW_ADDRESS && ip_eq(&change->ip, &key->ip) &&
		       strcmp(change->network, key->network) == 0;
	case STORE_CIDR:
		return key->kind == VIEW_ADDRESS && cidr_contains(&change->cidr, &key->ip) &&
		       strcmp(change->network, key->network) == 0;
	case STORE_HOST:
		if (key->kind == VIEW_NAME)
			return may_mean(key->hostname, change->hostname);
		return key->kind == VIEW_HOST && strcmp(change->hostname, key->hostname) == 0 &&
		       (key->ns[0] == 0 || strcmp(change->ns, key->ns) == 0);
	case STORE_OWN:
	case STORE_POLICY:
		break;
	}
	return false;
}

static bool is_local(const struct store *store, const struct pw *pw)
{
	return store->node[0] == 0 || strcmp(pw_text(store, pw, PW_NODE), store->node) == 0;
}

/* The identity node of a local workload, made when missing. NULL when out of memory. */
static struct ident_node *ident_get(struct store *store, const char *ns, const char *sa)
{
	size_t ns_len = strlen(ns), len = ns_len + 1 + strlen(sa);
	struct ident_node *node = mem_zalloc(1, sizeof(*node) + len + 1);

	if (!node)
		return NULL;
	memcpy(node->key, ns, ns_len);
	memcpy(node->key + ns_len + 1, sa, len - ns_len - 1);
	node->key_len = len;
	list_init(&node->workloads);
	struct ident_node *known = map_get(&store->idents, node->key, node->key_len);
	if (known || map_put(&store->idents, node, NULL) < 0) {
		mem_free(node);
		return known;
	}
	return node;
}

static void unlink_workload(struct store *store, struct pw *pw, size_t addr_cnt)
{
	for (size_t i = 0; i < addr_cnt; i++)
		multi_unlink(&store->addresses, &pw->addrs[i].multi);
	for (size_t i = 0; i < pw->ep_cnt; i++)
		list_del(&pw_eps(pw)[i].in_svc);
	list_del(&pw->in_ident);
}

/* How many of its addresses are indexed: all, or none of a host's (control.md 8.1). */
static size_t indexed_cnt(const struct pw *pw)
{
	return pw->is_host_network ? 0 : pw->ip_cnt;
}

/* Lets go of the identity node of an unlinked workload; the last one frees it. */
static void settle_ident(struct store *store, struct pw *pw)
{
	struct ident_node *node = pw->ident;

	pw->ident = NULL;
	if (!node || --node->cnt > 0)
		return;
	map_del(&store->idents, node->key, node->key_len);
	mem_free(node);
}

/* Joins all indices but the one by uid. On failure it is in none. */
static int link_workload(struct store *store, struct pw *pw)
{
	size_t done = 0;
	int rc = 0;

	for (size_t i = 0; i < pw->ep_cnt; i++) {
		if (pw_eps(pw)[i].svc)
			svc_admit(&pw_eps(pw)[i]);
	}
	if (is_local(store, pw)) {
		pw->ident =
		        ident_get(store, pw_text(store, pw, PW_NS), pw_text(store, pw, PW_SERVICE_ACCOUNT));
		if (pw->ident) {
			pw->ident->cnt++;
			list_add(&pw->ident->workloads, &pw->in_ident);
		} else {
			rc = -ENOMEM;
		}
	}
	while (rc == 0 && done < indexed_cnt(pw)) {
		rc = multi_link(&store->addresses, &pw->addrs[done].multi);
		if (rc == 0)
			done++;
	}
	if (rc < 0) {
		unlink_workload(store, pw, done);
		settle_ident(store, pw);
	}
	return rc;
}

/* The rest of a removal, once a workload is out of the index by uid. */
static void retire(struct store *store, struct pw *pw)
{
	unlink_workload(store, pw, indexed_cnt(pw));
	tell_workload(store, pw);
	settle_ident(store, pw);
	pw_free(store, pw);
}

/* Moves a workload to the front of its identity; true when another one of that name stood before it. */
static bool overtake(struct pw *pw)
{
	bool was_behind = false;

	if (!pw->ident || pw->ident->workloads.next == &pw->in_ident)
		return false;
	for (struct list *it = pw->ident->workloads.next; it != &pw->in_ident && !was_behind; it = it->next)
		was_behind = strcmp(pw_name(list_entry(it, struct pw, in_ident)), pw_name(pw)) == 0;
	list_del(&pw->in_ident);
	list_add(&pw->ident->workloads, &pw->in_ident);
	return was_behind;
}

/* An unchanged record: nobody hears of it unless order decides something. */
static void refresh(struct store *store, struct pw *pw, struct pw *again)
{
	pw->is_stale = false;
	pw->origin = again->origin;
	pw->seq = again->seq;
	pw_free(store, again);
	if (overtake(pw))
		tell_own(store, pw);
	for (size_t i = 0; i < indexed_cnt(pw); i++) {
		if (pw->addrs[i].multi.next || pw->addrs[i].multi.prev) {
			tell_addresses(store, pw);
			break;
		}
	}
	for (size_t i = 0; i < pw->ep_cnt; i++) {
		struct pw_ep *ep = &pw_eps(pw)[i];
		bool was_dropped = ep->is_dropped;
		if (!ep->svc)
			continue;
		svc_admit(ep);
		if (ep->is_dropped != was_dropped)
			store_tell_service(store, ep->svc, ep->svc->record);
	}
}

int store_insert_workload(struct store *store, const struct workload *workload, enum store_origin origin)
{
	struct pw *pw, *old = map_get_str(&store->workloads, workload->uid);
	int rc = pw_new(store, workload, origin, &pw);

	if (rc < 0)
		return rc;
	if (old && pw_same(old, pw)) {
		refresh(store, old, pw);
		return 0;
	}
	rc = link_workload(store, pw);
	if (rc < 0) {
		pw_free(store, pw);
		return rc;
	}
	void *replaced;
	rc = map_put(&store->workloads, pw, &replaced);
	if (rc < 0) {
		unlink_workload(store, pw, indexed_cnt(pw));
		settle_ident(store, pw);
		pw_free(store, pw);
		return rc;
	}
	if (old)
		retire(store, old);
	tell_workload(store, pw);
	return 0;
}

int store_remove_workload(struct store *store, const char *uid)
{
	struct pw *pw = map_del_str(&store->workloads, uid);
	if (!pw)
		return -ENOENT;
	retire(store, pw);
	return 0;
}

int store_remove_address(struct store *store, const char *name)
{
	int rc = store_remove_workload(store, name);
	if (rc == 0)
		return 0;
	const struct svc_node *svc = svc_find_name(store, name);
	return svc ? store_remove_service(store, svc->ns, svc->hostname) : -ENOENT;
}

void store_replace_begin(struct store *store, enum store_origin origin)
{
	size_t cursor = 0;
	struct pw *pw;
	struct svc_node *svc;
	struct policy_node *policy;

	store->is_replacing = true;
	store->replaced = origin;
	while ((pw = map_next(&store->workloads, &cursor)))
		pw->is_stale = pw->origin == origin;
	cursor = 0;
	while ((svc = map_next(&store->services, &cursor)))
		svc->is_stale = svc->record && svc->origin == origin;
	cursor = 0;
	while ((policy = map_next(&store->policies, &cursor)))
		policy->is_stale = policy->origin == origin;
}

static bool drop_stale(void *item, void *ctx)
{
	struct pw *pw = item;
	struct list *gone = ctx;

	if (!pw->is_stale)
		return false;
	/* Leaves the identity list a little early; retire() does not mind. */
	list_del(&pw->in_ident);
	list_add_tail(gone, &pw->in_ident);
	return true;
}

void store_replace_commit(struct store *store, bool is_complete)
{
	struct list gone, *node;

	store->is_replacing = false;
	if (!is_complete)
		return;
	list_init(&gone);
	map_sweep(&store->workloads, drop_stale, &gone);
	while ((node = list_pop(&gone)))
		retire(store, list_entry(node, struct pw, in_ident));
	svc_sweep(store);
	policy_sweep(store);
}
