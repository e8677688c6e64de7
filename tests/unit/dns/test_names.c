/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a queried name may mean: the order of candidates, upstream's cases of expansions, wildcards, search
 * domains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "dns/names.h"

static const struct dns_names client = {.ns = "ns1", .domain = "cluster.local"};

/* All candidates, joined by blanks. */
struct heard {
	char text[16384];
	size_t len;
};

static bool hear(void *ctx, const char *host)
{
	struct heard *heard = ctx;
	heard->len +=
	        (size_t)snprintf(heard->text + heard->len, sizeof(heard->text) - heard->len, "%s ", host);
	return false;
}

static void expect_all(const char *query, const char *want)
{
	struct heard heard = {.len = 0};
	struct dns_match match;
	assert_false(dns_names_walk(&client, query, hear, &heard, &match));
	assert_string_equal(heard.text, want);
}

static void test_order(void **state)
{
	expect_all("a",
	        "a a.ns1.svc.cluster.local *.ns1.svc.cluster.local *.svc.cluster.local *.cluster.local *.local ");
	expect_all("a.b",
	        "a.b *.b a.b.svc.cluster.local *.b.svc.cluster.local *.svc.cluster.local *.cluster.local *.local "
	        "a.b.ns1.svc.cluster.local *.b.ns1.svc.cluster.local *.ns1.svc.cluster.local *.svc.cluster.local "
	        "*.cluster.local *.local ");
	expect_all("a.b.svc",
	        "a.b.svc *.b.svc *.svc "
	        "a.b.svc.cluster.local *.b.svc.cluster.local *.svc.cluster.local *.cluster.local *.local "
	        "a.b.svc.svc.cluster.local *.b.svc.svc.cluster.local *.svc.svc.cluster.local "
	        "*.svc.cluster.local *.cluster.local *.local ");
	expect_all("a.b.c",
	        "a.b.c *.b.c *.c "
	        "a.b.c.svc.cluster.local *.b.c.svc.cluster.local *.c.svc.cluster.local *.svc.cluster.local "
	        "*.cluster.local *.local ");
	expect_all("a.b.c.svc",
	        "a.b.c.svc *.b.c.svc *.c.svc *.svc a.b.c.svc.cluster.local *.b.c.svc.cluster.local "
	        "*.c.svc.cluster.local *.svc.cluster.local *.cluster.local *.local ");
	expect_all("a.b.c.d", "a.b.c.d *.b.c.d *.c.d *.d ");
	expect_all("a.b.c.d.svc", "a.b.c.d.svc *.b.c.d.svc *.c.d.svc *.d.svc *.svc ");
}

static bool is_host(void *ctx, const char *host)
{
	return strcmp(host, ctx) == 0;
}

static void test_matches(void **state)
{
	static const struct {
		const char *query, *host; /* host: all that exists */
		const char *stripped;     /* NULL: no match */
		bool is_wildcard;
	} rows[] = {
	        {"www.example.com", "www.example.com", "", false},
	        {"productpage", "productpage.ns1.svc.cluster.local", "", false},
	        {"productpage", "productpage.ns2.svc.cluster.local", NULL, false},
	        {"productpage.ns2", "productpage.ns2.svc.cluster.local", "", false},
	        {"productpage.ns2.svc", "productpage.ns2.svc.cluster.local", "", false},
	        {"a.productpage.ns2", "a.productpage.ns2.svc.cluster.local", "", false},
	        {"a.productpage.ns2.svc", "a.productpage.ns2.svc.cluster.local", "", false},
	        {"www.example.com.ns1.svc.cluster.local", "www.example.com", "www.example.com", false},
	        {"www.example.com.svc.cluster.local", "www.example.com", "www.example.com", false},
	        {"www.example.com.cluster.local", "www.example.com", "www.example.com", false},
	        {"www.example.com.ns2.svc.cluster.local", "www.example.com", NULL, false},
	        {"x.ns1.svc.cluster.local", "x.ns1.svc.cluster.local", "", false},
	        {"x.ns2.ns1.svc.cluster.local", "x.ns2.svc.cluster.local", "x.ns2", false},
	        {"a.wild.com", "*.wild.com", "", true},
	        {"a.b.wild.com", "*.wild.com", "", true},
	        {"wild.com", "*.wild.com", NULL, false},
	        {"a.wild.com.svc.cluster.local", "*.wild.com", "a.wild.com", true},
	        /* A suffix must be a proper one, of whole labels. */
	        {"cluster.local", "cluster.local", "", false},
	        {"ns1.svc.cluster.local", "ns1", "ns1", false},
	        {"xcluster.local", "x", NULL, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dns_match match;
		bool is_found = dns_names_walk(
		        &client, rows[i].query, is_host, (void *)(uintptr_t)rows[i].host, &match);
		if (is_found != (rows[i].stripped != NULL))
			fail_msg("%s: found %d", rows[i].query, is_found);
		if (!is_found)
			continue;
		assert_string_equal(match.host, rows[i].host);
		assert_string_equal(match.stripped, rows[i].stripped);
		assert_int_equal(match.is_wildcard, rows[i].is_wildcard);
	}
}

/* A list of one's own takes the place of the pod's; it is worked through in its order. */
static void test_own_search_list(void **state)
{
	static const char *const search[] = {"corp.example", "example", ""};
	const struct dns_names own = {
	        .ns = "ns1", .domain = "cluster.local", .search = search, .search_cnt = 3};
	struct heard heard = {.len = 0};
	struct dns_match match;
	assert_true(dns_names_walk(
	        &own, "a.corp.example", is_host, (void *)(uintptr_t) "a.ns1.svc.cluster.local", &match));
	assert_string_equal(match.stripped, "a");
	assert_true(dns_names_walk(
	        &own, "a.b.example", is_host, (void *)(uintptr_t) "a.b.svc.cluster.local", &match));
	assert_string_equal(match.stripped, "a.b");
	assert_false(dns_names_walk(&own, "a.ns1.svc.cluster.local", hear, &heard, &match));
	assert_null(strstr(heard.text, " a "));
}

/* Candidates that are too long for a name are left out, the others stay whole. */
static void test_long_names(void **state)
{
	char query[300];
	struct heard heard = {.len = 0};
	struct dns_match match;
	memset(query, 'x', sizeof(query));
	query[255] = '\0';
	query[100] = '.';
	assert_false(dns_names_walk(&client, query, hear, &heard, &match));
	assert_int_equal(strlen(strtok(heard.text, " ")), 255);
	query[255] = 'x';
	query[299] = '\0';
	heard.len = 0;
	assert_false(dns_names_walk(&client, query, hear, &heard, &match));
	assert_int_equal(heard.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_order),
	        cmocka_unit_test(test_matches),
	        cmocka_unit_test(test_own_search_list),
	        cmocka_unit_test(test_long_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
