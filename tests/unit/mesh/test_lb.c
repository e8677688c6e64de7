/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranks by the table of reference dataplane.md 4.3, weights and ports. Whole choices are in the goldens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mesh/lb.h"

static unsigned rank_of(const enum lb_scope *scopes, size_t cnt, const char *network, const char *region,
        const char *zone, bool *full)
{
	struct service service = {.scopes = scopes, .scope_cnt = cnt};
	struct lb_place from = {"n", "node", "c", {"r", "z", "s"}},
	                to = {network, "node", "c", {region, zone, "s"}};
	return lb_rank(&service, &from, &to, full);
}

static void test_network_first(void **state)
{
	static const enum lb_scope scopes[] = {LB_SCOPE_NETWORK, LB_SCOPE_REGION, LB_SCOPE_ZONE};
	bool full;

	assert_int_equal(rank_of(scopes, 3, "n", "r", "z", &full), 5);
	assert_true(full);
	assert_int_equal(rank_of(scopes, 3, "n", "r", "x", &full), 4);
	assert_false(full);
	assert_int_equal(rank_of(scopes, 3, "n", "x", "z", NULL), 3);
	assert_int_equal(rank_of(scopes, 3, "m", "r", "z", &full), 2);
	assert_false(full);
	assert_int_equal(rank_of(scopes, 3, "m", "r", "x", NULL), 1);
	assert_int_equal(rank_of(scopes, 3, "m", "x", "z", NULL), 0);
}

static void test_network_later(void **state)
{
	static const enum lb_scope scopes[] = {LB_SCOPE_REGION, LB_SCOPE_NETWORK, LB_SCOPE_ZONE};
	bool full;

	assert_int_equal(rank_of(scopes, 3, "n", "r", "z", &full), 3);
	assert_true(full);
	assert_int_equal(rank_of(scopes, 3, "m", "r", "z", &full), 1);
	assert_int_equal(rank_of(scopes, 3, "n", "x", "z", &full), 0);
	assert_int_equal(rank_of(scopes, 0, "n", "x", "z", &full), 0);
	assert_true(full);
}

static void test_empty_equals_empty(void **state)
{
	static const enum lb_scope scopes[] = {LB_SCOPE_SUBZONE, LB_SCOPE_NODE, LB_SCOPE_CLUSTER};
	struct service service = {.scopes = scopes, .scope_cnt = 3};
	struct lb_place empty = {"", "", "", {"", "", ""}}, other = {"", "", "c", {"", "", ""}};
	bool full;

	assert_int_equal(lb_rank(&service, &empty, &empty, &full), 3);
	assert_true(full);
	assert_int_equal(lb_rank(&service, &empty, &other, &full), 2);
}

static void test_pick_weighted(void **state)
{
	static const uint32_t weights[] = {0, 1, 0, 3, UINT32_MAX, 0}, zeros[] = {0, 0};

	assert_int_equal(lb_pick_weighted(zeros, 2, 5), -1);
	assert_int_equal(lb_pick_weighted(NULL, 0, 5), -1);
	/* Ends of the range: the first and the last of those with weight. */
	assert_int_equal(lb_pick_weighted(weights, 6, 0), 1);
	assert_int_equal(lb_pick_weighted(weights, 6, UINT64_MAX), 4);
	assert_int_equal(lb_pick_weighted(weights, 4, UINT64_MAX), 3);
	assert_int_equal(lb_pick_weighted(weights, 4, UINT64_MAX / 4 - 1), 1);
	assert_int_equal(lb_pick_weighted(weights, 4, UINT64_MAX / 4 + 1), 3);
}

static void test_mix(void **state)
{
	assert_true(lb_mix(1, 0) != lb_mix(1, 1));
	assert_true(lb_mix(1, 0) != lb_mix(2, 0));
	assert_true(lb_mix(1, 0) == lb_mix(1, 0));
}

static void test_target_port(void **state)
{
	static const struct port_map service_ports[] = {{80, 8080}, {81, 0}}, own[] = {{80, 9090}, {82, 0}};
	struct service service = {.ports = service_ports, .port_cnt = 2};
	struct workload w = {.hostname = ""};
	struct endpoint ep = {.workload = &w, .ports = own, .port_cnt = 2};

	assert_int_equal(lb_target_port(&service, &ep, 80), 9090);
	assert_int_equal(lb_target_port(&service, &ep, 82), 0);
	ep.port_cnt = 0;
	assert_int_equal(lb_target_port(&service, &ep, 80), 8080);
	assert_int_equal(lb_target_port(&service, &ep, 81), 0);
	w.has_app_tunnel = true;
	assert_int_equal(lb_target_port(&service, &ep, 81), 0);
	w.app_tunnel_port = 15088;
	assert_int_equal(lb_target_port(&service, &ep, 81), 81);
	assert_int_equal(lb_target_port(&service, &ep, 4711), 4711);
	assert_int_equal(lb_target_port(&service, &ep, 80), 8080);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_network_first),
	        cmocka_unit_test(test_network_later),
	        cmocka_unit_test(test_empty_equals_empty),
	        cmocka_unit_test(test_pick_weighted),
	        cmocka_unit_test(test_mix),
	        cmocka_unit_test(test_target_port),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
