/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Request heads: what is taken apart how, and what is refused with which status. */
#include <stdlib.h>

#include "http/request.h"
#include "unit.h"

static char memory[2 * LIMIT_HTTP_HEAD];
static struct http_request request;

static int parse(const char *text)
{
	size_t len = strlen(text);
	memcpy(memory, text, len);
	return http_parse_head(memory, len, &request);
}

static void takes_apart(void **state)
{
	assert_int_equal(
	        parse("GET /config_dump?a=1&b HTTP/1.1\r\nHost: x\r\nAccept:  text/plain \t\r\nX-Empty:\r\nACCEPT: b\r\n\r\n"),
	        0);
	assert_int_equal(request.method, HTTP_GET);
	assert_string_equal(request.method_text, "GET");
	assert_string_equal(request.path, "/config_dump");
	assert_string_equal(request.query, "a=1&b");
	assert_int_equal(request.minor, 1);
	assert_true(request.keep_alive);
	assert_int_equal(request.header_cnt, 4);
	size_t cursor = 0;
	assert_string_equal(http_header_next(&request, "accept", &cursor), "text/plain");
	assert_string_equal(http_header_next(&request, "accept", &cursor), "b");
	assert_null(http_header_next(&request, "accept", &cursor));
	cursor = 0;
	assert_string_equal(http_header_next(&request, "x-empty", &cursor), "");
	char value[8];
	assert_int_equal(http_query_get(&request, "b", value, sizeof(value)), 1);
	assert_int_equal(http_query_get(&request, "c", value, sizeof(value)), 0);
}

static void targets(void **state)
{
	static const struct {
		const char *line, *path, *query;
	} rows[] = {
	        {"GET / HTTP/1.1", "/", ""},
	        {"GET /? HTTP/1.1", "/", ""},
	        {"GET /a?b?c HTTP/1.1", "/a", "b?c"},
	        {"GET http://h:1/a?b HTTP/1.1", "/a", "b"},
	        {"GET HTTP://h HTTP/1.1", "/", ""},
	        {"GET http://h?q HTTP/1.1", "/", "q"},
	        {"OPTIONS * HTTP/1.1", "*", ""},
	        {"CONNECT h:1 HTTP/1.1", "h:1", ""},
	        {"GET //x HTTP/1.1", "//x", ""},
	        {"GET /%41 HTTP/1.1", "/%41", ""},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		char text[128];
		snprintf(text, sizeof(text), "%s\r\n\r\n", rows[i].line);
		assert_int_equal(parse(text), 0);
		assert_string_equal(request.path, rows[i].path);
		assert_string_equal(request.query, rows[i].query);
	}
}

static void methods(void **state)
{
	static const struct {
		const char *text;
		enum http_method method;
	} rows[] = {{"GET", HTTP_GET}, {"HEAD", HTTP_HEAD}, {"POST", HTTP_POST}, {"PUT", HTTP_PUT},
	        {"DELETE", HTTP_DELETE}, {"OPTIONS", HTTP_OPTIONS}, {"PATCH", HTTP_OTHER},
	        {"get", HTTP_OTHER}, {"GETX", HTTP_OTHER}};
	for (size_t i = 0; i < CNT(rows); i++) {
		char text[64];
		snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n\r\n", rows[i].text);
		assert_int_equal(parse(text), 0);
		assert_int_equal(request.method, rows[i].method);
	}
}

