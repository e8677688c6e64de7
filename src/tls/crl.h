/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Revocation (reference dataplane.md 12): sets of CRLs, and the place where
 * all sessions of a process find the present set. A session whose policy names
 * that place refuses revoked peers, and is told when its peer becomes one.
 */
#ifndef TLS_CRL_H
#define TLS_CRL_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct tls_crls;
struct tls_revocation;

/* Most CRLs in one file: one a CA, and a mesh has few. */
#define TLS_CRL_MAX 1024u

/*
 * Reads a file: PEM if it starts with a PEM header (blocks other than X509 CRL are skipped), else one DER
 * CRL; an empty file is an empty set. Signatures are judged when a CRL is used. `ret_crls` is the caller's
 * (tls_crls_free). Returns 0, ERR_CERT_PARSE with the reason, ERR_TOO_MANY or -ENOMEM.
 */
int tls_crls_new(const void *bytes, size_t len, struct tls_crls **ret_crls, struct err *err);

/* Frees a set; not one that tls_revocation_set() took. NULL is fine. */
void tls_crls_free(struct tls_crls *crls);

/* CRLs in the set. */
size_t tls_crls_cnt(const struct tls_crls *crls);

/* Makes the place, with nothing revoked; it outlives all sessions. NULL when out of memory. */
struct tls_revocation *tls_revocation_new(void);

/* Frees place and set. NULL is fine. */
void tls_revocation_free(struct tls_revocation *revocation);

/*
 * Takes a new set. Every session whose handshake has come to the peer's chain is judged anew, whatever the
 * dates in it say by now; those that are revoked are told (tls_on_revoked), which may free any session.
 */
void tls_revocation_set(struct tls_revocation *revocation, struct tls_crls *crls);

#endif
