/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses: accepted and refused texts, printing against RFC 5952, prefixes, socket addresses. */
#include <arpa/inet.h>
#include <errno.h>

#include "base/addr.h"
#include "unit.h"

static struct ip ip(const char *text)
{
	struct ip v;
	assert_int_equal(ip_parse(text, strlen(text), &v), 0);
	return v;
}

static void ip_text(void **state)
{
	static const char *const same[] = {
	        "0.0.0.0",
	        "1.2.3.4",
	        "255.255.255.255",
	        "::",
	        "::1",
	        "1::",
	        "fe80::1",
	        "1:2:3:4:5:6:7:8",
	        "2001:db8::1:0:0:1",
	        "1:0:2:0:3:0:4:0",
	        "::ffff:10.0.0.1",
	        "1:2:3:4:5:6:7:0",
	        "0:1:2:3:4:5:6:7",
	        "1:2:3:4:5:6::",
	        "::3:4:5:6:7:8",
	};
	for (size_t i = 0; i < CNT(same); i++) {
		struct ip v = ip(same[i]);
		char text[IP_STR_MAX];
		assert_string_equal(ip_format(&v, text), same[i]);
	}
	static const char *const other[][2] = {
	        {"0:0:0:0:0:0:0:0", "::"},
	        {"2001:DB8::A", "2001:db8::a"},
	        {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
	        {"1:0:0:2:0:0:3:4", "1::2:0:0:3:4"},
	        {"::102:304", "::102:304"},
	        {"::1.2.3.4", "::102:304"},
	};
	for (size_t i = 0; i < CNT(other); i++) {
		struct ip v = ip(other[i][0]);
		char text[IP_STR_MAX];
		assert_string_equal(ip_format(&v, text), other[i][1]);
	}
}

static void ip_refused(void **state)
{
	static const char *const bad[] = {
	        "",
	        "1",
	        "1.2.3",
	        "1.2.3.4.5",
	        "256.1.1.1",
	        "01.2.3.4",
	        "1.2.3.4 ",
	        " 1.2.3.4",
	        "1.2.3.-4",
	        "0x1.2.3.4",
	        ":",
	        ":::",
	        "1::2::3",
	        "1:2:3:4:5:6:7",
	        "1:2:3:4:5:6:7:8:9",
	        "12345::",
	        "::g",
	        "fe80::1%eth0",
	        "[::1]",
	        "::1.2.3",
	        "1:2:3:4:5:6:7:1.2.3.4",
	        "11111111111111111111111111111111111111111111111111111",
	};
	struct ip v = ip_v4(9, 9, 9, 9);
	for (size_t i = 0; i < CNT(bad); i++)
		assert_int_equal(ip_parse(bad[i], strlen(bad[i]), &v), -EINVAL);
	assert_int_equal(ip_parse("1.2.3.4\0", 8, &v), -EINVAL);
	assert_int_equal(v.b[0], 9);
	assert_int_equal(ip_parse("1.2.3.45", 7, &v), 0);
	assert_int_equal(v.b[3], 4);
}

static void ip_from_raw(void **state)
{
	static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, 10, 1, 2, 3};
	struct ip v;
	assert_int_equal(ip_from_bytes(mapped, 16, &v), 0);
	assert_int_equal(v.family, 6);
	struct ip c = ip_canonical(v);
	struct ip want = ip_v4(10, 1, 2, 3);
	assert_true(ip_eq(&c, &want));
	assert_int_equal(ip_from_bytes(mapped + 12, 4, &v), 0);
	assert_true(ip_eq(&v, &want));
	assert_int_equal(ip_from_bytes(mapped, 5, &v), -EINVAL);
	assert_int_equal(ip_from_bytes(mapped, 0, &v), -EINVAL);
}

