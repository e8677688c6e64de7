/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Byte buffers: appending, the maximum, the sticking error. */
#include <errno.h>

#include "base/buf.h"
#include "unit.h"

static void appends(void **state)
{
	struct buf b;
	buf_init(&b, 100000);
	assert_int_equal(buf_add_str(&b, "ab"), 0);
	assert_int_equal(buf_add_u8(&b, 'c'), 0);
	assert_int_equal(buf_add_be16(&b, 0x4142), 0);
	assert_int_equal(buf_add_be32(&b, 0x43444546), 0);
	assert_int_equal(buf_printf(&b, "-%d", 12), 0);
	assert_int_equal(buf_add(&b, NULL, 0), 0);
	assert_string_equal(buf_cstr(&b), "abcABCDEF-12");
	buf_consume(&b, 3);
	assert_string_equal(buf_cstr(&b), "ABCDEF-12");
	for (int i = 0; i < 10000; i++)
		buf_add_str(&b, "0123456");
	assert_int_equal(b.err, 0);
	assert_int_equal(b.len, 9 + 70000);
	size_t len;
	uint8_t *data = buf_take(&b, &len);
	assert_int_equal(len, 9 + 70000);
	assert_int_equal(b.len, 0);
	mem_free(data);
	assert_string_equal(buf_cstr(&b), "");
	buf_done(&b);
}

static void keeps_maximum(void **state)
{
	struct buf b;
	buf_init(&b, 10);
	assert_int_equal(buf_add_str(&b, "0123456789"), 0);
	assert_int_equal(buf_add_u8(&b, 'x'), -EMSGSIZE);
	assert_int_equal(b.err, -EMSGSIZE);
	assert_null(buf_cstr(&b));
	buf_clear(&b);
	assert_int_equal(buf_printf(&b, "%s", "0123456789"), 0);
	assert_string_equal(buf_cstr(&b), "0123456789");
	assert_int_equal(buf_printf(&b, "%s", "a"), -EMSGSIZE);
	assert_int_equal(buf_add_u8(&b, 'x'), -EMSGSIZE);
	assert_int_equal(b.len, 10);
	buf_done(&b);
	assert_int_equal(b.err, 0);
}

static void reserves(void **state)
{
	struct buf b;
	buf_init(&b, 1000);
	assert_int_equal(buf_reserve(&b, 500), 0);
	memset(b.data, 'x', 500);
	buf_commit(&b, 500);
	assert_int_equal(b.len, 500);
	assert_int_equal(buf_reserve(&b, 501), -EMSGSIZE);
	buf_done(&b);
}

static void out_of_memory(void **state)
{
	struct buf b;
	buf_init(&b, 1000);
	allocations_left = 0;
	assert_int_equal(buf_add_str(&b, "abc"), -ENOMEM);
	allocations_left = -1;
	assert_int_equal(buf_add_str(&b, "abc"), -ENOMEM);
	buf_clear(&b);
	assert_int_equal(buf_add_str(&b, "abc"), 0);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(appends),
	        cmocka_unit_test(keeps_maximum),
	        cmocka_unit_test(reserves),
	        cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
