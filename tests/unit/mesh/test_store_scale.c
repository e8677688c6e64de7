/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The store as a whole: whatever the order in which records came and went, it
 * answers like a store that was filled with what is left; and what one record
 * costs does not grow with the mesh.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "mesh/store.h"

static size_t allocs; /* so far */

bool mem_should_fail(size_t len)
{
	allocs++;
	return false;
}

/* --- a small world for random orders --- */

#define WORKLOADS 12
#define SERVICES 8
#define VARIANTS 4
#define IPS 6
#define ROUNDS 60
#define STEPS 150

static const struct gateway_ref NONE = {.addr.network = "", .ns = "", .host = ""};
static const char *const SPACES[] = {"", "red", "blue"};
static const char *const HOSTS[] = {"a", "b", "c", "d"};

/* Numbers that look random and are the same in every run. */
static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static struct ip world_ip(unsigned n)
{
	return ip_v4(10, 0, 0, (uint8_t)(n % IPS));
}

static void put_workload(struct store *store, unsigned i, unsigned variant, bool may_be_unhealthy)
{
	char uid[32], name[16];
	const struct ip ips[] = {world_ip(i + variant), world_ip(i * 3 + variant)};
	const struct port_map port = {80, (uint16_t)(8000 + variant)};
	const struct workload_service members[] = {
	        {SPACES[1 + i % 2], HOSTS[(i + variant) % 4], &port, 1},
	        {SPACES[1 + variant % 2], HOSTS[i % 4], NULL, 0},
	};

	snprintf(uid, sizeof(uid), i % 3 ? "//Pod/%u" : "//Entry/%u", i);
	snprintf(name, sizeof(name), "w%u", i / 2);
	const struct workload w = {
	        .uid = uid,
	        .name = name,
	        .ns = SPACES[1 + i % 2],
	        .trust_domain = "td",
	        .service_account = "sa",
	        .network = variant == 3 ? "net" : "",
	        .workload_name = "",
	        .workload_type = "pod",
	        .canonical_name = "",
	        .canonical_revision = "",
	        .hostname = i % 4 == 0 ? HOSTS[variant] : "",
	        .node = variant == 2 ? "there" : "here",
	        .cluster_id = "",
	        .locality = {"", "", ""},
	        .protocol = variant & 1 ? WORKLOAD_HBONE : WORKLOAD_TCP,
	        .network_mode = i == 5 ? NETWORK_MODE_HOST : NETWORK_MODE_STANDARD,
	        .status = may_be_unhealthy && variant == 1 ? WORKLOAD_UNHEALTHY : WORKLOAD_HEALTHY,
	        .capacity = 1,
	        .ips = ips,
	        .ip_cnt = ip_eq(&ips[0], &ips[1]) ? 1 : 2,
	        .waypoint = NONE,
	        .network_gateway = NONE,
	        .services = members,
	        .service_cnt = 2,
	};
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
}

static void remove_workload(struct store *store, unsigned i)
{
	char uid[32];
	snprintf(uid, sizeof(uid), i % 3 ? "//Pod/%u" : "//Entry/%u", i);
	store_remove_address(store, uid);
}

static void put_service(struct store *store, unsigned i, unsigned variant)
{
	const struct net_addr vips[] = {{"", world_ip(variant)}, {"net", world_ip(i)}};
	const struct net_cidr cidr = {"", {.ip = ip_v4(10, 0, 0, 0), .len = (uint8_t)(8 + variant)}};
	const struct port_map port = {80, (uint16_t)(9000 + variant)};
	const struct service s = {
	        .name = "s",
	        .ns = SPACES[1 + i / 4],
	        .hostname = HOSTS[i % 4],
	        .vips = vips,
	        .vip_cnt = variant == 3 ? 0 : 2,
	        .cidrs = &cidr,
	        .cidr_cnt = variant & 1,
	        .ports = &port,
	        .port_cnt = 1,
	        .waypoint = NONE,
	        .has_lb = true,
	        .lb_health = variant == 2 ? LB_ALLOW_ALL : LB_ONLY_HEALTHY,
	        .visibility = variant == 1 ? VISIBILITY_NAMESPACE : VISIBILITY_PUBLIC,
	        .canonical = variant == 2,
	};
	assert_int_equal(store_insert_service(store, &s, NULL, 0, STORE_XDS), 0);
}

static void remove_service(struct store *store, unsigned i)
{
	store_remove_service(store, SPACES[1 + i / 4], HOSTS[i % 4]);
}

