/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes certificates (RFC 5280 4.1): for the embedded CA, and for tests that
 * need odd ones. Knows no file and no policy. Internal to src/tls.
 */
#ifndef TLS_X509_H
#define TLS_X509_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tls/ext.h"
#include "tls/key_priv.h"

/* Bytes of the serial numbers we make; below the 20 of RFC 5280 4.1.2.2. */
#define X509_SERIAL_LEN 16u

/* A distinguished name: the content of its SEQUENCE, borrowed. */
struct x509_name {
	const uint8_t *rdns; /* SETs as they stand in a Name */
	size_t len;          /* bytes; 0 = the empty name */
};

/* What the certificate says. All pointers are borrowed. */
struct x509_plan {
	struct x509_name issuer;  /* subject of the signer */
	struct x509_name subject; /* empty for workloads */
	int64_t not_before;       /* seconds since the epoch */
	int64_t not_after;        /* likewise */
	const uint8_t *point;     /* subject's public key, KEY_POINT_LEN bytes */
	const uint8_t *issuer_id; /* signer's key identifier, EXT_KEY_ID_LEN bytes */
	const char *const *uris;  /* URI SANs, array of uri_cnt; one critical extension */
	size_t uri_cnt;           /* 0 = no subjectAltName */
	bool is_ca;               /* CA certificate: no extKeyUsage, keyCertSign and cRLSign */
};

/* The identifier of a public key: SHA-256 of the point, cut (RFC 7093 2, method 1). 0 or -EIO. */
int x509_key_id(const uint8_t *point, uint8_t ret_id[EXT_KEY_ID_LEN]);

/* Signs the plan with `signer`, giving it a random serial number. 0, -EIO, -EMSGSIZE. */
int x509_make(const struct x509_plan *plan, struct tls_key *signer, struct der *ret_cert);

#endif
