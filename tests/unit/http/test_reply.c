/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies byte for byte: whole, in pieces, for HEAD and HTTP/1.0, and without memory. */
#include <errno.h>

#include "base/err.h"
#include "server_fixture.h"

static struct fixture f;

static void whole(void **state)
{
	fixture_init(&f);
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.1\r\n\r\n"));
	assert_int_equal(http_reply_text(&f.server, 500, "text/plain", "not ready\n"), 0);
	assert_string_equal(fixture_out(&f),
	        "HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nnot ready\n");
	assert_non_null(fixture_feed(&f, "HEAD / HTTP/1.1\r\n\r\n"));
	assert_int_equal(http_reply_text(&f.server, 200, NULL, "abc"), 0);
	assert_string_equal(fixture_out(&f), "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n");
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
	assert_int_equal(http_reply(&f.server, 404, NULL, 0, NULL, 0), 0);
	assert_string_equal(fixture_out(&f),
	        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n");
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.1\r\n\r\n"));
	assert_int_equal(http_reply(&f.server, 204, NULL, 0, "x", 1), 0);
	assert_string_equal(fixture_out(&f), "HTTP/1.1 204 No Content\r\n\r\n");
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
	const struct http_header headers[] = {{"x-a", "b\r\nx-injected: c"}, {"vary", "accept-encoding"}};
	assert_int_equal(http_reply(&f.server, 299, headers, 2, "body", 4), 0);
	assert_string_equal(fixture_out(&f),
	        "HTTP/1.1 299 Unknown\r\nx-a: b  x-injected: c\r\nvary: accept-encoding\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody");
	assert_true(http_server_is_closed(&f.server));
	assert_int_equal(http_reply(&f.server, 200, NULL, 0, NULL, 0), ERR_GONE);
	fixture_done(&f);
}

static void in_pieces(void **state)
{
	fixture_init(&f);
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.1\r\n\r\n"));
	assert_int_equal(http_reply_begin(&f.server, 200, NULL, 0), 0);
	assert_int_equal(http_reply_piece(&f.server, "hello", 5), 0);
	assert_int_equal(http_reply_piece(&f.server, "", 0), 0);
	assert_int_equal(http_reply_piece(&f.server, "0123456789abcdefg", 17), 0);
	assert_int_equal(http_reply_end(&f.server), 0);
	assert_string_equal(fixture_out(&f),
	        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n11\r\n0123456789abcdefg\r\n0\r\n\r\n");
	assert_non_null(fixture_feed(&f, "HEAD / HTTP/1.1\r\n\r\n"));
	assert_int_equal(http_reply_begin(&f.server, 200, NULL, 0), 0);
	assert_int_equal(http_reply_piece(&f.server, "hello", 5), 0);
	assert_int_equal(http_reply_end(&f.server), 0);
	assert_string_equal(fixture_out(&f), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
	assert_int_equal(http_reply_begin(&f.server, 200, NULL, 0), 0);
	assert_int_equal(http_reply_piece(&f.server, "hello", 5), 0);
	assert_int_equal(http_reply_end(&f.server), 0);
	assert_string_equal(fixture_out(&f), "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello");
	assert_true(http_server_is_closed(&f.server));
	fixture_done(&f);
}

static void cut_off(void **state)
{
	fixture_init(&f);
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.1\r\n\r\n"));
	assert_int_equal(http_reply_begin(&f.server, 200, NULL, 0), 0);
	http_server_abort(&f.server);
	assert_int_equal(http_reply_piece(&f.server, "x", 1), ERR_GONE);
	assert_int_equal(http_reply_end(&f.server), ERR_GONE);
	assert_int_equal(http_reply_begin(&f.server, 200, NULL, 0), ERR_GONE);
	assert_null(strstr(fixture_out(&f), "0\r\n\r\n"));
	fixture_done(&f);
}

static void out_of_memory(void **state)
{
	static char big[600000];
	fixture_init(&f);
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.1\r\n\r\n"));
	assert_int_equal(http_reply_begin(&f.server, 200, NULL, 0), 0);
	assert_int_equal(http_reply_piece(&f.server, big, sizeof(big)), 0);
	assert_int_equal(http_reply_piece(&f.server, big, sizeof(big)), -ENOMEM);
	assert_true(http_server_is_closed(&f.server));
	assert_int_equal(http_reply_piece(&f.server, big, 1), ERR_GONE);
	fixture_done(&f);
	fixture_init(&f);
	assert_non_null(fixture_feed(&f, "GET / HTTP/1.1\r\n\r\n"));
	memset(big, 'x', sizeof(big) - 1);
	const struct http_header header = {"x", big};
	assert_int_equal(http_reply(&f.server, 200, &header, 1, NULL, 0), -ENOMEM);
	assert_true(http_server_is_closed(&f.server));
	assert_string_equal(fixture_out(&f), "");
	fixture_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(in_pieces),
	        cmocka_unit_test(cut_off), cmocka_unit_test(out_of_memory)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
