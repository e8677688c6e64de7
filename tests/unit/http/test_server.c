/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server connection over its life: bytes in any portions, pipelining, bodies, ceilings, end and drain. */
#include <errno.h>
#include <stdlib.h>

#include "server_fixture.h"

static struct fixture f;

static void byte_by_byte(void **state)
{
	static const char text[] = "POST /logging?level=info HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
	fixture_init(&f);
	for (size_t i = 0; i + 1 < sizeof(text) - 1; i++) {
		assert_int_equal(http_server_feed(&f.server, text + i, 1), 0);
		assert_null(http_server_next(&f.server));
		assert_true(http_server_is_waiting(&f.server) && http_server_wants_input(&f.server));
	}
	const struct http_request *r = fixture_feed(&f, "o");
	assert_non_null(r);
	assert_null(http_server_next(&f.server)); /* once only */
	assert_int_equal(r->method, HTTP_POST);
	assert_string_equal(r->path, "/logging");
	assert_memory_equal(r->body, "hello", 5);
	assert_false(http_server_is_waiting(&f.server) || http_server_wants_input(&f.server));
	assert_int_equal(http_reply(&f.server, 200, NULL, 0, NULL, 0), 0);
	assert_true(http_server_is_waiting(&f.server));
	fixture_done(&f);
}

static void pipelined(void **state)
{
	fixture_init(&f);
	const struct http_request *r = fixture_feed(
	        &f, "GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\r\nGET /3 HT");
	assert_string_equal(r->path, "/1");
	/* More may come while the reply is being made; the request stays as it is. */
	assert_null(fixture_feed(&f, "TP/1.1\r\nConnection: close\r\n\r\nGET /4 HTTP/1.1\r\n\r\n"));
	assert_string_equal(r->path, "/1");
	http_reply(&f.server, 200, NULL, 0, NULL, 0);
	r = http_server_next(&f.server);
	assert_string_equal(r->path, "/2");
	assert_memory_equal(r->body, "abc", 3);
	http_reply(&f.server, 200, NULL, 0, NULL, 0);
	r = http_server_next(&f.server);
	assert_string_equal(r->path, "/3");
	http_reply(&f.server, 200, NULL, 0, NULL, 0);
	assert_true(http_server_is_closed(&f.server));
	assert_null(http_server_next(&f.server));
	assert_int_equal(http_server_feed(&f.server, "x", 1), 0);
	fixture_done(&f);
}

static void head_ceiling(void **state)
{
	char text[LIMIT_HTTP_HEAD + 2] = "GET / HTTP/1.1\r\nA: ";
	size_t used = strlen(text);
	memset(text + used, 'a', sizeof(text) - used);
	memcpy(text + LIMIT_HTTP_HEAD - 4, "\r\n\r\n", 5);
	fixture_init(&f);
	assert_non_null(fixture_feed(&f, text)); /* exactly at the ceiling */
	fixture_done(&f);
	memcpy(text + LIMIT_HTTP_HEAD - 4, "a\r\n\r\n", 6);
	fixture_init(&f);
	assert_null(fixture_feed(&f, text));
	assert_string_equal(fixture_out(&f),
	        "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
	assert_true(http_server_is_closed(&f.server));
	fixture_done(&f);
	/* Neither an endless line nor endless empty lines get past it. */
	for (int i = 0; i < 2; i++) {
		memset(text, i ? '\n' : 'a', sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		fixture_init(&f);
		assert_null(fixture_feed(&f, text));
		assert_non_null(strstr(fixture_out(&f), " 431 "));
		fixture_done(&f);
	}
}

static void refusals(void **state)
{
	static const struct {
		const char *text, *status;
	} rows[] = {
	        {"GARBAGE\r\n\r\n", " 400 "},
	        {"HEAD / HTTP/1.1\r\nA b\r\n\r\n", " 400 "},
	        {"GET / HTTP/3.0\r\n\r\n", " 505 "},
	        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", " 411 "},
	        {"POST / HTTP/1.1\r\nContent-Length: 70000\r\n\r\n", " 413 "},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		fixture_init(&f);
		assert_null(fixture_feed(&f, rows[i].text));
		const char *out = fixture_out(&f);
		assert_non_null(strstr(out, rows[i].status));
		assert_non_null(strstr(out, "connection: close\r\n"));
		assert_true(http_server_is_closed(&f.server));
		fixture_done(&f);
	}
}

static void largest_body(void **state)
{
	static char body[LIMIT_HTTP_BODY];
	memset(body, 'b', sizeof(body));
	fixture_init(&f);
	assert_null(
	        fixture_feed(&f, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 65536\r\n\r\n"));
	assert_string_equal(fixture_out(&f), "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(http_server_feed(&f.server, body, 1000), 0);
	assert_null(http_server_next(&f.server));
	assert_int_equal(http_server_feed(&f.server, body, sizeof(body) - 1000), 0);
	const struct http_request *r = http_server_next(&f.server);
	assert_non_null(r);
	assert_memory_equal(r->body, body, sizeof(body));
	/* A caller that keeps feeding is stopped. */
	assert_int_equal(http_server_feed(&f.server, body, sizeof(body)), 0);
	assert_int_equal(http_server_feed(&f.server, body, sizeof(body)), -EMSGSIZE);
	assert_true(http_server_is_closed(&f.server));
	fixture_done(&f);
}

static void end_of_input(void **state)
{
	fixture_init(&f);
	http_server_eof(&f.server);
	assert_null(http_server_next(&f.server));
	assert_true(http_server_is_closed(&f.server));
	fixture_done(&f);
	static const char *const halves[] = {"GET / HT", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhell"};
	for (size_t i = 0; i < CNT(halves); i++) {
		fixture_init(&f);
		assert_null(fixture_feed(&f, halves[i]));
		http_server_eof(&f.server);
		assert_null(http_server_next(&f.server));
		assert_true(http_server_is_closed(&f.server));
		assert_string_equal(fixture_out(&f), "");
		fixture_done(&f);
	}
	/* Half-close: what was complete is answered. */
	fixture_init(&f);
	http_server_feed(&f.server, "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n", 38);
	http_server_eof(&f.server);
	for (int i = 0; i < 2; i++) {
		assert_non_null(http_server_next(&f.server));
		assert_int_equal(http_reply(&f.server, 200, NULL, 0, NULL, 0), 0);
	}
	assert_null(http_server_next(&f.server));
	assert_true(http_server_is_closed(&f.server));
	fixture_done(&f);
}

static void drains(void **state)
{
	fixture_init(&f);
	http_server_drain(&f.server);
	assert_true(http_server_is_closed(&f.server));
	fixture_done(&f);
	fixture_init(&f);
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.1\r\n\r\n"));
	http_server_drain(&f.server);
	http_reply_text(&f.server, 200, NULL, "x");
	assert_non_null(strstr(fixture_out(&f), "connection: close\r\n\r\nx"));
	assert_true(http_server_is_closed(&f.server));
	fixture_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(byte_by_byte),
	        cmocka_unit_test(pipelined),
	        cmocka_unit_test(head_ceiling),
	        cmocka_unit_test(refusals),
	        cmocka_unit_test(largest_body),
	        cmocka_unit_test(end_of_input),
	        cmocka_unit_test(drains),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
