/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON writer into a struct buf, compact or with two-space indent, in the
 * form serde_json gives (empty containers as {} and []). Key order is the
 * caller's. Errors stick in the buffer. There is no parser.
 */
#ifndef CULVERT_BASE_JSON_H
#define CULVERT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Nesting that the writer can follow; deeper is our own mistake. */
#define JSON_DEPTH_MAX 32

/* The writer's state. Private. */
struct json {
	struct buf *out;
	bool pretty;
	bool after_key; /* the next value belongs to a key */
	uint8_t depth;
	uint32_t filled; /* bit d = container at depth d has an element */
};

/* Starts one value into out (borrowed). */
void json_init(struct json *json, struct buf *out, bool pretty);

void json_obj(struct json *json);     /* opens an object */
void json_obj_end(struct json *json); /* closes it */
void json_arr(struct json *json);     /* opens an array */
void json_arr_end(struct json *json); /* closes it */

/* The key of the next value in an object. */
void json_key(struct json *json, const char *key);

void json_str(struct json *json, const char *s); /* string; NULL writes null; bad UTF-8 becomes U+FFFD */
void json_strn(struct json *json, const char *s, size_t len);   /* string of len bytes */
void json_u64(struct json *json, uint64_t v);                   /* number */
void json_i64(struct json *json, int64_t v);                    /* number */
void json_bool(struct json *json, bool v);                      /* true or false */
void json_null(struct json *json);                              /* null */
void json_raw(struct json *json, const char *text, size_t len); /* a value that is JSON already */

void json_kv_str(struct json *json, const char *key, const char *s); /* key and string */
void json_kv_u64(struct json *json, const char *key, uint64_t v);    /* key and number */
void json_kv_bool(struct json *json, const char *key, bool v);       /* key and bool */

/*
 * Escapes the first character of the len > 0 bytes at s into dst (at most
 * JSON_CHAR_MAX bytes, no terminator). Returns the bytes written, *ret_used
 * the bytes of s that it stands for.
 */
#define JSON_CHAR_MAX 6
size_t json_escape_char(const char *s, size_t len, char *dst, size_t *ret_used);

/* Escapes len bytes as the inside of a JSON string into out, without the quotes. */
void json_escape(struct buf *out, const char *s, size_t len);

#endif
