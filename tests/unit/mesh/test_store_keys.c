/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks that pause: order by kind, origins, staged endpoints, and a store that changes meanwhile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "mesh/store.h"

static void insert_workload(
        struct store *store, const char *uid, const char *ns, const char *service, enum store_origin origin)
{
	const struct port_map port = {80, 8080};
	const struct workload_service in = {.ns = ns, .hostname = service, .ports = &port, .port_cnt = 1};
	const struct workload w = {.uid = uid,
	        .name = uid,
	        .ns = ns,
	        .trust_domain = "",
	        .service_account = "",
	        .network = "",
	        .workload_name = "",
	        .workload_type = "",
	        .canonical_name = "",
	        .canonical_revision = "",
	        .hostname = "",
	        .node = "",
	        .cluster_id = "",
	        .locality = {"", "", ""},
	        .waypoint = {.addr.network = "", .ns = "", .host = ""},
	        .network_gateway = {.addr.network = "", .ns = "", .host = ""},
	        .services = &in,
	        .service_cnt = service ? 1 : 0};
	assert_int_equal(store_insert_workload(store, &w, origin), 0);
}

static void insert_service(struct store *store, const char *ns, const char *hostname,
        const struct service_endpoint *endpoints, size_t cnt, enum store_origin origin)
{
	const struct service s = {.name = hostname,
	        .ns = ns,
	        .hostname = hostname,
	        .waypoint = {.addr.network = "", .ns = "", .host = ""}};
	assert_int_equal(store_insert_service(store, &s, endpoints, cnt, origin), 0);
}

static void insert_policy(struct store *store, const char *key, enum store_origin origin)
{
	const struct policy p = {.name = key, .ns = "", .scope = POLICY_GLOBAL};
	assert_int_equal(store_insert_policy(store, key, &p, origin), 0);
}

static bool show_workload(void *ctx, const struct workload *w)
{
	buf_printf(ctx, "%s ", w->uid);
	return true;
}

static bool show_service(
        void *ctx, const struct service *s, const struct service_endpoint *endpoints, size_t cnt)
{
	buf_printf(ctx, "%s/%s(", s->ns, s->hostname);
	for (size_t i = 0; i < cnt; i++)
		buf_printf(ctx, "%s%s", i ? "," : "", endpoints[i].workload_uid);
	buf_add_str(ctx, ") ");
	return true;
}

static bool show_policy(void *ctx, const char *key, const struct policy *policy)
{
	(void)policy;
	buf_printf(ctx, "%s ", key);
	return true;
}

/* Shows key i; what has gone is "-". */
static void show(
        struct store *store, enum store_kind kind, const struct store_keys *keys, size_t i, struct buf *out)
{
	int r;
	if (kind == STORE_WORKLOADS)
		r = store_show_workload(store, keys, i, show_workload, out);
	else if (kind == STORE_POLICIES)
		r = store_show_policy(store, keys, i, show_policy, out);
	else
		r = store_show_service(store, keys, i, show_service, out);
	assert_true(r == 0 || r == -ENOENT);
	if (r == -ENOENT)
		buf_add_str(out, "- ");
}

static void assert_walk(
        struct store *store, enum store_kind kind, const enum store_origin *origin, const char *want)
{
	struct store_keys *keys;
	struct buf out;
	buf_init(&out, 1 << 16);
	assert_int_equal(store_keys_new(store, kind, origin, &keys), 0);
	for (size_t i = 0; i < store_keys_cnt(keys); i++)
		show(store, kind, keys, i, &out);
	assert_string_equal(buf_cstr(&out), want);
	store_keys_free(keys);
	buf_done(&out);
}

