/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * R5 and R6 of reference dataplane.md 21: every field of a match, positive and
 * negative, with and without identity, and the string matches. Combinations
 * of policies are in the goldens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "mesh/rbac.h"

/* One match as a whole policy. */
static bool holds(const struct policy_match *match, const struct rbac_conn *conn)
{
	struct policy_clause clause = {.matches = match, .match_cnt = 1};
	struct policy_rule rule = {.clauses = &clause, .clause_cnt = 1};
	struct policy policy = {.name = "p", .ns = "n", .rules = &rule, .rule_cnt = 1};
	return rbac_policy_matches(&policy, conn);
}

/* From 10.1.2.3 to 10.0.0.1:80; identity td/ns/web/sa/front, or none. */
static struct rbac_conn make_conn(bool has_identity)
{
	static const char text[] = "spiffe://td/ns/web/sa/front";
	struct rbac_conn conn = {.source = ip_v4(10, 1, 2, 3), .has_identity = has_identity};

	conn.destination = (struct addr){.ip = ip_v4(10, 0, 0, 1), .port = 80};
	if (has_identity)
		assert_int_equal(identity_parse(text, strlen(text), &conn.identity), 0);
	return conn;
}

static void test_string_fields(void **state)
{
	/* namespaces and principals: kind, value, and whether the positive field holds with and without
	 * identity. */
	static const struct {
		struct string_match m;
		bool ns_with, ns_without, principal_with;
	} rows[] = {
	        {{MATCH_EXACT, "web"}, true, false, false},
	        {{MATCH_EXACT, "we"}, false, false, false},
	        {{MATCH_EXACT, ""}, false, true, false},
	        {{MATCH_EXACT, "td/ns/web/sa/front"}, false, false, true},
	        {{MATCH_EXACT, "spiffe://td/ns/web/sa/front"}, false, false, false},
	        {{MATCH_EXACT, "TD/ns/web/sa/front"}, false, false, false},
	        {{MATCH_PREFIX, "we"}, true, false, false},
	        {{MATCH_PREFIX, "web2"}, false, false, false},
	        {{MATCH_PREFIX, "td/"}, false, false, true},
	        {{MATCH_PREFIX, ""}, true, true, true},
	        {{MATCH_SUFFIX, "eb"}, true, false, false},
	        {{MATCH_SUFFIX, "xweb"}, false, false, false},
	        {{MATCH_SUFFIX, "/sa/front"}, false, false, true},
	        {{MATCH_SUFFIX, ""}, true, true, true},
	        {{MATCH_PRESENCE, ""}, true, false, true},
	};
	struct rbac_conn with = make_conn(true), without = make_conn(false);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy_match ns = {.namespaces = &rows[i].m, .namespace_cnt = 1};
		struct policy_match not_ns = {.not_namespaces = &rows[i].m, .not_namespace_cnt = 1};
		struct policy_match pr = {.principals = &rows[i].m, .principal_cnt = 1};
		struct policy_match not_pr = {.not_principals = &rows[i].m, .not_principal_cnt = 1};
		assert_int_equal(holds(&ns, &with), rows[i].ns_with);
		assert_int_equal(holds(&not_ns, &with), !rows[i].ns_with);
		assert_int_equal(holds(&ns, &without), rows[i].ns_without);
		assert_int_equal(holds(&not_ns, &without), !rows[i].ns_without);
		assert_int_equal(holds(&pr, &with), rows[i].principal_with);
		assert_int_equal(holds(&not_pr, &with), !rows[i].principal_with);
		/* Without identity nothing matches a principal, so its negation always holds: how STRICT
		 * works. */
		assert_false(holds(&pr, &without));
		assert_true(holds(&not_pr, &without));
	}
}

