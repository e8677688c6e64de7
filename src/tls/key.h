/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The workload's private key and the certificate request made with it
 * (reference control.md 6.2). The key lives in its own locked pages, outside
 * of core dumps, and is wiped when the last reference goes. No other file
 * sees its bytes, save the embedded CA, which stores its own.
 */
#ifndef TLS_KEY_H
#define TLS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

/* An ECDSA P-256 key pair, reference counted. */
struct tls_key;

/*
 * Makes a fresh key. `ret_key` gets one reference. Returns 0, -ENOMEM, or
 * -EIO when the random source or the generator fails.
 */
int tls_key_new(struct tls_key **ret_key, struct err *err);

/*
 * Takes a key from PEM text of `len` bytes: "EC PRIVATE KEY" (SEC 1) or
 * "PRIVATE KEY" (PKCS#8), P-256 only. The caller wipes its copy of the text.
 * Returns 0, -ENOMEM or -EBADMSG.
 */
int tls_key_from_pem(const char *pem, size_t len, struct tls_key **ret_key, struct err *err);

/* Takes one more reference; returns `key`. */
struct tls_key *tls_key_ref(struct tls_key *key);

/* Drops a reference; the last one wipes and unmaps the key. NULL is fine. */
void tls_key_unref(struct tls_key *key);

/* True if the pages could be locked (RLIMIT_MEMLOCK); they are never dumped either way. */
bool tls_key_is_locked(const struct tls_key *key);

/*
 * Appends a PKCS#10 request, PEM with LF line ends, to `out`: version 1, empty
 * subject, one extension request holding a critical subjectAltName with the
 * one URI `spiffe_uri`, signed ecdsa-with-SHA256. Returns 0, -EINVAL when the
 * URI does not parse as a SPIFFE identity, -ENOMEM, -EIO.
 */
int tls_csr_make(struct tls_key *key, const char *spiffe_uri, struct buf *out, struct err *err);

#endif
