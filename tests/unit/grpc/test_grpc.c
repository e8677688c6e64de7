/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gRPC without streams: message framing in every cut, statuses out of
 * trailers, HTTP statuses and resets, percent coding, timeouts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "grpc/frame.h"
#include "grpc/text.h"

/* --- framing --------------------------------------------------------------- */

/* Reads `len` bytes cut into pieces of `step`; writes "[n]" for a message of n bytes, then its bytes, "." at
 * its end. */
static int read_all(struct grpc_reader *reader, const uint8_t *bytes, size_t len, size_t step, char *out,
        struct grpc_status *status)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < len; i += step) {
		const uint8_t *at = bytes + i;
		size_t left = len - i < step ? len - i : step;
		struct grpc_piece piece;
		int r;

		while ((r = grpc_reader_next(reader, &at, &left, &piece, status)) > 0) {
			if (piece.is_begin)
				used += (size_t)sprintf(out + used, "[%zu]", piece.len);
			else
				used += (size_t)sprintf(out + used, "%.*s%s", (int)piece.len,
				        piece.len ? (const char *)piece.bytes : "", piece.is_last ? "." : "");
		}
		if (r < 0)
			return r;
		assert_int_equal(left, 0);
	}
	return 0;
}

static const uint8_t three[] = "\0\0\0\0\5hello\0\0\0\0\0\0\0\0\0\1x";

static void messages_arrive_however_cut(void **state)
{
	for (size_t step = 1; step < sizeof(three); step++) {
		struct grpc_reader reader;
		struct grpc_status status;
		char out[128];

		grpc_reader_init(&reader, 5);
		assert_int_equal(read_all(&reader, three, sizeof(three) - 1, step, out, &status), 0);
		assert_string_equal(out, "[5]hello.[0].[1]x.");
		assert_true(grpc_reader_is_between(&reader));
	}
}

static void an_end_inside_a_message_is_seen(void **state)
{
	for (size_t len = 1; len < 10; len++) {
		struct grpc_reader reader;
		struct grpc_status status;
		char out[128];

		grpc_reader_init(&reader, 5);
		assert_int_equal(read_all(&reader, three, len, 3, out, &status), 0);
		assert_false(grpc_reader_is_between(&reader));
	}
}

