/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What encoder, decoder and copier of codec.h share. Private to the codec's own files. */
#ifndef CULVERT_PB_CODEC_INT_H
#define CULVERT_PB_CODEC_INT_H

#include <stdarg.h>
#include <string.h>

#include "pb/codec.h"

/* Deepest nesting of our messages: AnswerPolicies, policy, rule, clause, match, string; and some room. */
#define CODEC_DEPTH_MAX 12

/* One step on the way to a bad field. */
struct codec_step {
	const char *name; /* the field */
	long index;       /* in a list, else -1 */
};

/* Where and why something failed; filled from the inside outward. */
struct codec_trail {
	struct codec_step step[CODEC_DEPTH_MAX];
	size_t cnt;
	char why[96];
};

/* Bytes of one element in memory. */
size_t codec_elem_size(const struct codec_field *f);

/* Whether the kind is a varint on the wire, packed in lists. */
bool codec_is_varint(enum codec_kind kind);

/* Zeroes obj and sets its strings to "", through embedded messages. */
void codec_blank(const struct codec_msg *msg, void *obj);

/* Notes why; returns code. */
int codec_fail(struct codec_trail *trail, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Notes that rc < 0 happened in field `name` (index -1: no list); returns rc. */
int codec_at(struct codec_trail *trail, const char *name, long index, int rc);

/* Writes the trail to err: "name.field[3].field: why"; returns rc. */
int codec_report(const struct codec_trail *trail, const char *name, int rc, struct err *err);

/* Members are reached through memcpy: their declared types differ (const char *, const struct x *). */
static inline const void *codec_get_ptr(const void *obj, size_t off)
{
	const void *p;
	memcpy(&p, (const char *)obj + off, sizeof(p));
	return p;
}

static inline void codec_set_ptr(void *obj, size_t off, const void *p)
{
	memcpy((char *)obj + off, &p, sizeof(p));
}

static inline size_t codec_get_cnt(const void *obj, size_t off)
{
	size_t cnt;
	memcpy(&cnt, (const char *)obj + off, sizeof(cnt));
	return cnt;
}

static inline void codec_set_cnt(void *obj, size_t off, size_t cnt)
{
	memcpy((char *)obj + off, &cnt, sizeof(cnt));
}

#endif
