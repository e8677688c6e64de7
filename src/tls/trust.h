/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the broker needs to speak to the control plane over TLS: roots and the
 * names the server may have; no certificate of our own (reference control.md
 * 4.1 and 7). The counterpart of identity.h, which is for workloads.
 */
#ifndef TLS_TRUST_H
#define TLS_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "tls/identity.h"

/* Roots and accepted server names, immutable and counted. */
struct tls_trust;

/*
 * `roots` is PEM text of `roots_len` bytes (configured, or the content of the
 * system's bundle); unusable blocks are skipped and no root at all is no error
 * here, see tls_trust_is_empty(). `name` is the host of the address, a DNS
 * name (sent as SNI, checked against the DNS SANs) or an IP literal without
 * brackets (no SNI, checked against the IP SANs). `alt_name` is a second name
 * the certificate may carry instead, NULL = none. All texts are only read.
 * Returns 0 and one reference, -EINVAL for an empty or overlong name, -ENOMEM.
 */
int tls_trust_new(const char *roots, size_t roots_len, const char *name, const char *alt_name,
        const struct tls_policy *policy, struct tls_trust **ret_trust, struct err *err);

/* Whether it has no root at all, so that no handshake can succeed. */
bool tls_trust_is_empty(const struct tls_trust *trust);

/* Takes one more reference; returns `trust`. */
struct tls_trust *tls_trust_ref(struct tls_trust *trust);

/* Drops a reference; the last one frees all. NULL is fine. */
void tls_trust_unref(struct tls_trust *trust);

#endif
