/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DNS names and records as bytes. Every read checks its end; pointers only go
 * backwards, so a name ends. Compression is exact in case: what a server
 * wrote comes out as it wrote it.
 */
#include "dns/wire.h"

#include <errno.h>
#include <string.h>

/* Pointers that one name is read over: as many as it can have labels. */
#define HOPS_MAX 127

/* Data that holds names which other servers may have compressed: 'n' a name, a digit that many bytes, 's' a
 * character string. The rest of the data follows as it is. */
struct layout {
	uint16_t type;
	const char *parts;
	bool is_compressed; /* written with compression: RFC 1035 types only (RFC 3597 4) */
};

static const struct layout layouts[] = {
        {2, "n", true},                                       /* NS */
        {3, "n", true},                                       /* MD */
        {4, "n", true},                                       /* MF */
        {5, "n", true},                                       /* CNAME */
        {6, "nn", true},                                      /* SOA */
        {7, "n", true},                                       /* MB */
        {8, "n", true},                                       /* MG */
        {9, "n", true},                                       /* MR */
        {12, "n", true},                                      /* PTR */
        {14, "nn", true},                                     /* MINFO */
        {15, "2n", true},                                     /* MX */
        {17, "nn", false},                                    /* RP */
        {18, "2n", false},                                    /* AFSDB */
        {21, "2n", false},                                    /* RT */
        {26, "2nn", false},                                   /* PX */
        {33, "222n", false},                                  /* SRV */
        {35, "22sssn", false} /* NAPTR */, {36, "2n", false}, /* KX */
        {39, "n", false},                                     /* DNAME */
};

int wire_name_read(const uint8_t *msg, size_t len, size_t *pos, uint8_t name[WIRE_NAME_MAX])
{
	size_t at = *pos, end = 0, out = 0, bound = len;
	unsigned hops = 0;
	while (at < bound) {
		uint8_t label = msg[at];
		if ((label & 0xc0) == 0xc0) {
			if (at + 1 >= bound)
				return -EBADMSG;
			size_t target = wire_be16(msg + at) & 0x3fff;
			if (end == 0)
				end = at + 2;
			/* A target before the pointer itself, in a range that shrinks each time: no loops.
			 * And no chains of pointers to pointers, which make a message of many names
			 * quadratic. */
			if (target >= at || ++hops > HOPS_MAX)
				return -EBADMSG;
			bound = at;
			at = target;
			continue;
		}
		if (label & 0xc0 || at + 1 + label > bound || out + 1 + label > WIRE_NAME_MAX)
			return -EBADMSG;
		memcpy(name + out, msg + at, (size_t)label + 1);
		out += (size_t)label + 1;
		at += (size_t)label + 1;
		if (label == 0) {
			*pos = end ? end : at;
			return (int)out;
		}
	}
	return -EBADMSG;
}

int wire_rr_read(const uint8_t *msg, size_t len, size_t *pos, struct wire_rr *ret_rr)
{
	size_t at = *pos;
	int owner_len = wire_name_read(msg, len, &at, ret_rr->owner);
	if (owner_len < 0)
		return owner_len;
	if (len - at < 10)
		return -EBADMSG;
	ret_rr->owner_len = (size_t)owner_len;
	ret_rr->type = wire_be16(msg + at);
	ret_rr->cls = wire_be16(msg + at + 2);
	ret_rr->ttl = wire_be32(msg + at + 4);
	ret_rr->rdata_len = wire_be16(msg + at + 8);
	ret_rr->rdata = at + 10;
	if (len - ret_rr->rdata < ret_rr->rdata_len)
		return -EBADMSG;
	*pos = ret_rr->rdata + ret_rr->rdata_len;
	return 0;
}

int wire_name_parse(const char *text, uint8_t name[WIRE_NAME_MAX])
{
	size_t out = 0;
	if (strcmp(text, ".") == 0)
		text = "";
	while (*text != '\0') {
		size_t label = strcspn(text, ".");
		/* Room for this label and the final zero. */
		if (label == 0 || label > 63 || out + 1 + label + 1 > WIRE_NAME_MAX)
			return -EINVAL;
		name[out] = (uint8_t)label;
		memcpy(name + out + 1, text, label);
		out += 1 + label;
		text += label;
		if (*text == '.')
			text++;
	}
	name[out] = 0;
	return (int)out + 1;
}

