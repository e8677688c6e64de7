/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SPIFFE identities as the mesh writes them: spiffe://<td>/ns/<ns>/sa/<sa>
 * (reference dataplane.md 7, control.md 6.1). Text only: knows no
 * certificate and no TLS library.
 */
#ifndef TLS_SPIFFE_H
#define TLS_SPIFFE_H

#include <stdbool.h>
#include <stddef.h>

/* Longest identity that is accepted or made; a SAN above it is skipped like an unparsable one. */
#define SPIFFE_MAX 2048u

/* The three variable parts of an identity; each points into the parsed text and may be empty. */
struct spiffe {
	const char *td; /* trust domain */
	size_t td_len;  /* bytes */
	const char *ns; /* namespace */
	size_t ns_len;  /* bytes */
	const char *sa; /* service account */
	size_t sa_len;  /* bytes */
};

/*
 * Splits `text` of `len` bytes: prefix "spiffe://", then exactly five parts
 * between slashes, the second "ns" and the fourth "sa". Parts may be empty; no
 * character is refused but NUL, which would let two identities print alike.
 * `ret_id` borrows `text`. Returns 0 or -EINVAL.
 */
int spiffe_parse(const char *text, size_t len, struct spiffe *ret_id);

/*
 * Writes the identity of the three parts, NUL-terminated, into `buf` of `cap`
 * bytes. Returns its length, -ENAMETOOLONG if it does not fit, -EINVAL if a
 * part holds a slash (the result would not parse back).
 */
int spiffe_format(const char *td, const char *ns, const char *sa, char *buf, size_t cap);

/* True when both identities are of the same trust domain, byte by byte. */
bool spiffe_same_td(const struct spiffe *a, const struct spiffe *b);

#endif
