/* SPDX-License-Identifier: GPL-2.0-or-later */
/* resolv.conf and hosts, as people and kubelets write them, and the order of names that follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "broker/resolv_conf.h"

static struct resolv_conf parse(const char *text)
{
	struct resolv_conf conf;

	resolv_conf_parse(text, strlen(text), &conf);
	return conf;
}

static void a_pods_file(void **state)
{
	struct resolv_conf conf = parse("search ns.svc.cluster.local svc.cluster.local cluster.local\n"
	                                "nameserver 10.96.0.10\noptions ndots:5 edns0\n");
	char text[ADDR_STR_MAX];

	assert_int_equal(conf.server_cnt, 1);
	assert_string_equal(addr_format(&conf.servers[0], text), "10.96.0.10:53");
	assert_int_equal(conf.search_cnt, 3);
	assert_string_equal(conf.search[2], "cluster.local");
	assert_int_equal(conf.ndots, 5);
	assert_true(conf.edns && conf.timeout_ms == 5000 && conf.attempts == 2);
	conf = parse("options timeout:3 attempts:4\n");
	assert_true(!conf.edns && conf.timeout_ms == 3000 && conf.attempts == 4);
	conf = parse("options timeout:99 attempts:99\n");
	assert_true(conf.timeout_ms == 30000 && conf.attempts == 5);
	conf = parse("options timeout:0 attempts:0\n");
	assert_true(conf.timeout_ms == 5000 && conf.attempts == 2);
}

static void odd_files(void **state)
{
	struct resolv_conf conf = parse("");
	char text[ADDR_STR_MAX];

	assert_int_equal(conf.server_cnt + conf.search_cnt, 0);
	assert_int_equal(conf.ndots, 1);
	conf = parse(
	        "; c\n# nameserver 1.1.1.1\n\n\tnameserver\t::1 # x\r\nnameserver fe80::1%eth0\nnameserver x\n"
	        "nameserver\nsearch a.\ndomain b\noptions ndots:99 ndots:x ndots:\nnameserver 2.2.2.2\n"
	        "nameserver 3.3.3.3\nnameserver 4.4.4.4");
	assert_int_equal(conf.server_cnt, 3);
	assert_string_equal(addr_format(&conf.servers[0], text), "[::1]:53");
	assert_string_equal(addr_format(&conf.servers[2], text), "3.3.3.3:53");
	assert_int_equal(conf.search_cnt, 1);
	assert_string_equal(conf.search[0], "b");
	assert_int_equal(conf.ndots, 15);
	resolv_conf_parse(NULL, 0, &conf);
	assert_int_equal(conf.server_cnt, 0);
}

static void more_than_fits(void **state)
{
	struct resolv_conf conf = parse("search a b c d e f g h i j k l m n o p q r s t\n");

	assert_int_equal(conf.search_cnt, RESOLV_SEARCH_MAX);
	assert_string_equal(conf.search[RESOLV_SEARCH_MAX - 1], "p");
}

static void order_of_names(void **state)
{
	struct resolv_conf conf = parse("search a.b c\noptions ndots:2\n");
	char name[DNS_TEXT_MAX];
	static const struct {
		const char *name;
		const char *want[4];
	} cases[] = {
	        {"x", {"x.a.b", "x.c", "x"}},
	        {"x.y", {"x.y.a.b", "x.y.c", "x.y"}},
	        {"x.y.z", {"x.y.z", "x.y.z.a.b", "x.y.z.c"}},
	        {"x.", {"x."}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = 0;

		for (; resolv_candidate(&conf, cases[i].name, n, name); n++)
			assert_string_equal(name, cases[i].want[n]);
		assert_null(cases[i].want[n]);
	}
}

static void a_name_too_long_is_none(void **state)
{
	struct resolv_conf conf = parse("search a.b\n");
	char long_name[DNS_TEXT_MAX];
	char name[DNS_TEXT_MAX];

	memset(long_name, 'x', sizeof(long_name) - 2);
	long_name[sizeof(long_name) - 2] = '\0';
	assert_true(resolv_candidate(&conf, long_name, 0, name));
	assert_string_equal(name, "");
	assert_true(resolv_candidate(&conf, long_name, 1, name));
	assert_string_equal(name, long_name);
}

static void hosts(void **state)
{
	static const char text[] =
	        "127.0.0.1 localhost\n::1 localhost ip6-localhost\n# 9.9.9.9 CA\n"
	        "10.0.0.1\tca.test CA # 8.8.8.8 b\n10.0.0.2 ca\nfd00::1 ca\nrubbish ca\n10.0.0.3";
	struct ip ips[2];
	size_t cnt = 0;
	char shown[IP_STR_MAX];

	hosts_find(text, sizeof(text) - 1, "Ca", true, false, ips, 2, &cnt);
	assert_int_equal(cnt, 2);
	assert_string_equal(ip_format(&ips[0], shown), "10.0.0.1");
	assert_string_equal(ip_format(&ips[1], shown), "10.0.0.2");
	cnt = 0;
	hosts_find(text, sizeof(text) - 1, "ca", false, true, ips, 2, &cnt);
	assert_int_equal(cnt, 1);
	assert_string_equal(ip_format(&ips[0], shown), "fd00::1");
	cnt = 0;
	hosts_find(text, sizeof(text) - 1, "ca", true, true, ips, 2, &cnt);
	assert_int_equal(cnt, 2);
	cnt = 0;
	hosts_find(text, sizeof(text) - 1, "b", true, true, ips, 2, &cnt);
	assert_int_equal(cnt, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_pods_file),
	        cmocka_unit_test(odd_files),
	        cmocka_unit_test(more_than_fits),
	        cmocka_unit_test(order_of_names),
	        cmocka_unit_test(a_name_too_long_is_none),
	        cmocka_unit_test(hosts),
	};

	return cmocka_run_group_tests_name("broker resolv_conf", tests, NULL, NULL);
}
