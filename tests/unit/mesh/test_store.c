/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The store: endpoint rules of reference control.md 8.3 row by row, order
 * independence by permutation, replacement, what changes are told, subsets of
 * large services, and failing allocations. Records are made from short
 * literals here; lookups by address are covered by the goldens.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "culvert/limits.h"
#include "mesh/store.h"

static size_t fail_at; /* 0 = never; else counts down to the allocation that fails */

bool mem_should_fail(size_t len)
{
	return fail_at && --fail_at == 0;
}

static struct ip ip4(unsigned n)
{
	return ip_v4(10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n);
}

static struct workload make_workload(const char *uid)
{
	static const struct gateway_ref none = {.addr.network = "", .ns = "", .host = ""};
	return (struct workload){
	        .uid = uid,
	        .name = uid,
	        .ns = "shop",
	        .trust_domain = "td",
	        .service_account = "sa",
	        .network = "",
	        .workload_name = "w",
	        .workload_type = "pod",
	        .canonical_name = "c",
	        .canonical_revision = "v1",
	        .hostname = "",
	        .node = "node-a",
	        .cluster_id = "Kubernetes",
	        .locality = {"", "", ""},
	        .capacity = 1,
	        .waypoint = none,
	        .network_gateway = none,
	};
}

static struct service make_service(const char *hostname)
{
	return (struct service){
	        .name = hostname,
	        .ns = "shop",
	        .hostname = hostname,
	        .waypoint = {.addr.network = "", .ns = "", .host = ""},
	};
}

/* Inserts a workload with one address that is in a service (NULL: in none). */
static void put_workload(struct store *store, const char *uid, unsigned ip, const char *service, bool healthy)
{
	struct port_map port = {80, 8080};
	struct workload_service in = {.ns = "shop", .hostname = service, .ports = &port, .port_cnt = 1};
	struct workload w = make_workload(uid);
	struct ip addr = ip4(ip);

	w.ips = &addr;
	w.ip_cnt = 1;
	w.services = &in;
	w.service_cnt = service ? 1 : 0;
	w.status = healthy ? WORKLOAD_HEALTHY : WORKLOAD_UNHEALTHY;
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
}

static void put_service(struct store *store, const char *hostname, bool allow_all)
{
	struct service s = make_service(hostname);
	struct net_addr vip = {.network = "", .ip = ip_v4(10, 96, 0, 1)};
	struct port_map port = {80, 80};

	s.vips = &vip;
	s.vip_cnt = 1;
	s.ports = &port;
	s.port_cnt = 1;
	s.has_lb = allow_all;
	s.lb_health = allow_all ? LB_ALLOW_ALL : LB_ONLY_HEALTHY;
	assert_int_equal(store_insert_service(store, &s, NULL, 0, STORE_XDS), 0);
}

static bool dump_service(void *ctx, const struct service *s, const struct service_endpoint *eps, size_t cnt)
{
	buf_printf(ctx, "service %s/%s:", s->ns, s->hostname);
	for (size_t i = 0; i < cnt; i++)
		buf_printf(ctx, " %s=%u%s", eps[i].workload_uid,
		        eps[i].port_cnt ? eps[i].ports[0].target_port : 0, eps[i].status ? "!" : "");
	buf_printf(ctx, "; ");
	return true;
}

static bool dump_workload(void *ctx, const struct workload *w)
{
	char ip[IP_STR_MAX];
	buf_printf(ctx, "workload %s %s@%s %zu; ", w->uid, w->ip_cnt ? ip_format(&w->ips[0], ip) : "-",
	        w->node, w->service_cnt);
	return true;
}

static bool dump_policy(void *ctx, const char *key, const struct policy *p)
{
	buf_printf(ctx, "policy %s %d; ", key, p->scope);
	return true;
}

/* The whole store as text; lives until the next call. */
static const char *dump(const struct store *store, bool with_workloads)
{
	static struct buf text;
	buf_done(&text);
	buf_init(&text, 1 << 24);
	if (with_workloads)
		assert_int_equal(store_each_workload(store, dump_workload, &text), 0);
	assert_int_equal(store_each_service(store, dump_service, &text), 0);
	assert_int_equal(store_each_policy(store, dump_policy, &text), 0);
	return buf_cstr(&text);
}

/* --- rows of control.md 8.3 --- */

static void test_endpoints_come_and_go(void **state)
{
	struct store *store = store_new("");

	put_service(store, "s", false);
	put_workload(store, "a", 1, "s", true);
	assert_string_equal(dump(store, false), "service shop/s: a=8080; ");
	put_workload(store, "b", 2, "s", false);
	assert_string_equal(dump(store, false), "service shop/s: a=8080; ");
	put_workload(store, "a", 1, "s", false);
	assert_string_equal(dump(store, false), "service shop/s:; ");
	put_workload(store, "b", 2, "s", true);
	assert_string_equal(dump(store, false), "service shop/s: b=8080; ");
	put_workload(store, "b", 2, "other", true);
	assert_string_equal(dump(store, false), "service shop/s:; ");
	put_workload(store, "b", 2, "s", true);
	assert_int_equal(store_remove_workload(store, "b"), 0);
	assert_int_equal(store_remove_workload(store, "b"), -ENOENT);
	assert_string_equal(dump(store, false), "service shop/s:; ");
	store_free(store);
}

static void test_staged_regardless_of_health(void **state)
{
	struct store *store = store_new("");

	put_workload(store, "a", 1, "s", true);
	put_workload(store, "b", 2, "s", false);
	assert_string_equal(dump(store, false), "");
	put_service(store, "s", true);
	assert_string_equal(dump(store, false), "service shop/s: a=8080 b=8080!; ");
	store_free(store);
	store = store_new("");
	put_workload(store, "a", 1, "s", true);
	put_workload(store, "b", 2, "s", false);
	put_service(store, "s", false);
	assert_string_equal(dump(store, false), "service shop/s: a=8080; ");
	store_free(store);
}

