/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes to plain structs. Each message is read twice: first its list entries
 * are counted and held against their ceilings, then the arrays are made at
 * their final size and filled. Everything here comes from another process.
 * Private to pb.
 */
#include <errno.h>

#include <pb_decode.h>

#include "base/addr.h"
#include "base/check.h"
#include "base/utf8.h"
#include "pb/codec_int.h"

/* A walk: where memory comes from and what went wrong. */
struct get {
	struct arena *arena;
	struct codec_trail *trail;
};

static int get_msg(struct get *get, const struct codec_msg *msg, const uint8_t *bytes, size_t len, void *obj);

static int no_memory(struct get *get)
{
	return codec_fail(get->trail, -ENOMEM, "no memory left for it");
}

static size_t find_field(const struct codec_msg *msg, uint32_t tag)
{
	for (size_t i = 0; i < msg->field_cnt; i++) {
		if (msg->fields[i].tag == tag)
			return i;
	}
	return SIZE_MAX;
}

/* Entries that one occurrence of a list field adds. Numbers come packed or singly (both must be read). */
static int count_entries(
        struct get *get, const struct codec_field *f, const struct codec_item *item, size_t *ret_cnt)
{
	size_t cnt = 1;
	if (codec_is_varint(f->kind) && item->is_bytes) {
		cnt = 0;
		for (size_t i = 0; i < item->len; i++)
			cnt += (item->p[i] & 0x80) == 0;
		if (item->len && (item->p[item->len - 1] & 0x80))
			return codec_fail(get->trail, ERR_PROTOCOL, "malformed");
	}
	*ret_cnt = cnt;
	return 0;
}

/* First reading: wire types, doubles, numbers of list entries. */
static int survey(
        struct get *get, const struct codec_msg *msg, const uint8_t *bytes, size_t len, size_t cnt[])
{
	size_t at = 0;
	struct codec_item item;
	int rc;
	while ((rc = codec_next(bytes, len, &at, &item)) > 0) {
		size_t i = find_field(msg, item.tag);
		if (i == SIZE_MAX)
			continue;
		const struct codec_field *f = &msg->fields[i];
		bool packed = f->is_list && codec_is_varint(f->kind);
		if (item.is_fixed || (item.is_bytes == codec_is_varint(f->kind) && !packed)) {
			codec_fail(get->trail, ERR_PROTOCOL, "wrong wire type");
			return codec_at(get->trail, f->name, -1, ERR_PROTOCOL);
		}
		size_t more = 0;
		rc = count_entries(get, f, &item, &more);
		if (rc < 0)
			return codec_at(get->trail, f->name, -1, rc);
		cnt[i] += more;
		if (cnt[i] > (f->is_list ? f->max_cnt : 1)) {
			if (f->is_list)
				rc = codec_fail(get->trail, ERR_TOO_MANY, "more than %u entries", f->max_cnt);
			else
				rc = codec_fail(get->trail, ERR_PROTOCOL, "given twice");
			return codec_at(get->trail, f->name, -1, rc);
		}
	}
	return rc < 0 ? codec_fail(get->trail, rc, "malformed") : 0;
}

static int make_lists(struct get *get, const struct codec_msg *msg, const size_t cnt[], void *obj)
{
	for (size_t i = 0; i < msg->field_cnt; i++) {
		const struct codec_field *f = &msg->fields[i];
		if (!f->is_list || cnt[i] == 0)
			continue;
		void *items = arena_zalloc(get->arena, cnt[i], codec_elem_size(f));
		if (!items)
			return codec_at(get->trail, f->name, -1, no_memory(get));
		codec_set_ptr(obj, f->off, items);
	}
	return 0;
}

static int get_string(struct get *get, const struct codec_field *f, const struct codec_item *item, void *dst)
{
	if (item->len > f->max)
		return codec_fail(
		        get->trail, ERR_TOO_LARGE, "%zu bytes, at most %u are allowed", item->len, f->max);
	if (memchr(item->p, 0, item->len))
		return codec_fail(get->trail, ERR_PROTOCOL, "holds a zero byte");
	if (!utf8_valid(item->p, item->len))
		return codec_fail(get->trail, ERR_BAD_UTF8, "not valid UTF-8");
	const char *s = item->len ? arena_strndup(get->arena, (const char *)item->p, item->len) : "";
	if (!s)
		return no_memory(get);
	codec_set_ptr(dst, 0, s);
	return 0;
}

