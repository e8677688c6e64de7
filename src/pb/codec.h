/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages to plain structs and back, driven by tables: a row ties one field
 * of a .proto file to a member of a struct. Tag numbers and ceilings come out
 * of nanopb's generated types (proto/x.options is their only source), the wire
 * format out of nanopb's streams; the giant generated structs themselves are
 * never instantiated, so a decoded message takes what it holds and no more.
 * Private to pb. Knows no message.
 *
 * A singular field given twice is refused, unknown fields are skipped, a zero
 * byte in a string is refused (it would end the string for us, not for others).
 */
#ifndef CULVERT_PB_CODEC_H
#define CULVERT_PB_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* How a field looks in the struct, and on the wire. */
enum codec_kind {
	CODEC_STRING, /* const char *; max = bytes without terminator */
	CODEC_BYTES,  /* const uint8_t *, with a size_t length at aux; max = bytes */
	CODEC_RAW,    /* struct codec_raw; max = bytes */
	CODEC_BOOL,   /* bool */
	CODEC_U16,    /* uint16_t */
	CODEC_U32,    /* uint32_t */
	CODEC_I32,    /* int32_t >= 0, e.g. a pid */
	CODEC_U64,    /* uint64_t */
	CODEC_ENUM,   /* an enum; min and max are its lowest and highest value */
	CODEC_IP,     /* struct ip as 4 or 16 bytes */
	CODEC_CIDR,   /* struct cidr as address and one byte */
	CODEC_ADDR,   /* struct addr as address and two bytes */
	CODEC_MSG,    /* struct within the struct; with aux a bool says that it is there */
	CODEC_REF,    /* pointer to a struct, NULL = not there */
};

/* Bytes where they lie in the message: borrowed from it, unlike everything else. NULL when empty. */
struct codec_raw {
	const uint8_t *p;
	size_t len;
};

/* No auxiliary member. */
#define CODEC_NO_AUX UINT16_MAX

struct codec_msg;

/* One field. */
struct codec_field {
	const char *name; /* as in the .proto file, for error texts */
	uint32_t tag;     /* field number */
	enum codec_kind kind;
	bool is_list;                /* the member is a pointer to an array, its size_t count at aux */
	uint16_t off;                /* of the member in the struct */
	uint16_t aux;                /* of the count, length or presence member, or CODEC_NO_AUX */
	uint32_t min;                /* CODEC_ENUM */
	uint32_t max;                /* ceiling by kind, see above */
	uint32_t max_cnt;            /* lists: most elements */
	const struct codec_msg *sub; /* CODEC_MSG, CODEC_REF */
};

/* Most fields of a message; bounds the counters on the stack. */
#define CODEC_FIELD_MAX 32

/* A message. */
struct codec_msg {
	size_t size; /* of the struct */
	const struct codec_field *fields;
	size_t field_cnt;
	/* Whether the members fit each other; a text that says what is wrong, or NULL. May be NULL itself. */
	const char *(*check)(const void *obj);
};

/*
 * Bytes of the encoded message. ERR_TOO_LARGE, ERR_TOO_MANY, ERR_BAD_UTF8, ERR_PROTOCOL when a field can't be
 * encoded; `name` begins the path to it in err's text.
 */
int codec_size(
        const struct codec_msg *msg, const void *obj, const char *name, size_t *ret_len, struct err *err);

/* Encodes into dst; as codec_size, and -EMSGSIZE when cap is too small. */
int codec_encode(const struct codec_msg *msg, const void *obj, const char *name, uint8_t *dst, size_t cap,
        size_t *ret_len, struct err *err);

/* Decodes into *ret_obj (untouched on failure), what hangs from it into arena. ERR_PROTOCOL, ERR_TOO_LARGE,
 * ERR_TOO_MANY, ERR_BAD_UTF8, -ENOMEM. */
int codec_decode(const struct codec_msg *msg, const uint8_t *bytes, size_t len, const char *name,
        struct arena *arena, void *ret_obj, struct err *err);

/* Copies cnt structs and everything that hangs from them. -ENOMEM. */
int codec_copy(const struct codec_msg *msg, const void *src, size_t cnt, struct arena *arena, void *dst);

/* A field of the top level, as codec_next finds it. */
struct codec_item {
	uint32_t tag;
	bool is_bytes;    /* length-delimited: p and len are set */
	bool is_fixed;    /* fixed32 or fixed64: no value; we use none of these */
	uint64_t value;   /* varint fields */
	const uint8_t *p; /* into the message */
	size_t len;
};

/* Steps through the fields of bytes from *at (start with 0). 1 = *ret_item is set, 0 = end, ERR_PROTOCOL =
 * malformed. */
int codec_next(const uint8_t *bytes, size_t len, size_t *at, struct codec_item *ret_item);

/* Writes tag and length of a length-delimited field of len bytes to dst, which has CODEC_HEAD_MAX bytes.
 * Returns how many. */
size_t codec_head(uint32_t tag, size_t len, uint8_t *dst);

/* Writes a varint field to dst, which has CODEC_HEAD_MAX bytes. Returns how many. */
size_t codec_varint(uint32_t tag, uint64_t value, uint8_t *dst);

#define CODEC_HEAD_MAX 20

#endif
