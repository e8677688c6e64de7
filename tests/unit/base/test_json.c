/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON writer: layout of both forms, escapes, numbers at their ends. */
#include <errno.h>

#include "base/json.h"
#include "unit.h"

static void write_sample(struct json *j)
{
	json_obj(j);
	json_kv_str(j, "a", "x\"y");
	json_key(j, "b");
	json_arr(j);
	json_u64(j, UINT64_MAX);
	json_i64(j, INT64_MIN);
	json_i64(j, 5);
	json_obj(j);
	json_obj_end(j);
	json_arr(j);
	json_arr_end(j);
	json_arr_end(j);
	json_kv_u64(j, "c", 0);
	json_kv_bool(j, "d", true);
	json_kv_bool(j, "e", false);
	json_kv_str(j, "f", NULL);
	json_key(j, "g");
	json_raw(j, "[1]", 3);
	json_obj_end(j);
}

static void forms(void **state)
{
	struct buf b;
	struct json j;
	buf_init(&b, 4096);
	json_init(&j, &b, false);
	write_sample(&j);
	assert_string_equal(buf_cstr(&b),
	        "{\"a\":\"x\\\"y\",\"b\":[18446744073709551615,-9223372036854775808,5,{},[]],\"c\":0,\"d\":true,\"e\":false,\"f\":null,\"g\":[1]}");
	buf_clear(&b);
	json_init(&j, &b, true);
	write_sample(&j);
	assert_string_equal(buf_cstr(&b),
	        "{\n  \"a\": \"x\\\"y\",\n  \"b\": [\n    18446744073709551615,\n    -9223372036854775808,\n    5,\n    {},\n    []\n  ],\n"
	        "  \"c\": 0,\n  \"d\": true,\n  \"e\": false,\n  \"f\": null,\n  \"g\": [1]\n}");
	buf_done(&b);
}

static void escapes(void **state)
{
	static const char in[] = "\b\t\n\f\r\"\\\0\x01\x1f\x7f/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xff\xc3";
	struct buf b;
	struct json j;
	buf_init(&b, 4096);
	json_init(&j, &b, false);
	json_strn(&j, in, sizeof(in) - 1);
	assert_string_equal(buf_cstr(&b),
	        "\"\\b\\t\\n\\f\\r\\\"\\\\\\u0000\\u0001\\u001f\x7f/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd\"");
	buf_done(&b);
}

static void sticks_at_the_ceiling(void **state)
{
	struct buf b;
	struct json j;
	buf_init(&b, 10);
	json_init(&j, &b, false);
	write_sample(&j);
	assert_int_equal(b.err, -EMSGSIZE);
	buf_done(&b);
}

static void deepest(void **state)
{
	struct buf b;
	struct json j;
	buf_init(&b, 4096);
	json_init(&j, &b, true);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_arr(&j);
	json_null(&j);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_arr_end(&j);
	assert_int_equal(j.depth, 0);
	assert_int_equal(b.data[b.len - 1], ']');
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(forms),
	        cmocka_unit_test(escapes),
	        cmocka_unit_test(sticks_at_the_ceiling),
	        cmocka_unit_test(deepest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
