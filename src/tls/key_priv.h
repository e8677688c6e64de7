/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the other files of src/tls may do with a key beyond key.h: sign, and
 * read its public half. The private half leaves key.c only as the embedded
 * CA's own file. Internal to src/tls.
 */
#ifndef TLS_KEY_PRIV_H
#define TLS_KEY_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tls/der.h"
#include "tls/key.h"

/* Bytes of an uncompressed P-256 point. */
#define KEY_POINT_LEN 65u
/* Most bytes of an ECDSA P-256 signature in DER. */
#define KEY_SIG_MAX 80u

/* The public point, 0x04 || X || Y, KEY_POINT_LEN bytes, borrowed. */
const uint8_t *tls_key_point(const struct tls_key *key);

/*
 * Signs a hash of `hash_len` bytes. `sig` has room for *len bytes (at least
 * KEY_SIG_MAX); *len becomes what is used. 0 or -EIO.
 */
int tls_key_sign(struct tls_key *key, const uint8_t *hash, size_t hash_len, uint8_t *sig, size_t *len);

/*
 * Puts the SubjectPublicKeyInfo of a P-256 point in front (RFC 5480 2).
 */
void der_spki(struct der *d, const uint8_t point[KEY_POINT_LEN]);

/*
 * Makes SEQUENCE { what `body` holds, ecdsa-with-SHA256, signature of it } in
 * `ret_signed`, the shape of requests and certificates alike. 0, -EIO, -EMSGSIZE.
 */
int tls_key_sign_der(struct tls_key *key, const struct der *body, struct der *ret_signed);

/* Puts AlgorithmIdentifier ecdsa-with-SHA256 in front (RFC 5758 3.2). */
void der_ecdsa_sha256(struct der *d);

/* Appends the key as "EC PRIVATE KEY" (RFC 5915). The caller wipes the buffer. 0, -EMSGSIZE, -ENOMEM. */
int tls_key_pem(const struct tls_key *key, struct buf *out);

/* Where the private half lies, for tests of how the page is guarded. */
const void *tls_key_page(const struct tls_key *key);

/* Random bytes from the key's own generator. 0 or -EIO. */
int tls_key_random(struct tls_key *key, uint8_t *p, size_t len);

#endif
