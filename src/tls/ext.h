/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * X.509 extensions (RFC 5280 4.2.1) that requests and the embedded CA's
 * certificates carry, each put in front of what `d` holds. Internal to
 * src/tls.
 */
#ifndef TLS_EXT_H
#define TLS_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tls/der.h"

/* Bits of keyUsage, as the first byte of its BIT STRING (RFC 5280 4.2.1.3). */
#define EXT_KU_SIGNATURE 0x80u
#define EXT_KU_ENCIPHER 0x20u
#define EXT_KU_CERT_SIGN 0x04u
#define EXT_KU_CRL_SIGN 0x02u

/* Bytes of a key identifier. */
#define EXT_KEY_ID_LEN 20u

/* subjectAltName of `cnt` URIs; critical, as it must be beside an empty subject (RFC 5280 4.2.1.6). */
void der_ext_uri_san(struct der *d, const char *const *uris, size_t cnt);

/* keyUsage, critical; `bits` are EXT_KU_x. */
void der_ext_key_usage(struct der *d, uint8_t bits);

/* extKeyUsage: serverAuth and clientAuth. */
void der_ext_both_auth(struct der *d);

/* basicConstraints, critical. */
void der_ext_basic(struct der *d, bool is_ca);

/* subjectKeyIdentifier and authorityKeyIdentifier. */
void der_ext_subject_key(struct der *d, const uint8_t id[EXT_KEY_ID_LEN]);
void der_ext_authority_key(struct der *d, const uint8_t id[EXT_KEY_ID_LEN]);

#endif