static void test_accounts(void **state)
{
	static const struct sa_match yes = {"web", "front"}, wrong_ns = {"we", "front"},
	                             wrong_sa = {"web", "fron"};
	struct rbac_conn with = make_conn(true), without = make_conn(false);
	const struct sa_match *list[] = {&yes, &wrong_ns, &wrong_sa};

	for (size_t i = 0; i < 3; i++) {
		struct policy_match m = {.accounts = list[i], .account_cnt = 1};
		struct policy_match not_m = {.not_accounts = list[i], .not_account_cnt = 1};
		assert_int_equal(holds(&m, &with), i == 0);
		assert_int_equal(holds(&not_m, &with), i != 0);
		assert_false(holds(&m, &without));
		assert_true(holds(&not_m, &without));
	}
}

static void test_addresses_and_ports(void **state)
{
	struct rbac_conn conn = make_conn(false);
	struct cidr src = {.ip = ip_v4(10, 1, 0, 9), .len = 16}, dst = {.ip = ip_v4(10, 0, 0, 1), .len = 32};
	struct cidr six = {.ip = {.family = 6}, .len = 0};
	uint16_t ports[] = {81, 80}, other = 443;
	struct policy_match rows[] = {
	        {.source_ips = &src, .source_ip_cnt = 1},
	        {.dest_ips = &dst, .dest_ip_cnt = 1},
	        {.dest_ports = ports, .dest_port_cnt = 2},
	        {.not_source_ips = &dst, .not_source_ip_cnt = 1},
	        {.not_dest_ips = &src, .not_dest_ip_cnt = 1},
	        {.not_dest_ports = &other, .not_dest_port_cnt = 1},
	        {.not_source_ips = &six, .not_source_ip_cnt = 1},
	};
	struct policy_match refused[] = {
	        {.not_source_ips = &src, .not_source_ip_cnt = 1},
	        {.not_dest_ips = &dst, .not_dest_ip_cnt = 1},
	        {.not_dest_ports = ports, .not_dest_port_cnt = 2},
	        {.source_ips = &dst, .source_ip_cnt = 1},
	        {.dest_ips = &src, .dest_ip_cnt = 1},
	        {.dest_ports = &other, .dest_port_cnt = 1},
	        {.source_ips = &six, .source_ip_cnt = 1},
	        /* Fields are joined by AND, a negative one vetoes. */
	        {.source_ips = &src, .source_ip_cnt = 1, .dest_ports = &other, .dest_port_cnt = 1},
	        {.dest_ports = ports,
	                .dest_port_cnt = 2,
	                .not_dest_ports = &ports[1],
	                .not_dest_port_cnt = 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(holds(&rows[i], &conn));
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_false(holds(&refused[i], &conn));
}

static void test_reason(void **state)
{
	struct policy_rule any = {0};
	struct policy deny = {.name = "p", .ns = "n", .action = POLICY_DENY, .rules = &any, .rule_cnt = 1};
	struct policy allow = {.name = "q", .ns = "n", .action = POLICY_ALLOW};
	const struct policy *list[] = {&allow, &deny};
	struct rbac_conn conn = make_conn(false);
	char text[64];

	struct rbac_result r = rbac_check(list, 2, &conn, NULL);
	assert_false(r.is_allowed);
	assert_int_equal(r.code, ERR_DENIED);
	rbac_reason(&r, text, sizeof(text));
	assert_string_equal(text, "explicitly denied by: n/p");
	r = rbac_check(list, 1, &conn, NULL);
	assert_int_equal(r.code, ERR_NOT_ALLOWED);
	rbac_reason(&r, text, sizeof(text));
	assert_string_equal(text, "allow policies exist, but none allowed");
	r = rbac_check(NULL, 0, &conn, NULL);
	assert_true(r.is_allowed);
	assert_int_equal(r.code, 0);
	rbac_reason(&r, text, sizeof(text));
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_string_fields),
	        cmocka_unit_test(test_accounts),
	        cmocka_unit_test(test_addresses_and_ports),
	        cmocka_unit_test(test_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