static void ip_kinds(void **state)
{
	static const struct {
		const char *text;
		bool loopback, unspecified, link_local, multicast;
	} rows[] = {
	        {"127.0.0.1", true, false, false, false},
	        {"127.255.255.255", true, false, false, false},
	        {"::1", true, false, false, false},
	        {"::ffff:127.0.0.1", true, false, false, false},
	        {"128.0.0.1", false, false, false, false},
	        {"0.0.0.0", false, true, false, false},
	        {"::", false, true, false, false},
	        {"169.254.1.1", false, false, true, false},
	        {"fe80::1", false, false, true, false},
	        {"febf::1", false, false, true, false},
	        {"fec0::1", false, false, false, false},
	        {"224.0.0.1", false, false, false, true},
	        {"ff02::1", false, false, false, true},
	        {"::2", false, false, false, false},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		struct ip v = ip(rows[i].text);
		assert_int_equal(ip_is_loopback(&v), rows[i].loopback);
		assert_int_equal(ip_is_unspecified(&v), rows[i].unspecified);
		assert_int_equal(ip_is_link_local(&v), rows[i].link_local);
		assert_int_equal(ip_is_multicast(&v), rows[i].multicast);
	}
}

static void ip_order(void **state)
{
	struct ip a = ip("9.9.9.9"), b = ip("10.0.0.1"), c = ip("::1");
	assert_true(ip_cmp(&a, &b) < 0 && ip_cmp(&b, &c) < 0 && ip_cmp(&c, &a) > 0 && ip_cmp(&a, &a) == 0);
	struct hash_seed seed = {1, 2}, other = {3, 4};
	assert_true(ip_hash(&a, &seed) == ip_hash(&a, &seed));
	assert_true(ip_hash(&a, &seed) != ip_hash(&b, &seed));
	assert_true(ip_hash(&a, &seed) != ip_hash(&a, &other));
}

static void addr_text(void **state)
{
	static const char *const good[] = {"1.2.3.4:80", "[::1]:0", "[2001:db8::1]:65535", "0.0.0.0:15008"};
	for (size_t i = 0; i < CNT(good); i++) {
		struct addr v;
		char text[ADDR_STR_MAX];
		assert_int_equal(addr_parse(good[i], strlen(good[i]), &v), 0);
		assert_string_equal(addr_format(&v, text), good[i]);
	}
	static const char *const bad[] = {
	        "",
	        ":",
	        "1.2.3.4",
	        "1.2.3.4:",
	        "1.2.3.4:65536",
	        "1.2.3.4:-1",
	        "1.2.3.4:+1",
	        "1.2.3.4: 1",
	        "::1:80",
	        "[1.2.3.4]:80",
	        "[::1]",
	        "[::1]80",
	        "[::1:80",
	        "::1]:80",
	        "[]:80",
	        "host:80",
	        "1.2.3.4:80:80",
	        "[::1]:80 ",
	        "[::1%lo]:80",
	};
	struct addr v = {.port = 7};
	for (size_t i = 0; i < CNT(bad); i++)
		assert_int_equal(addr_parse(bad[i], strlen(bad[i]), &v), -EINVAL);
	assert_int_equal(v.port, 7);
}

static void addr_order(void **state)
{
	struct addr a = {ip_v4(1, 1, 1, 1), 80}, b = {ip_v4(1, 1, 1, 1), 81}, c = {ip_v4(1, 1, 1, 2), 1};
	struct hash_seed seed = {1, 2};
	assert_true(addr_cmp(&a, &b) < 0 && addr_cmp(&b, &c) < 0 && addr_cmp(&a, &a) == 0);
	assert_true(addr_eq(&a, &a) && !addr_eq(&a, &b));
	assert_true(addr_hash(&a, &seed) != addr_hash(&b, &seed));
}

