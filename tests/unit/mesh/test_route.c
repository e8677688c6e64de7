/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Routing beyond what goldens show: authorities, ownership, waiting, errors of the source, failing
 * allocations. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "mesh_fixture.h"

static size_t fail_at;

bool mem_should_fail(size_t len)
{
	return fail_at && --fail_at == 0;
}

static const char mesh[] =
        "workloads:\n"
        "- {uid: self, name: self, namespace: a, serviceAccount: s, trustDomain: t, workloadIps: [10.0.0.1], services: {a/s: {}, a/t: {}}}\n"
        "- {uid: ep, name: ep, namespace: a, serviceAccount: s, trustDomain: t, protocol: HBONE, workloadIps: [10.0.0.2], services: {a/s: {}}}\n"
        "services:\n"
        "- {name: s, namespace: a, hostname: s, vips: [/10.96.0.1], ports: {80: 8080}, subjectAltNames: ['spiffe://t/ns/a/sa/b']}\n"
        "- {name: t, namespace: a, hostname: t, vips: [/10.96.0.2], ports: {81: 8081}}\n";

static void test_authority(void **state)
{
	static const struct {
		const char *text;
		int rc;
		const char *host; /* NULL = an address */
		uint16_t port;
	} rows[] = {
	        {"10.0.0.1:80", 0, NULL, 80},
	        {"[::1]:80", 0, NULL, 80},
	        {"host:65535", 0, "host", 65535},
	        {"a.b-c_d.svc:1", 0, "a.b-c_d.svc", 1},
	        {"*.wild:1", 0, "*.wild", 1},
	        {"1.2.3:80", 0, "1.2.3", 80},
	        {"host:", -EINVAL, NULL, 0},
	        {":80", -EINVAL, NULL, 0},
	        {"", -EINVAL, NULL, 0},
	        {"host", -EINVAL, NULL, 0},
	        {"host:65536", -EINVAL, NULL, 0},
	        {"host:-1", -EINVAL, NULL, 0},
	        {"host: 1", -EINVAL, NULL, 0},
	        {"ho st:1", -EINVAL, NULL, 0},
	        {"host/x:1", -EINVAL, NULL, 0},
	        {"u@host:1", -EINVAL, NULL, 0},
	        {"::1:80", -EINVAL, NULL, 0},
	        {"[::1]", -EINVAL, NULL, 0},
	        {"h\xc3\xb6st:1", -EINVAL, NULL, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct route_authority a;
		assert_int_equal(route_authority_parse(rows[i].text, strlen(rows[i].text), &a), rows[i].rc);
		if (rows[i].rc < 0)
			continue;
		assert_int_equal(a.is_host, rows[i].host != NULL);
		assert_int_equal(a.port, rows[i].port);
		if (rows[i].host)
			assert_string_equal(a.host, rows[i].host);
	}
	char text[ROUTE_AUTHORITY_MAX + 8];
	struct route_authority a;
	memset(text, 'x', sizeof(text));
	memcpy(text + ROUTE_AUTHORITY_MAX - 1, ":80", 3);
	assert_int_equal(route_authority_parse(text, ROUTE_AUTHORITY_MAX + 2, &a), 0);
	memcpy(text + ROUTE_AUTHORITY_MAX, ":80", 3);
	text[ROUTE_AUTHORITY_MAX - 1] = 'x';
	assert_int_equal(route_authority_parse(text, ROUTE_AUTHORITY_MAX + 3, &a), -EINVAL);
}

static void test_route_outlives_store(void **state)
{
	struct fixture f;
	struct route r;
	struct err err = {0};

	fixture_init(&f);
	fixture_load(&f, "mesh", mesh);
	fixture_self(&f, "ep");
	assert_int_equal(fixture_outbound(&f, "10.96.0.1:80", &r, &err), 0);
	/* One question, asked once: NETWORK and the workload's network are the same. */
	assert_int_equal(f.asked, 1);
	fixture_done(&f);
	assert_string_equal(r.service->hostname, "s");
	assert_int_equal(r.identities.cnt, r.kind == ROUTE_HBONE ? 2 : 0);
	route_done(&r);
	assert_null(r.service);
	route_done(&r);
	struct route zero = {0};
	route_done(&zero);
}

static void test_asks_for_all_own_services_at_once(void **state)
{
	struct fixture f;
	struct route_inbound r;
	struct err err = {0};
	int status;

	fixture_init(&f);
	fixture_load(&f, "mesh", mesh);
	fixture_self(&f, "self");
	assert_int_equal(fixture_inbound(&f, "10.0.0.1:15008", "10.0.0.1:8081", "", &r, &status, &err), 0);
	assert_int_equal(f.asked, 2);
	assert_string_equal(r.service->hostname, "t");
	/* Only the chosen one is held. */
	assert_int_equal(r.view_cnt, 1);
	route_inbound_done(&r);
	route_inbound_done(&r);
	fixture_done(&f);
}

static int broken_view(void *ctx, const struct view_key *key, struct view **ret_view)
{
	return *(int *)ctx;
}

static void test_source_errors(void **state)
{
	struct fixture f;
	int rc = -EAGAIN;
	struct mesh_source source = {.ctx = &rc, .view = broken_view};
	struct addr dst = fixture_addr("10.0.0.9:1");
	struct route r;
	struct route_inbound in;
	struct err err = {0};
	struct route_request request = {
	        .local = dst, .authority = "h:1", .authority_len = 3, .forwarded_host = ""};
	int status = 0;

	fixture_init(&f);
	fixture_load(&f, "mesh", mesh);
	fixture_self(&f, "self");
	assert_int_equal(route_outbound(&f.env, &source, f.self, &dst, &r, &err), -EAGAIN);
	assert_int_equal(route_inbound(&f.env, &source, f.self, &request, &in, &status, &err), -EAGAIN);
	assert_int_equal(status, 0);
	assert_int_equal(err.code, 0);
	rc = ERR_TIMEOUT_FETCH;
	assert_int_equal(route_outbound(&f.env, &source, f.self, &dst, &r, &err), ERR_TIMEOUT_FETCH);
	assert_int_equal(err.code, ERR_TIMEOUT_FETCH);
	assert_string_equal(err.text, err_str(ERR_TIMEOUT_FETCH));
	assert_int_equal(
	        route_inbound(&f.env, &source, f.self, &request, &in, &status, &err), ERR_TIMEOUT_FETCH);
	assert_int_equal(status, ROUTE_STATUS_UNAVAILABLE);
	fixture_done(&f);
}

static void test_allocation_failure(void **state)
{
	struct fixture f;
	struct route r;
	struct err err = {0};

	fixture_init(&f);
	fixture_load(&f, "mesh", mesh);
	fixture_self(&f, "self");
	assert_int_equal(fixture_outbound(&f, "10.96.0.1:80", &r, &err), 0);
	route_done(&r);
	/* Everything is at hand now: the only allocation is the decision's own. */
	fail_at = 1;
	assert_int_equal(fixture_outbound(&f, "10.96.0.1:80", &r, &err), -ENOMEM);
	fail_at = 0;
	fixture_done(&f);
}

static void test_same_chance_same_choice(void **state)
{
	struct fixture f;
	struct route a, b;
	struct err err = {0};

	fixture_init(&f);
	fixture_load(&f, "mesh", mesh);
	fixture_self(&f, "self");
	for (uint64_t i = 0; i < 50; i++) {
		f.env.random = i * 0x1234567;
		assert_int_equal(fixture_outbound(&f, "10.96.0.1:80", &a, &err), 0);
		assert_int_equal(fixture_outbound(&f, "10.96.0.1:80", &b, &err), 0);
		assert_true(addr_eq(&a.tcp_dst, &b.tcp_dst));
		route_done(&a);
		route_done(&b);
	}
	fixture_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_authority),
	        cmocka_unit_test(test_route_outlives_store),
	        cmocka_unit_test(test_asks_for_all_own_services_at_once),
	        cmocka_unit_test(test_source_errors),
	        cmocka_unit_test(test_allocation_failure),
	        cmocka_unit_test(test_same_chance_same_choice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
