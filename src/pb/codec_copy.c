/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deep copies of plain structs by the same tables: for what must outlive the
 * arena it was decoded into. No bytes of the wire are involved. Private to pb.
 */
#include <errno.h>

#include "pb/codec_int.h"

static int copy_string(struct arena *arena, void *at)
{
	const char *s = codec_get_ptr(at, 0);
	const char *copy = s && *s ? arena_strdup(arena, s) : "";
	if (!copy)
		return -ENOMEM;
	codec_set_ptr(at, 0, copy);
	return 0;
}

static int fix_msg(const struct codec_msg *msg, struct arena *arena, void *obj);

/* Gives cnt elements of a flat copy at `items` their own insides. */
static int fix_items(const struct codec_field *f, struct arena *arena, char *items, size_t cnt)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < cnt; i++) {
		char *item = items + i * codec_elem_size(f);
		if (f->kind == CODEC_STRING)
			rc = copy_string(arena, item);
		else if (f->kind == CODEC_MSG)
			rc = fix_msg(f->sub, arena, item);
	}
	return rc;
}

/* Replaces the pointer at off, if any, by one to a flat copy; *ret_copy is that copy. */
static int own(struct arena *arena, void *obj, size_t off, size_t len, void **ret_copy)
{
	const void *p = codec_get_ptr(obj, off);
	void *copy = NULL;
	if (p && len) {
		copy = arena_alloc(arena, len);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, p, len);
	}
	codec_set_ptr(obj, off, copy);
	*ret_copy = copy;
	return 0;
}

static int fix_field(const struct codec_field *f, struct arena *arena, void *obj)
{
	void *copy;
	size_t cnt = 1;
	size_t len = f->sub ? f->sub->size : 0;
	if (f->is_list) {
		cnt = codec_get_cnt(obj, f->aux);
		len = cnt * codec_elem_size(f);
	} else if (f->kind == CODEC_BYTES) {
		len = codec_get_cnt(obj, f->aux);
	} else if (f->kind != CODEC_REF) {
		return fix_items(f, arena, (char *)obj + f->off, 1);
	}
	int rc = own(arena, obj, f->off, len, &copy);
	if (rc < 0 || !copy || f->kind == CODEC_BYTES)
		return rc;
	return f->kind == CODEC_REF ? fix_msg(f->sub, arena, copy) : fix_items(f, arena, copy, cnt);
}

static int fix_msg(const struct codec_msg *msg, struct arena *arena, void *obj)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < msg->field_cnt; i++)
		rc = fix_field(&msg->fields[i], arena, obj);
	return rc;
}

int codec_copy(const struct codec_msg *msg, const void *src, size_t cnt, struct arena *arena, void *dst)
{
	if (cnt)
		memcpy(dst, src, cnt * msg->size);
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < cnt; i++)
		rc = fix_msg(msg, arena, (char *)dst + i * msg->size);
	return rc;
}
