/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Macros that write the rows of codec.h's tables: S is the plain struct, M the
 * message's generated type, f the member, which has the field's name unless
 * the macro takes both. Ceilings are sizes of the generated members. For table
 * files only.
 */
#ifndef CULVERT_PB_CODEC_TABLE_H
#define CULVERT_PB_CODEC_TABLE_H

#include "pb/codec.h"

/* clang-format off */
#define CODEC_MEMBER(M, f) (((M *)0)->f)
/* Elements of a generated array. */
#define CODEC_CNT(M, f) (uint32_t)(sizeof(CODEC_MEMBER(M, f)) / sizeof(CODEC_MEMBER(M, f)[0]))
/* Bytes that a generated char[] or PB_BYTES_ARRAY member holds. */
#define CODEC_STR_MAX(x) (uint32_t)(sizeof(x) - 1)
#define CODEC_BYTES_MAX(x) (uint32_t)sizeof((x).bytes)

#define CODEC_ROW(S, M, f, m, k) .name = #f, .tag = M##_##f##_tag, .kind = k, .off = offsetof(S, m)

/* A string; F_STR_AS where member and field have different names. */
#define F_STR_AS(S, M, f, m) \
	{CODEC_ROW(S, M, f, m, CODEC_STRING), .aux = CODEC_NO_AUX, .max = CODEC_STR_MAX(CODEC_MEMBER(M, f))}
#define F_STR(S, M, f) F_STR_AS(S, M, f, f)
/* Bytes with their length in member l. */
#define F_BYTES(S, M, f, l) \
	{CODEC_ROW(S, M, f, f, CODEC_BYTES), .aux = offsetof(S, l), .max = CODEC_BYTES_MAX(CODEC_MEMBER(M, f))}
/* Bytes that stay in the message; a list of them with its count in member c. */
#define F_RAW(S, M, f) \
	{CODEC_ROW(S, M, f, f, CODEC_RAW), .aux = CODEC_NO_AUX, .max = CODEC_BYTES_MAX(CODEC_MEMBER(M, f))}
#define F_RAWS(S, M, f, c) \
	{CODEC_ROW(S, M, f, f, CODEC_RAW), .is_list = true, .aux = offsetof(S, c), \
		.max = CODEC_BYTES_MAX(CODEC_MEMBER(M, f)[0]), .max_cnt = CODEC_CNT(M, f)}
/* A number, bool or address of kind k. */
#define F_VAL(S, M, f, k) {CODEC_ROW(S, M, f, f, k), .aux = CODEC_NO_AUX}
/* An enum from lo to hi. */
#define F_ENUM(S, M, f, lo, hi) {CODEC_ROW(S, M, f, f, CODEC_ENUM), .aux = CODEC_NO_AUX, .min = lo, .max = hi}
/* A message that is always there, one with a presence flag h, one behind a pointer. */
#define F_MSG(S, M, f, s) {CODEC_ROW(S, M, f, f, CODEC_MSG), .aux = CODEC_NO_AUX, .sub = s}
#define F_OPT(S, M, f, h, s) {CODEC_ROW(S, M, f, f, CODEC_MSG), .aux = offsetof(S, h), .sub = s}
#define F_REF(S, M, f, s) {CODEC_ROW(S, M, f, f, CODEC_REF), .aux = CODEC_NO_AUX, .sub = s}
/* Lists with their count in member c: strings, numbers and addresses, enums, messages. */
#define F_STRS(S, M, f, c) \
	{CODEC_ROW(S, M, f, f, CODEC_STRING), .is_list = true, .aux = offsetof(S, c), \
		.max = CODEC_STR_MAX(CODEC_MEMBER(M, f)[0]), .max_cnt = CODEC_CNT(M, f)}
#define F_VALS(S, M, f, c, k) \
	{CODEC_ROW(S, M, f, f, k), .is_list = true, .aux = offsetof(S, c), .max_cnt = CODEC_CNT(M, f)}
#define F_ENUMS(S, M, f, c, lo, hi) \
	{CODEC_ROW(S, M, f, f, CODEC_ENUM), .is_list = true, .aux = offsetof(S, c), .min = lo, .max = hi, .max_cnt = CODEC_CNT(M, f)}
#define F_MSGS(S, M, f, c, s) \
	{CODEC_ROW(S, M, f, f, CODEC_MSG), .is_list = true, .aux = offsetof(S, c), .max_cnt = CODEC_CNT(M, f), .sub = s}

/* Number of fields in a message, out of nanopb's field list. */
#define CODEC_ONE(a, atype, htype, ltype, name, tag) +1
#define CODEC_FIELDS_OF(M) (0 M##_FIELDLIST(CODEC_ONE, 0))

/* The table `name` for struct S and message M from rows that stand in name_fields; every field of M must have its row. */
#define CODEC_TABLE_CHECKED(tbl, S, M, chk) \
	_Static_assert(sizeof(tbl##_fields) / sizeof(tbl##_fields[0]) == CODEC_FIELDS_OF(M), #M ": fields and rows differ"); \
	_Static_assert(CODEC_FIELDS_OF(M) <= CODEC_FIELD_MAX, #M ": too many fields"); \
	static const struct codec_msg tbl = { \
		.size = sizeof(S), .fields = tbl##_fields, .field_cnt = CODEC_FIELDS_OF(M), .check = chk}
#define CODEC_TABLE(tbl, S, M) CODEC_TABLE_CHECKED(tbl, S, M, NULL)
/* clang-format on */

#endif
