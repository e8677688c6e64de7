/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON text in serde_json's layout and escapes. What is written is the caller's business. */
#include "base/json.h"

#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "base/utf8.h"

void json_init(struct json *json, struct buf *out, bool pretty)
{
	*json = (struct json){.out = out, .pretty = pretty};
}

static void newline(struct json *json)
{
	char text[1 + 2 * JSON_DEPTH_MAX];
	size_t len = 1 + 2 * (size_t)json->depth;
	text[0] = '\n';
	memset(text + 1, ' ', len - 1);
	buf_add(json->out, text, len);
}

/* Comma and indent before an element of the open container. */
static void separate(struct json *json)
{
	if (json->after_key) {
		json->after_key = false;
		return;
	}
	if (json->depth == 0)
		return;
	uint32_t bit = 1u << (json->depth - 1);
	if (json->filled & bit)
		buf_add_u8(json->out, ',');
	json->filled |= bit;
	if (json->pretty)
		newline(json);
}

static void open_container(struct json *json, char c)
{
	separate(json);
	ASSERT(json->depth < JSON_DEPTH_MAX);
	json->filled &= ~(1u << json->depth);
	json->depth++;
	buf_add_u8(json->out, (uint8_t)c);
}

static void close_container(struct json *json, char c)
{
	ASSERT(json->depth > 0 && !json->after_key);
	json->depth--;
	if (json->pretty && json->filled & 1u << json->depth)
		newline(json);
	buf_add_u8(json->out, (uint8_t)c);
}

void json_obj(struct json *json)
{
	open_container(json, '{');
}

void json_obj_end(struct json *json)
{
	close_container(json, '}');
}

void json_arr(struct json *json)
{
	open_container(json, '[');
}

void json_arr_end(struct json *json)
{
	close_container(json, ']');
}

static void put_string(struct json *json, const char *s, size_t len)
{
	buf_add_u8(json->out, '"');
	json_escape(json->out, s, len);
	buf_add_u8(json->out, '"');
}

void json_key(struct json *json, const char *key)
{
	ASSERT(json->depth > 0 && !json->after_key);
	separate(json);
	put_string(json, key, strlen(key));
	buf_add_u8(json->out, ':');
	if (json->pretty)
		buf_add_u8(json->out, ' ');
	json->after_key = true;
}

void json_str(struct json *json, const char *s)
{
	if (s)
		json_strn(json, s, strlen(s));
	else
		json_null(json);
}

void json_strn(struct json *json, const char *s, size_t len)
{
	separate(json);
	put_string(json, s, len);
}

void json_u64(struct json *json, uint64_t v)
{
	char text[NUM_STR_MAX];
	json_raw(json, text, num_format(v, text));
}

void json_i64(struct json *json, int64_t v)
{
	char text[NUM_STR_MAX + 1] = "-";
	if (v >= 0)
		json_u64(json, (uint64_t)v);
	else
		json_raw(json, text, 1 + num_format(-(uint64_t)v, text + 1));
}

void json_bool(struct json *json, bool v)
{
	json_raw(json, v ? "true" : "false", v ? 4 : 5);
}

void json_null(struct json *json)
{
	json_raw(json, "null", 4);
}

void json_raw(struct json *json, const char *text, size_t len)
{
	separate(json);
	buf_add(json->out, text, len);
}

void json_kv_str(struct json *json, const char *key, const char *s)
{
	json_key(json, key);
	json_str(json, s);
}

void json_kv_u64(struct json *json, const char *key, uint64_t v)
{
	json_key(json, key);
	json_u64(json, v);
}

void json_kv_bool(struct json *json, const char *key, bool v)
{
	json_key(json, key);
	json_bool(json, v);
}

size_t json_escape_char(const char *s, size_t len, char *dst, size_t *ret_used)
{
	static const char plain[] = "\b\f\n\r\t\"\\";
	static const char letters[] = "bfnrt\"\\";
	static const char hex[] = "0123456789abcdef";
	unsigned char c = (unsigned char)*s;
	*ret_used = 1;
	const char *special = c ? strchr(plain, c) : NULL;
	if (special) {
		dst[0] = '\\';
		dst[1] = letters[special - plain];
		return 2;
	}
	if (c < 0x20) {
		memcpy(dst, "\\u00", 4);
		dst[4] = hex[c >> 4];
		dst[5] = hex[c & 15];
		return 6;
	}
	size_t n = utf8_char_len(s, len);
	if (n == 0) {
		memcpy(dst, "\xef\xbf\xbd", 3); /* U+FFFD */
		return 3;
	}
	memcpy(dst, s, n);
	*ret_used = n;
	return n;
}

/* Bytes at the start that stand for themselves. */
static size_t plain_len(const char *s, size_t len)
{
	size_t n = 0;
	while (n < len && s[n] >= 0x20 && s[n] != '"' && s[n] != '\\' && !((unsigned char)s[n] & 0x80))
		n++;
	return n;
}

void json_escape(struct buf *out, const char *s, size_t len)
{
	while (len) {
		size_t plain = plain_len(s, len);
		buf_add(out, s, plain);
		s += plain;
		len -= plain;
		if (len == 0)
			return;
		char text[JSON_CHAR_MAX];
		size_t used;
		size_t n = json_escape_char(s, len, text, &used);
		buf_add(out, text, n);
		s += used;
		len -= used;
	}
}
