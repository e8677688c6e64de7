/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The embedded certificate authority (FAKE_CA=true, reference control.md
 * 6.9): one root per run directory, kept across restarts of the broker so
 * that the trust does not split. For tests and machines without a control
 * plane. Requests come from silos and are hostile until checked.
 */
#ifndef TLS_CA_H
#define TLS_CA_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

/* Names of the two files inside the directory, both mode 0600. */
#define TLS_CA_CERT_FILE "ca-root.pem"
#define TLS_CA_KEY_FILE "ca-root.key"
/* Largest request that is looked at, bytes of PEM; a P-256 one is below 1 KB. */
#define TLS_CA_CSR_MAX 8192u
/* Longest life of a leaf, seconds: 90 days, as the mesh's own CA allows. */
#define TLS_CA_TTL_MAX (90u * 24u * 3600u)
/* Life of a leaf when 0 is asked for: 24 hours. */
#define TLS_CA_TTL_DEFAULT (24u * 3600u)

/* The root and its key. */
struct tls_ca;

/*
 * Loads the root from the directory `dir_fd` (borrowed), or makes one there:
 * ECDSA P-256, O=cluster.local, about ten years. Two callers at once end with
 * the same root: files appear whole (written under another name, linked into
 * place), and the first to appear wins. A file of another owner or one that
 * others can access is refused. Returns 0, -EBADMSG (broken or not matching
 * files), -EPERM (owner or mode), -ENOMEM, or the error of the file system.
 */
int tls_ca_open(int dir_fd, struct tls_ca **ret_ca, struct err *err);

/* The same without any file: a root that lives as long as the process (tests). */
int tls_ca_new(struct tls_ca **ret_ca, struct err *err);

/* Wipes and frees. NULL is fine. */
void tls_ca_free(struct tls_ca *ca);

/*
 * Signs the PEM request `csr` of `csr_len` bytes for `identity`: its own
 * signature must hold, and its subjectAltName must be exactly one URI equal
 * to `identity`, a SPIFFE id. The leaf lives `ttl` seconds from now (0 =
 * TLS_CA_TTL_DEFAULT, capped at TLS_CA_TTL_MAX), starts two minutes back, and
 * is appended to `ret_leaf` as PEM. Returns 0, -EBADMSG (no good request),
 * -EACCES (another identity), -EINVAL (`identity` is no SPIFFE id), -ENOMEM,
 * -EIO.
 */
int tls_ca_sign(struct tls_ca *ca, const char *csr, size_t csr_len, const char *identity, uint32_t ttl,
        struct buf *ret_leaf, struct err *err);

/* The root as PEM text, NUL-terminated, borrowed for the life of `ca`. */
const char *tls_ca_root_pem(const struct tls_ca *ca);

#endif
