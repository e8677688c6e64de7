/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is decided per connection: the way to a service's endpoint, out of
 * the views in a silo's own cache, and whether policies let a client in. And
 * what the broker does when a silo asks: a view is cut from the store.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "cost.h"
#include "mesh/identity.h"
#include "mesh/rbac.h"
#include "mesh/route.h"
#include "meshes.h"
#include "silo/cache.h"

#define SERVICES 1000
#define WORKLOADS 5000
/* Every view stays: a miss is the broker's cost, counted by itself. */
#define CACHE_MAX (2 * SERVICES)
#define POLICIES 20
#define CHECKS 200

/* A silo with its cache, and the store that answers it. */
struct world {
	struct store *store;
	struct store_asker asker;
	struct meshes_workload self;
	struct cache cache;
	struct cache_source source;
	struct view_key wanted; /* what the cache asked for last */
	uint64_t state;         /* of the numbers */
	unsigned service;       /* the one that is called now */
	struct route_env env;
	struct route route;
	int ret;
};

static bool on_ask(void *ctx, const struct view_key *key)
{
	struct world *w = ctx;
	w->wanted = *key;
	return true;
}

static void on_evict(void *ctx, const struct view_key *key)
{
}

static const struct cache_ops cache_ops = {.ask = on_ask, .evict = on_evict};

static void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->store = store_new("node");
	meshes_put_services(w->store, SERVICES);
	for (unsigned i = 0; i < WORKLOADS; i++) {
		struct meshes_workload workload;
		meshes_workload(i, SERVICES, 8080, &workload);
		int r = store_insert_workload(w->store, &workload.record, STORE_XDS);
		ASSERT(r == 0);
	}
	meshes_workload(0, SERVICES, 8080, &w->self);
	w->asker = (struct store_asker){.workload = &w->self.record, .seed = 1};
	/* Nobody waits for an answer here, so that no ring is needed. */
	cache_init(&w->cache, NULL, CACHE_MAX, &cache_ops, w);
	cache_source_init(&w->source, &w->cache);
	w->env = (struct route_env){.network = "", .source_ip = w->self.ip};
}

static void world_done(struct world *w)
{
	cache_done(&w->cache);
	store_free(w->store);
}

/* A connection to the service: decided, then forgotten. */
static void route_one(void *ctx)
{
	struct world *w = ctx;
	struct err err;
	const struct addr dst = {.ip = meshes_vip(w->service), .port = 80};
	w->ret = route_outbound(&w->env, &w->source.source, &w->self.record, &dst, &w->route, &err);
	if (w->ret == 0) {
		ASSERT(w->route.kind == ROUTE_HBONE);
		route_done(&w->route);
	}
}

static void cut_one(void *ctx)
{
	struct world *w = ctx;
	struct ip vip = meshes_vip(w->service);
	struct view_key key = view_key_address("", &vip);
	struct view *view;
	w->ret = store_view(w->store, &w->asker, &key, &view);
	ASSERT(w->ret == 0 && view->known);
	view_unref(view);
}

/* Asks for what the routing misses until it misses nothing. */
static void fill(struct world *w)
{
	for (route_one(w); w->ret == -EAGAIN; route_one(w)) {
		struct view *view;
		int r = store_view(w->store, &w->asker, &w->wanted, &view);
		ASSERT(r == 0);
		cache_answer(&w->cache, view);
	}
	ASSERT(w->ret == 0);
}

static void count_routes(struct world *w)
{
	for (w->service = 0; w->service < SERVICES; w->service++) {
		w->env.random = cost_number(&w->state);
		fill(w);
	}
	for (w->service = 0; w->service < SERVICES; w->service++) {
		w->env.random = cost_number(&w->state);
		cost_count(route_one, w);
		ASSERT(w->ret == 0);
	}
	cost_figure_end("route-lookup", SERVICES);
	for (w->service = 0; w->service < SERVICES; w->service++)
		cost_count(cut_one, w);
	cost_figure_end("view-cut", SERVICES);
}

/* --- policies ------------------------------------------------------------------- */

/* One policy with all it points to. */
struct written {
	char principal[MESHES_TEXT_MAX];
	char name[MESHES_TEXT_MAX];
	struct string_match match;
	struct cidr cidr;
	uint16_t port;
	struct policy_match matches[3]; /* account, addresses; port */
	struct policy_clause clauses[2];
	struct policy_rule rule;
	struct policy policy;
};

/*
 * Policy i: from one account or one range of addresses, and to one port. The
 * first half denies others, the last one alone lets our client in, so that
 * all of them are read.
 */
static void policy_write(struct written *w, unsigned i)
{
	bool is_last = i == POLICIES - 1;
	snprintf(w->name, sizeof(w->name), "policy-%u", i);
	snprintf(w->principal, sizeof(w->principal), "cluster.local/ns/team/sa/%s-%u",
	        is_last ? "client" : "other", i);
	w->match = (struct string_match){MATCH_EXACT, w->principal};
	w->cidr = (struct cidr){.ip = ip_v4(172, 16, (uint8_t)i, 0), .len = 24};
	w->port = 8080;
	w->matches[0] = (struct policy_match){.principals = &w->match, .principal_cnt = 1};
	w->matches[1] = (struct policy_match){.source_ips = &w->cidr, .source_ip_cnt = 1};
	w->matches[2] = (struct policy_match){.dest_ports = &w->port, .dest_port_cnt = 1};
	w->clauses[0] = (struct policy_clause){w->matches, 2};
	w->clauses[1] = (struct policy_clause){&w->matches[2], 1};
	w->rule = (struct policy_rule){w->clauses, 2};
	w->policy = (struct policy){.name = w->name,
	        .ns = "team",
	        .scope = POLICY_NAMESPACE,
	        .action = i < POLICIES / 2 ? POLICY_DENY : POLICY_ALLOW,
	        .rules = &w->rule,
	        .rule_cnt = 1};
}

struct judged {
	const struct policy *list[POLICIES];
	struct rbac_conn conn;
	struct rbac_result result;
};

static void judge(void *ctx)
{
	struct judged *j = ctx;
	j->result = rbac_check(j->list, POLICIES, &j->conn, NULL);
}

static void count_policies(void)
{
	static struct written written[POLICIES];
	char client[MESHES_TEXT_MAX];
	struct judged j = {.conn = {.source = ip_v4(10, 0, 0, 9),
	                           .destination = {.ip = ip_v4(10, 0, 0, 1), .port = 8080},
	                           .has_identity = true}};
	snprintf(client, sizeof(client), "spiffe://cluster.local/ns/team/sa/client-%u", POLICIES - 1);
	int r = identity_parse(client, strlen(client), &j.conn.identity);
	ASSERT(r == 0);
	for (unsigned i = 0; i < POLICIES; i++) {
		policy_write(&written[i], i);
		j.list[i] = &written[i].policy;
	}
	for (unsigned i = 0; i < CHECKS; i++) {
		cost_count(judge, &j);
		ASSERT(j.result.is_allowed && j.result.policy == j.list[POLICIES - 1]);
	}
	cost_figure_end("policy-check", CHECKS);
}

void cost_mesh(void)
{
	static struct world w;
	world_init(&w);
	count_routes(&w);
	world_done(&w);
	count_policies();
}
