/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Baggage, forwarded and traceparent: the grammar of reference dataplane.md 19, table by table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "silo/meta.h"

static struct workload plain_workload(void)
{
	return (struct workload){
	        .uid = "u",
	        .name = "pod-0",
	        .ns = "shop",
	        .trust_domain = "cluster.local",
	        .service_account = "cart",
	        .network = "",
	        .workload_name = "cart",
	        .workload_type = "deployment",
	        .canonical_name = "cart-svc",
	        .canonical_revision = "v2",
	        .hostname = "",
	        .node = "",
	        .cluster_id = "c1",
	        .locality = {.region = "eu", .zone = "eu-1", .subzone = ""},
	};
}

static void baggage_has_upstreams_order(void **state)
{
	struct workload w = plain_workload();
	char text[META_BAGGAGE_MAX];
	(void)state;
	meta_baggage_format(&w, text);
	assert_string_equal(text,
	        "k8s.cluster.name=c1,k8s.namespace.name=shop,k8s.deployment.name=cart,service.name=cart-svc,"
	        "service.version=v2,cloud.region=eu,cloud.availability_zone=eu-1");
}

static void baggage_skips_what_is_empty(void **state)
{
	struct workload w = plain_workload();
	char text[META_BAGGAGE_MAX];
	(void)state;
	w.cluster_id = "";
	w.canonical_revision = "";
	w.locality = (struct locality){"", "", ""};
	w.workload_type = "job";
	meta_baggage_format(&w, text);
	assert_string_equal(text, "k8s.namespace.name=shop,k8s.job.name=cart,service.name=cart-svc");
}

static void baggage_that_no_peer_would_take_is_left_out(void **state)
{
	struct workload w = plain_workload();
	char text[META_BAGGAGE_MAX];
	(void)state;
	w.ns = "line\nbreak";
	meta_baggage_format(&w, text);
	assert_string_equal(text, "");
}

/* One or two lines in, the fields that count out ("-" = none). */
static const struct {
	const char *first, *second;
	const char *ns, *service, *name, *cluster;
} BAGGAGE[] = {
        {"k8s.namespace.name=a,service.name=b", NULL, "a", "b", "-", "-"},
        {"k8s.pod.name=p,k8s.cluster.name=c", NULL, "-", "-", "p", "c"},
        {"k8s.namespace.name=a", "k8s.namespace.name=z", "z", "-", "-", "-"},
        {"k8s.namespace.name=a=ignored", NULL, "a", "-", "-", "-"},
        {"service.name=x,service.name=", "k8s.namespace.name=n", "n", "-", "-", "-"},
        {" k8s.namespace.name=a", NULL, "-", "-", "-", "-"},
        {"unknown=1,,=,k8s.namespace.name=a", NULL, "a", "-", "-", "-"},
        {"k8s.namespace.name=\x01", NULL, "-", "-", "-", "-"},
        {"k8s.namespace.name=good", "service.name=caf\xc3\xa9", "-", "-", "-", "-"},
        {"", NULL, "-", "-", "-", "-"},
};

static const char *shown(const char *text)
{
	return text && text[0] ? text : "-";
}

static void baggage_is_parsed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(BAGGAGE) / sizeof(BAGGAGE[0]); i++) {
		struct arena *arena = arena_new(65536);
		struct meta_baggage baggage = {0};
		meta_baggage_parse(&baggage, arena, BAGGAGE[i].first, strlen(BAGGAGE[i].first));
		if (BAGGAGE[i].second)
			meta_baggage_parse(&baggage, arena, BAGGAGE[i].second, strlen(BAGGAGE[i].second));
		const struct workload *w = meta_baggage_workload(&baggage, arena);
		assert_string_equal(shown(w ? w->ns : NULL), BAGGAGE[i].ns);
		assert_string_equal(shown(w ? w->canonical_name : NULL), BAGGAGE[i].service);
		assert_string_equal(shown(w ? w->workload_name : NULL), BAGGAGE[i].name);
		assert_string_equal(shown(w ? w->cluster_id : NULL), BAGGAGE[i].cluster);
		arena_unref(arena);
	}
}

static void forwarded_is_written(void **state)
{
	struct addr v4, v6;
	char text[META_FORWARDED_MAX];
	(void)state;
	assert_int_equal(addr_parse("10.0.0.1:80", 11, &v4), 0);
	assert_int_equal(addr_parse("[fd00::1]:80", 12, &v6), 0);
	meta_forwarded_format(&v4, NULL, text);
	assert_string_equal(text, "for=\"10.0.0.1:80\"");
	meta_forwarded_format(&v6, "cart.shop.svc", text);
	assert_string_equal(text, "for=\"[fd00::1]:80\";host=cart.shop.svc");
}

static const struct {
	const char *line;
	const char *host; /* NULL = none */
} FORWARDED[] = {
        {"for=\"1.2.3.4:5\";host=a.b", "a.b"},
        {"host=\"quoted\"", "quoted"},
        {"for=x; host=spaced ;proto=http", "spaced"},
        {"Host=upper", NULL},
        {"host=", NULL},
        {"for=1.2.3.4", NULL},
        {"", NULL},
        {"host=\"", "\""},
        {"a,host=b;host=c", "c"},
};

static void forwarded_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(FORWARDED) / sizeof(FORWARDED[0]); i++) {
		char host[64];
		bool found =
		        meta_forwarded_host(FORWARDED[i].line, strlen(FORWARDED[i].line), host, sizeof(host));
		assert_int_equal(found, FORWARDED[i].host != NULL);
		if (found)
			assert_string_equal(host, FORWARDED[i].host);
	}
}

static void a_host_that_does_not_fit_is_none(void **state)
{
	char host[4];
	(void)state;
	assert_false(meta_forwarded_host("host=abcd", 9, host, sizeof(host)));
	assert_true(meta_forwarded_host("host=abc", 8, host, sizeof(host)));
}

static void traceparents_are_made_and_checked(void **state)
{
	char text[META_TRACEPARENT_MAX];
	char other[META_TRACEPARENT_MAX];
	(void)state;
	meta_traceparent_make(text);
	meta_traceparent_make(other);
	assert_int_equal(strlen(text), META_TRACEPARENT_LEN);
	assert_true(meta_traceparent_ok(text, strlen(text)));
	assert_string_not_equal(text, other);
	/* The one that crashes upstream: right length, too few dashes (dataplane.md 20, row 64). */
	assert_false(meta_traceparent_ok("00-0000000000000000000000000000000000000000000000000000", 55));
	assert_false(meta_traceparent_ok("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", 54));
	assert_true(meta_traceparent_ok("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", 55));
	assert_false(meta_traceparent_ok("00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01", 55));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(baggage_has_upstreams_order),
	        cmocka_unit_test(baggage_skips_what_is_empty),
	        cmocka_unit_test(baggage_that_no_peer_would_take_is_left_out),
	        cmocka_unit_test(baggage_is_parsed),
	        cmocka_unit_test(forwarded_is_written),
	        cmocka_unit_test(forwarded_is_read),
	        cmocka_unit_test(a_host_that_does_not_fit_is_none),
	        cmocka_unit_test(traceparents_are_made_and_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
