/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rules for header blocks, table-driven.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "h2/message.h"

static const char *const keep[] = {"baggage", NULL};

struct row {
	enum h2_message_kind kind;
	int want;
	/* Lines "name=value", the name up to the first '=' that is not at the start. */
	const char *lines[8];
};

static const struct row rows[] = {
        {H2_MESSAGE_REQUEST, 0, {":method=CONNECT", ":authority=10.0.0.1:80"}},
        {H2_MESSAGE_REQUEST, 0, {":authority=10.0.0.1:80", ":method=CONNECT", "x-any=1", "baggage=a"}},
        {H2_MESSAGE_REQUEST, 0, {":method=CONNECT"}},
        {H2_MESSAGE_REQUEST, 0, {":method=CONNECT", "host=a:1"}},
        {H2_MESSAGE_REQUEST, 0, {":method=CONNECT", ":authority=no-port"}},
        {H2_MESSAGE_REQUEST, 0, {":method=CONNECT", ":authority=[::1]:80"}},
        {H2_MESSAGE_REQUEST, 0, {":method=GET", ":scheme=https", ":path=/", ":authority=a"}},
        {H2_MESSAGE_REQUEST, 0, {":method=GET", ":scheme=http", ":path=/x?y"}},
        {H2_MESSAGE_REQUEST, 0, {":method=OPTIONS", ":scheme=http", ":path=*"}},
        {H2_MESSAGE_REQUEST, 0, {":method=POST", ":scheme=http", ":path=/", "te=trailers"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":authority=10.0.0.1:80"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {"baggage=a"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {NULL}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", ":scheme=https"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", ":path=/"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", ":scheme=https", ":path=/"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", ":protocol=websocket"}},
        {H2_MESSAGE_REQUEST, -EPROTO,
                {":method=CONNECT", ":protocol=websocket", ":scheme=https", ":path=/", ":authority=a"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=GET", ":scheme=https", ":path=/", ":protocol=websocket"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=GET", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=GET", ":scheme=https", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=GET", ":path=/", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=GET", ":scheme=https", ":path="}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=GET", ":scheme=https", ":path=x"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=GET", ":scheme=ht tp", ":path=/"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CON NECT", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=connect", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":method=CONNECT", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority="}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a b"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", "baggage=a", ":authority=a:1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", ":status=200"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", ":unknown=1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", "Baggage=1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", "bag gage=1"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", "baggage=a\rb"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", "connection=close"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", "transfer-encoding=chunked"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", "upgrade=h2c"}},
        {H2_MESSAGE_REQUEST, -EPROTO, {":method=CONNECT", ":authority=a:1", "te=gzip"}},
        {H2_MESSAGE_RESPONSE, 0, {":status=200"}},
        {H2_MESSAGE_RESPONSE, 0, {":status=101", "server=x"}},
        {H2_MESSAGE_RESPONSE, -EPROTO, {"server=x"}},
        {H2_MESSAGE_RESPONSE, -EPROTO, {":status=20"}},
        {H2_MESSAGE_RESPONSE, -EPROTO, {":status=2000"}},
        {H2_MESSAGE_RESPONSE, -EPROTO, {":status=099"}},
        {H2_MESSAGE_RESPONSE, -EPROTO, {":status=2x0"}},
        {H2_MESSAGE_RESPONSE, -EPROTO, {":status=200", ":status=200"}},
        {H2_MESSAGE_RESPONSE, -EPROTO, {":status=200", ":method=GET"}},
        {H2_MESSAGE_TRAILERS, 0, {"grpc-status=0", "baggage=z"}},
        {H2_MESSAGE_TRAILERS, 0, {NULL}},
        {H2_MESSAGE_TRAILERS, -EPROTO, {":status=200"}},
};

static int add(struct h2_message *message, const char *line)
{
	const char *eq = strchr(line, '=');

	return h2_message_line(message, line, (size_t)(eq - line), eq + 1, strlen(eq + 1));
}

static void messages(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct h2_message message;

		h2_message_begin(&message, rows[i].kind, keep, 65536);
		for (int j = 0; rows[i].lines[j]; j++)
			assert_int_equal(add(&message, rows[i].lines[j]), 0);
		if (h2_message_end(&message) != rows[i].want)
			fail_msg("row %zu (%s): %d", i, rows[i].lines[0], h2_message_end(&message));
		h2_message_done(&message);
	}
}

static void message_keeps_wanted(void **state)
{
	struct h2_message message;

	h2_message_begin(&message, H2_MESSAGE_REQUEST, keep, 65536);
	add(&message, ":method=CONNECT");
	add(&message, ":authority=h:1");
	add(&message, "user-agent=x");
	add(&message, "baggage=a");
	add(&message, "baggage=b");
	assert_int_equal(h2_message_end(&message), 0);
	assert_int_equal(message.headers.count, 4);
	assert_string_equal(h2_headers_get(&message.headers, ":authority"), "h:1");
	assert_null(h2_headers_get(&message.headers, "user-agent"));
	assert_true(message.is_connect);
	h2_message_done(&message);
}

static void message_nul_is_malformed(void **state)
{
	struct h2_message message;

	h2_message_begin(&message, H2_MESSAGE_REQUEST, keep, 65536);
	add(&message, ":method=CONNECT");
	assert_int_equal(h2_message_line(&message, "baggage", 7, "a\0b", 3), 0);
	assert_int_equal(h2_message_end(&message), -EPROTO);
	h2_message_done(&message);
	h2_message_begin(&message, H2_MESSAGE_REQUEST, keep, 65536);
	assert_int_equal(h2_message_line(&message, ":method", 7, "CONNECT\0", 8), 0);
	assert_int_equal(h2_message_end(&message), -EPROTO);
	h2_message_done(&message);
}

static void message_limit(void **state)
{
	struct h2_message message;
	char big[500];

	memset(big, 'x', sizeof(big));
	h2_message_begin(&message, H2_MESSAGE_REQUEST, keep, 1000);
	add(&message, ":method=CONNECT");
	/* 7 + 7 + 32, then exactly up to the limit. */
	assert_int_equal(h2_message_line(&message, "baggage", 7, big, 500), 0);
	assert_int_equal(h2_message_line(&message, "baggage", 7, big, 1000 - 46 - 539 - 39), 0);
	assert_int_equal(h2_message_end(&message), 0);
	assert_int_equal(message.headers.count, 3);
	assert_int_equal(h2_message_line(&message, "x", 1, "", 0), 0);
	assert_int_equal(h2_message_end(&message), -E2BIG);
	/* Nothing more is kept, and in the end it is too much. */
	for (int i = 0; i < 25; i++)
		assert_int_equal(h2_message_line(&message, "baggage", 7, big, 500), 0);
	assert_int_equal(message.headers.count, 3);
	for (int i = 0; i < 4; i++)
		h2_message_line(&message, "baggage", 7, big, 500);
	assert_int_equal(h2_message_line(&message, "baggage", 7, big, 500), -E2BIG);
	h2_message_done(&message);
}

static void authorities(void **state)
{
	static const char *const good[] = {"a", "a:1", "10.0.0.1:80", "[::1]:80", "[fe80::1]",
	        "a:", "user@a:1", "user:pw@a:1", "svc.ns.svc.cluster.local:8080", "u%20x@a", "a_b:1", NULL};
	static const char *const bad[] = {"", "a:1:2", "::1", "[::1", "::1]", "[[::1]]", "a/b", "a?b", "a#b",
	        "a b", "a@", "a%41", "\x80", "a\"", "[a][b]", "]a[", NULL};

	for (int i = 0; good[i]; i++)
		if (!h2_authority_is_valid(good[i], strlen(good[i])))
			fail_msg("refused: %s", good[i]);
	for (int i = 0; bad[i]; i++)
		if (h2_authority_is_valid(bad[i], strlen(bad[i])))
			fail_msg("accepted: %s", bad[i]);
	assert_false(h2_authority_is_valid("a\0b", 3));
}

static void sendable(void **state)
{
	struct h2_header good = {"x-forwarded-network", "", false};
	struct h2_header bad[] = {{":method", "GET", false}, {"X-Upper", "1", false}, {"a", "b\n", false},
	        {"connection", "x", false}, {"", "x", false}};

	assert_true(h2_header_is_sendable(&good));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(h2_header_is_sendable(&bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(messages),
	        cmocka_unit_test(message_keeps_wanted),
	        cmocka_unit_test(message_nul_is_malformed),
	        cmocka_unit_test(message_limit),
	        cmocka_unit_test(authorities),
	        cmocka_unit_test(sendable),
	};
	return cmocka_run_group_tests_name("h2 message", tests, NULL, NULL);
}