static void bad_heads_end_the_stream(void **state)
{
	static const struct {
		const char *bytes;
		enum grpc_code code;
		const char *word;
	} cases[] = {
	        {"\1\0\0\0\1x", GRPC_INTERNAL, "compressed-flag"},
	        {"\2\0\0\0\1x", GRPC_INTERNAL, "flag: 2"},
	        {"\0\0\0\0\6x", GRPC_RESOURCE_EXHAUSTED, "found 6 bytes, the limit is: 5"},
	        {"\0\377\377\377\377", GRPC_RESOURCE_EXHAUSTED, "4294967295"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct grpc_reader reader;
		struct grpc_status status;
		char out[128];

		grpc_reader_init(&reader, 5);
		assert_int_equal(
		        read_all(&reader, (const uint8_t *)cases[i].bytes, 5, 2, out, &status), -EPROTO);
		assert_int_equal(status.code, cases[i].code);
		assert_non_null(strstr(status.message, cases[i].word));
		assert_false(grpc_reader_is_between(&reader));
		assert_int_equal(read_all(&reader, three, 5, 5, out, &status), -EPROTO);
	}
}

static void heads_are_written_as_they_are_read(void **state)
{
	uint8_t head[GRPC_HEAD_LEN];

	grpc_head_write(0x01020304, head);
	assert_memory_equal(head, "\0\1\2\3\4", GRPC_HEAD_LEN);
}

/* --- status ---------------------------------------------------------------- */

static void statuses_come_from_trailers(void **state)
{
	struct grpc_status status;

	grpc_status_parse("0", NULL, &status);
	assert_int_equal(status.code, GRPC_OK);
	assert_string_equal(status.message, "");
	grpc_status_parse("14", "no%20way%3a %E2%82%AC", &status);
	assert_int_equal(status.code, GRPC_UNAVAILABLE);
	assert_string_equal(status.message, "no way: \xe2\x82\xac");
	grpc_status_parse("17", "x", &status);
	assert_int_equal(status.code, GRPC_UNKNOWN);
	grpc_status_parse("", "x", &status);
	assert_int_equal(status.code, GRPC_UNKNOWN);
	grpc_status_parse(NULL, NULL, &status);
	assert_int_equal(status.code, GRPC_UNKNOWN);
	/* What is no UTF-8 does not reach a log. */
	grpc_status_parse("2", "%FFa%00b%zz%4", &status);
	assert_string_equal(status.message, "?a?b%zz%4");
}

static void long_messages_are_cut_at_a_character(void **state)
{
	char text[2 * GRPC_MESSAGE_MAX + 1];
	struct grpc_status status;

	for (size_t i = 0; i + 1 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[sizeof(text) - 1] = '\0';
	grpc_status_set(&status, GRPC_INTERNAL, "%s", text);
	assert_int_equal(strlen(status.message), GRPC_MESSAGE_MAX - 2);
	assert_memory_equal(status.message + GRPC_MESSAGE_MAX - 4, "\xc3\xa4", 3);
	grpc_status_parse("13", text, &status);
	assert_in_range(strlen(status.message), GRPC_MESSAGE_MAX - 4, GRPC_MESSAGE_MAX - 1);
	assert_int_equal(strlen(status.message) % 2, 0);
}

static void codes_have_names_and_words(void **state)
{
	assert_string_equal(grpc_code_name(GRPC_UNAVAILABLE), "Unavailable");
	assert_string_equal(grpc_code_text(GRPC_UNAVAILABLE), "The service is currently unavailable");
	assert_string_equal(grpc_code_text(GRPC_PERMISSION_DENIED),
	        "The caller does not have permission to execute the specified operation");
	assert_string_equal(grpc_code_text(GRPC_UNAUTHENTICATED),
	        "The request does not have valid authentication credentials");
	assert_string_equal(grpc_code_text(GRPC_UNKNOWN), "Unknown error");
	for (int i = 0; i <= GRPC_UNAUTHENTICATED; i++)
		assert_true(grpc_code_name((enum grpc_code)i)[0] && grpc_code_text((enum grpc_code)i)[0]);
	assert_string_equal(grpc_code_name((enum grpc_code)99), "Unknown");
}

static void other_endings_become_codes(void **state)
{
	assert_int_equal(grpc_code_from_http(400), GRPC_INTERNAL);
	assert_int_equal(grpc_code_from_http(401), GRPC_UNAUTHENTICATED);
	assert_int_equal(grpc_code_from_http(403), GRPC_PERMISSION_DENIED);
	assert_int_equal(grpc_code_from_http(404), GRPC_UNIMPLEMENTED);
	assert_int_equal(grpc_code_from_http(503), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_code_from_http(418), GRPC_UNKNOWN);
	assert_int_equal(grpc_code_from_reset(0x7), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_code_from_reset(0x8), GRPC_CANCELLED);
	assert_int_equal(grpc_code_from_reset(0xb), GRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(grpc_code_from_reset(0x1), GRPC_INTERNAL);
	assert_int_equal(grpc_code_from_reset(0x1234), GRPC_UNKNOWN);
}

/* --- texts ------------------------------------------------------------------ */

static void trailers_survive_the_way(void **state)
{
	struct grpc_trailers trailers;
	struct grpc_status sent;
	struct grpc_status status;

	grpc_status_set(&sent, GRPC_ABORTED, "50%% of \xe2\x82\xac\n");
	grpc_trailers_make(&sent, &trailers);
	assert_string_equal(trailers.code, "10");
	assert_string_equal(trailers.message, "50%25 of %E2%82%AC%0A");
	grpc_status_parse(trailers.code, trailers.message, &status);
	assert_int_equal(status.code, GRPC_ABORTED);
	assert_string_equal(status.message, sent.message);
}

static void encoding_never_cuts_an_escape(void **state)
{
	char out[8];

	assert_int_equal(grpc_message_encode("a%%%", out, 7), 4);
	assert_string_equal(out, "a%25");
}

static void timeouts_are_parsed_and_printed(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {{"1S", 1000}, {"500m", 500}, {"1n", 1}, {"1500u", 2}, {"2M", 120000}, {"1H", 3600000},
	        {"99999999m", 99999999}, {"0m", 0}};
	static const char *const bad[] = {"", "S", "10", "-1S", "1s", "123456789m", "1 S", "1.5S"};
	char text[GRPC_TIMEOUT_STR_MAX];
	uint64_t ms;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(grpc_timeout_parse(good[i].text, &ms), 0);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(grpc_timeout_parse(bad[i], &ms), -EINVAL);
	grpc_timeout_format(10000, text);
	assert_string_equal(text, "10000m");
	grpc_timeout_format(100000001, text);
	assert_string_equal(text, "100001S");
	grpc_timeout_format(UINT64_MAX - 1, text);
	assert_string_equal(text, "99999999H");
}

static void requests_are_judged(void **state)
{
	struct grpc_request_head head = {
	        .method = "POST", .path = "/a/b", .content_type = "application/grpc+proto"};
	struct grpc_status status;
	uint64_t ms = 0;

	assert_int_equal(grpc_request_check(&head, &ms, &status), 0);
	assert_true(ms == GRPC_NO_TIMEOUT);
	head.timeout = "2S";
	assert_int_equal(grpc_request_check(&head, &ms, &status), 0);
	assert_int_equal(ms, 2000);
	head.timeout = "soon";
	assert_int_equal(grpc_request_check(&head, &ms, &status), -EINVAL);
	assert_int_equal(status.code, GRPC_INTERNAL);
	head.encoding = "gzip";
	assert_int_equal(grpc_request_check(&head, &ms, &status), -EINVAL);
	assert_int_equal(status.code, GRPC_UNIMPLEMENTED);
	head.content_type = "application/grpcweb";
	assert_int_equal(grpc_request_check(&head, &ms, &status), 415);
	head.content_type = NULL;
	assert_int_equal(grpc_request_check(&head, &ms, &status), 415);
	head.method = "GET";
	assert_int_equal(grpc_request_check(&head, &ms, &status), 405);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        cmocka_unit_test(messages_arrive_however_cut),
	        cmocka_unit_test(an_end_inside_a_message_is_seen),
	        cmocka_unit_test(bad_heads_end_the_stream),
	        cmocka_unit_test(heads_are_written_as_they_are_read),
	        cmocka_unit_test(statuses_come_from_trailers),
	        cmocka_unit_test(long_messages_are_cut_at_a_character),
	        cmocka_unit_test(codes_have_names_and_words),
	        cmocka_unit_test(other_endings_become_codes),
	        cmocka_unit_test(trailers_survive_the_way),
	        cmocka_unit_test(encoding_never_cuts_an_escape),
	        cmocka_unit_test(timeouts_are_parsed_and_printed),
	        cmocka_unit_test(requests_are_judged),
	};

	return cmocka_run_group_tests_name("grpc", tests, NULL, NULL);
}
