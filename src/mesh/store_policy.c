/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Policies of the store, by key and by the namespace they act in (reference
 * control.md 8.1). They are few: plain copies, one arena each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "culvert/limits.h"
#include "mesh/record.h"
#include "mesh/store_int.h"

void policy_free(struct policy_node *policy)
{
	if (policy)
		arena_unref(policy->arena);
}

/* The namespace a policy acts in: "" for all, NULL when workloads must list it. */
static const char *acts_in(const struct policy *policy)
{
	if (policy->scope == POLICY_SELECTOR)
		return NULL;
	return policy->scope == POLICY_GLOBAL ? "" : policy->ns;
}

static struct ns_node *ns_get(struct store *store, const char *ns)
{
	struct ns_node *node = map_get_str(&store->policy_ns, ns);
	if (node)
		return node;
	node = mem_zalloc(1, sizeof(*node) + strlen(ns) + 1);
	if (!node)
		return NULL;
	memcpy(node->ns, ns, strlen(ns));
	list_init(&node->policies);
	if (map_put(&store->policy_ns, node, NULL) < 0) {
		mem_free(node);
		return NULL;
	}
	return node;
}

static void leave_ns(struct store *store, struct policy_node *policy)
{
	struct ns_node *ns = policy->ns;

	list_del(&policy->in_ns);
	policy->ns = NULL;
	if (!ns || !list_empty(&ns->policies))
		return;
	map_del_str(&store->policy_ns, ns->ns);
	mem_free(ns);
}

static int copy_policy(
        struct arena *arena, const char *key, const struct policy *policy, struct policy_node **ret_node)
{
	struct policy_node *node = arena_zalloc(arena, 1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->key = arena_strdup(arena, key);
	if (!node->key)
		return -ENOMEM;
	list_init(&node->in_ns);
	node->arena = arena;
	*ret_node = node;
	return record_copy_policy(arena, policy, &node->record);
}

static struct policy_node *policy_make(const char *key, const struct policy *policy)
{
	struct arena *arena = arena_new(LIMIT_RECORD_ARENA);
	struct policy_node *node;

	if (arena && copy_policy(arena, key, policy, &node) == 0)
		return node;
	arena_unref(arena);
	return NULL;
}

static void tell_policy(struct store *store, const struct policy_node *policy)
{
	const char *ns = acts_in(policy->record);
	struct store_change change = {
	        .subject = STORE_POLICY,
	        .network = "",
	        .ns = ns ? ns : policy->record->ns,
	        .hostname = "",
	        .name = "",
	        .service_account = "",
	        .policy_key = policy->key,
	        .is_selector = !ns,
	};
	store_tell(store, &change);
}

static int join_ns(struct store *store, struct policy_node *policy)
{
	const char *ns = acts_in(policy->record);
	if (!ns)
		return 0;
	policy->ns = ns_get(store, ns);
	if (!policy->ns)
		return -ENOMEM;
	list_add_tail(&policy->ns->policies, &policy->in_ns);
	return 0;
}

int store_insert_policy(
        struct store *store, const char *key, const struct policy *policy, enum store_origin origin)
{
	struct policy_node *old = map_get_str(&store->policies, key);
	void *replaced;

