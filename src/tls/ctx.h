/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Library contexts with the mesh's defaults (reference dataplane.md 7), and
 * what identity.c and trust.c lend to the sessions. Internal to src/tls.
 */
#ifndef TLS_CTX_H
#define TLS_CTX_H

#include <stdbool.h>
#include <stddef.h>

#include "tls/identity.h"
#include "tls/lib.h"
#include "tls/trust.h"

/* The session's callbacks, set on every context (session.c). */
int session_on_recv(WOLFSSL *ssl, char *buf, int cap, void *arg);
int session_on_send(WOLFSSL *ssl, char *buf, int len, void *arg);
int session_on_verify(int is_fine, WOLFSSL_X509_STORE_CTX *store);
int session_on_sign(WOLFSSL *ssl, const unsigned char *hash, unsigned int hash_len, unsigned char *sig,
        word32 *sig_len, const unsigned char *key_der, unsigned int key_len, void *arg);

/*
 * Makes a context for one side. `chain` is what we present, NULL = nothing
 * (control plane client). `roots` are the anchors. The caller frees with
 * wolfSSL_CTX_free. 0, -ENOMEM, ERR_TLS_SETUP.
 */
int ctx_new(bool is_server, const struct tls_policy *policy, const struct tls_certs *chain,
        const struct tls_certs *roots, WOLFSSL_CTX **ret_ctx, struct err *err);

/* The key share a client sends: one group only, as upstream. */
int ctx_key_share(const struct tls_policy *policy);

/* The identity's context of one side, built at the first call and borrowed for the identity's life. */
int tls_identity_ctx(struct tls_identity *identity, bool is_server, WOLFSSL_CTX **ret_ctx, struct err *err);

/* The identity's key and policy, borrowed. */
struct tls_key *tls_identity_key(const struct tls_identity *identity);
const struct tls_policy *tls_identity_policy(const struct tls_identity *identity);

/* As above for the control plane. */
int tls_trust_ctx(struct tls_trust *trust, WOLFSSL_CTX **ret_ctx, struct err *err);
const struct tls_policy *tls_trust_policy(const struct tls_trust *trust);

/* Name `i` (0 the host, 1 the alternative) that the server may have, NULL if not set; borrowed. */
const char *tls_trust_name(const struct tls_trust *trust, unsigned i);

#endif
