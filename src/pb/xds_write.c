/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is sent: DeltaDiscoveryRequest part by part, the node with its metadata; see xds.h. */
#include <errno.h>
#include <string.h>

#include "pb/codec.h"
#include "pb/xds.h"

/* Fields of DeltaDiscoveryRequest, Node, Status, and of a map's entry. */
enum {
	REQ_NODE = 1,
	REQ_TYPE_URL = 2,
	REQ_SUBSCRIBE = 3,
	REQ_UNSUBSCRIBE = 4,
	REQ_VERSIONS = 5,
	REQ_NONCE = 6,
	REQ_ERROR = 7,
	NODE_ID = 1,
	NODE_METADATA = 3,
	STATUS_MESSAGE = 2,
	ENTRY_KEY = 1,
	ENTRY_VALUE = 2,
	STRUCT_FIELDS = 1,
	VALUE_STRING = 3,
};

static void put(struct buf *out, uint32_t tag, const void *p, size_t len)
{
	uint8_t head[CODEC_HEAD_MAX];
	size_t n = codec_head(tag, len, head);
	buf_add(out, head, n);
	buf_add(out, p, len);
}

static void put_str(struct buf *out, uint32_t tag, const char *s)
{
	put(out, tag, s, strlen(s));
}

void xds_request_type(struct buf *out, const char *type_url)
{
	put_str(out, REQ_TYPE_URL, type_url);
}

void xds_request_node(struct buf *out, const uint8_t *node, size_t len)
{
	put(out, REQ_NODE, node, len);
}

void xds_request_subscribe(struct buf *out, const char *name)
{
	put_str(out, REQ_SUBSCRIBE, name);
}

void xds_request_unsubscribe(struct buf *out, const char *name)
{
	put_str(out, REQ_UNSUBSCRIBE, name);
}

void xds_request_version(struct buf *out, const char *name, const char *version)
{
	uint8_t head[3][CODEC_HEAD_MAX];
	size_t key_len = strlen(name), value_len = strlen(version);
	size_t key_head = codec_head(ENTRY_KEY, key_len, head[0]);
	size_t value_head = codec_head(ENTRY_VALUE, value_len, head[1]);
	size_t outer = codec_head(REQ_VERSIONS, key_head + key_len + value_head + value_len, head[2]);
	buf_add(out, head[2], outer);
	buf_add(out, head[0], key_head);
	buf_add(out, name, key_len);
	buf_add(out, head[1], value_head);
	buf_add(out, version, value_len);
}

void xds_request_nonce(struct buf *out, const char *nonce)
{
	put_str(out, REQ_NONCE, nonce);
}

void xds_request_error(struct buf *out, const char *message, size_t len)
{
	uint8_t head[CODEC_HEAD_MAX], outer[CODEC_HEAD_MAX];
	size_t n = codec_head(STATUS_MESSAGE, len, head);
	size_t m = codec_head(REQ_ERROR, n + len, outer);
	buf_add(out, outer, m);
	buf_add(out, head, n);
	buf_add(out, message, len);
}

/* --- the node ------------------------------------------------------------- */

/* A field of the metadata Struct; value is an encoded Value. */
static void put_meta(struct buf *out, const char *key, const struct buf *value)
{
	struct buf entry;
	buf_init(&entry, out->max);
	put_str(&entry, ENTRY_KEY, key);
	put(&entry, ENTRY_VALUE, value->data, value->len);
	if (entry.err || value->err)
		out->err = entry.err ? entry.err : value->err;
	else
		put(out, STRUCT_FIELDS, entry.data, entry.len);
	buf_done(&entry);
}

static void put_meta_str(struct buf *out, const char *key, const char *text)
{
	struct buf value;
	buf_init(&value, out->max);
	put_str(&value, VALUE_STRING, text);
	put_meta(out, key, &value);
	buf_done(&value);
}

static void put_meta_json(struct buf *out, const struct xds_meta *meta,
        void (*bad)(void *ctx, const char *key, const char *why), void *ctx)
{
	struct err err = {0};
	struct buf value;
	buf_init(&value, out->max);
	if (xds_json_write(&value, meta->value, strlen(meta->value), &err) == 0)
		put_meta(out, meta->key, &value);
	else if (bad)
		bad(ctx, meta->key, err.text);
	buf_done(&value);
}

void xds_node_write(struct buf *out, const struct xds_node *node,
        void (*bad)(void *ctx, const char *key, const char *why), void *ctx)
{
	struct buf part;
	buf_init(&part, out->max);
	/* The suffix is constant whatever the cluster's domain is. */
	buf_printf(&part, "ztunnel~%s~%s.%s~%s.svc.cluster.local", node->ip, node->pod, node->ns, node->ns);
	put(out, NODE_ID, part.data, part.len);
	buf_clear(&part);
	put_meta_str(&part, "NAME", node->pod);
	put_meta_str(&part, "NAMESPACE", node->ns);
	put_meta_str(&part, "INSTANCE_IPS", node->ip);
	put_meta_str(&part, "NODE_NAME", node->node_name);
	/* A key that comes again wins, with us as in every reader of a map. */
	for (size_t i = 0; i < node->meta_cnt; i++)
		put_meta_str(&part, node->meta[i].key, node->meta[i].value);
	for (size_t i = 0; i < node->json_cnt; i++)
		put_meta_json(&part, &node->json[i], bad, ctx);
	if (part.err)
		out->err = part.err;
	else
		put(out, NODE_METADATA, part.data, part.len);
	buf_done(&part);
}
