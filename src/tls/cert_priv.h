/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of src/tls read from a certificate in the library's decoded
 * form. Internal to src/tls; the decoded form borrows the DER it came from.
 */
#ifndef TLS_CERT_PRIV_H
#define TLS_CERT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tls/key_priv.h"
#include "tls/lib.h"
#include "tls/spiffe.h"

struct buf;

/* Decodes a certificate (CERT_TYPE) or request (CERTREQ_TYPE) of exactly `len` bytes; `verify` as the
 * library's wc_ParseCert. On success the caller frees with wc_FreeDecodedCert. 0 or the library's error. */
int cert_decode(struct DecodedCert *dc, const uint8_t *der, size_t len, int type, int verify);

/* Whether a SAN entry is a URI that parses as a SPIFFE id; `ret_id` borrows it. */
bool cert_san_spiffe(const struct DNS_entry *san, struct spiffe *ret_id);

/*
 * The first SAN of the certificate's order that is a URI (and a SPIFFE id, if
 * `spiffe_only`). NULL when there is none. Borrowed from `dc`.
 */
const struct DNS_entry *cert_first_uri(const struct DecodedCert *dc, bool spiffe_only);

/* The public key's point if it is one of P-256, else NULL. Borrowed from `dc`. */
const uint8_t *cert_point(const struct DecodedCert *dc);

/* Whether the certificate of `der` holds the public half of `key`. */
bool cert_has_key(const uint8_t *der, size_t len, const struct tls_key *key);

#endif
