/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SPIFFE identities: what parses, what does not, and back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tls/spiffe.h"

static void check(const char *text, const char *td, const char *ns, const char *sa)
{
	struct spiffe id;
	assert_int_equal(spiffe_parse(text, strlen(text), &id), 0);
	assert_int_equal(id.td_len, strlen(td));
	assert_memory_equal(id.td, td, id.td_len);
	assert_int_equal(id.ns_len, strlen(ns));
	assert_memory_equal(id.ns, ns, id.ns_len);
	assert_int_equal(id.sa_len, strlen(sa));
	assert_memory_equal(id.sa, sa, id.sa_len);
}

static void test_good(void **state)
{
	check("spiffe://cluster.local/ns/default/sa/alice", "cluster.local", "default", "alice");
	check("spiffe:///ns//sa/", "", "", "");
	check("spiffe://a b/ns/%2f/sa/\xc3\xa4?x#y", "a b", "%2f", "\xc3\xa4?x#y");
	check("spiffe://td/ns/ns/sa/sa", "td", "ns", "sa");
}

static void test_bad(void **state)
{
	static const char *const bad[] = {
	        "",
	        "spiffe",
	        "spiffe:/",
	        "spiffe://",
	        "spiffe://td",
	        "spiffe://td/",
	        "spiffe://td/ns/a/sa",
	        "spiffe://td/ns/a/sa/b/",
	        "spiffe://td/ns/a/sa/b/c",
	        "spiffe://td/NS/a/sa/b",
	        "spiffe://td/ns/a/SA/b",
	        "SPIFFE://td/ns/a/sa/b",
	        "https://td/ns/a/sa/b",
	        " spiffe://td/ns/a/sa/b",
	        "spiffe://td/nsx/a/sa/b",
	        "spiffe://td/ns/a/s/b",
	        "spiffe://td//a/sa/b",
	};
	struct spiffe id;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(spiffe_parse(bad[i], strlen(bad[i]), &id), -EINVAL);
	assert_int_equal(spiffe_parse("spiffe://td/ns/a/sa/b\0evil", 26, &id), -EINVAL);
}

static void test_longest(void **state)
{
	char text[SPIFFE_MAX + 2] = "spiffe://td/ns/a/sa/";
	struct spiffe id;
	size_t prefix = strlen(text);
	memset(text + prefix, 'x', SPIFFE_MAX + 1 - prefix);
	assert_int_equal(spiffe_parse(text, SPIFFE_MAX, &id), 0);
	assert_int_equal(spiffe_parse(text, SPIFFE_MAX + 1, &id), -EINVAL);
}

static void test_format(void **state)
{
	char text[64];
	assert_int_equal(spiffe_format("td", "a", "b", text, sizeof(text)), 21);
	assert_string_equal(text, "spiffe://td/ns/a/sa/b");
	assert_int_equal(spiffe_format("td", "a", "b", text, 22), 21);
	assert_int_equal(spiffe_format("td", "a", "b", text, 21), -ENAMETOOLONG);
	assert_int_equal(spiffe_format("t/d", "a", "b", text, sizeof(text)), -EINVAL);
	assert_int_equal(spiffe_format("td", "a/", "b", text, sizeof(text)), -EINVAL);
	assert_int_equal(spiffe_format("td", "a", "/b", text, sizeof(text)), -EINVAL);
}

static bool same(const char *a, const char *b)
{
	struct spiffe x, y;
	assert_int_equal(spiffe_parse(a, strlen(a), &x), 0);
	assert_int_equal(spiffe_parse(b, strlen(b), &y), 0);
	return spiffe_same_td(&x, &y);
}

static void test_same_td(void **state)
{
	assert_true(same("spiffe://td/ns/a/sa/b", "spiffe://td/ns/c/sa/d"));
	assert_false(same("spiffe://td/ns/a/sa/b", "spiffe://td2/ns/a/sa/b"));
	assert_false(same("spiffe://td/ns/a/sa/b", "spiffe://TD/ns/a/sa/b"));
	assert_true(same("spiffe:///ns/a/sa/b", "spiffe:///ns/c/sa/d"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_good),
	        cmocka_unit_test(test_bad),
	        cmocka_unit_test(test_longest),
	        cmocka_unit_test(test_format),
	        cmocka_unit_test(test_same_td),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
