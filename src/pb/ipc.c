/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records: the frame around the bodies of ipc_table.c, a look at a record
 * without decoding it, sizes and copies of what the mesh consists of. Knows
 * nothing of sockets and permits.
 */
#include "pb/ipc.h"

#include <errno.h>
#include <string.h>

#include "pb/ipc_table.h"

const char *ipc_type_str(enum ipc_type type)
{
	static const char *const names[IPC_TYPE_END] = {
	        [IPC_HELLO] = "Hello",
	        [IPC_UNSUPPORTED] = "Unsupported",
	        [IPC_HERITAGE] = "Heritage",
	        [IPC_ATTACH_BROKER] = "AttachBroker",
	        [IPC_DRAIN] = "Drain",
	        [IPC_READY] = "Ready",
	        [IPC_START_FAILED] = "StartFailed",
	        [IPC_DRAINED] = "Drained",
	        [IPC_SILO_ATTACH] = "SiloAttach",
	        [IPC_SILO_STATE] = "SiloState",
	        [IPC_NODE_STATE] = "NodeState",
	        [IPC_MESH_STATE] = "MeshState",
	        [IPC_STOP_REQUEST] = "StopRequest",
	        [IPC_LOG_PIPE] = "LogPipe",
	        [IPC_ASK_WORKLOAD] = "AskWorkload",
	        [IPC_ANSWER_WORKLOAD] = "AnswerWorkload",
	        [IPC_ASK_CERTIFICATE] = "AskCertificate",
	        [IPC_ANSWER_CERTIFICATE] = "AnswerCertificate",
	        [IPC_ASK_ADDRESS] = "AskAddress",
	        [IPC_ASK_HOST] = "AskHost",
	        [IPC_ANSWER_VIEW] = "AnswerView",
	        [IPC_ASK_POLICIES] = "AskPolicies",
	        [IPC_ANSWER_POLICIES] = "AnswerPolicies",
	        [IPC_EVICT] = "Evict",
	        [IPC_FORGET_ALL] = "ForgetAll",
	        [IPC_SET_LOG] = "SetLog",
	        [IPC_CRL] = "Crl",
	        [IPC_ASK_STATE] = "AskState",
	        [IPC_ANSWER_STATE] = "AnswerState",
	        [IPC_ASK_METRICS] = "AskMetrics",
	        [IPC_ANSWER_METRICS] = "AnswerMetrics",
	        [IPC_ASK_RESOLVER] = "AskResolver",
	        [IPC_ANSWER_RESOLVER] = "AnswerResolver",
	        [IPC_ASK_RESOLVE] = "AskResolve",
	        [IPC_ANSWER_RESOLVE] = "AnswerResolve",
	};
	unsigned i = type;
	return i < IPC_TYPE_END && names[i] ? names[i] : "unknown";
}

const char *ipc_role_str(enum ipc_role role)
{
	switch (role) {
	case IPC_ROLE_WARDEN:
		return "warden";
	case IPC_ROLE_BROKER:
		return "broker";
	case IPC_ROLE_SILO:
		return "silo";
	case IPC_ROLE_CTL:
		return "ctl";
	case IPC_ROLE_NONE:
		break;
	}
	return "nobody";
}

/* The frame: id and the one body. */
static int read_frame(
        const uint8_t *bytes, size_t len, uint32_t *ret_id, struct codec_item *ret_body, struct err *err)
{
	size_t at = 0;
	struct codec_item item, body = {0};
	uint64_t id = 0;
	bool has_id = false;
	int rc;
	while ((rc = codec_next(bytes, len, &at, &item)) > 0) {
		if (item.tag == IPC_ID_TAG) {
			if (item.is_bytes || item.is_fixed || has_id || item.value > UINT32_MAX)
				return err_set(err, ERR_PROTOCOL, "Record.id: malformed");
			id = item.value;
			has_id = true;
		} else if (item.is_bytes) {
			if (body.tag)
				return err_set(err, ERR_PROTOCOL, "Record: two bodies, %u and %u", body.tag,
				        item.tag);
			body = item;
		} else if (ipc_table_body(item.tag)) {
			return err_set(err, ERR_PROTOCOL, "%s: wrong wire type",
			        ipc_type_str((enum ipc_type)item.tag));
		}
	}
	if (rc < 0)
		return err_set(err, rc, "Record: malformed");
	*ret_id = (uint32_t)id;
	*ret_body = body;
	return 0;
}

static int check_len(size_t len, struct err *err)
{
	if (len > IPC_RECORD_MAX)
		return err_set(err, ERR_TOO_LARGE, "Record: %zu bytes, at most %u are allowed", len,
		        (unsigned)IPC_RECORD_MAX);
	return 0;
}

int ipc_peek(const uint8_t *bytes, size_t len, struct ipc_peek *ret_peek, struct err *err)
{
	uint32_t id;
	struct codec_item body;
	int rc = check_len(len, err);
	if (rc == 0)
		rc = read_frame(bytes, len, &id, &body, err);
	if (rc == 0)
		*ret_peek = (struct ipc_peek){.id = id, .type = body.tag, .len = len};
	return rc;
}

