/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ZDS messages to structs and back, for both ends (proto/zds.proto,
 * node-agent.md 1.2). Bytes only; the socket is zds_sock.c, the order of
 * messages is the programs' business.
 */
#include "pb/zds.h"

#include <errno.h>
#include <string.h>

#include "zds.pb.h"

#include "base/utf8.h"
#include "culvert/limits.h"
#include "pb/codec_table.h"

/* clang-format off */

struct hello {
	enum zds_version version;
};

static const struct codec_field hello_fields[] = {
	F_ENUM(struct hello, istio_workload_zds_ZdsHello, version, 0, INT32_MAX),
};
CODEC_TABLE(hello, struct hello, istio_workload_zds_ZdsHello);

static const struct codec_field info_fields[] = {
	F_STR(struct workload_info, istio_workload_zds_WorkloadInfo, name),
	F_STR_AS(struct workload_info, istio_workload_zds_WorkloadInfo, namespace, ns),
	F_STR(struct workload_info, istio_workload_zds_WorkloadInfo, service_account),
};
CODEC_TABLE(info, struct workload_info, istio_workload_zds_WorkloadInfo);

static const struct codec_field add_fields[] = {
	F_STR(struct zds_request, istio_workload_zds_AddWorkload, uid),
	{CODEC_ROW(struct zds_request, istio_workload_zds_AddWorkload, workload_info, info, CODEC_MSG),
		.aux = offsetof(struct zds_request, has_info), .sub = &info},
};
CODEC_TABLE(add, struct zds_request, istio_workload_zds_AddWorkload);

static const struct codec_field keep_fields[] = {
	F_STR(struct zds_request, istio_workload_zds_KeepWorkload, uid),
};
CODEC_TABLE(keep, struct zds_request, istio_workload_zds_KeepWorkload);

static const struct codec_field del_fields[] = {
	F_STR(struct zds_request, istio_workload_zds_DelWorkload, uid),
};
CODEC_TABLE(del, struct zds_request, istio_workload_zds_DelWorkload);

static const struct codec_msg snapshot_sent = {.size = sizeof(struct zds_request)};

struct ack {
	const char *error;
};

static const struct codec_field ack_fields[] = {
	F_STR(struct ack, istio_workload_zds_Ack, error),
};
CODEC_TABLE(ack, struct ack, istio_workload_zds_Ack);

/* clang-format on */

_Static_assert((int)ZDS_ADD == istio_workload_zds_WorkloadRequest_add_tag &&
                       (int)ZDS_DEL == istio_workload_zds_WorkloadRequest_del_tag &&
                       (int)ZDS_SNAPSHOT_SENT == istio_workload_zds_WorkloadRequest_snapshot_sent_tag &&
                       (int)ZDS_KEEP == istio_workload_zds_WorkloadRequest_keep_tag,
        "enum zds_request_type and WorkloadRequest.payload differ");
_Static_assert(CODEC_STR_MAX(CODEC_MEMBER(istio_workload_zds_AddWorkload, uid)) == LIMIT_ZDS_UID,
        "uid ceilings differ");
_Static_assert(
        CODEC_STR_MAX(CODEC_MEMBER(istio_workload_zds_Ack, error)) == ZDS_ERROR_MAX, "error ceilings differ");

static const struct codec_msg *request_table(uint32_t type, const char **ret_name)
{
	switch (type) {
	case ZDS_ADD:
		*ret_name = "AddWorkload";
		return &add;
	case ZDS_DEL:
		*ret_name = "DelWorkload";
		return &del;
	case ZDS_SNAPSHOT_SENT:
		*ret_name = "SnapshotSent";
		return &snapshot_sent;
	case ZDS_KEEP:
		*ret_name = "KeepWorkload";
		return &keep;
	default:
		return NULL;
	}
}

/* Finds the one payload of a request or response. */
static int find_payload(
        const uint8_t *bytes, size_t len, const char *name, struct codec_item *ret_item, struct err *err)
{
	struct codec_item item, payload = {0};
	size_t at = 0;
	int rc;
	while ((rc = codec_next(bytes, len, &at, &item)) > 0) {
		if (!item.is_bytes)
			continue;
		if (payload.tag)
			return err_set(err, ERR_PROTOCOL, "%s: two payloads, %u and %u", name, payload.tag,
			        item.tag);
		payload = item;
	}
	if (rc < 0)
		return err_set(err, rc, "%s: malformed", name);
	if (payload.tag == 0)
		return err_set(err, ERR_PROTOCOL, "%s: has no payload", name);
	*ret_item = payload;
	return 0;
}

int zds_encode_hello(enum zds_version version, uint8_t *dst, size_t cap, size_t *ret_len)
{
	struct hello obj = {.version = version};
	return codec_encode(&hello, &obj, "ZdsHello", dst, cap, ret_len, NULL);
}