static struct store *filled(void)
{
	const struct service_endpoint named[] = {{.workload_uid = "w2"}, {.workload_uid = "w1"}};
	struct store *store = store_new("");
	insert_workload(store, "w2", "b", "late", STORE_XDS);
	insert_workload(store, "w1", "a", "web", STORE_FILE);
	insert_workload(store, "w3", "a-b", "late", STORE_XDS);
	insert_service(store, "b", "web", NULL, 0, STORE_XDS);
	insert_service(store, "a", "web", named, 2, STORE_FILE);
	insert_service(store, "z", "api", NULL, 0, STORE_XDS);
	insert_policy(store, "ns/p2", STORE_FILE);
	insert_policy(store, "ns/p1", STORE_XDS);
	return store;
}

static void test_order(void **state)
{
	struct store *store = filled();
	(void)state;
	assert_walk(store, STORE_WORKLOADS, NULL, "w1 w2 w3 ");
	assert_walk(store, STORE_SERVICES, NULL, "z/api() a/web(w1,w2) b/web() ");
	/* As texts: '-' comes before '/'. */
	assert_walk(store, STORE_STAGED, NULL, "a-b/late(w3) b/late(w2) ");
	assert_walk(store, STORE_POLICIES, NULL, "ns/p1 ns/p2 ");
	store_free(store);
}

static void test_origins(void **state)
{
	const enum store_origin file = STORE_FILE, xds = STORE_XDS;
	struct store *store = filled();
	(void)state;
	assert_walk(store, STORE_WORKLOADS, &file, "w1 ");
	assert_walk(store, STORE_WORKLOADS, &xds, "w2 w3 ");
	assert_walk(store, STORE_SERVICES, &file, "a/web(w1,w2) ");
	assert_walk(store, STORE_POLICIES, &file, "ns/p2 ");
	store_free(store);
}

static void test_changes_meanwhile(void **state)
{
	struct store *store = filled();
	struct store_keys *workloads, *services, *staged, *policies;
	struct buf out;
	(void)state;
	buf_init(&out, 1 << 16);
	assert_int_equal(store_keys_new(store, STORE_WORKLOADS, NULL, &workloads), 0);
	assert_int_equal(store_keys_new(store, STORE_SERVICES, NULL, &services), 0);
	assert_int_equal(store_keys_new(store, STORE_STAGED, NULL, &staged), 0);
	assert_int_equal(store_keys_new(store, STORE_POLICIES, NULL, &policies), 0);
	assert_int_equal(store_remove_workload(store, "w2"), 0);
	assert_int_equal(store_remove_service(store, "b", "web"), 0);
	assert_int_equal(store_remove_policy(store, "ns/p1"), 0);
	/* What was staged has its service now. */
	insert_service(store, "a-b", "late", NULL, 0, STORE_XDS);
	insert_workload(store, "w0", "a", NULL, STORE_XDS);
	for (size_t i = 0; i < store_keys_cnt(workloads); i++)
		show(store, STORE_WORKLOADS, workloads, i, &out);
	for (size_t i = 0; i < store_keys_cnt(services); i++)
		show(store, STORE_SERVICES, services, i, &out);
	for (size_t i = 0; i < store_keys_cnt(staged); i++)
		show(store, STORE_STAGED, staged, i, &out);
	for (size_t i = 0; i < store_keys_cnt(policies); i++)
		show(store, STORE_POLICIES, policies, i, &out);
	assert_string_equal(buf_cstr(&out), "w1 - w3 z/api() a/web(w1) - - - - ns/p2 ");
	store_keys_free(workloads);
	store_keys_free(services);
	store_keys_free(staged);
	store_keys_free(policies);
	buf_done(&out);
	store_free(store);
}

static void test_empty(void **state)
{
	struct store *store = store_new("");
	(void)state;
	for (int kind = STORE_WORKLOADS; kind <= STORE_POLICIES; kind++)
		assert_walk(store, (enum store_kind)kind, NULL, "");
	store_keys_free(NULL);
	store_free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_order),
	        cmocka_unit_test(test_origins),
	        cmocka_unit_test(test_changes_meanwhile),
	        cmocka_unit_test(test_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
