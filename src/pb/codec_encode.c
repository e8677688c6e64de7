/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plain structs to bytes. The same walk measures (a sizing stream) and writes;
 * a submessage is measured before it is written because its length goes first.
 * Private to pb.
 */
#include <errno.h>

#include <pb_encode.h>

#include "base/addr.h"
#include "base/utf8.h"
#include "pb/codec_int.h"

/* A walk: where to and what went wrong. A stream without callback only measures. */
struct put {
	pb_ostream_t *out;
	struct codec_trail *trail;
	bool checks_text; /* false while a submessage is measured that the same walk will write */
};

static int put_msg(struct put *put, const struct codec_msg *msg, const void *obj);

static int full(struct put *put, bool ok)
{
	return ok ? 0 : codec_fail(put->trail, -EMSGSIZE, "no room left");
}

static bool measures(const struct put *put)
{
	return put->out->callback == NULL;
}

static int put_bytes(struct put *put, uint32_t tag, const void *p, size_t len)
{
	if (!pb_encode_tag(put->out, PB_WT_STRING, tag) || !pb_encode_varint(put->out, len))
		return full(put, false);
	return full(put, pb_write(put->out, measures(put) ? NULL : p, len));
}

static int put_string(struct put *put, const struct codec_field *f, const char *s)
{
	size_t len = s ? strlen(s) : 0;
	if (len > f->max)
		return codec_fail(
		        put->trail, ERR_TOO_LARGE, "%zu bytes, at most %u are allowed", len, f->max);
	if (put->checks_text && !utf8_valid(s, len))
		return codec_fail(put->trail, ERR_BAD_UTF8, "not valid UTF-8");
	return len || f->is_list ? put_bytes(put, f->tag, s, len) : 0;
}

static int put_msg_field(struct put *put, const struct codec_field *f, const void *obj)
{
	pb_ostream_t sizing = PB_OSTREAM_SIZING;
	struct put sub = {
	        .out = &sizing, .trail = put->trail, .checks_text = put->checks_text && measures(put)};
	int rc = put_msg(&sub, f->sub, obj);
	if (rc < 0)
		return rc;
	size_t len = sizing.bytes_written;
	/* A message without presence flag is as good as absent when it says nothing. */
	if (len == 0 && f->kind == CODEC_MSG && !f->is_list && f->aux == CODEC_NO_AUX)
		return 0;
	if (measures(put))
		return put_bytes(put, f->tag, NULL, len);
	if (!pb_encode_tag(put->out, PB_WT_STRING, f->tag) || !pb_encode_varint(put->out, len))
		return full(put, false);
	return put_msg(put, f->sub, obj);
}

/* The value of a varint member; negative numbers and values outside an enum have no wire form. */
static int get_value(struct put *put, const struct codec_field *f, const void *p, uint64_t *ret_value)
{
	uint16_t u16;
	uint32_t u32;
	switch (f->kind) {
	case CODEC_BOOL:
		*ret_value = *(const bool *)p;
		return 0;
	case CODEC_U16:
		memcpy(&u16, p, sizeof(u16));
		*ret_value = u16;
		return 0;
	case CODEC_U64:
		memcpy(ret_value, p, sizeof(*ret_value));
		return 0;
	default:
		memcpy(&u32, p, sizeof(u32));
	}
	if (f->kind == CODEC_ENUM && (u32 < f->min || u32 > f->max))
		return codec_fail(put->trail, ERR_PROTOCOL, "value %u is not defined", u32);
	if (f->kind == CODEC_I32 && u32 > INT32_MAX)
		return codec_fail(put->trail, ERR_PROTOCOL, "negative");
	*ret_value = u32;
	return 0;
}

static size_t pack_addr(const struct codec_field *f, const void *p, uint8_t dst[18])
{
	const struct ip *ip = p; /* first member of cidr and addr */
	size_t len = ip_len(ip);
	memcpy(dst, ip->b, len);
	if (len && f->kind == CODEC_CIDR)
		dst[len++] = ((const struct cidr *)p)->len;
	if (len && f->kind == CODEC_ADDR) {
		uint16_t port = ((const struct addr *)p)->port;
		dst[len++] = (uint8_t)(port >> 8);
		dst[len++] = (uint8_t)port;
	}
	return len;
}

static int put_addr(struct put *put, const struct codec_field *f, const void *p)
{
	uint8_t packed[18];
	size_t len = pack_addr(f, p, packed);
	if (len == 0 && f->is_list)
		return codec_fail(put->trail, ERR_PROTOCOL, "address without family");
	if (f->kind == CODEC_CIDR && len && packed[len - 1] > (len - 1) * 8)
		return codec_fail(put->trail, ERR_PROTOCOL, "prefix length %u", packed[len - 1]);
	return len ? put_bytes(put, f->tag, packed, len) : 0;
}

static int put_raw(struct put *put, const struct codec_field *f, const struct codec_raw *raw)
{
	if (raw->len > f->max)
		return codec_fail(
		        put->trail, ERR_TOO_LARGE, "%zu bytes, at most %u are allowed", raw->len, f->max);
	return put_bytes(put, f->tag, raw->p, raw->len);
}