static uint8_t fold(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

bool wire_name_eq(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	if (a_len != b_len)
		return false;
	/* Length bytes are below 64 and so no letters. */
	for (size_t i = 0; i < a_len; i++) {
		if (fold(a[i]) != fold(b[i]))
			return false;
	}
	return true;
}

void wire_out_init(struct wire_out *out, struct buf *buf)
{
	out->buf = buf;
	out->spot_cnt = 0;
}

/* Whether the name written at `at` is `name`. What we wrote is well formed. */
static bool spot_is(const struct wire_out *out, size_t at, const uint8_t *name)
{
	const uint8_t *data = out->buf->data;
	for (;;) {
		if ((data[at] & 0xc0) == 0xc0) {
			at = wire_be16(data + at) & 0x3fff;
			continue;
		}
		if (data[at] != name[0] || memcmp(data + at, name, (size_t)name[0] + 1) != 0)
			return false;
		if (data[at] == 0)
			return true;
		name += data[at] + 1;
		at += (size_t)data[at] + 1;
	}
}

/* Where `name` was written before, or 0. */
static size_t spot_find(const struct wire_out *out, const uint8_t *name)
{
	for (size_t i = 0; i < out->spot_cnt; i++) {
		if (spot_is(out, out->spots[i], name))
			return out->spots[i];
	}
	return 0;
}

void wire_name_add(struct wire_out *out, const uint8_t *name, size_t name_len)
{
	size_t first_new = out->spot_cnt;
	uint16_t fresh[WIRE_NAME_MAX / 2 + 1];
	size_t fresh_cnt = 0;
	for (size_t i = 0; i < name_len; i += (size_t)name[i] + 1) {
		size_t spot = name[i] ? spot_find(out, name + i) : 0;
		if (spot) {
			buf_add_be16(out->buf, (uint16_t)(0xc000 | spot));
			break;
		}
		if (name[i] && out->buf->len < 0x4000)
			fresh[fresh_cnt++] = (uint16_t)out->buf->len;
		buf_add(out->buf, name + i, (size_t)name[i] + 1);
	}
	if (out->buf->err)
		return;
	/* Only now: a name that is half written must not be compared with. */
	for (size_t i = 0; i < fresh_cnt && first_new + i < WIRE_SPOTS; i++)
		out->spots[out->spot_cnt++] = fresh[i];
}

static const struct layout *layout_find(uint16_t type)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].type == type)
			return &layouts[i];
	}
	return NULL;
}

/* Copies one part of record data from *pos; 0 or -EBADMSG. */
static int part_add(
        struct wire_out *out, const uint8_t *msg, size_t end, size_t *pos, char part, bool is_compressed)
{
	uint8_t name[WIRE_NAME_MAX];
	size_t step;
	if (part == 'n') {
		int name_len = wire_name_read(msg, end, pos, name);
		if (name_len < 0)
			return name_len;
		if (is_compressed)
			wire_name_add(out, name, (size_t)name_len);
		else
			buf_add(out->buf, name, (size_t)name_len);
		return 0;
	}
	if (*pos >= end)
		return -EBADMSG;
	step = part == 's' ? (size_t)msg[*pos] + 1 : (size_t)(part - '0');
	if (end - *pos < step)
		return -EBADMSG;
	buf_add(out->buf, msg + *pos, step);
	*pos += step;
	return 0;
}

int wire_rr_add(struct wire_out *out, const uint8_t *msg, size_t len, const struct wire_rr *rr, uint32_t ttl)
{
	const struct layout *layout = layout_find(rr->type);
	size_t pos = rr->rdata, end = rr->rdata + rr->rdata_len;
	if (end > len)
		return -EBADMSG;
	wire_name_add(out, rr->owner, rr->owner_len);
	buf_add_be16(out->buf, rr->type);
	buf_add_be16(out->buf, rr->cls);
	buf_add_be32(out->buf, ttl);
	size_t at = out->buf->len;
	buf_add_be16(out->buf, 0);
	/* Empty data is legal in updates and in odd servers' answers; it holds no name. */
	for (const char *part = layout && rr->rdata_len ? layout->parts : ""; *part; part++) {
		int rc = part_add(out, msg, end, &pos, *part, layout->is_compressed);
		if (rc < 0)
			return rc;
	}
	buf_add(out->buf, msg + pos, end - pos);
	if (out->buf->err)
		return 0;
	size_t written = out->buf->len - at - 2;
	if (written > UINT16_MAX)
		return -EBADMSG;
	out->buf->data[at] = (uint8_t)(written >> 8);
	out->buf->data[at + 1] = (uint8_t)written;
	return 0;
}

void wire_out_cut(struct wire_out *out, size_t len)
{
	out->buf->len = len;
	out->buf->err = 0;
	while (out->spot_cnt > 0 && out->spots[out->spot_cnt - 1] >= len)
		out->spot_cnt--;
}
