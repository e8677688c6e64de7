/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small DER writer (X.690) for the few structures we make ourselves:
 * requests, certificates of the embedded CA, the stored CA key. It writes
 * from the end of its buffer to the front, so that every length is known when
 * its header is written; callers therefore put the last element first.
 * Knows no meaning of what it writes. Internal to src/tls.
 */
#ifndef TLS_DER_H
#define TLS_DER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most bytes of one structure; the longest, a leaf with a URI of SPIFFE_MAX, needs below 3,000. */
#define DER_MAX 4096u

/* Tags that are written. */
enum der_tag {
	DER_BOOLEAN = 0x01,
	DER_INTEGER = 0x02,
	DER_BITS = 0x03,
	DER_OCTETS = 0x04,
	DER_OID = 0x06,
	DER_UTF8 = 0x0c,
	DER_UTC_TIME = 0x17,
	DER_TIME = 0x18,
	DER_SEQ = 0x30,
	DER_SET = 0x31,
	DER_CTX0 = 0xa0,   /* [0], constructed */
	DER_CTX1 = 0xa1,   /* [1], constructed */
	DER_CTX3 = 0xa3,   /* [3], constructed */
	DER_KEY_ID = 0x80, /* [0], primitive: AuthorityKeyIdentifier.keyIdentifier */
	DER_URI = 0x86,    /* [6], primitive: GeneralName.uniformResourceIdentifier */
};

/* What is being written. */
struct der {
	size_t at;            /* first byte written; the valid bytes are buf[at .. DER_MAX) */
	int err;              /* 0, or -EMSGSIZE once something did not fit; writes do nothing then */
	uint8_t buf[DER_MAX]; /* filled from the end */
};

/* Empties the writer. */
void der_init(struct der *d);

/* The bytes written so far and their number. */
const uint8_t *der_bytes(const struct der *d);
size_t der_len(const struct der *d);

/* Puts bytes as they are in front. */
void der_raw(struct der *d, const void *p, size_t len);

/* Puts tag and length in front of everything written since der_len() was `since`. */
void der_wrap(struct der *d, uint8_t tag, size_t since);

/* Puts one whole element with `len` content bytes in front. */
void der_elem(struct der *d, uint8_t tag, const void *p, size_t len);

/* A positive INTEGER from big-endian bytes; leading zero bytes are dropped, or one is added, as DER wants. */
void der_uint(struct der *d, const uint8_t *p, size_t len);

/* A BIT STRING of whole bytes. */
void der_bits(struct der *d, const void *p, size_t len);

/* A time: UTCTime through 2049, GeneralizedTime from 2050 (RFC 5280 4.1.2.5). Seconds since the epoch. */
void der_time(struct der *d, int64_t seconds);

#endif
