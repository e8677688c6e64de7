/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A push parser for one message; see splitter.h. */
#include "xds/splitter.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "pb/xds.h"

/* Wire types of protobuf. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

void xds_splitter_init(struct xds_splitter *splitter, const struct xds_splitter_ops *ops, void *ctx)
{
	*splitter = (struct xds_splitter){.ops = ops, .ctx = ctx, .state = XDS_SPLIT_KEY};
}

void xds_splitter_reset(struct xds_splitter *splitter)
{
	mem_free(splitter->piece);
	mem_free(splitter->big_name);
	xds_splitter_init(splitter, splitter->ops, splitter->ctx);
}

static int malformed(struct err *err)
{
	return err_set(err, ERR_PROTOCOL, "the response is malformed");
}

/* A text field, terminated here. */
static int give_text(struct xds_splitter *s, const uint8_t *bytes, size_t len, struct err *err)
{
	char text[XDS_TEXT_MAX + 1];
	if (!utf8_valid(bytes, len) || memchr(bytes, 0, len))
		return err_set(err, ERR_PROTOCOL, "the response holds a text that is none");
	memcpy(text, bytes, len);
	text[len] = 0;
	if (s->in_big) {
		mem_free(s->big_name);
		s->big_name = mem_strdup(text);
		return s->big_name ? 0 : -ENOMEM;
	}
	if (s->tag == XDS_RESPONSE_TYPE_URL)
		return s->ops->type_url(s->ctx, text, err);
	if (s->tag == XDS_RESPONSE_NONCE)
		return s->ops->nonce(s->ctx, text, err);
	return s->ops->removed(s->ctx, text, err);
}

static int give(struct xds_splitter *s, const uint8_t *bytes, size_t len, struct err *err)
{
	s->state = XDS_SPLIT_KEY;
	if (!s->in_big && s->tag == XDS_RESPONSE_RESOURCES)
		return s->ops->resource(s->ctx, bytes, len, err);
	return give_text(s, bytes, len, err);
}

/* Whether the field at hand is wanted. */
static bool is_wanted(const struct xds_splitter *s)
{
	if (s->in_big)
		return s->tag == XDS_RESOURCE_NAME;
	return s->tag == XDS_RESPONSE_RESOURCES || s->tag == XDS_RESPONSE_TYPE_URL ||
	       s->tag == XDS_RESPONSE_NONCE || s->tag == XDS_RESPONSE_REMOVED;
}

/* Length and tag of a field are known; its bytes follow. */
static int begin_field(struct xds_splitter *s, uint64_t len, struct err *err)
{
	static const uint8_t NOTHING[1];
	bool is_resource = !s->in_big && s->tag == XDS_RESPONSE_RESOURCES;
	if (len > SIZE_MAX / 2 || (s->in_big && len > s->big_left))
		return malformed(err);
	s->left = (size_t)len;
	s->state = XDS_SPLIT_SKIP;
	if (is_resource && len > XDS_RESOURCE_MAX) {
		s->in_big = true;
		s->big_left = (size_t)len;
		s->state = XDS_SPLIT_KEY;
		return 0;
	}
	if (!is_wanted(s)) {
		if (len == 0)
			s->state = XDS_SPLIT_KEY;
		return 0;
	}
	if (!is_resource && len > XDS_TEXT_MAX) {
		if (s->in_big)
			return 0;
		return err_set(
		        err, ERR_TOO_LARGE, "a text of the response has %llu bytes", (unsigned long long)len);
	}
	s->state = XDS_SPLIT_COLLECT;
	s->piece_len = s->left;
	return len == 0 ? give(s, NOTHING, 0, err) : 0;
}