static void test_service_update_carries_over(void **state)
{
	struct store *store = store_new("");

	put_service(store, "s", true);
	put_workload(store, "a", 1, "s", true);
	put_workload(store, "b", 2, "s", false);
	assert_string_equal(dump(store, false), "service shop/s: a=8080 b=8080!; ");
	put_service(store, "s", false);
	assert_string_equal(dump(store, false), "service shop/s: a=8080; ");
	/* What was filtered out does not come back by itself. */
	put_service(store, "s", true);
	assert_string_equal(dump(store, false), "service shop/s: a=8080; ");
	put_workload(store, "b", 2, "s", false);
	assert_string_equal(dump(store, false), "service shop/s: a=8080 b=8080!; ");
	store_free(store);
}

static void test_removed_service_forgets(void **state)
{
	struct store *store = store_new("");

	put_service(store, "s", false);
	put_workload(store, "a", 1, "s", true);
	assert_int_equal(store_remove_service(store, "shop", "s"), 0);
	assert_int_equal(store_remove_service(store, "shop", "s"), -ENOENT);
	put_service(store, "s", false);
	assert_string_equal(dump(store, false), "service shop/s:; ");
	put_workload(store, "a", 1, "s", true);
	assert_string_equal(dump(store, false), "service shop/s: a=8080; ");
	store_free(store);
}

static void test_staging_is_cleaned_up(void **state)
{
	struct store *store = store_new("");

	put_workload(store, "a", 1, "s", true);
	assert_int_equal(store_remove_workload(store, "a"), 0);
	put_service(store, "s", false);
	assert_string_equal(dump(store, true), "service shop/s:; ");
	assert_int_equal(store_counts(store).workload_bytes, 0);
	store_free(store);
}

static void apply_step(struct store *store, int step)
{
	if (step == 0)
		put_service(store, "s", false);
	else if (step == 1)
		put_workload(store, "a", 1, "s", true);
	else if (step == 2)
		put_workload(store, "b", 2, "s", false);
	else
		put_workload(store, "c", 3, "s", true);
}

static void permute(int *steps, int from, int cnt, const char *want)
{
	if (from == cnt) {
		struct store *store = store_new("");
		for (int i = 0; i < cnt; i++)
			apply_step(store, steps[i]);
		assert_string_equal(dump(store, true), want);
		store_free(store);
		return;
	}
	for (int i = from; i < cnt; i++) {
		int swap = steps[from];
		steps[from] = steps[i];
		steps[i] = swap;
		permute(steps, from + 1, cnt, want);
		swap = steps[from];
		steps[from] = steps[i];
		steps[i] = swap;
	}
}

static void test_order_does_not_matter(void **state)
{
	int steps[] = {0, 1, 2, 3};
	permute(steps, 0, 4,
	        "workload a 10.0.0.1@node-a 1; workload b 10.0.0.2@node-a 1; workload c 10.0.0.3@node-a 1; "
	        "service shop/s: a=8080 c=8080; ");
}

static void test_one_service_twice_in_a_workload(void **state)
{
	struct port_map ports[] = {{80, 1}, {80, 2}};
	struct workload_service in[] = {
	        {.ns = "shop", .hostname = "s", .ports = &ports[0], .port_cnt = 1},
	        {.ns = "shop", .hostname = "s", .ports = &ports[1], .port_cnt = 1},
	};
	struct workload w = make_workload("a");
	struct store *store = store_new("");

	w.services = in;
	w.service_cnt = 2;
	put_service(store, "s", false);
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	assert_string_equal(dump(store, false), "service shop/s: a=2; ");
	assert_int_equal(store_remove_workload(store, "a"), 0);
	store_free(store);
}

static void test_remove_by_resource_name(void **state)
{
	struct store *store = store_new("");

	put_service(store, "s", false);
	put_workload(store, "shop/s", 1, NULL, true);
	/* A workload of that uid goes first. */
	assert_int_equal(store_remove_address(store, "shop/s"), 0);
	assert_string_equal(dump(store, true), "service shop/s:; ");
	assert_int_equal(store_remove_address(store, "no-slash"), -ENOENT);
	assert_int_equal(store_remove_address(store, "shop/unknown"), -ENOENT);
	assert_int_equal(store_remove_address(store, "shop/s/x"), -ENOENT);
	assert_int_equal(store_remove_address(store, "shop/s"), 0);
	assert_string_equal(dump(store, true), "");
	store_free(store);
}

/* --- addresses --- */

static const char *owner(struct store *store, unsigned ip)
{
	static char name[64];
	struct ip addr = ip4(ip);
	struct view *view;

	assert_int_equal(store_view_address(store, NULL, "", &addr, &view), 0);
	snprintf(name, sizeof(name), "%s", view->workload ? view->workload->uid : "-");
	assert_int_equal(view->known, view->workload != NULL);
	view_unref(view);
	return name;
}

static void test_shared_address_falls_back(void **state)
{
	struct store *store = store_new("");

	put_workload(store, "x", 1, NULL, true);
	put_workload(store, "c//Pod/a", 1, NULL, true);
	put_workload(store, "c//Pod/b", 1, NULL, true);
	put_workload(store, "y", 1, NULL, true);
	assert_string_equal(owner(store, 1), "c//Pod/b");
	assert_int_equal(store_remove_workload(store, "c//Pod/b"), 0);
	assert_string_equal(owner(store, 1), "c//Pod/a");
	put_workload(store, "c//Pod/a", 2, NULL, true);
	assert_string_equal(owner(store, 1), "y");
	assert_string_equal(owner(store, 2), "c//Pod/a");
	assert_int_equal(store_remove_workload(store, "y"), 0);
	assert_string_equal(owner(store, 1), "x");
	assert_int_equal(store_remove_workload(store, "x"), 0);
	assert_string_equal(owner(store, 1), "-");
	store_free(store);
}

static void test_many_on_one_address(void **state)
{
	struct store *store = store_new("");
	char uid[16];

	/* Quadratic work would be 10^10 steps here. */
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(uid, sizeof(uid), "%u", i);
		put_workload(store, uid, 1, "s", true);
	}
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(uid, sizeof(uid), "%u", i);
		assert_int_equal(store_remove_workload(store, uid), 0);
	}
	assert_int_equal(store_counts(store).workloads, 0);
	store_free(store);
}