static int put_singular(struct put *put, const struct codec_field *f, const void *obj)
{
	const void *p = (const char *)obj + f->off;
	uint64_t value;
	int rc;
	switch (f->kind) {
	case CODEC_STRING:
		return put_string(put, f, codec_get_ptr(obj, f->off));
	case CODEC_BYTES: {
		size_t len = codec_get_cnt(obj, f->aux);
		if (len > f->max)
			return codec_fail(
			        put->trail, ERR_TOO_LARGE, "%zu bytes, at most %u are allowed", len, f->max);
		return len ? put_bytes(put, f->tag, codec_get_ptr(obj, f->off), len) : 0;
	}
	case CODEC_RAW:
		return ((const struct codec_raw *)p)->len ? put_raw(put, f, p) : 0;
	case CODEC_IP:
	case CODEC_CIDR:
	case CODEC_ADDR:
		return put_addr(put, f, p);
	case CODEC_MSG:
		if (f->aux != CODEC_NO_AUX && !*((const bool *)obj + f->aux))
			return 0;
		return put_msg_field(put, f, p);
	case CODEC_REF:
		p = codec_get_ptr(obj, f->off);
		return p ? put_msg_field(put, f, p) : 0;
	default:
		rc = get_value(put, f, p, &value);
		if (rc < 0 || value == 0)
			return rc;
		return full(put,
		        pb_encode_tag(put->out, PB_WT_VARINT, f->tag) && pb_encode_varint(put->out, value));
	}
}

/* Numbers of a list go into one length-delimited field. */
static int put_packed(struct put *put, const struct codec_field *f, const char *items, size_t cnt)
{
	size_t size = codec_elem_size(f);
	pb_ostream_t sizing = PB_OSTREAM_SIZING;
	uint64_t value;
	for (size_t i = 0; i < cnt; i++) {
		int rc = get_value(put, f, items + i * size, &value);
		if (rc < 0)
			return codec_at(put->trail, f->name, (long)i, rc);
		pb_encode_varint(&sizing, value);
	}
	if (measures(put))
		return put_bytes(put, f->tag, NULL, sizing.bytes_written);
	bool ok = pb_encode_tag(put->out, PB_WT_STRING, f->tag) &&
	          pb_encode_varint(put->out, sizing.bytes_written);
	for (size_t i = 0; ok && i < cnt; i++)
		ok = get_value(put, f, items + i * size, &value) == 0 && pb_encode_varint(put->out, value);
	return codec_at(put->trail, f->name, -1, full(put, ok));
}

static int put_list(struct put *put, const struct codec_field *f, const void *obj)
{
	const char *items = codec_get_ptr(obj, f->off);
	size_t cnt = codec_get_cnt(obj, f->aux);
	size_t size = codec_elem_size(f);
	if (cnt == 0)
		return 0;
	if (cnt > f->max_cnt) {
		codec_fail(put->trail, ERR_TOO_MANY, "%zu entries, at most %u are allowed", cnt, f->max_cnt);
		return codec_at(put->trail, f->name, -1, ERR_TOO_MANY);
	}
	if (codec_is_varint(f->kind))
		return put_packed(put, f, items, cnt);
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < cnt; i++) {
		const char *item = items + i * size;
		if (f->kind == CODEC_STRING)
			rc = put_string(put, f, codec_get_ptr(item, 0));
		else if (f->kind == CODEC_MSG)
			rc = put_msg_field(put, f, item);
		else if (f->kind == CODEC_RAW)
			rc = put_raw(put, f, (const void *)item);
		else
			rc = put_addr(put, f, item);
		codec_at(put->trail, f->name, (long)i, rc);
	}
	return rc;
}

static int put_msg(struct put *put, const struct codec_msg *msg, const void *obj)
{
	const char *wrong = msg->check ? msg->check(obj) : NULL;
	if (wrong)
		return codec_fail(put->trail, ERR_PROTOCOL, "%s", wrong);
	for (size_t i = 0; i < msg->field_cnt; i++) {
		const struct codec_field *f = &msg->fields[i];
		int rc = f->is_list ? put_list(put, f, obj)
		                    : codec_at(put->trail, f->name, -1, put_singular(put, f, obj));
		if (rc < 0)
			return rc;
	}
	return 0;
}

int codec_size(
        const struct codec_msg *msg, const void *obj, const char *name, size_t *ret_len, struct err *err)
{
	struct codec_trail trail = {.cnt = 0};
	pb_ostream_t out = PB_OSTREAM_SIZING;
	struct put put = {.out = &out, .trail = &trail, .checks_text = true};
	int rc = put_msg(&put, msg, obj);
	if (rc < 0)
		return codec_report(&trail, name, rc, err);
	*ret_len = out.bytes_written;
	return 0;
}

int codec_encode(const struct codec_msg *msg, const void *obj, const char *name, uint8_t *dst, size_t cap,
        size_t *ret_len, struct err *err)
{
	struct codec_trail trail = {.cnt = 0};
	pb_ostream_t out = pb_ostream_from_buffer(dst, cap);
	struct put put = {.out = &out, .trail = &trail, .checks_text = true};
	int rc = put_msg(&put, msg, obj);
	if (rc < 0)
		return codec_report(&trail, name, rc, err);
	*ret_len = out.bytes_written;
	return 0;
}
