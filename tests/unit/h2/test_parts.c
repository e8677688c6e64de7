/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The small parts that need no session: header lists, codes, buckets, windows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "h2/bucket.h"
#include "h2/session.h"
#include "h2/window.h"

static void headers_keep_order(void **state)
{
	struct h2_headers headers;
	struct h2_headers_it it = {0};

	h2_headers_init(&headers, 1000);
	assert_int_equal(h2_headers_add(&headers, "baggage", 7, "a=1", 3), 0);
	assert_int_equal(h2_headers_add(&headers, "forwarded", 9, "", 0), 0);
	assert_int_equal(h2_headers_add(&headers, "baggage", 7, "b=2", 3), 0);
	assert_int_equal(headers.count, 3);
	assert_string_equal(h2_headers_get(&headers, "forwarded"), "");
	assert_null(h2_headers_get(&headers, "bag"));
	assert_true(h2_headers_next(&headers, "baggage", &it));
	assert_string_equal(it.value, "a=1");
	assert_true(h2_headers_next(&headers, "baggage", &it));
	assert_string_equal(it.value, "b=2");
	assert_int_equal(it.value_len, 3);
	assert_false(h2_headers_next(&headers, "baggage", &it));
	memset(&it, 0, sizeof(it));
	for (int i = 0; i < 3; i++)
		assert_true(h2_headers_next(&headers, NULL, &it));
	assert_false(h2_headers_next(&headers, NULL, &it));
	h2_headers_done(&headers);
	assert_null(h2_headers_get(&headers, "baggage"));
}

static void headers_ceiling(void **state)
{
	struct h2_headers headers;
	char big[2000];

	memset(big, 'x', sizeof(big));
	h2_headers_init(&headers, 1000);
	assert_int_equal(h2_headers_add(&headers, "n", 1, big, 998), -E2BIG);
	assert_int_equal(h2_headers_add(&headers, "n", 1, big, 2000), -E2BIG);
	assert_int_equal(h2_headers_add(&headers, big, 2000, "", 0), -E2BIG);
	assert_int_equal(headers.len, 0);
	assert_int_equal(h2_headers_add(&headers, "n", 1, big, 997), 0);
	assert_int_equal(headers.len, 1000);
	assert_int_equal(h2_headers_add(&headers, "", 0, "", 0), -E2BIG);
	assert_int_equal(strlen(h2_headers_get(&headers, "n")), 997);
	h2_headers_done(&headers);
}

static void codes_mean(void **state)
{
	static const struct {
		struct h2_reset reset;
		int read, write, shutdown;
	} rows[] = {
	        {{.code = H2_NO_ERROR}, 0, -EPIPE, 0},
	        {{.code = H2_CANCEL}, 0, -EPIPE, -EPIPE},
	        {{.code = H2_STREAM_CLOSED}, -EPIPE, -EPIPE, -EPIPE},
	        {{.code = H2_REFUSED_STREAM}, -EPROTO, -EPROTO, -EPROTO},
	        {{.code = H2_INTERNAL_ERROR}, -EPROTO, -EPROTO, -EPROTO},
	        {{.code = H2_NO_ERROR, .transport_err = -ECONNRESET}, -ECONNRESET, -ECONNRESET, -ECONNRESET},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(h2_reset_read_error(&rows[i].reset), rows[i].read);
		assert_int_equal(h2_reset_write_error(&rows[i].reset), rows[i].write);
		assert_int_equal(h2_reset_shutdown_error(&rows[i].reset), rows[i].shutdown);
	}
	assert_string_equal(h2_code_name(H2_ENHANCE_YOUR_CALM), "ENHANCE_YOUR_CALM");
	assert_string_equal(h2_code_name(H2_HTTP_1_1_REQUIRED), "HTTP_1_1_REQUIRED");
	assert_string_equal(h2_code_name(14), "UNKNOWN");
	assert_string_equal(h2_code_name(UINT32_MAX), "UNKNOWN");
}

static void bucket_refills(void **state)
{
	struct h2_bucket bucket;

	h2_bucket_init(&bucket, 3, 10, 500);
	for (int i = 0; i < 3; i++)
		assert_true(h2_bucket_take(&bucket, 500));
	assert_false(h2_bucket_take(&bucket, 500));
	assert_false(h2_bucket_take(&bucket, 599));
	assert_true(h2_bucket_take(&bucket, 600));
	assert_false(h2_bucket_take(&bucket, 600));
	/* A clock that goes back gives nothing. */
	assert_false(h2_bucket_take(&bucket, 100));
	/* However long it waits, it holds no more than the burst. */
	for (int i = 0; i < 3; i++)
		assert_true(h2_bucket_take(&bucket, UINT64_MAX - 1));
	assert_false(h2_bucket_take(&bucket, UINT64_MAX - 1));
}

static void bucket_without_refill(void **state)
{
	struct h2_bucket bucket;

	h2_bucket_init(&bucket, 1, 0, 0);
	assert_true(h2_bucket_take(&bucket, 0));
	assert_false(h2_bucket_take(&bucket, 1000000));
}

static void window_grows_when_emptied_quickly(void **state)
{
	struct h2_window w;

	h2_window_init(&w, 1000, 4000, 0);
	assert_int_equal(h2_window_used(&w, 1999, 10), H2_WINDOW_KEEP);
	assert_int_equal(h2_window_used(&w, 1, WINDOW_GROW_MS), H2_WINDOW_GROW);
	assert_int_equal(h2_window_grown(&w, UINT32_MAX), 2000);
	assert_int_equal(h2_window_grown(&w, 1500), 1500);
	assert_int_equal(h2_window_grown(&w, 500), 1000);
	w.size = 3000;
	assert_int_equal(h2_window_grown(&w, UINT32_MAX), 4000);
	w.size = 4000;
	assert_int_equal(h2_window_grown(&w, UINT32_MAX), 4000);
}

static void window_keeps_at_medium_rate(void **state)
{
	struct h2_window w;

	h2_window_init(&w, 1000, 4000, 0);
	assert_int_equal(h2_window_used(&w, 2000, WINDOW_GROW_MS + 1), H2_WINDOW_KEEP);
	/* The measurement began anew. */
	assert_int_equal(h2_window_used(&w, 2000, 2 * WINDOW_GROW_MS + 1), H2_WINDOW_GROW);
}

static void window_shrinks_when_idle(void **state)
{
	struct h2_window w;

	h2_window_init(&w, 1000, 8000, 0);
	w.size = 8000;
	assert_int_equal(h2_window_used(&w, 1, WINDOW_SHRINK_MS - 1), H2_WINDOW_KEEP);
	assert_int_equal(h2_window_used(&w, 1, WINDOW_SHRINK_MS), H2_WINDOW_SHRINK);
	assert_int_equal(h2_window_shrunk(&w), 4000);
	w.size = 1500;
	assert_int_equal(h2_window_shrunk(&w), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(headers_keep_order),
	        cmocka_unit_test(headers_ceiling),
	        cmocka_unit_test(codes_mean),
	        cmocka_unit_test(bucket_refills),
	        cmocka_unit_test(bucket_without_refill),
	        cmocka_unit_test(window_grows_when_emptied_quickly),
	        cmocka_unit_test(window_keeps_at_medium_rate),
	        cmocka_unit_test(window_shrinks_when_idle),
	};
	return cmocka_run_group_tests_name("h2 parts", tests, NULL, NULL);
}