static void test_packed_size(void **state)
{
	struct store *store = store_new("");
	char uid[80];

	for (unsigned i = 0; i < 1000; i++) {
		snprintf(uid, sizeof(uid), "Kubernetes//Pod/some-namespace/some-deployment-5d4f%05u", i);
		put_workload(store, uid, i, "s", true);
	}
	/* 100,000 workloads must fit 50 MB with everything else (design.md 6). */
	assert_true(store_counts(store).workload_bytes / 1000 < 340);
	store_free(store);
}

static void test_ceilings(void **state)
{
	struct store *store = store_new("");
	struct workload w = make_workload("a");
	static struct ip ips[STORE_WORKLOAD_IPS_MAX + 1];

	w.ips = ips;
	w.ip_cnt = STORE_WORKLOAD_IPS_MAX + 1;
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), ERR_TOO_MANY);
	w.ip_cnt = 0;
	w.service_cnt = STORE_WORKLOAD_SERVICES_MAX + 1;
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), ERR_TOO_MANY);
	w.service_cnt = 0;
	w.policy_cnt = STORE_WORKLOAD_POLICIES_MAX + 1;
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), ERR_TOO_MANY);
	assert_string_equal(dump(store, true), "");
	store_free(store);
}

/* --- everything of a record survives packing --- */

static void test_workload_round_trip(void **state)
{
	struct store *store = store_new("");
	struct ip ips[2];
	const char *policies[] = {"a/b", "c/d"};
	struct port_map ports[] = {{80, 8080}, {443, 0}};
	struct workload_service in[] = {
	        {.ns = "n1", .hostname = "h1", .ports = ports, .port_cnt = 2},
	        {.ns = "n2", .hostname = "h2"},
	};
	struct workload w = make_workload("uid");
	const struct workload *got;
	struct arena *arena = arena_new(1 << 20);

	ips[0] = ip_v4(10, 0, 0, 1);
	ips[1] = (struct ip){.family = 6, .b = {0x20, 1}};
	w.name = "name";
	w.network = "net";
	w.hostname = "host";
	w.locality = (struct locality){"r", "z", "s"};
	w.protocol = WORKLOAD_HBONE;
	w.network_mode = NETWORK_MODE_HOST;
	w.status = WORKLOAD_UNHEALTHY;
	w.native_tunnel = true;
	w.capacity = 77;
	w.ips = ips;
	w.ip_cnt = 2;
	w.has_waypoint = true;
	w.waypoint = (struct gateway_ref){
	        .is_host = true, .addr.network = "", .ns = "wn", .host = "wh", .hbone_port = 1};
	w.has_network_gateway = true;
	w.network_gateway = (struct gateway_ref){
	        .addr = {.network = "gn", .ip = ips[0]}, .ns = "", .host = "", .hbone_port = 2};
	w.has_app_tunnel = true;
	w.app_tunnel_protocol = APP_TUNNEL_PROXY;
	w.app_tunnel_port = 3;
	w.policies = policies;
	w.policy_cnt = 2;
	w.services = in;
	w.service_cnt = 2;
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	assert_int_equal(store_workload(store, "uid", arena, &got), 0);
	assert_string_equal(got->name, "name");
	assert_string_equal(got->ns, "shop");
	assert_string_equal(got->trust_domain, "td");
	assert_string_equal(got->service_account, "sa");
	assert_string_equal(got->network, "net");
	assert_string_equal(got->workload_name, "w");
	assert_string_equal(got->workload_type, "pod");
	assert_string_equal(got->canonical_name, "c");
	assert_string_equal(got->canonical_revision, "v1");
	assert_string_equal(got->hostname, "host");
	assert_string_equal(got->node, "node-a");
	assert_string_equal(got->cluster_id, "Kubernetes");
	assert_string_equal(got->locality.region, "r");
	assert_string_equal(got->locality.zone, "z");
	assert_string_equal(got->locality.subzone, "s");
	assert_int_equal(got->protocol, WORKLOAD_HBONE);
	assert_int_equal(got->network_mode, NETWORK_MODE_HOST);
	assert_int_equal(got->status, WORKLOAD_UNHEALTHY);
	assert_true(got->native_tunnel);
	assert_int_equal(got->capacity, 77);
	assert_int_equal(got->ip_cnt, 2);
	assert_true(ip_eq(&got->ips[1], &ips[1]));
	assert_true(got->has_waypoint && got->waypoint.is_host);
	assert_string_equal(got->waypoint.ns, "wn");
	assert_string_equal(got->waypoint.host, "wh");
	assert_int_equal(got->waypoint.hbone_port, 1);
	assert_true(got->has_network_gateway && !got->network_gateway.is_host);
	assert_string_equal(got->network_gateway.addr.network, "gn");
	assert_true(ip_eq(&got->network_gateway.addr.ip, &ips[0]));
	assert_int_equal(got->network_gateway.hbone_port, 2);
	assert_true(got->has_app_tunnel);
	assert_int_equal(got->app_tunnel_protocol, APP_TUNNEL_PROXY);
	assert_int_equal(got->app_tunnel_port, 3);
	assert_int_equal(got->policy_cnt, 2);
	assert_string_equal(got->policies[1], "c/d");
	assert_int_equal(got->service_cnt, 2);
	assert_string_equal(got->services[0].ns, "n1");
	assert_string_equal(got->services[0].hostname, "h1");
	assert_int_equal(got->services[0].port_cnt, 2);
	assert_int_equal(got->services[0].ports[0].target_port, 8080);
	assert_int_equal(got->services[1].port_cnt, 0);
	assert_int_equal(store_workload(store, "nobody", arena, &got), -ENOENT);
	arena_unref(arena);
	store_free(store);
}

/* --- own workload --- */

