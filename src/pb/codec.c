/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The common part of encoder, decoder and copier: layout of members, the trail
 * to a bad field, stepping over a message's fields. Private to pb.
 */
#include "pb/codec.h"

#include <stdio.h>
#include <string.h>

#include <pb_decode.h>
#include <pb_encode.h>

#include "base/addr.h"
#include "pb/codec_int.h"

size_t codec_elem_size(const struct codec_field *f)
{
	switch (f->kind) {
	case CODEC_STRING:
	case CODEC_BYTES:
	case CODEC_REF:
		return sizeof(void *);
	case CODEC_RAW:
		return sizeof(struct codec_raw);
	case CODEC_BOOL:
		return sizeof(bool);
	case CODEC_U16:
		return sizeof(uint16_t);
	case CODEC_U32:
	case CODEC_I32:
	case CODEC_ENUM:
		return sizeof(uint32_t);
	case CODEC_U64:
		return sizeof(uint64_t);
	case CODEC_IP:
		return sizeof(struct ip);
	case CODEC_CIDR:
		return sizeof(struct cidr);
	case CODEC_ADDR:
		return sizeof(struct addr);
	case CODEC_MSG:
		return f->sub->size;
	}
	return 0;
}

bool codec_is_varint(enum codec_kind kind)
{
	return kind == CODEC_BOOL || kind == CODEC_U16 || kind == CODEC_U32 || kind == CODEC_I32 ||
	       kind == CODEC_U64 || kind == CODEC_ENUM;
}

void codec_blank(const struct codec_msg *msg, void *obj)
{
	memset(obj, 0, msg->size);
	for (size_t i = 0; i < msg->field_cnt; i++) {
		const struct codec_field *f = &msg->fields[i];
		if (f->is_list)
			continue;
		if (f->kind == CODEC_STRING)
			codec_set_ptr(obj, f->off, "");
		else if (f->kind == CODEC_MSG)
			codec_blank(f->sub, (char *)obj + f->off);
	}
}

int codec_fail(struct codec_trail *trail, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(trail->why, sizeof(trail->why), fmt, ap);
	va_end(ap);
	return code;
}

int codec_at(struct codec_trail *trail, const char *name, long index, int rc)
{
	if (rc >= 0 || trail->cnt == CODEC_DEPTH_MAX)
		return rc;
	trail->step[trail->cnt].name = name;
	trail->step[trail->cnt++].index = index;
	return rc;
}

int codec_report(const struct codec_trail *trail, const char *name, int rc, struct err *err)
{
	char path[256];
	size_t at = (size_t)snprintf(path, sizeof(path), "%s", name);
	for (size_t i = trail->cnt; i-- > 0 && at < sizeof(path);) {
		const struct codec_step *s = &trail->step[i];
		int n = s->index < 0 ? snprintf(path + at, sizeof(path) - at, ".%s", s->name)
		                     : snprintf(path + at, sizeof(path) - at, ".%s[%ld]", s->name, s->index);
		at += (size_t)n;
	}
	return err_set(err, rc, "%s: %s", path, trail->why);
}

static int next_bytes(pb_istream_t *in, const uint8_t *bytes, size_t len, struct codec_item *item)
{
	uint32_t n;
	if (!pb_decode_varint32(in, &n) || n > in->bytes_left)
		return ERR_PROTOCOL;
	item->is_bytes = true;
	item->p = bytes + (len - in->bytes_left);
	item->len = n;
	return pb_read(in, NULL, n) ? 1 : ERR_PROTOCOL;
}

int codec_next(const uint8_t *bytes, size_t len, size_t *at, struct codec_item *ret_item)
{
	if (*at >= len)
		return 0;
	pb_istream_t in = pb_istream_from_buffer(bytes + *at, len - *at);
	pb_wire_type_t type;
	bool eof = false;
	struct codec_item item = {0};
	if (!pb_decode_tag(&in, &type, &item.tag, &eof) || item.tag == 0)
		return ERR_PROTOCOL;
	int rc = 1;
	if (type == PB_WT_STRING)
		rc = next_bytes(&in, bytes, len, &item);
	else if (type == PB_WT_VARINT)
		rc = pb_decode_varint(&in, &item.value) ? 1 : ERR_PROTOCOL;
	else if (pb_skip_field(&in, type))
		item.is_fixed = true;
	else
		rc = ERR_PROTOCOL;
	if (rc < 0)
		return rc;
	*at = len - in.bytes_left;
	*ret_item = item;
	return 1;
}

size_t codec_head(uint32_t tag, size_t len, uint8_t *dst)
{
	pb_ostream_t out = pb_ostream_from_buffer(dst, CODEC_HEAD_MAX);
	(void)(pb_encode_tag(&out, PB_WT_STRING, tag) && pb_encode_varint(&out, len));
	return out.bytes_written;
}

size_t codec_varint(uint32_t tag, uint64_t value, uint8_t *dst)
{
	pb_ostream_t out = pb_ostream_from_buffer(dst, CODEC_HEAD_MAX);
	(void)(pb_encode_tag(&out, PB_WT_VARINT, tag) && pb_encode_varint(&out, value));
	return out.bytes_written;
}