/* What a table cannot say: two bodies share Key, each wants one half of it. */
static int check_key_half(const struct ipc_record *rec, struct err *err)
{
	if (rec->type == IPC_ASK_ADDRESS && rec->ask_address.is_host)
		return err_set(err, ERR_PROTOCOL, "AskAddress: is a host name");
	if (rec->type == IPC_ASK_HOST && !rec->ask_host.is_host)
		return err_set(err, ERR_PROTOCOL, "AskHost: is an address");
	return 0;
}

/* Any member of the union: all begin at the same place. */
static const void *body_of(const struct ipc_record *rec)
{
	return &rec->hello;
}

int ipc_encode(const struct ipc_record *rec, uint8_t *dst, size_t cap, size_t *ret_len, struct err *err)
{
	const char *name = ipc_type_str(rec->type);
	const struct codec_msg *table = ipc_table_body(rec->type);
	if (!table)
		return err_set(err, ERR_PROTOCOL, "Record: type %u has no wire form", (unsigned)rec->type);
	int rc = check_key_half(rec, err);
	size_t body_len;
	if (rc == 0)
		rc = codec_size(table, body_of(rec), name, &body_len, err);
	if (rc < 0)
		return rc;
	uint8_t head[2 * CODEC_HEAD_MAX];
	size_t head_len = rec->id ? codec_varint(IPC_ID_TAG, rec->id, head) : 0;
	head_len += codec_head(rec->type, body_len, head + head_len);
	if (head_len + body_len > IPC_RECORD_MAX)
		return err_set(err, ERR_TOO_LARGE, "%s: %zu bytes, at most %u are allowed", name,
		        head_len + body_len, (unsigned)IPC_RECORD_MAX);
	if (head_len + body_len > cap)
		return err_set(err, -EMSGSIZE, "%s: no room left", name);
	rc = codec_encode(table, body_of(rec), name, dst + head_len, cap - head_len, &body_len, err);
	if (rc < 0)
		return rc;
	memcpy(dst, head, head_len);
	*ret_len = head_len + body_len;
	return 0;
}

int ipc_decode(
        const uint8_t *bytes, size_t len, struct arena *arena, struct ipc_record *ret_rec, struct err *err)
{
	struct ipc_record rec = {0};
	struct codec_item body;
	int rc = check_len(len, err);
	if (rc == 0)
		rc = read_frame(bytes, len, &rec.id, &body, err);
	if (rc < 0)
		return rc;
	const struct codec_msg *table = ipc_table_body(body.tag);
	if (!table)
		return err_set(err, ERR_UNSUPPORTED, "Record: type %u is not known", body.tag);
	rec.type = (enum ipc_type)body.tag;
	rc = codec_decode(table, body.p, body.len, ipc_type_str(rec.type), arena, &rec.hello, err);
	if (rc == 0)
		rc = check_key_half(&rec, err);
	if (rc == 0)
		*ret_rec = rec;
	return rc;
}

int ipc_workload_size(const struct workload *workload, size_t *ret_len, struct err *err)
{
	return codec_size(ipc_table_workload, workload, "workload", ret_len, err);
}

int ipc_service_size(const struct service *service, size_t *ret_len, struct err *err)
{
	return codec_size(ipc_table_service, service, "service", ret_len, err);
}

int ipc_policy_size(const struct policy *policy, size_t *ret_len, struct err *err)
{
	return codec_size(ipc_table_policy, policy, "policy", ret_len, err);
}

static void *copy_items(const struct codec_msg *table, struct arena *arena, const void *src, size_t cnt)
{
	void *dst = arena_zalloc(arena, cnt, table->size);
	return dst && codec_copy(table, src, cnt, arena, dst) == 0 ? dst : NULL;
}

struct workload *ipc_copy_workload(struct arena *arena, const struct workload *src)
{
	return copy_items(ipc_table_workload, arena, src, 1);
}

struct service *ipc_copy_service(struct arena *arena, const struct service *src)
{
	return copy_items(ipc_table_service, arena, src, 1);
}

struct policy *ipc_copy_policies(struct arena *arena, const struct policy *src, size_t cnt)
{
	return copy_items(ipc_table_policy, arena, src, cnt);
}

struct endpoint *ipc_copy_endpoints(struct arena *arena, const struct endpoint *src, size_t cnt)
{
	return copy_items(ipc_table_endpoint, arena, src, cnt);
}

int ipc_copy_key(struct arena *arena, const struct ipc_key *src, struct ipc_key *ret_key)
{
	struct ipc_key copy;
	int rc = codec_copy(ipc_table_key, src, 1, arena, &copy);
	if (rc == 0)
		*ret_key = copy;
	return rc;
}

static bool str_eq(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

bool ipc_key_eq(const struct ipc_key *a, const struct ipc_key *b)
{
	if (a->is_host != b->is_host)
		return false;
	if (a->is_host)
		return a->dns == b->dns && str_eq(a->ns, b->ns) && str_eq(a->host, b->host);
	return a->unfiltered == b->unfiltered && ip_eq(&a->addr.ip, &b->addr.ip) &&
	       str_eq(a->addr.network, b->addr.network);
}