/* What is left after the steps: when each record came last, and how. */
struct left {
	unsigned at; /* step, from 1; 0 = not there */
	unsigned variant;
};

static void print_view(struct buf *text, const struct store *store, const struct store_asker *asker,
        const struct view_key *key)
{
	struct view *view;

	assert_int_equal(store_view(store, asker, key, &view), 0);
	assert_int_equal(buf_printf(text, "%s: %s/%s", key->kind == VIEW_HOST ? key->hostname : key->network,
	                         view->workload ? view->workload->uid : "-",
	                         view->workload ? view->workload->node : ""),
	        0);
	if (view->service)
		assert_int_equal(buf_printf(text, " %s/%s:%u", view->service->ns, view->service->hostname,
		                         view->service->ports[0].target_port),
		        0);
	for (size_t i = 0; i < view->endpoint_cnt; i++) {
		const struct endpoint *e = &view->endpoints[i];
		assert_int_equal(buf_printf(text, " %s=%u%s", e->workload->uid,
		                         e->port_cnt ? e->ports[0].target_port : 0,
		                         e->status == WORKLOAD_UNHEALTHY ? "!" : ""),
		        0);
	}
	assert_int_equal(buf_printf(text, "\n"), 0);
	view_unref(view);
}

/* Everything that can be asked, through the eyes of both namespaces and of nobody. */
static void print_all(struct buf *text, const struct store *store)
{
	for (unsigned eyes = 0; eyes < 3; eyes++) {
		const struct workload self = {.uid = "self", .ns = SPACES[eyes]};
		const struct store_asker asker = {.workload = eyes ? &self : NULL, .seed = 7};
		for (unsigned i = 0; i < IPS; i++) {
			struct ip ip = world_ip(i);
			struct view_key key = view_key_address("", &ip), other = view_key_address("net", &ip);
			print_view(text, store, &asker, &key);
			print_view(text, store, &asker, &other);
		}
		for (unsigned i = 0; i < 12; i++) {
			struct view_key key = view_key_host(SPACES[i / 4], HOSTS[i % 4]);
			print_view(text, store, &asker, &key);
		}
	}
	struct arena *arena = arena_new(1 << 20);
	for (unsigned i = 0; i < WORKLOADS; i++) {
		const struct workload *own;
		char name[16];
		snprintf(name, sizeof(name), "w%u", i / 2);
		const struct workload_info info = {
		        .name = name, .ns = SPACES[1 + i % 2], .service_account = "sa"};
		int rc = store_own_workload(store, &info, arena, &own);
		assert_int_equal(buf_printf(text, "own %s %s\n", name, rc == 0 ? own->uid : "-"), 0);
	}
	arena_unref(arena);
}

/* Replays what is left in the order in which it came last; workloads alone where asked for. */
static void replay(struct store *store, const struct left *workloads, const struct left *services,
        unsigned steps, bool only_workloads, bool may_be_unhealthy)
{
	for (unsigned at = 1; at <= steps; at++) {
		for (unsigned i = 0; i < SERVICES && !only_workloads; i++)
			if (services[i].at == at)
				put_service(store, i, services[i].variant);
	}
	for (unsigned at = 1; at <= steps; at++) {
		for (unsigned i = 0; i < WORKLOADS; i++)
			if (workloads[i].at == at)
				put_workload(store, i, workloads[i].variant, may_be_unhealthy);
	}
}

static void compare(const struct store *a, const struct store *b, unsigned round)
{
	struct buf x, y;

	buf_init(&x, 1 << 20);
	buf_init(&y, 1 << 20);
	print_all(&x, a);
	print_all(&y, b);
	if (strcmp(buf_cstr(&x), buf_cstr(&y)) != 0)
		fail_msg("round %u:\n%s--- fresh:\n%s", round, buf_cstr(&x), buf_cstr(&y));
	buf_done(&x);
	buf_done(&y);
}

/*
 * One random life. When services go or endpoints are unhealthy, endpoints may
 * be lost until their workload is sent again (control.md 8.3): then everything
 * is sent again before the comparison.
 */
