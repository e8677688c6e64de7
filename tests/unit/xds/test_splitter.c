/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Responses cut at every place, too large, malformed, and the same parts each time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pb/codec.h"
#include "pb/xds.h"
#include "xds/splitter.h"

/* What was heard, as text. */
struct heard {
	struct buf text;
	size_t resource_bytes;
	int fail; /* returned by on_resource */
};

static int on_resource(void *ctx, const uint8_t *bytes, size_t len, struct err *err)
{
	struct heard *heard = ctx;
	(void)bytes;
	heard->resource_bytes += len;
	buf_printf(&heard->text, "r%zu ", len);
	return heard->fail ? err_set(err, heard->fail, "no") : 0;
}

static int on_oversized(void *ctx, const char *name, struct err *err)
{
	(void)err;
	buf_printf(&((struct heard *)ctx)->text, "big(%s) ", name);
	return 0;
}

static int on_text(struct heard *heard, const char *what, const char *text)
{
	buf_printf(&heard->text, "%s(%s) ", what, text);
	return 0;
}

static int on_type_url(void *ctx, const char *url, struct err *err)
{
	(void)err;
	return on_text(ctx, "url", url);
}

static int on_nonce(void *ctx, const char *nonce, struct err *err)
{
	(void)err;
	return on_text(ctx, "nonce", nonce);
}

static int on_removed(void *ctx, const char *name, struct err *err)
{
	(void)err;
	return on_text(ctx, "removed", name);
}

static const struct xds_splitter_ops OPS = {on_resource, on_oversized, on_type_url, on_nonce, on_removed};

static void field(struct buf *out, uint32_t tag, const void *p, size_t len)
{
	uint8_t head[CODEC_HEAD_MAX];
	buf_add(out, head, codec_head(tag, len, head));
	buf_add(out, p, len);
}

static void text(struct buf *out, uint32_t tag, const char *s)
{
	field(out, tag, s, strlen(s));
}

/* Feeds in steps of `step` bytes; the result of feeding and ending. */
static int feed(const struct buf *in, size_t step, struct heard *heard)
{
	struct xds_splitter s;
	struct err err = {0};
	int rc = 0;
	heard->text.max = 1 << 16;
	buf_clear(&heard->text);
	heard->resource_bytes = 0;
	xds_splitter_init(&s, &OPS, heard);
	for (size_t at = 0; rc == 0 && at < in->len; at += step)
		rc = xds_splitter_feed(&s, in->data + at, in->len - at < step ? in->len - at : step, &err);
	if (rc == 0)
		rc = xds_splitter_end(&s, &err);
	xds_splitter_reset(&s);
	assert_true(rc == 0 || err.text[0]);
	return rc;
}

static void test_parts_whatever_the_cut(void **state)
{
	struct heard heard = {0};
	struct buf in;
	uint8_t head[CODEC_HEAD_MAX];
	(void)state;
	buf_init(&in, 1 << 16);
	text(&in, 1, "version info");
	field(&in, 2, "0123456789", 10);
	field(&in, 2, "", 0);
	buf_add(&in, head, codec_varint(9, 300, head));
	buf_add(&in,
	        "\x55"
	        "1234",
	        5); /* field 10, fixed32 */
	buf_add(&in,
	        "\x59"
	        "12345678",
	        9); /* field 11, fixed64 */
	field(&in, 12, "", 0);
	text(&in, 4, "type");
	text(&in, 5, "");
	text(&in, 6, "gone");
	field(&in, 2, "abc", 3);
	for (size_t step = 1; step <= in.len; step++) {
		assert_int_equal(feed(&in, step, &heard), 0);
		assert_string_equal(buf_cstr(&heard.text), "r10 r0 url(type) nonce() removed(gone) r3 ");
	}
	buf_done(&heard.text);
	buf_done(&in);
}

static void test_cut_short(void **state)
{
	struct heard heard = {0};
	struct buf in;
	(void)state;
	buf_init(&in, 1 << 16);
	field(&in, 2, "0123456789", 10);
	text(&in, 4, "a type that is long enough");
	size_t whole = in.len;
	for (in.len = 1; in.len < whole; in.len++) {
		int rc = feed(&in, 3, &heard);
		assert_int_equal(rc, in.len == 12 ? 0 : ERR_TRUNCATED);
	}
	buf_done(&heard.text);
	buf_done(&in);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} ROWS[] = {{"\x00", 1}, {"\x13", 1}, {"\x14", 1}, {"\x10\x01", 2},
	        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11}, {"\x22\x01\xff", 3},
	        {"\x2a\x01\x00", 3}, {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
	        {"\x22\x81\x20", 3}};
	struct heard heard = {0};
	(void)state;
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
		struct buf in;
		buf_init(&in, 64);
		buf_add(&in, ROWS[i].bytes, ROWS[i].len);
		for (size_t step = 1; step < 4; step++)
			assert_true(feed(&in, step, &heard) < 0);
		buf_done(&in);
	}
	buf_done(&heard.text);
}

/* A resource above the ceiling is skipped by itself, with its name where that shows. */
static void test_oversized(void **state)
{
	static const size_t STEPS[] = {1000, 4096, 65536, 16u << 20};
	struct heard heard = {0};
	struct buf in, res;
	uint8_t *filler = mem_zalloc(1, XDS_RESOURCE_MAX);
	(void)state;
	assert_non_null(filler);
	for (int named = 0; named < 2; named++) {
		buf_init(&in, 16u << 20);
		buf_init(&res, 16u << 20);
		text(&res, 1, "version");
		field(&res, 2, filler, XDS_RESOURCE_MAX);
		if (named)
			text(&res, 3, "huge");
		field(&in, 2, "abc", 3);
		field(&in, 2, res.data, res.len);
		field(&in, 2, "abcd", 4);
		text(&in, 4, "type");
		for (size_t i = 0; i < sizeof(STEPS) / sizeof(STEPS[0]); i++) {
			assert_int_equal(feed(&in, STEPS[i], &heard), 0);
			assert_string_equal(buf_cstr(&heard.text),
			        named ? "r3 big(huge) r4 url(type) " : "r3 big() r4 url(type) ");
		}
		buf_done(&in);
		buf_done(&res);
	}
	/* One whose inside runs over its own end. */
	buf_init(&in, 16u << 20);
	buf_init(&res, 16u << 20);
	field(&res, 2, filler, XDS_RESOURCE_MAX);
	buf_add(&res,
	        "\x1a\x05"
	        "ab",
	        4);
	field(&in, 2, res.data, res.len);
	field(&in, 2, "abcdefgh", 8);
	assert_int_equal(feed(&in, 5000, &heard), ERR_PROTOCOL);
	buf_done(&in);
	buf_done(&res);
	mem_free(filler);
	buf_done(&heard.text);
}

static void test_a_failure_stops(void **state)
{
	struct heard heard = {.fail = -ENOMEM};
	struct buf in;
	(void)state;
	buf_init(&in, 64);
	field(&in, 2, "abc", 3);
	field(&in, 2, "abc", 3);
	assert_int_equal(feed(&in, 2, &heard), -ENOMEM);
	assert_string_equal(buf_cstr(&heard.text), "r3 ");
	buf_done(&heard.text);
	buf_done(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_parts_whatever_the_cut),
	        cmocka_unit_test(test_cut_short),
	        cmocka_unit_test(test_malformed),
	        cmocka_unit_test(test_oversized),
	        cmocka_unit_test(test_a_failure_stops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