static void connection_rules(void **state)
{
	static const struct {
		const char *text;
		bool keep_alive, expects;
		size_t body_len;
	} rows[] = {
	        {"GET / HTTP/1.1\r\n\r\n", true, false, 0},
	        {"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", false, false, 0},
	        {"GET / HTTP/1.1\r\nConnection: upgrade\r\nConnection: x, close\r\n\r\n", false, false, 0},
	        {"GET / HTTP/1.1\r\nConnection: closed\r\n\r\n", true, false, 0},
	        {"GET / HTTP/1.0\r\n\r\n", false, false, 0},
	        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, false, 0},
	        {"POST / HTTP/1.1\r\nContent-Length: 65536\r\nExpect: 100-continue\r\n\r\n", true, true,
	                65536},
	        {"POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", false, false, 5},
	        {"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 05\r\n\r\n", true, false, 5},
	        {"\r\n\n\r\nGET / HTTP/1.1\n\n", true, false, 0},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		assert_int_equal(parse(rows[i].text), 0);
		assert_int_equal(request.keep_alive, rows[i].keep_alive);
		assert_int_equal(request.expects_continue, rows[i].expects);
		assert_int_equal(request.body_len, rows[i].body_len);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *text;
		int status;
	} rows[] = {
	        {"\r\n\r\n", 400},
	        {"GET\r\n\r\n", 400},
	        {"GET /\r\n\r\n", 400},
	        {"GET / \r\n\r\n", 400},
	        {"GET  / HTTP/1.1\r\n\r\n", 400},
	        {" GET / HTTP/1.1\r\n\r\n", 400},
	        {"GET / HTTP/1.1 \r\n\r\n", 400},
	        {"GET / x HTTP/1.1\r\n\r\n", 400},
	        {"G(T / HTTP/1.1\r\n\r\n", 400},
	        {"GET a HTTP/1.1\r\n\r\n", 400},
	        {"GET https://h/ HTTP/1.1\r\n\r\n", 400},
	        {"GET /\x01 HTTP/1.1\r\n\r\n", 400},
	        {"GET /\xc3\xa4 HTTP/1.1\r\n\r\n", 400},
	        {"GET / HTTP/11\r\n\r\n", 400},
	        {"GET / http/1.1\r\n\r\n", 400},
	        {"GET / HTTP/1.12\r\n\r\n", 400},
	        {"GET / HTTP/2.0\r\n\r\n", 505},
	        {"PRI * HTTP/2.0\r\n\r\n", 505},
	        {"GET / HTTP/1.2\r\n\r\n", 505},
	        {"GET / HTTP/0.9\r\n\r\n", 505},
	        {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\n: x\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nA: \x7f\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nA\xc3: b\r\n\r\n", 400},
	        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411},
	        {"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: identity\r\n\r\n", 411},
	        {"POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", 413},
	        {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413},
	        {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
	        {"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400},
	        {"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400},
	        {"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400},
	        {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
	        {"GET / HTTP/1.1\r\nHost: x\r\n", 400},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		int status = parse(rows[i].text);
		if (status != rows[i].status)
			fail_msg("%d for %s", status, rows[i].text);
	}
	memcpy(memory, "GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24);
	assert_int_equal(http_parse_head(memory, 24, &request), 400);
}

static void field_ceiling(void **state)
{
	char text[4096] = "GET / HTTP/1.1\r\n";
	for (int i = 0; i < LIMIT_HTTP_HEADERS; i++)
		strcat(text, "A: b\r\n");
	char more[4200];
	snprintf(more, sizeof(more), "%sA: b\r\n\r\n", text);
	strcat(text, "\r\n");
	assert_int_equal(parse(text), 0);
	assert_int_equal(request.header_cnt, LIMIT_HTTP_HEADERS);
	assert_int_equal(parse(more), 431);
}

/* However the bytes arrive, the end of the head is found at the same place. */
static void finds_the_end(void **state)
{
	static const struct {
		const char *text;
		size_t want;
	} rows[] = {
	        {"GET / HTTP/1.1\r\n\r\nrest", 18},
	        {"GET /\n\nrest", 7},
	        {"GET /\r\nA: b\n\r\nrest", 14},
	        {"\r\n\r\nGET /\r\n\r\n", 13},
	        {"\n\n\n", 0},
	        {"GET /\r\n\rx\r\n", 0},
	        {"GET /\r\n", 0},
	        {"", 0},
	        {"\r\n\r\n\r\nG\r\n\r\n", 11},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		size_t len = strlen(rows[i].text), scanned = 0;
		assert_int_equal(http_head_len(rows[i].text, len, &scanned), rows[i].want);
		size_t found = 0;
		scanned = 0;
		for (size_t n = 0; n <= len && !found; n++) {
			char *exact = malloc(n ? n : 1);
			memcpy(exact, rows[i].text, n);
			found = http_head_len(exact, n, &scanned);
			free(exact);
		}
		assert_int_equal(found, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(takes_apart),
	        cmocka_unit_test(targets),
	        cmocka_unit_test(methods),
	        cmocka_unit_test(connection_rules),
	        cmocka_unit_test(refused),
	        cmocka_unit_test(field_ceiling),
	        cmocka_unit_test(finds_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