	if (old && record_eq_policy(old->record, policy)) {
		old->is_stale = false;
		old->origin = origin;
		return 0;
	}
	struct policy_node *node = policy_make(key, policy);
	if (!node)
		return -ENOMEM;
	node->origin = origin;
	int rc = join_ns(store, node);
	if (rc == 0)
		rc = map_put(&store->policies, node, &replaced);
	if (rc < 0) {
		leave_ns(store, node);
		policy_free(node);
		return rc;
	}
	if (old) {
		leave_ns(store, old);
		tell_policy(store, old);
		policy_free(old);
	}
	tell_policy(store, node);
	return 0;
}

int store_remove_policy(struct store *store, const char *key)
{
	struct policy_node *node = map_del_str(&store->policies, key);
	if (!node)
		return -ENOENT;
	leave_ns(store, node);
	tell_policy(store, node);
	policy_free(node);
	return 0;
}

/* What drop_stale needs. */
struct sweep {
	struct store *store;
	struct list gone;
};

static bool drop_stale(void *item, void *ctx)
{
	struct policy_node *node = item;
	struct sweep *sweep = ctx;

	if (!node->is_stale)
		return false;
	leave_ns(sweep->store, node);
	list_add_tail(&sweep->gone, &node->in_ns);
	return true;
}

void policy_sweep(struct store *store)
{
	struct sweep sweep = {.store = store, .gone = LIST_INIT(sweep.gone)};
	struct list *it;

	map_sweep(&store->policies, drop_stale, &sweep);
	while ((it = list_pop(&sweep.gone))) {
		struct policy_node *node = list_entry(it, struct policy_node, in_ns);
		tell_policy(store, node);
		policy_free(node);
	}
}

/* Policies being collected; array in an arena, grown by doubling. */
struct collect {
	struct arena *arena;
	const struct policy_node **list;
	size_t cnt;
	size_t cap;
};

static int collect_add(struct collect *c, const struct policy_node *node)
{
	if (c->cnt == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 16;
		const struct policy_node **list = mem_realloc(c->list, cap * sizeof(struct policy_node *));
		if (!list)
			return -ENOMEM;
		c->list = list;
		c->cap = cap;
	}
	c->list[c->cnt++] = node;
	return 0;
}

static int collect_ns(const struct store *store, const char *ns, struct collect *c)
{
	const struct ns_node *node = map_get_str(&store->policy_ns, ns);
	int rc = 0;

	for (const struct list *it = node ? node->policies.next : NULL;
	        rc == 0 && it && it != &node->policies; it = it->next)
		rc = collect_add(c, list_entry(it, struct policy_node, in_ns));
	return rc;
}

static int by_key(const void *a, const void *b)
{
	const struct policy_node *const *x = a, *const *y = b;
	return strcmp((*x)->key, (*y)->key);
}

static int copy_out(const struct collect *c, struct arena *arena, const struct policy *const **ret_policies,
        size_t *ret_cnt)
{
	const struct policy **out = arena_zalloc(arena, c->cnt, sizeof(*out));
	size_t n = 0;

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < c->cnt; i++) {
		/* A policy of the namespace that is listed as well counts once. */
		if (i > 0 && c->list[i] == c->list[i - 1])
			continue;
		int rc = record_copy_policy(arena, c->list[i]->record, &out[n]);
		if (rc < 0)
			return rc;
		n++;
	}
	*ret_policies = out;
	*ret_cnt = n;
	return 0;
}

int store_policies(const struct store *store, const struct workload *workload, struct arena *arena,
        const struct policy *const **ret_policies, size_t *ret_cnt,
        void (*missing)(void *ctx, const char *key), void *ctx)
{
	struct collect c = {0};
	int rc = collect_ns(store, "", &c);

	if (rc == 0 && workload->ns[0])
		rc = collect_ns(store, workload->ns, &c);
	for (size_t i = 0; rc == 0 && i < workload->policy_cnt; i++) {
		const struct policy_node *node = map_get_str(&store->policies, workload->policies[i]);
		if (node)
			rc = collect_add(&c, node);
		else if (missing)
			missing(ctx, workload->policies[i]);
	}
	if (rc == 0) {
		if (c.cnt)
			qsort(c.list, c.cnt, sizeof(struct policy_node *), by_key);
		rc = copy_out(&c, arena, ret_policies, ret_cnt);
	}
	mem_free(c.list);
	return rc;
}

int store_each_policy(const struct store *store, store_policy_fn *fn, void *ctx)
{
	struct collect c = {0};
	size_t cursor = 0;
	const struct policy_node *node;
	int rc = 0;

	while (rc == 0 && (node = map_next(&store->policies, &cursor)))
		rc = collect_add(&c, node);
	if (rc == 0 && c.cnt)
		qsort(c.list, c.cnt, sizeof(struct policy_node *), by_key);
	for (size_t i = 0; rc == 0 && i < c.cnt; i++) {
		if (!fn(ctx, c.list[i]->key, c.list[i]->record))
			break;
	}
	mem_free(c.list);
	return rc;
}