static int get_bytes(struct get *get, const struct codec_field *f, const struct codec_item *item, void *obj)
{
	if (item->len > f->max)
		return codec_fail(
		        get->trail, ERR_TOO_LARGE, "%zu bytes, at most %u are allowed", item->len, f->max);
	if (item->len == 0)
		return 0;
	void *p = arena_memdup(get->arena, item->p, item->len);
	if (!p)
		return no_memory(get);
	codec_set_ptr(obj, f->off, p);
	codec_set_cnt(obj, f->aux, item->len);
	return 0;
}

static int get_raw(struct get *get, const struct codec_field *f, const struct codec_item *item, void *dst)
{
	if (item->len > f->max)
		return codec_fail(
		        get->trail, ERR_TOO_LARGE, "%zu bytes, at most %u are allowed", item->len, f->max);
	*(struct codec_raw *)dst = (struct codec_raw){item->len ? item->p : NULL, item->len};
	return 0;
}

static int get_addr(struct get *get, const struct codec_field *f, const struct codec_item *item, void *dst)
{
	size_t tail = f->kind == CODEC_CIDR ? 1 : f->kind == CODEC_ADDR ? 2 : 0;
	struct ip ip;
	if (item->len == 0 && !f->is_list)
		return 0;
	if (item->len < tail || ip_from_bytes(item->p, item->len - tail, &ip) < 0)
		return codec_fail(get->trail, ERR_PROTOCOL, "%zu bytes are no address", item->len);
	const uint8_t *p = item->p + item->len - tail;
	if (f->kind == CODEC_CIDR) {
		if (p[0] > ip_len(&ip) * 8)
			return codec_fail(get->trail, ERR_PROTOCOL, "prefix length %u", p[0]);
		*(struct cidr *)dst = (struct cidr){.ip = ip, .len = p[0]};
	} else if (f->kind == CODEC_ADDR) {
		*(struct addr *)dst = (struct addr){.ip = ip, .port = (uint16_t)(p[0] << 8 | p[1])};
	} else {
		*(struct ip *)dst = ip;
	}
	return 0;
}

static uint64_t value_max(const struct codec_field *f)
{
	switch (f->kind) {
	case CODEC_BOOL:
		return 1;
	case CODEC_U16:
		return UINT16_MAX;
	case CODEC_U32:
		return UINT32_MAX;
	case CODEC_I32:
		return INT32_MAX;
	case CODEC_ENUM:
		return f->max;
	default:
		return UINT64_MAX;
	}
}

static int get_value(struct get *get, const struct codec_field *f, uint64_t value, void *dst)
{
	if (value > value_max(f) || (f->kind == CODEC_ENUM && value < f->min))
		return codec_fail(
		        get->trail, ERR_PROTOCOL, "value %llu is not allowed", (unsigned long long)value);
	uint32_t u32 = (uint32_t)value;
	uint16_t u16 = (uint16_t)value;
	bool flag = value != 0;
	switch (codec_elem_size(f)) {
	case sizeof(uint64_t):
		memcpy(dst, &value, sizeof(value));
		break;
	case sizeof(uint32_t):
		memcpy(dst, &u32, sizeof(u32));
		break;
	case sizeof(uint16_t):
		memcpy(dst, &u16, sizeof(u16));
		break;
	default:
		memcpy(dst, &flag, sizeof(flag));
	}
	return 0;
}

static int get_packed(
        struct get *get, const struct codec_field *f, const struct codec_item *item, char *items, size_t *cnt)
{
	pb_istream_t in = pb_istream_from_buffer(item->p, item->len);
	while (in.bytes_left) {
		uint64_t value;
		if (!pb_decode_varint(&in, &value))
			return codec_fail(get->trail, ERR_PROTOCOL, "malformed");
		int rc = get_value(get, f, value, items + *cnt * codec_elem_size(f));
		if (rc < 0)
			return rc;
		++*cnt;
	}
	return 0;
}

