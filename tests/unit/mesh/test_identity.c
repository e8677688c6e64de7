/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Identity texts: what parses, what does not, and that what is printed parses back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mesh/identity.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int rc;
		const char *td, *ns, *sa;
	} rows[] = {
	        {"spiffe://cluster.local/ns/shop/sa/cart", 0, "cluster.local", "shop", "cart"},
	        {"spiffe:///ns//sa/", 0, "", "", ""},
	        {"spiffe://td/ns/a b/sa/c@d", 0, "td", "a b", "c@d"},
	        {"spiffe://td/ns/shop/sa/cart/", -EINVAL, NULL, NULL, NULL},
	        {"spiffe://td/ns/shop/sa", -EINVAL, NULL, NULL, NULL},
	        {"spiffe://td/ns/shop", -EINVAL, NULL, NULL, NULL},
	        {"spiffe://td/ns/shop/xx/cart", -EINVAL, NULL, NULL, NULL},
	        {"spiffe://td/xx/shop/sa/cart", -EINVAL, NULL, NULL, NULL},
	        {"spiffe://td/NS/shop/sa/cart", -EINVAL, NULL, NULL, NULL},
	        {"SPIFFE://td/ns/shop/sa/cart", -EINVAL, NULL, NULL, NULL},
	        {"spiffe:/td/ns/shop/sa/cart", -EINVAL, NULL, NULL, NULL},
	        {"td/ns/shop/sa/cart", -EINVAL, NULL, NULL, NULL},
	        {"", -EINVAL, NULL, NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct identity id;
		char back[IDENTITY_STR_MAX];
		assert_int_equal(identity_parse(rows[i].text, strlen(rows[i].text), &id), rows[i].rc);
		if (rows[i].rc < 0)
			continue;
		assert_int_equal(id.td_len, strlen(rows[i].td));
		assert_memory_equal(id.td, rows[i].td, id.td_len);
		assert_memory_equal(id.ns, rows[i].ns, id.ns_len);
		assert_memory_equal(id.sa, rows[i].sa, id.sa_len);
		assert_int_equal(identity_format(&id, back, sizeof(back)), strlen(rows[i].text));
		assert_string_equal(back, rows[i].text);
	}
}

static void test_nul_and_length(void **state)
{
	static const char nul[] = "spiffe://td/ns/a\0b/sa/c";
	char text[IDENTITY_STR_MAX + 16];
	struct identity id;

	assert_int_equal(identity_parse(nul, sizeof(nul) - 1, &id), -EINVAL);
	memset(text, 'x', sizeof(text));
	memcpy(text, "spiffe://td/ns/a/sa/", 20);
	assert_int_equal(identity_parse(text, IDENTITY_STR_MAX - 1, &id), 0);
	assert_int_equal(identity_parse(text, IDENTITY_STR_MAX, &id), -EINVAL);
}

static void test_equality(void **state)
{
	const char *texts[] = {"spiffe://t/ns/n/sa/s", "spiffe://u/ns/n/sa/s", "spiffe://t/ns/m/sa/s",
	        "spiffe://t/ns/n/sa/r", "spiffe://t/ns/n/sa/ss"};
	struct identity ids[5];

	for (size_t i = 0; i < 5; i++)
		assert_int_equal(identity_parse(texts[i], strlen(texts[i]), &ids[i]), 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(identity_eq(&ids[0], &ids[i]), i == 0);
}

static void test_format_ceiling(void **state)
{
	struct workload w = {.trust_domain = "td", .ns = "ns", .service_account = "sa"};
	struct identity id = identity_of(&w);
	char dst[32];

	assert_int_equal(identity_format(&id, dst, 23), -ENAMETOOLONG);
	assert_int_equal(identity_format(&id, dst, 24), 23);
	assert_string_equal(dst, "spiffe://td/ns/ns/sa/sa");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_parse),
	        cmocka_unit_test(test_nul_and_length),
	        cmocka_unit_test(test_equality),
	        cmocka_unit_test(test_format_ceiling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
