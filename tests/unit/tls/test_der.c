/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The DER writer: lengths, integers, times, its ceiling. Whole structures are judged by openssl in other
 * tests. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tls/der.h"

static void expect(const struct der *d, const void *bytes, size_t len)
{
	assert_int_equal(d->err, 0);
	assert_int_equal(der_len(d), len);
	assert_memory_equal(der_bytes(d), bytes, len);
}

static void test_order(void **state)
{
	struct der d;
	der_init(&d);
	der_elem(&d, DER_OCTETS, "b", 1);
	der_elem(&d, DER_OCTETS, "a", 1);
	der_wrap(&d, DER_SEQ, 0);
	expect(&d,
	        "\x30\x06\x04\x01"
	        "a"
	        "\x04\x01"
	        "b",
	        8);
}

static void test_lengths(void **state)
{
	static const uint8_t zeros[1000];
	static const struct {
		size_t len;
		const char *head;
		size_t head_len;
	} rows[] = {
	        {0, "\x04\x00", 2},
	        {127, "\x04\x7f", 2},
	        {128, "\x04\x81\x80", 3},
	        {255, "\x04\x81\xff", 3},
	        {256, "\x04\x82\x01\x00", 4},
	        {1000, "\x04\x82\x03\xe8", 4},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct der d;
		der_init(&d);
		der_elem(&d, DER_OCTETS, zeros, rows[i].len);
		assert_int_equal(der_len(&d), rows[i].head_len + rows[i].len);
		assert_memory_equal(der_bytes(&d), rows[i].head, rows[i].head_len);
	}
}

static void check_uint(const char *in, size_t len, const char *out, size_t out_len)
{
	struct der d;
	der_init(&d);
	der_uint(&d, (const uint8_t *)in, len);
	expect(&d, out, out_len);
}

static void test_uint(void **state)
{
	check_uint("", 1, "\x02\x01\x00", 3);
	check_uint("\x7f", 1, "\x02\x01\x7f", 3);
	check_uint("\x80", 1, "\x02\x02\x00\x80", 4);
	check_uint("\0\0\x05", 3, "\x02\x01\x05", 3);
	check_uint("\0\x90\0", 3, "\x02\x03\x00\x90\x00", 5);
	check_uint("\0\0", 2, "\x02\x01\x00", 3);
}

static void check_time(int64_t seconds, const char *out, size_t len)
{
	struct der d;
	der_init(&d);
	der_time(&d, seconds);
	expect(&d, out, len);
}

static void test_time(void **state)
{
	check_time(0,
	        "\x17\x0d"
	        "700101000000Z",
	        15);
	check_time(2524607999,
	        "\x17\x0d"
	        "491231235959Z",
	        15);
	check_time(2524608000,
	        "\x18\x0f"
	        "20500101000000Z",
	        17);
	struct der d;
	der_init(&d);
	der_time(&d, INT64_MAX);
	assert_int_equal(d.err, -EMSGSIZE);
}

static void test_ceiling(void **state)
{
	static const uint8_t zeros[DER_MAX];
	struct der d;
	der_init(&d);
	der_raw(&d, zeros, DER_MAX);
	assert_int_equal(d.err, 0);
	der_raw(&d, zeros, 1);
	assert_int_equal(d.err, -EMSGSIZE);
	/* The error stays, and nothing is written any more. */
	der_init(&d);
	der_raw(&d, zeros, DER_MAX - 2);
	der_elem(&d, DER_OCTETS, zeros, 4);
	size_t len = der_len(&d);
	der_raw(&d, zeros, 1);
	assert_int_equal(d.err, -EMSGSIZE);
	assert_int_equal(der_len(&d), len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_order),
	        cmocka_unit_test(test_lengths),
	        cmocka_unit_test(test_uint),
	        cmocka_unit_test(test_time),
	        cmocka_unit_test(test_ceiling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
