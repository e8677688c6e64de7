/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names and resource records on the wire (RFC 1035 4.1): read with bounds,
 * written with compression, records copied from one message into another.
 * Private to src/dns. Knows no meaning of a message.
 */
#ifndef CULVERT_DNS_WIRE_H
#define CULVERT_DNS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Bytes of a name, length bytes and the final zero included (RFC 1035 2.3.4). */
#define WIRE_NAME_MAX 255
/* Names remembered for compression; further ones are compressed against these. */
#define WIRE_SPOTS 128

/* One record of a message; points into nothing, offsets are the message's. */
struct wire_rr {
	uint8_t owner[WIRE_NAME_MAX]; /* without compression */
	size_t owner_len;
	uint16_t type;
	uint16_t cls;
	uint32_t ttl;     /* seconds */
	size_t rdata;     /* where the data begins */
	size_t rdata_len; /* bytes of it, all inside the message */
};

/* A message being written; it begins at the buffer's first byte. */
struct wire_out {
	struct buf *buf;
	uint16_t spots[WIRE_SPOTS]; /* where labels begin that a pointer may name, below 0x4000 */
	size_t spot_cnt;
};

/* The 16 bits at p, network order. */
static inline uint16_t wire_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* The 32 bits at p, network order. */
static inline uint32_t wire_be32(const uint8_t *p)
{
	return (uint32_t)wire_be16(p) << 16 | wire_be16(p + 2);
}

/*
 * Reads the name at *pos, following pointers that go backwards only, into
 * `name`; *pos is then behind it. Returns its length or -EBADMSG.
 */
int wire_name_read(const uint8_t *msg, size_t len, size_t *pos, uint8_t name[WIRE_NAME_MAX]);

/* Reads the record at *pos; *pos is then behind it. 0 or -EBADMSG. */
int wire_rr_read(const uint8_t *msg, size_t len, size_t *pos, struct wire_rr *ret_rr);

/* A name from text: labels separated by dots, one dot at the end allowed, no escapes. Its length, or -EINVAL.
 */
int wire_name_parse(const char *text, uint8_t name[WIRE_NAME_MAX]);

/* Equality without regard to ASCII case. */
bool wire_name_eq(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len);

/* Starts a message at the front of an empty buffer. */
void wire_out_init(struct wire_out *out, struct buf *buf);

/* Appends a name, as a pointer where its end was written before. Errors stick in the buffer. */
void wire_name_add(struct wire_out *out, const uint8_t *name, size_t name_len);

/*
 * Appends a record of the message `msg` with another TTL. Data of types that may hold compressed
 * names (RFC 3597 4) is written anew, everything else byte by byte. 0, or -EBADMSG (a name in
 * it is broken; bytes may have been added); the buffer's own errors stick there.
 */
int wire_rr_add(struct wire_out *out, const uint8_t *msg, size_t len, const struct wire_rr *rr, uint32_t ttl);

/* Takes back everything written from `len` on. */
void wire_out_cut(struct wire_out *out, size_t len);

#endif