static void test_own_workload(void **state)
{
	struct store *store = store_new("node-a");
	struct workload w = make_workload("uid-1");
	struct workload_info info = {.name = "pod", .ns = "shop", .service_account = "sa"};
	const struct workload *got;
	struct arena *arena = arena_new(1 << 20);

	w.name = "pod";
	w.node = "node-b";
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	/* On another node it is not ours, whatever its name. */
	assert_int_equal(store_own_workload(store, &info, arena, &got), -ENOENT);
	w.node = "node-a";
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	assert_int_equal(store_own_workload(store, &info, arena, &got), 0);
	assert_string_equal(got->uid, "uid-1");
	w.uid = "uid-2";
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	assert_int_equal(store_own_workload(store, &info, arena, &got), 0);
	assert_string_equal(got->uid, "uid-2");
	assert_int_equal(store_remove_workload(store, "uid-2"), 0);
	assert_int_equal(store_own_workload(store, &info, arena, &got), 0);
	assert_string_equal(got->uid, "uid-1");
	info.service_account = "other";
	assert_int_equal(store_own_workload(store, &info, arena, &got), -ENOENT);
	info.service_account = "sa";
	info.name = "po";
	assert_int_equal(store_own_workload(store, &info, arena, &got), -ENOENT);
	store_free(store);
	/* Without NODE_NAME every workload is local. */
	store = store_new("");
	info.name = "pod";
	w.node = "anywhere";
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	assert_int_equal(store_own_workload(store, &info, arena, &got), 0);
	arena_unref(arena);
	store_free(store);
}

/* --- policies --- */

static void put_policy(struct store *store, const char *ns, const char *name, enum policy_scope scope)
{
	struct policy p = {.name = name, .ns = ns, .scope = scope};
	char key[64];
	snprintf(key, sizeof(key), "%s/%s", ns, name);
	assert_int_equal(store_insert_policy(store, key, &p, STORE_XDS), 0);
}

