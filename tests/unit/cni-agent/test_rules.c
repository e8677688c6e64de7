/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rule texts against stored ones (tests/golden/cni-agent), whose every line
 * can be read beside reference node-agent.md 2.2. With CULVERT_GOLDEN_UPDATE
 * set they are written instead.
 */
#include "unit.h"

#include <stdlib.h>

#include "base/file.h"
#include "rules.h"

static void compare(const char *name, struct buf *text)
{
	char path[1024];
	struct buf stored;
	buf_init(&stored, RULES_TEXT_MAX);
	snprintf(path, sizeof(path), "%s/%s.nft", getenv("CULVERT_GOLDEN"), name);
	assert_int_equal(text->err, 0);
	if (getenv("CULVERT_GOLDEN_UPDATE"))
		assert_int_equal(file_write(path, text->data, text->len, 0644), 0);
	assert_int_equal(file_read(path, &stored), 0);
	assert_string_equal(buf_cstr(text), buf_cstr(&stored));
	buf_done(&stored);
	buf_done(text);
}

static void compare_rules(const char *name, struct rules rules)
{
	struct buf text;
	buf_init(&text, RULES_TEXT_MAX);
	rules.probe4 = rules_probe4();
	rules.probe6 = rules_probe6();
	rules_apply_text(&rules, &text);
	compare(name, &text);
}

static void test_goldens(void **state)
{
	static const char *const ifs[] = {"tap0", "vm-1.2"};
	compare_rules("default", (struct rules){.ipv6 = true});
	compare_rules("dns", (struct rules){.ipv6 = true, .dns = true});
	compare_rules("ingress", (struct rules){.ipv6 = true, .is_ingress = true});
	compare_rules("virtual-interface", (struct rules){.ipv6 = true, .ifs = ifs, .if_cnt = 2});
	compare_rules("ingress-virtual-interface-dns",
	        (struct rules){.ipv6 = true, .dns = true, .is_ingress = true, .ifs = ifs, .if_cnt = 2});
	compare_rules("v4", (struct rules){.ipv6 = false});
	compare_rules("v4-virtual-interface-dns",
	        (struct rules){.ipv6 = false, .dns = true, .ifs = ifs, .if_cnt = 2});
}

static void test_undo(void **state)
{
	struct buf text;
	buf_init(&text, RULES_TEXT_MAX);
	rules_undo_text(&text);
	compare("undo", &text);
}

/* The most that a pod may ask for must fit. */
static void test_most(void **state)
{
	static const char *ifs[POD_IFS_MAX];
	struct rules rules = {.ipv6 = true,
	        .dns = true,
	        .probe4 = rules_probe4(),
	        .probe6 = rules_probe6(),
	        .ifs = ifs,
	        .if_cnt = POD_IFS_MAX};
	struct buf text;
	for (size_t i = 0; i < POD_IFS_MAX; i++)
		ifs[i] = "abcdefghijklmno";
	buf_init(&text, RULES_TEXT_MAX);
	rules_apply_text(&rules, &text);
	assert_int_equal(text.err, 0);
	buf_done(&text);
}

static void test_probe_addresses(void **state)
{
	char text[IP_STR_MAX];
	struct ip v4 = rules_probe4(), v6 = rules_probe6();
	assert_string_equal(ip_format(&v4, text), "169.254.7.127");
	assert_string_equal(ip_format(&v6, text), "fd16:9254:7127:1337:ffff:ffff:ffff:ffff");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_goldens),
	        cmocka_unit_test(test_undo),
	        cmocka_unit_test(test_most),
	        cmocka_unit_test(test_probe_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