static void live(unsigned round, bool is_harsh)
{
	struct store *store = store_new("here"), *fresh = store_new("here");
	struct left workloads[WORKLOADS] = {0}, services[SERVICES] = {0};
	uint32_t seed = round + 1;

	for (unsigned step = 1; step <= STEPS; step++) {
		unsigned variant = next(&seed) % VARIANTS;
		unsigned w = next(&seed) % WORKLOADS, s = next(&seed) % SERVICES;
		switch (next(&seed) % 8) {
		case 0:
			remove_workload(store, w);
			workloads[w].at = 0;
			break;
		case 1:
			if (!is_harsh)
				break;
			remove_service(store, s);
			services[s].at = 0;
			break;
		case 2:
		case 3:
			put_service(store, s, variant);
			services[s] = (struct left){step, variant};
			break;
		default:
			put_workload(store, w, variant, is_harsh);
			workloads[w] = (struct left){step, variant};
			break;
		}
	}
	if (is_harsh)
		replay(store, workloads, services, STEPS, true, is_harsh);
	replay(fresh, workloads, services, STEPS, false, is_harsh);
	compare(store, fresh, round);
	store_free(store);
	store_free(fresh);
}

static void test_any_order(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		live(round, false);
		live(round, true);
	}
}

/* --- cost --- */

static size_t changes; /* told so far */

static void count_change(void *ctx, const struct store_change *change)
{
	changes++;
}

static void put_member(struct store *store, unsigned i, unsigned services, uint16_t port)
{
	char uid[48], host[32];
	const struct ip ip = ip_v4(10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i);
	const struct port_map map = {80, port};

	snprintf(uid, sizeof(uid), "//Pod/team/app-%u", i);
	snprintf(host, sizeof(host), "svc-%u", i % services);
	const struct workload_service member = {"team", host, &map, 1};
	const struct workload w = {
	        .uid = uid,
	        .name = uid + 11,
	        .ns = "team",
	        .trust_domain = "td",
	        .service_account = host,
	        .network = "",
	        .workload_name = "",
	        .workload_type = "pod",
	        .canonical_name = "",
	        .canonical_revision = "",
	        .hostname = "",
	        .node = "node",
	        .cluster_id = "",
	        .locality = {"", "", ""},
	        .capacity = 1,
	        .ips = &ip,
	        .ip_cnt = 1,
	        .waypoint = NONE,
	        .network_gateway = NONE,
	        .services = &member,
	        .service_cnt = 1,
	};
	assert_int_equal(store_insert_workload(store, &w, STORE_XDS), 0);
}

static struct store *make_mesh(unsigned workloads, unsigned services)
{
	struct store *store = store_new("elsewhere");
	const struct store_watcher watcher = {.changed = count_change};
	char host[32];

	for (unsigned i = 0; i < services; i++) {
		const struct net_addr vip = {
		        "", ip_v4(11, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i)};
		snprintf(host, sizeof(host), "svc-%u", i);
		const struct service s = {.name = "s",
		        .ns = "team",
		        .hostname = host,
		        .vips = &vip,
		        .vip_cnt = 1,
		        .waypoint = NONE};
		assert_int_equal(store_insert_service(store, &s, NULL, 0, STORE_XDS), 0);
	}
	for (unsigned i = 0; i < workloads; i++)
		put_member(store, i, services, 8080);
	store_watch(store, &watcher);
	return store;
}

/* What `cnt` updates took. */
struct cost {
	size_t allocs;
	size_t changes;
	uint64_t ns; /* of this thread's own time; the least of several tries */
};

static uint64_t thread_ns(void)
{
	struct timespec now;
	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct cost measure(struct store *store, unsigned workloads, unsigned services)
{
	struct cost cost = {.ns = UINT64_MAX};

	for (unsigned attempt = 0; attempt < 5; attempt++) {
		allocs = changes = 0;
		uint64_t start = thread_ns();
		for (unsigned i = 0; i < 200; i++)
			put_member(store, i * (workloads / 200), services, (uint16_t)(9000 + attempt));
		uint64_t took = thread_ns() - start;
		cost.allocs = allocs;
		cost.changes = changes;
		if (took < cost.ns)
			cost.ns = took;
	}
	return cost;
}

static void test_cost_of_one_workload(void **state)
{
	struct store *small = make_mesh(1000, 50), *large = make_mesh(100000, 5000);
	struct cost a = measure(small, 1000, 50), b = measure(large, 100000, 5000);

	/* Old and new record: the address, the host and the address of its one service each. */
	assert_int_equal(a.changes, 200 * 2 * 3);
	assert_int_equal(b.changes, a.changes);
	assert_true(b.allocs <= a.allocs + 200);
	/* A hundred times the mesh: work that grew with it would take a hundred times as long. */
	assert_true(b.ns < a.ns * 25);
	store_free(small);
	store_free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_any_order),
	        cmocka_unit_test(test_cost_of_one_workload),
	};
	return cmocka_run_group_tests_name("store_scale", tests, NULL, NULL);
}
