/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the leaf of a peer, whose chain the library has already verified,
 * is one that we want to speak to (reference dataplane.md 7, control.md 4.1).
 * Pure: a rule, a certificate, a verdict. Internal to src/tls. Revocation
 * will be one more check beside this one.
 */
#ifndef TLS_VERIFY_H
#define TLS_VERIFY_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* What is asked of the peer. */
enum verify_kind {
	VERIFY_TRUST_DOMAIN, /* a SPIFFE id of our own trust domain */
	VERIFY_ACCEPT,       /* a SPIFFE id of the list */
	VERIFY_NAMES,        /* a DNS name or an address */
};

/* The rule; all pointers are borrowed. */
struct verify_rule {
	enum verify_kind kind;     /* decides which fields count */
	const char *own_id;        /* VERIFY_TRUST_DOMAIN: our SPIFFE id; "" = any peer is fine */
	const char *const *accept; /* VERIFY_ACCEPT: array of accept_cnt */
	size_t accept_cnt;         /* entries in accept */
	const char *names[2];      /* VERIFY_NAMES: host names or IP literals, NULL = none */
};

/*
 * Judges the leaf `der`. On success `ret_peer` gets the peer's identity, its
 * first SPIFFE URI SAN or "", owned by the caller. 0, ERR_TLS_SAN with the
 * text of dataplane.md 17, ERR_TLS_HANDSHAKE (the certificate does not
 * parse), -ENOMEM.
 */
int verify_leaf(
        const struct verify_rule *rule, const uint8_t *der, size_t len, char **ret_peer, struct err *err);

#endif
