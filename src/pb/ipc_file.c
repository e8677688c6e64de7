/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bodies that no record can hold, as bytes for a descriptor that goes along
 * with an empty one. Knows nothing of descriptors and of who sends.
 */
#include "pb/ipc_table.h"

int ipc_file_encode(const struct ipc_record *rec, struct buf *dst, struct err *err)
{
	const struct codec_msg *table = ipc_table_body(rec->type);
	const char *name = ipc_type_str(rec->type);
	size_t len;
	if (!table)
		return err_set(err, ERR_PROTOCOL, "%s: no such body", name);
	int rc = codec_size(table, &rec->hello, name, &len, err);
	if (rc < 0)
		return rc;
	rc = buf_reserve(dst, len);
	if (rc < 0)
		return err_set(err, rc, "%s: %zu bytes", name, len);
	rc = codec_encode(table, &rec->hello, name, dst->data + dst->len, len, &len, err);
	if (rc == 0)
		buf_commit(dst, len);
	return rc;
}

int ipc_file_decode(enum ipc_type type, const uint8_t *bytes, size_t len, struct arena *arena,
        struct ipc_record *ret_rec, struct err *err)
{
	const struct codec_msg *table = ipc_table_body(type);
	struct ipc_record rec = {.type = type};
	if (!table)
		return err_set(err, ERR_PROTOCOL, "%s: no such body", ipc_type_str(type));
	int rc = codec_decode(table, bytes, len, ipc_type_str(type), arena, &rec.hello, err);
	if (rc == 0)
		*ret_rec = rec;
	return rc;
}