int zds_decode_hello(const uint8_t *bytes, size_t len, enum zds_version *ret_version, struct err *err)
{
	struct hello obj;
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	if (!arena)
		return err_set(err, -ENOMEM, "ZdsHello: no memory left for it");
	int rc = codec_decode(&hello, bytes, len, "ZdsHello", arena, &obj, err);
	arena_unref(arena);
	if (rc == 0)
		*ret_version = obj.version;
	return rc;
}

/* Puts the payload's tag and length before it; the payload stands at dst + CODEC_HEAD_MAX. */
static size_t frame(uint32_t tag, uint8_t *dst, size_t len)
{
	uint8_t head[CODEC_HEAD_MAX];
	size_t head_len = codec_head(tag, len, head);
	memcpy(dst, head, head_len);
	memmove(dst + head_len, dst + CODEC_HEAD_MAX, len);
	return head_len + len;
}

static int encode_framed(const struct codec_msg *table, const void *obj, const char *name, uint32_t tag,
        uint8_t *dst, size_t cap, size_t *ret_len, struct err *err)
{
	uint8_t packet[CODEC_HEAD_MAX + ZDS_PACKET_MAX];
	size_t len;
	int rc = codec_encode(table, obj, name, packet + CODEC_HEAD_MAX, ZDS_PACKET_MAX, &len, err);
	if (rc < 0)
		return rc;
	len = frame(tag, packet, len);
	if (len > cap || len > ZDS_PACKET_MAX)
		return err_set(err, -EMSGSIZE, "%s: no room left", name);
	memcpy(dst, packet, len);
	*ret_len = len;
	return 0;
}

int zds_encode_request(
        const struct zds_request *req, uint8_t *dst, size_t cap, size_t *ret_len, struct err *err)
{
	const char *name;
	const struct codec_msg *table = request_table(req->type, &name);
	if (!table)
		return err_set(
		        err, ERR_PROTOCOL, "WorkloadRequest: type %u has no wire form", (unsigned)req->type);
	return encode_framed(table, req, name, req->type, dst, cap, ret_len, err);
}

int zds_decode_request(
        const uint8_t *bytes, size_t len, struct arena *arena, struct zds_request *ret_req, struct err *err)
{
	struct codec_item payload;
	const char *name;
	/* Members that a payload does not have stay "". */
	struct zds_request req = {.uid = "", .info = {.name = "", .ns = "", .service_account = ""}};
	int rc = find_payload(bytes, len, "WorkloadRequest", &payload, err);
	if (rc < 0)
		return rc;
	const struct codec_msg *table = request_table(payload.tag, &name);
	if (!table)
		return err_set(err, ERR_PROTOCOL, "WorkloadRequest: payload %u is not known", payload.tag);
	if (table != &snapshot_sent)
		rc = codec_decode(table, payload.p, payload.len, name, arena, &req, err);
	if (rc < 0)
		return rc;
	if (table == &keep || table == &del)
		req.info = (struct workload_info){.name = "", .ns = "", .service_account = ""};
	req.type = (enum zds_request_type)payload.tag;
	*ret_req = req;
	return 0;
}

/* Copies text with '?' for each ill-formed byte and zero, cut at ZDS_ERROR_MAX; dst has one byte more. */
static void clean_text(const char *text, char *dst)
{
	size_t len = strlen(text);
	size_t used = 0;
	for (size_t i = 0; i < len;) {
		size_t n = utf8_char_len(text + i, len - i);
		size_t step = n ? n : 1;
		if (used + step > ZDS_ERROR_MAX)
			break;
		if (n)
			memcpy(dst + used, text + i, n);
		else
			dst[used] = '?';
		used += step;
		i += step;
	}
	dst[used] = '\0';
}

int zds_encode_response(const char *error, uint8_t *dst, size_t cap, size_t *ret_len)
{
	char text[ZDS_ERROR_MAX + 1];
	clean_text(error ? error : "", text);
	struct ack obj = {.error = text};
	return encode_framed(
	        &ack, &obj, "Ack", istio_workload_zds_WorkloadResponse_ack_tag, dst, cap, ret_len, NULL);
}

int zds_decode_response(
        const uint8_t *bytes, size_t len, struct arena *arena, const char **ret_error, struct err *err)
{
	struct codec_item payload;
	struct ack obj;
	int rc = find_payload(bytes, len, "WorkloadResponse", &payload, err);
	if (rc < 0)
		return rc;
	if (payload.tag != istio_workload_zds_WorkloadResponse_ack_tag)
		return err_set(err, ERR_PROTOCOL, "WorkloadResponse: payload %u is not known", payload.tag);
	rc = codec_decode(&ack, payload.p, payload.len, "Ack", arena, &obj, err);
	if (rc == 0)
		*ret_error = obj.error;
	return rc;
}
