/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sessions and CRLs share. Internal to src/tls. */
#ifndef TLS_CRL_PRIV_H
#define TLS_CRL_PRIV_H

#include "base/list.h"
#include "tls/cert.h"
#include "tls/crl.h"
#include "tls/lib.h"

/* A borrowed piece of DER. */
struct crl_span {
	const uint8_t *p;
	size_t len; /* bytes */
};

/* Certificates of a peer that are kept for later judgements, at most; longer chains are refused. */
#define CRL_CHAIN_MAX 16u

/* A session as revocation sees it; embedded. */
struct crl_member {
	struct list node;              /* in the place's list once the chain is known */
	const struct tls_certs *roots; /* anchors, borrowed */
	struct crl_span *chain;        /* as the peer sent it, leaf first; owned, with the bytes behind it */
	size_t chain_cnt;              /* entries in chain */
	void (*told)(void *ctx);       /* the peer became revoked; NULL = nobody asks */
	void *ctx;
};

/*
 * Judges the peer's chain, of which the library has verified what leads to the anchors, and keeps it for
 * later sets. 0, ERR_TLS_REVOKED, ERR_TLS_HANDSHAKE (a CRL of its issuer does not verify; the chain is too
 * long), -ENOMEM.
 */
int crl_admit(struct tls_revocation *revocation, struct crl_member *member, const WOLFSSL_BUFFER_INFO *chain,
        size_t cnt, struct err *err);

/* Takes the session out; fine when it was never in. */
void crl_leave(struct crl_member *member);

/* Judges a chain by a set; as crl_admit(). */
int crl_check(struct tls_crls *crls, const struct crl_member *member, struct err *err);

#endif
