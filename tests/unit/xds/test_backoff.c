/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Delays between attempts, row by row of reference control.md 4.9, and that nothing spins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "xds/backoff.h"

static enum xds_reason next(struct xds_backoff *b, enum xds_stage stage, enum grpc_code code,
        const char *text, uint64_t lived, uint64_t *ret_delay)
{
	struct grpc_status status = {.code = code};
	snprintf(status.message, sizeof(status.message), "%s", text);
	return xds_backoff_next(b, stage, &status, lived, ret_delay);
}

static void test_connection_errors_double(void **state)
{
	struct xds_backoff b;
	uint64_t delay, want = 20;
	(void)state;
	xds_backoff_init(&b);
	for (int i = 0; i < 20; i++, want = want * 2 < 15000 ? want * 2 : 15000) {
		assert_int_equal(
		        next(&b, XDS_AT_CONNECT, GRPC_UNAVAILABLE, "", 0, &delay), XDS_CONNECTION_ERROR);
		assert_int_equal(delay, want);
	}
	/* A trailers-only refusal is one too, whatever its code. */
	assert_int_equal(next(&b, XDS_AT_CONNECT, GRPC_UNAUTHENTICATED, "", 0, &delay), XDS_CONNECTION_ERROR);
}

static void test_stream_errors_double_and_usual_ends_reset(void **state)
{
	struct xds_backoff b;
	uint64_t delay;
	(void)state;
	xds_backoff_init(&b);
	assert_int_equal(next(&b, XDS_AT_STREAM, GRPC_INTERNAL, "", 100000, &delay), XDS_ERROR);
	assert_int_equal(delay, 20);
	assert_int_equal(next(&b, XDS_AT_STREAM, GRPC_UNAVAILABLE, "no", 100000, &delay), XDS_ERROR);
	assert_int_equal(delay, 40);
	static const struct {
		enum grpc_code code;
		const char *text;
	} USUAL[] = {{GRPC_UNKNOWN, ""}, {GRPC_CANCELLED, ""}, {GRPC_DEADLINE_EXCEEDED, ""},
	        {GRPC_UNAVAILABLE, "transport is closing"}, {GRPC_UNAVAILABLE, "x received prior goaway y"}};
	for (size_t i = 0; i < sizeof(USUAL) / sizeof(USUAL[0]); i++) {
		assert_int_equal(
		        next(&b, XDS_AT_STREAM, USUAL[i].code, USUAL[i].text, 100000, &delay), XDS_RECONNECT);
		assert_int_equal(delay, 10);
	}
	assert_int_equal(next(&b, XDS_AT_STREAM, GRPC_INTERNAL, "", 100000, &delay), XDS_ERROR);
	assert_int_equal(delay, 20);
	assert_int_equal(next(&b, XDS_AT_STREAM, GRPC_OK, "", 100000, &delay), XDS_COMPLETE);
	assert_int_equal(delay, 10);
}

static void test_nothing_spins(void **state)
{
	static const struct {
		enum xds_stage stage;
		enum grpc_code code;
		enum xds_reason reason;
	} ROWS[] = {{XDS_AT_CONFIG, GRPC_INTERNAL, XDS_ERROR}, {XDS_AT_STREAM, GRPC_OK, XDS_COMPLETE},
	        {XDS_AT_STREAM, GRPC_UNKNOWN, XDS_RECONNECT}};
	(void)state;
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
		struct xds_backoff b;
		uint64_t delay = 0, want = 10, attempts = 0;
		xds_backoff_init(&b);
		for (uint64_t at = 0; at < 60000; at += delay, attempts++) {
			assert_int_equal(
			        next(&b, ROWS[i].stage, ROWS[i].code, "", 1, &delay), ROWS[i].reason);
			assert_int_equal(delay, want);
			want = want * 2 < 15000 ? want * 2 : 15000;
		}
		assert_true(attempts < 16);
		/* A stream that held makes the next end a short one again. */
		next(&b, XDS_AT_STREAM, GRPC_OK, "", XDS_BACKOFF_GOOD_MS, &delay);
		assert_int_equal(delay, 10);
	}
}

static void test_labels(void **state)
{
	(void)state;
	assert_string_equal(xds_reason_label(XDS_CONNECTION_ERROR), "ConnectionError");
	assert_string_equal(xds_reason_label(XDS_ERROR), "Error");
	assert_string_equal(xds_reason_label(XDS_RECONNECT), "Reconnect");
	assert_string_equal(xds_reason_label(XDS_COMPLETE), "Complete");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_connection_errors_double),
	        cmocka_unit_test(test_stream_errors_double_and_usual_ends_reset),
	        cmocka_unit_test(test_nothing_spins),
	        cmocka_unit_test(test_labels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
