/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A workload's identity: private key, certificate chain and the roots that
 * came with it (reference control.md 6.3), immutable and counted. Sessions
 * made under it hold a reference, so that a renewal never disturbs them. The
 * library's client and server contexts are built at their first use and
 * shared by all sessions of the identity.
 */
#ifndef TLS_IDENTITY_H
#define TLS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tls/cert.h"

struct err;
struct tls_key;
struct tls_revocation;

/* What the settings say of TLS (control.md 7). */
struct tls_policy {
	bool tls12;                        /* TLS12_ENABLED: also speak TLS 1.2 */
	bool pqc_only;                     /* COMPLIANCE_POLICY=pqc: X25519MLKEM768 and no other group */
	struct tls_revocation *revocation; /* where sessions find the CRLs; borrowed, NULL = none */
};

/* Key, chain and roots; see above. */
struct tls_identity;

/*
 * Checks and assembles an identity.
 *
 * `key` must be the one of the leaf; a reference is taken. `chain` holds
 * `chain_cnt` PEM texts as the CA answered them without the last element:
 * [0] the leaf, then the intermediates; of each the first block counts.
 * `roots` is the last element: every certificate in it becomes an anchor,
 * unusable ones are skipped. `expected` is the SPIFFE id that must be the
 * leaf's first URI SAN, NULL = not checked (dedicated mode). All texts are
 * only read.
 *
 * Returns 0 and one reference in `ret_identity`; ERR_SIGNING ("chain returned
 * from CA is empty for: <id>", "no root certificate present", "did not find
 * expected SAN: <id>", a key that is not the leaf's); ERR_CERT_PARSE for a
 * block that is no certificate; -ENOMEM.
 */
int tls_identity_new(struct tls_key *key, const char *const *chain, size_t chain_cnt, const char *roots,
        const char *expected, const struct tls_policy *policy, struct tls_identity **ret_identity,
        struct err *err);

/* Takes one more reference; returns `identity`. */
struct tls_identity *tls_identity_ref(struct tls_identity *identity);

/* Drops a reference; the last one frees all. NULL is fine. */
void tls_identity_unref(struct tls_identity *identity);

/* Leaf, then intermediates; at least one. Borrowed for the life of `identity`. */
const struct tls_certs *tls_identity_chain(const struct tls_identity *identity);

/* The trust anchors. Borrowed likewise. */
const struct tls_certs *tls_identity_roots(const struct tls_identity *identity);

/* Our own SPIFFE id: the leaf's first URI SAN if it parses, else "". Borrowed likewise. */
const char *tls_identity_id(const struct tls_identity *identity);

/* Validity of the leaf, seconds since the epoch; renewal is due at not_before + (not_after - not_before) / 2.
 */
int64_t tls_identity_not_before(const struct tls_identity *identity);
int64_t tls_identity_not_after(const struct tls_identity *identity);

#endif
