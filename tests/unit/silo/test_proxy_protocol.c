/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PROXY header, byte for byte, as its specification lays it out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "silo/proxy_protocol.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

static const struct addr CLIENT4 = {.ip = {.family = 4, .b = {10, 0, 0, 1}}, .port = 0x1234};
static const struct addr SERVER4 = {.ip = {.family = 4, .b = {10, 0, 0, 2}}, .port = 80};
static const struct addr CLIENT6 = {.ip = {.family = 6, .b = {0xfd, [15] = 1}}, .port = 0x1234};
static const struct addr SERVER6 = {.ip = {.family = 6, .b = {0xfd, [15] = 2}}, .port = 80};

static void expect(
        const struct addr *src, const struct addr *dst, const char *id, const char *want, size_t len)
{
	struct buf out;
	buf_init(&out, PROXY_HEADER_MAX);
	assert_int_equal(proxy_header_encode(src, dst, id, &out), 0);
	assert_int_equal(out.len, len);
	assert_memory_equal(out.data, want, len);
	buf_done(&out);
}

#define EXPECT(src, dst, id, want) expect(src, dst, id, want, sizeof(want) - 1)

static void names_both_ends(void **state)
{
	EXPECT(&CLIENT4, &SERVER4, "a://b",
	        SIGNATURE "\x21\x11\x00\x14\x0a\0\0\x01\x0a\0\0\x02\x12\x34\x00\x50\xd0\x00\x05"
	                  "a://b");
	EXPECT(&CLIENT4, &SERVER4, "", SIGNATURE "\x21\x11\x00\x0c\x0a\0\0\x01\x0a\0\0\x02\x12\x34\x00\x50");
	EXPECT(&CLIENT6, &SERVER6, "x",
	        SIGNATURE
	        "\x21\x21\x00\x28"
	        "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x12\x34\x00\x50"
	        "\xd0\x00\x01x");
}

static void says_nothing_of_mixed_families(void **state)
{
	EXPECT(&CLIENT4, &SERVER6, "x", SIGNATURE "\x21\x01\x00\x04\xd0\x00\x01x");
	EXPECT(&CLIENT6, &SERVER4, "", SIGNATURE "\x21\x01\x00\x00");
}

static void has_a_ceiling(void **state)
{
	static char id[PROXY_HEADER_MAX + 1];
	struct buf out;
	memset(id, 'a', sizeof(id) - 1);
	buf_init(&out, PROXY_HEADER_MAX);
	assert_int_equal(proxy_header_encode(&CLIENT4, &SERVER4, id, &out), -EMSGSIZE);
	assert_int_equal(out.len, 0);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(names_both_ends),
	        cmocka_unit_test(says_nothing_of_mixed_families),
	        cmocka_unit_test(has_a_ceiling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
