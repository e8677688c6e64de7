/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON text to google.protobuf.Value, for ISTIO_METAJSON_* (RFC 8259). The
 * only JSON that the broker reads, and it comes from our own environment.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "pb/codec.h"
#include "pb/xds.h"

/* Deepest nesting of a value; metadata is flat or nearly so. */
#define DEPTH_MAX 32

/* Fields of Value, and of Struct, its entries and ListValue. */
enum {
	VALUE_NULL = 1,
	VALUE_NUMBER = 2,
	VALUE_STRING = 3,
	VALUE_BOOL = 4,
	VALUE_STRUCT = 5,
	VALUE_LIST = 6,
	STRUCT_FIELDS = 1,
	LIST_VALUES = 1,
	ENTRY_KEY = 1,
	ENTRY_VALUE = 2,
};

/* The text that is left. */
struct text {
	const char *p;
	const char *end;
	unsigned depth;
	struct err *err;
};

static int read_value(struct text *t, struct buf *out);

static int wrong(struct text *t, const char *what)
{
	return err_set(t->err, -EINVAL, "%s", what);
}

static void blanks(struct text *t)
{
	while (t->p < t->end && strchr(" \t\r\n", *t->p) && *t->p)
		t->p++;
}

/* Steps over c after blanks, if it is next. */
static bool next_is(struct text *t, char c)
{
	blanks(t);
	if (t->p == t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

static bool word(struct text *t, const char *w)
{
	size_t len = strlen(w);
	if ((size_t)(t->end - t->p) < len || memcmp(t->p, w, len) != 0)
		return false;
	t->p += len;
	return true;
}

static void put(struct buf *out, uint32_t tag, const struct buf *inner)
{
	uint8_t head[CODEC_HEAD_MAX];
	if (inner->err)
		out->err = inner->err;
	buf_add(out, head, codec_head(tag, inner->len, head));
	buf_add(out, inner->data, inner->len);
}

static int hex4(struct text *t, uint32_t *ret_v)
{
	uint32_t v = 0;
	if (t->end - t->p < 4)
		return wrong(t, "string ends in the middle of an escape");
	for (int i = 0; i < 4; i++) {
		char c = *t->p++;
		if (c >= '0' && c <= '9')
			v = v << 4 | (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v << 4 | (uint32_t)((c | 32) - 'a' + 10);
		else
			return wrong(t, "invalid escape in a string");
	}
	*ret_v = v;
	return 0;
}

static void add_char(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_add_u8(out, (uint8_t)c);
		return;
	}
	if (c < 0x800) {
		buf_add_u8(out, (uint8_t)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			buf_add_u8(out, (uint8_t)(0xe0 | c >> 12));
		} else {
			buf_add_u8(out, (uint8_t)(0xf0 | c >> 18));
			buf_add_u8(out, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_add_u8(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
	}
	buf_add_u8(out, (uint8_t)(0x80 | (c & 0x3f)));
}

static int read_unicode(struct text *t, struct buf *out)
{
	uint32_t c, low;
	int rc = hex4(t, &c);
	if (rc == 0 && c >= 0xd800 && c < 0xdc00) {
		rc = word(t, "\\u") ? hex4(t, &low) : wrong(t, "lone surrogate in a string");
		if (rc == 0 && (low < 0xdc00 || low > 0xdfff))
			rc = wrong(t, "lone surrogate in a string");
		if (rc == 0)
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if (rc == 0 && c >= 0xdc00 && c < 0xe000) {
		rc = wrong(t, "lone surrogate in a string");
	}
	if (rc == 0)
		add_char(out, c);
	return rc;
}

static int read_escape(struct text *t, struct buf *out)
{
	static const char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
	if (t->p == t->end)
		return wrong(t, "string without end");
	char c = *t->p++;
	if (c == 'u')
		return read_unicode(t, out);
	const char *at = c ? strchr(FROM, c) : NULL;
	if (!at)
		return wrong(t, "invalid escape in a string");
	buf_add_u8(out, (uint8_t)TO[at - FROM]);
	return 0;
}

/* The inside of a string whose opening quote has been read. */
static int read_string(struct text *t, struct buf *out)
{
	while (t->p < t->end) {
		unsigned char c = (unsigned char)*t->p++;
		if (c == '"')
			return 0;
		if (c < 0x20)
			return wrong(t, "control character in a string");
		if (c != '\\') {
			buf_add_u8(out, c);
			continue;
		}
		int rc = read_escape(t, out);
		if (rc < 0)
			return rc;
	}
	return wrong(t, "string without end");
}

static size_t digits(struct text *t)
{
	const char *from = t->p;
	while (t->p < t->end && *t->p >= '0' && *t->p <= '9')
		t->p++;
	return (size_t)(t->p - from);
}

static int read_number(struct text *t, struct buf *out)
{
	const char *from = t->p;
	char copy[64];
	bool ok = true;
	word(t, "-");
	if (!word(t, "0"))
		ok = digits(t) > 0;
	if (ok && word(t, "."))
		ok = digits(t) > 0;
	if (ok && (word(t, "e") || word(t, "E"))) {
		if (!word(t, "+"))
			word(t, "-");
		ok = digits(t) > 0;
	}
	size_t len = (size_t)(t->p - from);
	if (!ok || len >= sizeof(copy))
		return wrong(t, "expected a value");
	memcpy(copy, from, len);
	copy[len] = 0;
	double v = strtod(copy, NULL);
	uint64_t bits;
	memcpy(&bits, &v, sizeof(bits));
	buf_add_u8(out, VALUE_NUMBER << 3 | 1);
	for (int i = 0; i < 8; i++)
		buf_add_u8(out, (uint8_t)(bits >> (8 * i)));
	return 0;
}

static int read_member(struct text *t, struct buf *out)
{
	struct buf entry, key, value;
	buf_init(&entry, out->max);
	buf_init(&key, out->max);
	buf_init(&value, out->max);
	int rc = next_is(t, '"') ? read_string(t, &key) : wrong(t, "expected a key");
	if (rc == 0 && !next_is(t, ':'))
		rc = wrong(t, "expected ':'");
	if (rc == 0)
		rc = read_value(t, &value);
	if (rc == 0) {
		put(&entry, ENTRY_KEY, &key);
		put(&entry, ENTRY_VALUE, &value);
		put(out, STRUCT_FIELDS, &entry);
	}
	buf_done(&entry);
	buf_done(&key);
	buf_done(&value);
	return rc;
}

static int read_element(struct text *t, struct buf *out)
{
	struct buf value;
	buf_init(&value, out->max);
	int rc = read_value(t, &value);
	if (rc == 0)
		put(out, LIST_VALUES, &value);
	buf_done(&value);
	return rc;
}

/* What stands between a pair of brackets, the opening one read. */
static int read_inside(struct text *t, struct buf *out, uint32_t tag, char end,
        int (*read_one)(struct text *t, struct buf *out))
{
	struct buf inner;
	int rc = 0;
	if (++t->depth > DEPTH_MAX)
		return wrong(t, "too deeply nested");
	buf_init(&inner, out->max);
	if (!next_is(t, end)) {
		do
			rc = read_one(t, &inner);
		while (rc == 0 && next_is(t, ','));
		if (rc == 0 && !next_is(t, end))
			rc = wrong(t, "expected ',' or a closing bracket");
	}
	if (rc == 0)
		put(out, tag, &inner);
	buf_done(&inner);
	t->depth--;
	return rc;
}

static int read_value(struct text *t, struct buf *out)
{
	uint8_t field[CODEC_HEAD_MAX];
	struct buf string;
	if (next_is(t, '{'))
		return read_inside(t, out, VALUE_STRUCT, '}', read_member);
	if (next_is(t, '['))
		return read_inside(t, out, VALUE_LIST, ']', read_element);
	if (next_is(t, '"')) {
		buf_init(&string, out->max);
		int rc = read_string(t, &string);
		if (rc == 0)
			put(out, VALUE_STRING, &string);
		buf_done(&string);
		return rc;
	}
	if (word(t, "null"))
		return buf_add(out, field, codec_varint(VALUE_NULL, 0, field));
	bool yes = word(t, "true");
	if (yes || word(t, "false"))
		return buf_add(out, field, codec_varint(VALUE_BOOL, yes, field));
	return read_number(t, out);
}

int xds_json_write(struct buf *out, const char *text, size_t len, struct err *err)
{
	struct text t = {.p = text, .end = text + len, .err = err};
	if (!utf8_valid(text, len))
		return err_set(err, -EINVAL, "not valid UTF-8");
	int rc = read_value(&t, out);
	blanks(&t);
	if (rc == 0 && t.p != t.end)
		rc = wrong(&t, "trailing characters");
	return rc < 0 ? rc : out->err;
}