/* A key: tag and wire type. */
static int begin_key(struct xds_splitter *s, uint64_t key, struct err *err)
{
	if (key >> 3 == 0 || key >> 3 > UINT32_MAX)
		return malformed(err);
	s->tag = (uint32_t)(key >> 3);
	switch (key & 7) {
	case WIRE_VARINT:
		s->state = XDS_SPLIT_VARINT;
		break;
	case WIRE_BYTES:
		s->state = XDS_SPLIT_LEN;
		return 0;
	case WIRE_FIXED64:
	case WIRE_FIXED32:
		s->left = (key & 7) == WIRE_FIXED64 ? 8 : 4;
		s->state = XDS_SPLIT_SKIP;
		break;
	default:
		return malformed(err);
	}
	return is_wanted(s) ? malformed(err) : 0;
}

static int take_varint(struct xds_splitter *s, uint8_t byte, struct err *err)
{
	if (s->shift > 63)
		return malformed(err);
	s->varint |= (uint64_t)(byte & 0x7f) << s->shift;
	s->shift += 7;
	if (byte & 0x80)
		return 0;
	uint64_t value = s->varint;
	s->varint = 0;
	s->shift = 0;
	if (s->state == XDS_SPLIT_KEY)
		return begin_key(s, value, err);
	if (s->state == XDS_SPLIT_LEN)
		return begin_field(s, value, err);
	s->state = XDS_SPLIT_KEY;
	return 0;
}

static int collect(struct xds_splitter *s, const uint8_t *bytes, size_t len, struct err *err)
{
	if (!s->piece && len == s->piece_len)
		return give(s, bytes, len, err);
	if (!s->piece)
		s->piece = mem_alloc(s->piece_len);
	if (!s->piece)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(s->piece + (s->piece_len - s->left), bytes, len);
	s->left -= len;
	if (s->left)
		return 0;
	uint8_t *piece = s->piece;
	s->piece = NULL;
	int rc = give(s, piece, s->piece_len, err);
	mem_free(piece);
	return rc;
}

/* One step over at least one of len > 0 bytes. */
static int step(struct xds_splitter *s, const uint8_t *bytes, size_t len, size_t *ret_used, struct err *err)
{
	if (s->state != XDS_SPLIT_SKIP && s->state != XDS_SPLIT_COLLECT) {
		*ret_used = 1;
		return take_varint(s, bytes[0], err);
	}
	*ret_used = len < s->left ? len : s->left;
	if (s->state == XDS_SPLIT_COLLECT)
		return collect(s, bytes, *ret_used, err);
	s->left -= *ret_used;
	if (s->left == 0)
		s->state = XDS_SPLIT_KEY;
	return 0;
}

/* The end of a resource that was too large. */
static int end_big(struct xds_splitter *s, struct err *err)
{
	if (s->state != XDS_SPLIT_KEY || s->shift)
		return malformed(err);
	char *name = s->big_name;
	s->big_name = NULL;
	s->in_big = false;
	int rc = s->ops->oversized(s->ctx, name ? name : "", err);
	mem_free(name);
	return rc;
}

int xds_splitter_feed(struct xds_splitter *s, const uint8_t *bytes, size_t len, struct err *err)
{
	int rc = 0;
	while (rc == 0 && len) {
		bool is_inside = s->in_big;
		bool is_head = s->state != XDS_SPLIT_SKIP && s->state != XDS_SPLIT_COLLECT;
		size_t used, most = is_inside && s->big_left < len ? s->big_left : len;
		/* The byte that completes a length counts before the length is held against what is left. */
		if (is_inside && is_head)
			s->big_left--;
		rc = step(s, bytes, most, &used, err);
		bytes += used;
		len -= used;
		if (is_inside && !is_head)
			s->big_left -= used;
		if (rc == 0 && is_inside && s->big_left == 0)
			rc = end_big(s, err);
	}
	return rc;
}

int xds_splitter_end(struct xds_splitter *s, struct err *err)
{
	bool is_whole = s->state == XDS_SPLIT_KEY && s->shift == 0 && !s->in_big;
	xds_splitter_reset(s);
	return is_whole ? 0 : err_set(err, ERR_TRUNCATED, "the response ends inside a field");
}