static void addr_sockaddr(void **state)
{
	struct addr v4 = {ip_v4(10, 1, 2, 3), 4567}, v6, back;
	assert_int_equal(addr_parse("[2001:db8::7]:99", 16, &v6), 0);
	struct sockaddr_storage ss;
	assert_int_equal(addr_to_sockaddr(&v4, &ss), sizeof(struct sockaddr_in));
	assert_int_equal(ntohs(((struct sockaddr_in *)&ss)->sin_port), 4567);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, sizeof(ss), &back), 0);
	assert_true(addr_eq(&v4, &back));
	/* What a dual-stack socket reports for an IPv4 peer. */
	assert_int_equal(addr_to_sockaddr6(&v4, &ss), sizeof(struct sockaddr_in6));
	assert_int_equal(ss.ss_family, AF_INET6);
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, sizeof(struct sockaddr_in6), &back), 0);
	assert_true(addr_eq(&v4, &back));
	assert_int_equal(addr_to_sockaddr(&v6, &ss), sizeof(struct sockaddr_in6));
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, sizeof(struct sockaddr_in6), &back), 0);
	assert_true(addr_eq(&v6, &back));
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, sizeof(struct sockaddr_in6) - 1, &back),
	        -EAFNOSUPPORT);
	ss.ss_family = AF_UNIX;
	assert_int_equal(addr_from_sockaddr((struct sockaddr *)&ss, sizeof(ss), &back), -EAFNOSUPPORT);
	struct addr none = {0};
	assert_int_equal(addr_to_sockaddr(&none, &ss), 0);
	assert_int_equal(addr_to_sockaddr6(&none, &ss), 0);
}

static void cidr_text(void **state)
{
	static const char *const good[][2] = {
	        {"10.0.0.0/8", "10.0.0.0/8"},
	        {"1.2.3.4/24", "1.2.3.4/24"},
	        {"1.2.3.4", "1.2.3.4/32"},
	        {"::/0", "::/0"},
	        {"fd00::1/128", "fd00::1/128"},
	        {"fd00::1", "fd00::1/128"},
	};
	for (size_t i = 0; i < CNT(good); i++) {
		struct cidr v;
		char text[CIDR_STR_MAX];
		assert_int_equal(cidr_parse(good[i][0], strlen(good[i][0]), &v), 0);
		assert_string_equal(cidr_format(&v, text), good[i][1]);
		assert_true(cidr_eq(&v, &v));
	}
	static const char *const bad[] = {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "::/129",
	        "10.0.0/8", "10.0.0.0/8/8", "10.0.0.0/ 8"};
	struct cidr v;
	for (size_t i = 0; i < CNT(bad); i++)
		assert_int_equal(cidr_parse(bad[i], strlen(bad[i]), &v), -EINVAL);
}

static void cidr_covers(void **state)
{
	static const struct {
		const char *cidr, *ip;
		bool in;
	} rows[] = {
	        {"10.0.0.0/8", "10.255.0.1", true},
	        {"10.0.0.0/8", "11.0.0.0", false},
	        {"1.2.3.4/24", "1.2.3.200", true},
	        {"1.2.3.4/32", "1.2.3.4", true},
	        {"1.2.3.4/32", "1.2.3.5", false},
	        {"0.0.0.0/0", "9.9.9.9", true},
	        {"0.0.0.0/0", "::1", false},
	        {"::/0", "9.9.9.9", false},
	        {"10.0.0.128/25", "10.0.0.127", false},
	        {"10.0.0.128/25", "10.0.0.129", true},
	        {"10.0.0.0/31", "10.0.0.1", true},
	        {"10.0.0.0/31", "10.0.0.2", false},
	        {"fd00::/7", "fc00::1", true},
	        {"fd00::/8", "fc00::1", false},
	        {"2001:db8::/33", "2001:db8:8000::", false},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		struct cidr c;
		assert_int_equal(cidr_parse(rows[i].cidr, strlen(rows[i].cidr), &c), 0);
		struct ip v = ip(rows[i].ip);
		assert_int_equal(cidr_contains(&c, &v), rows[i].in);
	}
	struct cidr wild = {.ip = ip_v4(10, 0, 0, 0), .len = 200};
	struct ip v = ip_v4(10, 0, 0, 0);
	assert_false(cidr_contains(&wild, &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ip_text),
	        cmocka_unit_test(ip_refused),
	        cmocka_unit_test(ip_from_raw),
	        cmocka_unit_test(ip_kinds),
	        cmocka_unit_test(ip_order),
	        cmocka_unit_test(addr_text),
	        cmocka_unit_test(addr_order),
	        cmocka_unit_test(addr_sockaddr),
	        cmocka_unit_test(cidr_text),
	        cmocka_unit_test(cidr_covers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