static int get_ref(struct get *get, const struct codec_field *f, const struct codec_item *item, void *obj)
{
	void *target = arena_zalloc(get->arena, 1, f->sub->size);
	if (!target)
		return no_memory(get);
	codec_set_ptr(obj, f->off, target);
	return get_msg(get, f->sub, item->p, item->len, target);
}

static int get_singular(
        struct get *get, const struct codec_field *f, const struct codec_item *item, void *obj)
{
	void *dst = (char *)obj + f->off;
	switch (f->kind) {
	case CODEC_STRING:
		return get_string(get, f, item, dst);
	case CODEC_BYTES:
		return get_bytes(get, f, item, obj);
	case CODEC_RAW:
		return get_raw(get, f, item, dst);
	case CODEC_IP:
	case CODEC_CIDR:
	case CODEC_ADDR:
		return get_addr(get, f, item, dst);
	case CODEC_MSG:
		if (f->aux != CODEC_NO_AUX)
			*((bool *)obj + f->aux) = true;
		return get_msg(get, f->sub, item->p, item->len, dst);
	case CODEC_REF:
		return get_ref(get, f, item, obj);
	default:
		return get_value(get, f, item->value, dst);
	}
}

static int get_entry(struct get *get, const struct codec_field *f, const struct codec_item *item, void *obj)
{
	/* The array was made by make_lists in this walk and is ours to fill. */
	char *items = (char *)(uintptr_t)codec_get_ptr(obj, f->off);
	size_t cnt = codec_get_cnt(obj, f->aux);
	if (codec_is_varint(f->kind) && item->is_bytes) {
		int packed = get_packed(get, f, item, items, &cnt);
		codec_set_cnt(obj, f->aux, cnt);
		return codec_at(get->trail, f->name, (long)cnt, packed);
	}
	char *dst = items + cnt * codec_elem_size(f);
	codec_set_cnt(obj, f->aux, cnt + 1);
	int rc;
	if (codec_is_varint(f->kind))
		rc = get_value(get, f, item->value, dst);
	else if (f->kind == CODEC_STRING)
		rc = get_string(get, f, item, dst);
	else if (f->kind == CODEC_MSG)
		rc = get_msg(get, f->sub, item->p, item->len, dst);
	else if (f->kind == CODEC_RAW)
		rc = get_raw(get, f, item, dst);
	else
		rc = get_addr(get, f, item, dst);
	return codec_at(get->trail, f->name, (long)cnt, rc);
}

static int get_msg(struct get *get, const struct codec_msg *msg, const uint8_t *bytes, size_t len, void *obj)
{
	size_t cnt[CODEC_FIELD_MAX] = {0};
	codec_blank(msg, obj);
	int rc = survey(get, msg, bytes, len, cnt);
	if (rc == 0)
		rc = make_lists(get, msg, cnt, obj);
	size_t at = 0;
	struct codec_item item;
	while (rc == 0 && codec_next(bytes, len, &at, &item) > 0) {
		size_t i = find_field(msg, item.tag);
		if (i == SIZE_MAX)
			continue;
		const struct codec_field *f = &msg->fields[i];
		rc = f->is_list ? get_entry(get, f, &item, obj)
		                : codec_at(get->trail, f->name, -1, get_singular(get, f, &item, obj));
	}
	const char *wrong = rc == 0 && msg->check ? msg->check(obj) : NULL;
	return wrong ? codec_fail(get->trail, ERR_PROTOCOL, "%s", wrong) : rc;
}

int codec_decode(const struct codec_msg *msg, const uint8_t *bytes, size_t len, const char *name,
        struct arena *arena, void *ret_obj, struct err *err)
{
	struct codec_trail trail = {.cnt = 0};
	struct get get = {.arena = arena, .trail = &trail};
	void *obj = arena_zalloc(arena, 1, msg->size);
	if (!obj)
		return err_set(err, -ENOMEM, "%s: no memory left for it", name);
	int rc = get_msg(&get, msg, bytes, len, obj);
	if (rc < 0)
		return codec_report(&trail, name, rc, err);
	memcpy(ret_obj, obj, msg->size);
	return 0;
}
