/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Workload identities as text, spiffe://<td>/ns/<ns>/sa/<sa>, for routing and
 * policy. Certificates are tls's matter and unknown here.
 */
#ifndef CULVERT_MESH_IDENTITY_H
#define CULVERT_MESH_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "culvert/records.h"

/* Longest identity text with terminator; longer ones are no identity. */
#define IDENTITY_STR_MAX 2049

/* The three parts; not terminated, borrowed from the text or record they came from. */
struct identity {
	const char *td; /* trust domain; may be empty in local mode */
	size_t td_len;  /* bytes */
	const char *ns; /* namespace */
	size_t ns_len;  /* bytes */
	const char *sa; /* service account */
	size_t sa_len;  /* bytes */
};

/* Splits a text of exactly the shape above; parts may be empty, none may hold a slash. 0 or -EINVAL. */
int identity_parse(const char *text, size_t len, struct identity *ret_identity);

/* The identity of a workload; borrows its strings. */
struct identity identity_of(const struct workload *workload);

/* Whether two identities are the same, byte by byte. */
bool identity_eq(const struct identity *a, const struct identity *b);

/* Writes the text with terminator. Returns its length, or -ENAMETOOLONG when it does not fit into `cap`. */
int identity_format(const struct identity *identity, char *dst, size_t cap);

#endif
