/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SOCKS5 negotiations, whole, byte by byte and broken (RFC 1928, reference dataplane.md 18). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "silo/socks.h"

/* Feeds pieces of at most `piece` bytes until the negotiation is over; returns the last step, and what was
 * left. */
static enum socks_step feed(
        struct socks *socks, const char *bytes, size_t len, size_t piece, size_t *ret_left)
{
	enum socks_step step = SOCKS_MORE;
	size_t at = 0;
	memset(socks, 0, sizeof(*socks));
	while (at < len && (step == SOCKS_MORE || step == SOCKS_SAY)) {
		size_t taken, n = len - at < piece ? len - at : piece;
		step = socks_feed(socks, (const uint8_t *)bytes + at, n, &taken);
		assert_true(taken > 0 && taken <= n);
		at += taken;
	}
	*ret_left = len - at;
	return step;
}

#define GREETING "\5\1\0"
#define CASE(text) text, sizeof(text) - 1

static const struct good {
	const char *bytes;
	size_t len;
	const char *host;
	const char *dst;
} GOOD[] = {
        {CASE(GREETING "\5\1\0\1\x0a\0\0\1\x1f\x90"), "", "10.0.0.1:8080"},
        {CASE("\5\3\2\1\0\5\1\0\1\x7f\0\0\1\0\x50"), "", "127.0.0.1:80"},
        {CASE(GREETING "\5\1\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\1\xbb"), "", "[2001:db8::1]:443"},
        /* Not canonicalised, as upstream. */
        {CASE(GREETING "\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1\0\x50"), "", "[::ffff:10.0.0.1]:80"},
        {CASE(GREETING "\5\1\0\3\4echo\0\x50"), "echo", NULL},
};

static void test_targets(void **state)
{
	static const size_t pieces[] = {1, 2, 3, 7, 1000};
	(void)state;
	for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
		for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
			struct socks socks;
			char text[ADDR_STR_MAX];
			size_t left;
			assert_int_equal(
			        feed(&socks, GOOD[i].bytes, GOOD[i].len, pieces[p], &left), SOCKS_DONE);
			assert_int_equal(left, 0);
			assert_string_equal(socks.host, GOOD[i].host);
			if (GOOD[i].dst)
				assert_string_equal(addr_format(&socks.dst, text), GOOD[i].dst);
			else
				assert_int_equal(socks.dst.port, 80);
		}
	}
}

static void test_says_which_method(void **state)
{
	struct socks socks;
	size_t left;
	(void)state;
	assert_int_equal(feed(&socks, CASE(GREETING), 100, &left), SOCKS_SAY);
	assert_int_equal(socks.reply_len, 2);
	assert_memory_equal(socks.reply, "\5\0", 2);
}

/* What stands behind the request is the application's. */
static void test_leaves_the_rest(void **state)
{
	struct socks socks;
	size_t left;
	(void)state;
	assert_int_equal(
	        feed(&socks, CASE(GREETING "\5\1\0\1\x0a\0\0\1\0\x50GET /"), 1000, &left), SOCKS_DONE);
	assert_int_equal(left, 5);
}

static void test_longest_messages(void **state)
{
	char bytes[600];
	struct socks socks;
	size_t left;
	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	bytes[0] = 5;
	bytes[256] = 0; /* the last of 255 methods */
	memcpy(bytes + 257, "\5\1\0\3\xff", 5);
	memset(bytes + 262, 'a', 255);
	memcpy(bytes + 517, "\1\2", 2);
	assert_int_equal(feed(&socks, bytes, 519, 1000, &left), SOCKS_DONE);
	assert_int_equal(strlen(socks.host), 255);
	assert_int_equal(socks.dst.port, 258);
}

static const struct bad {
	const char *bytes;
	size_t len;
	uint8_t code;
} BAD[] = {
        {CASE("\4\1\0\x50"), 1},                        /* SOCKS4 */
        {CASE("GET / HTTP/1.1"), 1},                    /* not SOCKS at all */
        {CASE("\5\0"), 7},                              /* no method */
        {CASE("\5\2\1\2"), 7},                          /* none that we know */
        {CASE(GREETING "\4\1\0\1\x0a\0\0\1\0\x50"), 1}, /* another version in the midst */
        {CASE(GREETING "\5\2\0\1\x0a\0\0\1\0\x50"), 7}, /* BIND */
        {CASE(GREETING "\5\3\0\1\x0a\0\0\1\0\x50"), 7}, /* UDP ASSOCIATE */
        {CASE(GREETING "\5\1\0\2\x0a\0\0\1\0\x50"), 8}, /* an address type that is not there */
        {CASE(GREETING "\5\1\0\3\0\0\x50"), 7},         /* an empty name */
        {CASE(GREETING "\5\1\0\3\3a\0b\0\x50"), 7},     /* an end in the midst */
        {CASE(GREETING "\5\1\0\3\2\xc3\x28\0\x50"), 7}, /* no UTF-8 */
};

static void test_refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		struct socks socks;
		uint8_t reply[SOCKS_REPLY_LEN] = {5, BAD[i].code, 0, 1};
		size_t left;
		assert_int_equal(feed(&socks, BAD[i].bytes, BAD[i].len, 1, &left), SOCKS_REFUSE);
		assert_int_equal(socks.reply_len, SOCKS_REPLY_LEN);
		assert_memory_equal(socks.reply, reply, SOCKS_REPLY_LEN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_targets),
	        cmocka_unit_test(test_says_which_method),
	        cmocka_unit_test(test_leaves_the_rest),
	        cmocka_unit_test(test_longest_messages),
	        cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
