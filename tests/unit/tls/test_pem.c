/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PEM armour: finding, decoding, writing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/rand.h"
#include "tls/pem.h"

static int next(const char **at, struct pem_block *block)
{
	return pem_next(at, *at + strlen(*at), block);
}

static void test_find(void **state)
{
	const char *at =
	        "noise\n-----BEGIN A-----\nAQID\n-----END A-----\n# comment\n-----BEGIN B C-----\r\nBAUG\r\n-----END B C-----\r\n";
	struct pem_block block;
	struct buf out;
	buf_init(&out, 100);
	assert_int_equal(next(&at, &block), 1);
	assert_string_equal(block.label, "A");
	assert_int_equal(pem_decode(&block, &out), 0);
	assert_int_equal(next(&at, &block), 1);
	assert_string_equal(block.label, "B C");
	assert_int_equal(pem_decode(&block, &out), 0);
	assert_int_equal(out.len, 6);
	assert_memory_equal(out.data, "\1\2\3\4\5\6", 6);
	assert_int_equal(next(&at, &block), 0);
	buf_done(&out);
}

static void test_broken_frames(void **state)
{
	static const char *const bad[] = {
	        "-----BEGIN A-----\nAQID\n",
	        "-----BEGIN A-----\nAQID\n-----END B-----\n",
	        "-----BEGIN A\n",
	        "-----BEGIN AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-----\nAQID\n",
	};
	struct pem_block block;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *at = bad[i];
		assert_int_equal(next(&at, &block), -EBADMSG);
	}
}

static void test_broken_bodies(void **state)
{
	static const char *const bad[] = {
	        "-----BEGIN A-----\n-----END A-----\n",
	        "-----BEGIN A-----\nA*ID\n-----END A-----\n",
	        "-----BEGIN A-----\nProc-Type: 4,ENCRYPTED\n\nAQID\n-----END A-----\n",
	        "-----BEGIN A----------END A-----",
	};
	struct pem_block block;
	struct buf out;
	buf_init(&out, 100);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *at = bad[i];
		assert_int_equal(next(&at, &block), 1);
		assert_int_equal(pem_decode(&block, &out), -EBADMSG);
		assert_int_equal(out.len, 0);
	}
	buf_done(&out);
}

static void test_round_trip(void **state)
{
	for (size_t len = 1; len < 300; len++) {
		uint8_t data[300];
		struct buf text, back;
		struct pem_block block;
		unsigned columns = len % 2 ? 64 : 60;
		rand_bytes(data, len);
		buf_init(&text, 1000);
		buf_init(&back, 300);
		assert_int_equal(pem_encode("X", data, len, columns, &text), 0);
		const char *at = buf_cstr(&text);
		for (const char *line = at; *line; line = strchr(line, '\n') + 1)
			assert_true((size_t)(strchr(line, '\n') - line) <= columns);
		assert_int_equal(next(&at, &block), 1);
		assert_int_equal(pem_decode(&block, &back), 0);
		assert_int_equal(back.len, len);
		assert_memory_equal(back.data, data, len);
		buf_done(&text);
		buf_done(&back);
	}
}

static void test_ceiling(void **state)
{
	uint8_t data[200] = {0};
	struct buf text, back;
	struct pem_block block;
	buf_init(&text, 1000);
	assert_int_equal(pem_encode("X", data, sizeof(data), 64, &text), 0);
	const char *at = buf_cstr(&text);
	assert_int_equal(next(&at, &block), 1);
	buf_init(&back, 199);
	assert_int_equal(pem_decode(&block, &back), -EMSGSIZE);
	buf_done(&back);
	buf_init(&back, 10);
	assert_int_equal(pem_decode(&block, &back), -EMSGSIZE);
	buf_done(&back);
	buf_done(&text);
	buf_init(&text, 100);
	assert_int_equal(pem_encode("X", data, sizeof(data), 64, &text), -EMSGSIZE);
	buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_find),
	        cmocka_unit_test(test_broken_frames),
	        cmocka_unit_test(test_broken_bodies),
	        cmocka_unit_test(test_round_trip),
	        cmocka_unit_test(test_ceiling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