static const char *policies_of(struct store *store, const char *const *listed, size_t cnt)
{
	static char text[256];
	struct workload w = make_workload("x");
	struct arena *arena = arena_new(1 << 20);
	const struct policy *const *policies;
	size_t n;

	w.policies = listed;
	w.policy_cnt = cnt;
	assert_int_equal(store_policies(store, &w, arena, &policies, &n, NULL, NULL), 0);
	text[0] = 0;
	for (size_t i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", policies[i]->name);
	arena_unref(arena);
	return text;
}

static void test_policies_in_force(void **state)
{
	struct store *store = store_new("");
	const char *listed[] = {"root/selected", "root/gone", "shop/mine"};

	put_policy(store, "root", "global", POLICY_GLOBAL);
	put_policy(store, "shop", "mine", POLICY_NAMESPACE);
	put_policy(store, "other", "theirs", POLICY_NAMESPACE);
	put_policy(store, "root", "selected", POLICY_SELECTOR);
	assert_string_equal(policies_of(store, NULL, 0), "global mine ");
	assert_string_equal(policies_of(store, listed, 3), "global selected mine ");
	/* R7: another scope, the old one is forgotten. */
	put_policy(store, "root", "global", POLICY_SELECTOR);
	assert_string_equal(policies_of(store, NULL, 0), "mine ");
	put_policy(store, "shop", "mine", POLICY_GLOBAL);
	assert_string_equal(policies_of(store, NULL, 0), "mine ");
	uint64_t before = store_policy_generation(store);
	assert_int_equal(store_remove_policy(store, "shop/mine"), 0);
	assert_int_equal(store_remove_policy(store, "shop/mine"), -ENOENT);
	assert_true(store_policy_generation(store) > before);
	assert_string_equal(policies_of(store, NULL, 0), "");
	store_free(store);
}

/* --- what is told --- */

static void on_change(void *ctx, const struct store_change *c)
{
	static const char *const subjects[] = {"addr", "cidr", "host", "own", "policy"};
	char text[CIDR_STR_MAX] = "";
	if (c->subject == STORE_ADDRESS)
		ip_format(&c->ip, text);
	else if (c->subject == STORE_CIDR)
		cidr_format(&c->cidr, text);
	buf_printf(ctx, "%s:%s%s%s%s%s%s; ", subjects[c->subject], text, c->ns, c->ns[0] ? "/" : "",
	        c->hostname, c->name, c->policy_key);
}

/* What was told since the last call. */
static const char *told(struct buf *log)
{
	static char text[2048];
	const char *now = buf_cstr(log);
	snprintf(text, sizeof(text), "%s", now ? now : "");
	buf_clear(log);
	return text;
}

static void test_changes_are_told(void **state)
{
	struct store *store = store_new("node-a");
	struct buf log;
	struct store_watcher watcher = {.ctx = &log, .changed = on_change};
	struct service ranged = make_service("ranged");
	struct net_cidr cidr = {.network = ""};

	buf_init(&log, 65536);
	store_watch(store, &watcher);
	put_workload(store, "a", 1, "s", true);
	assert_string_equal(told(&log), "addr:10.0.0.1; own:shop/a; ");
	put_service(store, "s", false);
	assert_string_equal(told(&log), "host:shop/s; addr:10.96.0.1; ");
	put_workload(store, "a", 2, "s", true);
	assert_string_equal(told(&log), "addr:10.0.0.1; own:shop/a; host:shop/s; addr:10.96.0.1; "
	                                "addr:10.0.0.2; own:shop/a; host:shop/s; addr:10.96.0.1; ");
	assert_int_equal(store_remove_workload(store, "a"), 0);
	assert_string_equal(told(&log), "addr:10.0.0.2; own:shop/a; host:shop/s; addr:10.96.0.1; ");
	assert_int_equal(store_remove_service(store, "shop", "s"), 0);
	assert_string_equal(told(&log), "host:shop/s; addr:10.96.0.1; ");
	assert_int_equal(cidr_parse("10.7.0.0/16", 11, &cidr.cidr), 0);
	ranged.cidrs = &cidr;
	ranged.cidr_cnt = 1;
	assert_int_equal(store_insert_service(store, &ranged, NULL, 0, STORE_XDS), 0);
	assert_string_equal(told(&log), "host:shop/ranged; cidr:10.7.0.0/16; ");
	put_policy(store, "shop", "p", POLICY_NAMESPACE);
	assert_string_equal(told(&log), "policy:shop/shop/p; ");
	put_policy(store, "shop", "p", POLICY_GLOBAL);
	assert_string_equal(told(&log), "policy:shop/shop/p; policy:shop/p; ");
	store_watch(store, NULL);
	put_policy(store, "shop", "p", POLICY_NAMESPACE);
	assert_string_equal(told(&log), "");
	buf_done(&log);
	store_free(store);
}

static bool list_name(void *ctx, const char *name)
{
	assert_int_equal(buf_printf(ctx, "%s; ", name), 0);
	return name[0] != 'z';
}

static void test_names_of_records(void **state)
{
	struct store *store = store_new("");
	struct buf log;

	buf_init(&log, 65536);
	put_workload(store, "a", 1, "s", true);
	/* Staging only: that service has no record. */
	store_each_name(store, STORE_RESOURCE_ADDRESS, list_name, &log);
	assert_string_equal(told(&log), "a; ");
	put_service(store, "s", true);
	put_policy(store, "shop", "p", POLICY_NAMESPACE);
	store_each_name(store, STORE_RESOURCE_ADDRESS, list_name, &log);
	assert_string_equal(told(&log), "a; shop/s; ");
	store_each_name(store, STORE_RESOURCE_POLICY, list_name, &log);
	assert_string_equal(told(&log), "shop/p; ");
	/* The walk ends when it is told to. */
	assert_int_equal(store_remove_workload(store, "a"), 0);
	put_workload(store, "z", 1, NULL, true);
	store_each_name(store, STORE_RESOURCE_ADDRESS, list_name, &log);
	assert_string_equal(told(&log), "z; ");
	buf_done(&log);
	store_free(store);
}

static void test_unchanged_records_are_not_told(void **state)
{
	struct store *store = store_new("");
	struct store_watcher watcher = {.changed = on_change};
	struct buf log;

	buf_init(&log, 65536);
	watcher.ctx = &log;
	put_service(store, "s", false);
	put_workload(store, "a", 1, "s", true);
	put_policy(store, "shop", "p", POLICY_NAMESPACE);
	store_watch(store, &watcher);
	put_service(store, "s", false);
	put_workload(store, "a", 1, "s", true);
	put_policy(store, "shop", "p", POLICY_NAMESPACE);
	assert_string_equal(told(&log), "");
	assert_int_equal(store_remove_policy(store, "shop/p"), 0);
	/* With a second claim on the address the order decides. */
	put_workload(store, "b", 1, NULL, true);
	told(&log);
	put_workload(store, "a", 1, "s", true);
	assert_string_equal(told(&log), "addr:10.0.0.1; ");
	/* An endpoint that went with its service comes back when its workload is sent again. */
	assert_int_equal(store_remove_service(store, "shop", "s"), 0);
	put_service(store, "s", false);
	assert_string_equal(dump(store, false), "service shop/s:; ");
	told(&log);
	put_workload(store, "a", 1, "s", true);
	assert_string_equal(dump(store, false), "service shop/s: a=8080; ");
	assert_string_equal(told(&log), "addr:10.0.0.1; host:shop/s; addr:10.96.0.1; ");
	buf_done(&log);
	store_free(store);
}

static void test_change_hits(void **state)
{
	struct ip in = ip_v4(10, 7, 1, 1), out = ip_v4(10, 8, 1, 1);
	struct view_key in_key = view_key_address("n", &in), out_key = view_key_address("n", &out);
	struct view_key other_net = view_key_address("m", &in);
	struct view_key host = view_key_host("a", "h"), any = view_key_host("", "h"),
	                not = view_key_host("b", "h");
	struct store_change change = {.subject = STORE_ADDRESS, .network = "n", .ip = in};

	assert_true(store_change_hits(&change, &in_key));
	assert_false(store_change_hits(&change, &out_key));
	assert_false(store_change_hits(&change, &other_net));
	assert_false(store_change_hits(&change, &host));
	change = (struct store_change){
	        .subject = STORE_CIDR, .network = "n", .cidr = {.ip = ip_v4(10, 7, 0, 0), .len = 16}};
	assert_true(store_change_hits(&change, &in_key));
	assert_false(store_change_hits(&change, &out_key));
	assert_false(store_change_hits(&change, &other_net));
	change = (struct store_change){.subject = STORE_HOST, .ns = "a", .hostname = "h"};
	assert_true(store_change_hits(&change, &host));
	assert_true(store_change_hits(&change, &any));
	assert_false(store_change_hits(&change, &not ));
	assert_false(store_change_hits(&change, &in_key));
	/* A queried name hears of all that it may mean. */
	struct view_key name = view_key_name("web.ns.svc.cluster.local"), bare = view_key_name("web");
	change.hostname = "web.ns.svc.cluster.local";
	assert_true(store_change_hits(&change, &name) && store_change_hits(&change, &bare));
	change.hostname = "web";
	assert_true(store_change_hits(&change, &name) && store_change_hits(&change, &bare));
	change.hostname = "*.local";
	assert_true(store_change_hits(&change, &name) && store_change_hits(&change, &bare));
	change.hostname = "webs.ns";
	assert_false(store_change_hits(&change, &name) || store_change_hits(&change, &bare));
	change.hostname = "we";
	assert_false(store_change_hits(&change, &name) || store_change_hits(&change, &bare));
	change.subject = STORE_OWN;
	assert_false(store_change_hits(&change, &host));
}

/* --- replacement --- */

static void put_file(struct store *store, const char *uid, unsigned ip, const char *node)
{
	struct workload w = make_workload(uid);
	struct ip addr = ip4(ip);
	w.ips = &addr;
	w.ip_cnt = 1;
	w.node = node;
	assert_int_equal(store_insert_workload(store, &w, STORE_FILE), 0);
}

static void test_replacement(void **state)
{
	struct store *store = store_new("");
	struct buf log;
	struct store_watcher watcher = {.ctx = &log, .changed = on_change};
	struct service s = make_service("s");
	struct policy p = {.name = "p", .ns = "shop"};

	buf_init(&log, 65536);
	put_file(store, "same", 1, "n");
	put_file(store, "moves", 2, "n");
	put_file(store, "goes", 3, "n");
	put_workload(store, "xds", 4, NULL, true);
	assert_int_equal(store_insert_service(store, &s, NULL, 0, STORE_FILE), 0);
	assert_int_equal(store_insert_policy(store, "shop/p", &p, STORE_FILE), 0);
	store_watch(store, &watcher);

	uint64_t before = store_generation(store);
	store_replace_begin(store, STORE_FILE);
	put_file(store, "same", 1, "n");
	put_file(store, "moves", 2, "n");
	put_file(store, "goes", 3, "n");
	assert_int_equal(store_insert_service(store, &s, NULL, 0, STORE_FILE), 0);
	assert_int_equal(store_insert_policy(store, "shop/p", &p, STORE_FILE), 0);
	store_replace_commit(store, true);
	assert_string_equal(told(&log), "");
	assert_true(store_generation(store) == before);

	store_replace_begin(store, STORE_FILE);
	put_file(store, "same", 1, "n");
	put_file(store, "moves", 2, "m");
	store_replace_commit(store, true);
	assert_string_equal(told(&log), "addr:10.0.0.2; own:shop/moves; addr:10.0.0.2; own:shop/moves; "
	                                "addr:10.0.0.3; own:shop/goes; host:shop/s; policy:shop/p; ");
	assert_string_equal(dump(store, true),
	        "workload moves 10.0.0.2@m 0; workload same 10.0.0.1@n 0; workload xds 10.0.0.4@node-a 0; ");

	/* A reading that failed half way removes nothing. */
	store_replace_begin(store, STORE_FILE);
	put_file(store, "same", 1, "n");
	store_replace_commit(store, false);
	assert_string_equal(told(&log), "");
	assert_int_equal(store_counts(store).workloads, 3);
	/* Nothing of the file is left; both had one identity. */
	store_replace_begin(store, STORE_FILE);
	store_replace_commit(store, true);
	assert_string_equal(dump(store, true), "workload xds 10.0.0.4@node-a 0; ");
	buf_done(&log);
	store_free(store);
}

static void test_replacement_is_a_fresh_load(void **state)
{
	struct store *store = store_new("");

	put_service(store, "s", false);
	put_workload(store, "a", 1, "s", false);
	assert_string_equal(dump(store, false), "service shop/s:; ");
	/* Loaded afresh, the service takes its unhealthy endpoint although the workload did not change. */
	store_replace_begin(store, STORE_XDS);
	put_workload(store, "a", 1, "s", false);
	put_service(store, "s", true);
	store_replace_commit(store, true);
	assert_string_equal(dump(store, false), "service shop/s: a=8080!; ");
	store_free(store);
}

static void test_endpoints_named_by_the_service(void **state)
{
	struct store *store = store_new("");
	struct port_map port = {80, 7};
	struct service_endpoint eps[] = {
	        {.workload_uid = "a", .ports = &port, .port_cnt = 1},
	        {.workload_uid = "b", .ports = &port, .port_cnt = 1, .status = WORKLOAD_UNHEALTHY},
	        {.workload_uid = "c", .ports = &port, .port_cnt = 1},
	};
	struct service s = make_service("s");
	struct buf log;
	struct store_watcher watcher = {.ctx = &log, .changed = on_change};

	buf_init(&log, 65536);
	assert_int_equal(store_insert_service(store, &s, eps, 3, STORE_FILE), 0);
	put_workload(store, "b", 2, NULL, true);
	put_workload(store, "c", 3, "s", true);
	store_watch(store, &watcher);
	put_workload(store, "a", 1, NULL, true);
	assert_string_equal(told(&log), "addr:10.0.0.1; own:shop/a; host:shop/s; ");
	/* c declares the membership itself: counted once, with its own mapping. */
	assert_string_equal(dump(store, false), "service shop/s: a=7 c=8080; ");
	assert_int_equal(store_remove_workload(store, "a"), 0);
	assert_string_equal(dump(store, false), "service shop/s: c=8080; ");
	buf_done(&log);
	store_free(store);
}

/* --- views --- */

static struct view *view_of(struct store *store, const struct workload *self, uint64_t seed)
{
	struct store_asker asker = {.workload = self, .seed = seed};
	struct view *view;
	assert_int_equal(store_view_host(store, &asker, "shop", "s", &view), 0);
	return view;
}

static bool has(const struct view *view, const char *uid)
{
	for (size_t i = 0; i < view->endpoint_cnt; i++) {
		if (strcmp(view->endpoints[i].workload->uid, uid) == 0)
			return true;
	}
	return false;
}

static void test_view_outlives_change(void **state)
{
	struct store *store = store_new("");
	put_service(store, "s", false);
	put_workload(store, "a", 1, "s", true);
	struct view *old = view_of(store, NULL, 0);
	assert_int_equal(store_remove_workload(store, "a"), 0);
	assert_int_equal(store_remove_service(store, "shop", "s"), 0);
	struct view *fresh = view_of(store, NULL, 0);
	store_free(store);
	assert_true(old->known);
	assert_int_equal(old->endpoint_cnt, 1);
	assert_string_equal(old->endpoints[0].workload->trust_domain, "td");
	assert_int_equal(old->endpoints[0].workload->service_cnt, 0);
	assert_false(fresh->known);
	assert_true(fresh->generation > old->generation);
	assert_ptr_equal(view_ref(old), old);
	view_unref(old);
	view_unref(old);
	view_unref(fresh);
}

static void test_large_service_subset(void **state)
{
	struct store *store = store_new("");
	struct workload self = make_workload("w250");
	char uid[16];

	put_service(store, "s", false);
	for (unsigned i = 0; i < 300; i++) {
		snprintf(uid, sizeof(uid), "w%03u", i);
		put_workload(store, uid, i, "s", true);
	}
	struct view *a = view_of(store, &self, 1), *again = view_of(store, &self, 1),
	            *b = view_of(store, &self, 2);
	assert_int_equal(a->endpoint_cnt, LIMIT_VIEW_ENDPOINTS);
	assert_true(has(a, "w250"));
	assert_true(has(b, "w250"));
	size_t same = 0, shared = 0;
	for (size_t i = 0; i < a->endpoint_cnt; i++) {
		same += strcmp(a->endpoints[i].workload->uid, again->endpoints[i].workload->uid) == 0;
		shared += has(b, a->endpoints[i].workload->uid);
		if (i > 0)
			assert_true(
			        strcmp(a->endpoints[i - 1].workload->uid, a->endpoints[i].workload->uid) < 0);
	}
	assert_int_equal(same, LIMIT_VIEW_ENDPOINTS);
	/* Independent subsets share 128 * 128 / 300 = 55 on average; 6 standard deviations are 31. */
	assert_in_range(shared, 24, 86);
	view_unref(a);
	view_unref(again);
	view_unref(b);
	store_free(store);
}

static void test_large_service_prefers_near_and_weighty(void **state)
{
	struct store *store = store_new("");
	struct workload self = make_workload("self");
	struct service s = make_service("s");
	enum lb_scope scope = LB_SCOPE_NODE;
	struct port_map named = {80, 0}, port = {80, 8080};
	char uid[16];

	s.has_lb = true;
	s.lb_mode = LB_MODE_FAILOVER;
	s.scopes = &scope;
	s.scope_cnt = 1;
	s.ports = &named;
	s.port_cnt = 1;
	assert_int_equal(store_insert_service(store, &s, NULL, 0, STORE_XDS), 0);
	for (unsigned i = 0; i < 500; i++) {
		struct workload_service in = {
		        .ns = "shop", .hostname = "s", .ports = &port, .port_cnt = i == 499};
		struct workload w = make_workload(uid);
		snprintf(uid, sizeof(uid), "w%03u", i);
		w.services = &in;
		w.service_cnt = 1;
		w.node = i % 10 ? "node-b" : "node-a";
		w.capacity = i % 20 ? 1 : 0;
		assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	}
	struct view *view = view_of(store, &self, 1);
	size_t near = 0;
	for (size_t i = 0; i < view->endpoint_cnt; i++) {
		assert_int_not_equal(view->endpoints[i].workload->capacity, 0);
		near += strcmp(view->endpoints[i].workload->node, "node-a") == 0;
	}
	assert_int_equal(view->endpoint_cnt, LIMIT_VIEW_ENDPOINTS);
	/* All 25 near ones of weight 1; and the only endpoint that maps the named port, far as it is. */
	assert_int_equal(near, 25);
	assert_true(has(view, "w499"));
	view_unref(view);
	store_free(store);
}

static void test_hostname_views(void **state)
{
	struct store *store = store_new("");
	struct workload w = make_workload("by-name");
	struct service a = make_service("h"), b = make_service("h");
	struct workload asker_b = make_workload("x");
	struct store_asker asker = {.workload = &asker_b};
	struct view *view;

	w.hostname = "pod.host";
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
	a.ns = "a";
	a.visibility = VISIBILITY_NAMESPACE;
	b.ns = "b";
	assert_int_equal(store_insert_service(store, &a, NULL, 0, STORE_XDS), 0);
	assert_int_equal(store_insert_service(store, &b, NULL, 0, STORE_XDS), 0);
	/* Exactly that namespace: visibility is not applied. */
	assert_int_equal(store_view_host(store, &asker, "a", "h", &view), 0);
	assert_string_equal(view->service->ns, "a");
	view_unref(view);
	assert_int_equal(store_view_host(store, &asker, "shop", "pod.host", &view), 0);
	assert_string_equal(view->workload->uid, "by-name");
	view_unref(view);
	assert_int_equal(store_view_host(store, &asker, "a", "pod.host", &view), 0);
	assert_false(view->known);
	view_unref(view);
	/* Any namespace: what the asker sees. */
	assert_int_equal(store_view_host(store, &asker, "", "h", &view), 0);
	assert_string_equal(view->service->ns, "b");
	view_unref(view);
	asker_b.ns = "a";
	assert_int_equal(store_view_host(store, &asker, "", "h", &view), 0);
	assert_string_equal(view->service->ns, "a");
	view_unref(view);
	assert_int_equal(store_view_host(store, &asker, "", "pod.host", &view), 0);
	assert_false(view->known);
	view_unref(view);
	store_free(store);
}

/* control.md 10.3, 5: addresses or a cluster name; own namespace, canonical, preferred, first. */
static void test_names(void **state)
{
	struct store *store = store_new("");
	struct net_addr vip = {.network = "", .ip = ip4(7)};
	struct service none = make_service("x.test"), cluster = make_service("x.ns.svc.d"),
	               first = make_service("y"), liked = make_service("y"), canonical = make_service("y"),
	               own = make_service("y");
	struct workload w = make_workload("x");
	struct store_asker asker = {.workload = &w};
	struct store_dns dns = {.domain = "d"};
	struct view_key key = view_key_name("query");
	struct {
		struct service *service;
		const char *ns;
		const char *preferred; /* at the question */
		const char *want;
	} rows[] = {
	        {&first, "n1", "liked", "n1"},
	        {&liked, "liked", NULL, "n1"},
	        {&liked, "liked", "liked", "liked"},
	        {&canonical, "n2", "liked", "n2"},
	        {&own, "me", "liked", "me"},
	};

	w.ns = "me";
	canonical.canonical = true;
	assert_int_equal(store_insert_service(store, &none, NULL, 0, STORE_XDS), 0);
	assert_int_equal(store_insert_service(store, &cluster, NULL, 0, STORE_XDS), 0);
	assert_false(store_has_name(store, &asker, &dns, "x.test"));
	assert_false(store_has_name(store, &asker, &dns, "nothing"));
	assert_true(store_has_name(store, &asker, &dns, "x.ns.svc.d"));
	dns.domain = "ns.svc.d";
	assert_false(store_has_name(store, &asker, &dns, "x.ns.svc.d"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct view *view;
		rows[i].service->ns = rows[i].ns;
		rows[i].service->vips = &vip;
		rows[i].service->vip_cnt = 1;
		assert_int_equal(store_insert_service(store, rows[i].service, NULL, 0, STORE_XDS), 0);
		dns.preferred = rows[i].preferred;
		assert_true(store_has_name(store, &asker, &dns, "y"));
		assert_int_equal(store_view_name(store, &asker, &dns, &key, "y", &view), 0);
		assert_true(view_key_eq(&view->key, &key));
		assert_string_equal(view->service->ns, rows[i].want);
		view_unref(view);
	}
	struct view *view;
	assert_int_equal(store_view_name(store, &asker, &dns, &key, NULL, &view), 0);
	assert_false(view->known);
	view_unref(view);
	own.visibility = VISIBILITY_NAMESPACE;
	own.hostname = "z";
	own.ns = "n1";
	assert_int_equal(store_insert_service(store, &own, NULL, 0, STORE_XDS), 0);
	assert_false(store_has_name(store, &asker, &dns, "z"));
	store_free(store);
}

static void test_overlong_key(void **state)
{
	struct store *store = store_new("");
	struct view *view;
	char name[1000];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(store_view_host(store, NULL, "a", name, &view), -ENAMETOOLONG);
	store_free(store);
}

/* --- failing allocations --- */

/* Does one thing to a store; returns its result. */
static int act(struct store *store, int what)
{
	struct ip addr = ip4(9);
	const char *listed[] = {"a/b", "c/d"};
	struct port_map port = {80, 81};
	struct workload_service in[] = {{.ns = "shop", .hostname = "new", .ports = &port, .port_cnt = 1},
	        {.ns = "shop", .hostname = "s", .ports = &port, .port_cnt = 1}};
	struct workload w = make_workload("a");
	struct net_addr vips[] = {{.network = "fresh", .ip = addr}, {.network = "", .ip = addr}};
	struct service_endpoint ep = {.workload_uid = "a", .ports = &port, .port_cnt = 1};
	struct service s = make_service(what == 1 ? "s" : "new");
	struct policy p = {.name = "p", .ns = "shop", .scope = POLICY_NAMESPACE};

	if (what == 0) {
		w.ips = &addr;
		w.ip_cnt = 1;
		w.network = "another";
		w.policies = listed;
		w.policy_cnt = 2;
		w.services = in;
		w.service_cnt = 2;
		w.node = "elsewhere";
		w.service_account = "another";
		return store_insert_workload(store, &w, STORE_XDS);
	}
	if (what == 3)
		return store_insert_policy(store, "shop/p", &p, STORE_XDS);
	s.vips = vips;
	s.vip_cnt = 2;
	return store_insert_service(store, &s, &ep, 1, STORE_XDS);
}

static void test_allocation_failures(void **state)
{
	for (int what = 0; what < 4; what++) {
		int rc = -ENOMEM;
		size_t n = 1;
		for (; rc < 0; n++) {
			struct store *store = store_new("");
			put_service(store, "s", false);
			put_workload(store, "a", 1, "s", true);
			char before[512];
			snprintf(before, sizeof(before), "%s", dump(store, true));
			uint64_t generation = store_generation(store);
			fail_at = n;
			rc = act(store, what);
			fail_at = 0;
			if (rc < 0) {
				assert_int_equal(rc, -ENOMEM);
				assert_string_equal(dump(store, true), before);
				assert_true(store_generation(store) == generation);
				assert_string_equal(owner(store, 1), "a");
			}
			/* Whatever happened, the same works afterwards. */
			assert_int_equal(act(store, what), 0);
			store_free(store);
			assert_true(n < 1000);
		}
		/* Every one of these needs several allocations. */
		assert_true(n > 4);
	}
}

static void test_view_allocation_failures(void **state)
{
	struct store *store = store_new("");
	struct workload self = make_workload("a");
	struct store_asker asker = {.workload = &self};
	struct view *view;
	int rc = -ENOMEM;

	put_service(store, "s", false);
	for (unsigned i = 0; i < 40; i++) {
		char uid[8];
		snprintf(uid, sizeof(uid), "%u", i);
		put_workload(store, uid, i, "s", true);
	}
	size_t n = 1;
	for (; rc < 0 && n < 1000; n++) {
		fail_at = n;
		rc = store_view_host(store, &asker, "shop", "s", &view);
		fail_at = 0;
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	assert_int_equal(rc, 0);
	assert_true(n > 4);
	view_unref(view);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_endpoints_come_and_go),
	        cmocka_unit_test(test_staged_regardless_of_health),
	        cmocka_unit_test(test_service_update_carries_over),
	        cmocka_unit_test(test_removed_service_forgets),
	        cmocka_unit_test(test_staging_is_cleaned_up),
	        cmocka_unit_test(test_order_does_not_matter),
	        cmocka_unit_test(test_one_service_twice_in_a_workload),
	        cmocka_unit_test(test_remove_by_resource_name),
	        cmocka_unit_test(test_shared_address_falls_back),
	        cmocka_unit_test(test_many_on_one_address),
	        cmocka_unit_test(test_names_of_records),
	        cmocka_unit_test(test_unchanged_records_are_not_told),
	        cmocka_unit_test(test_packed_size),
	        cmocka_unit_test(test_ceilings),
	        cmocka_unit_test(test_workload_round_trip),
	        cmocka_unit_test(test_own_workload),
	        cmocka_unit_test(test_policies_in_force),
	        cmocka_unit_test(test_changes_are_told),
	        cmocka_unit_test(test_change_hits),
	        cmocka_unit_test(test_replacement),
	        cmocka_unit_test(test_replacement_is_a_fresh_load),
	        cmocka_unit_test(test_endpoints_named_by_the_service),
	        cmocka_unit_test(test_view_outlives_change),
	        cmocka_unit_test(test_large_service_subset),
	        cmocka_unit_test(test_large_service_prefers_near_and_weighty),
	        cmocka_unit_test(test_hostname_views),
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_overlong_key),
	        cmocka_unit_test(test_allocation_failures),
	        cmocka_unit_test(test_view_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
