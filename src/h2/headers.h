/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Header lists of one HTTP/2 message: what a peer sent, kept under a ceiling
 * in one allocation, and what we are about to send. Knows nothing of streams,
 * sessions or the meaning of a header.
 */
#ifndef CULVERT_H2_HEADERS_H
#define CULVERT_H2_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One header line to send. Both strings are borrowed for the call. */
struct h2_header {
	const char *name;  /* lower case, NUL-terminated; pseudo headers are not given here */
	const char *value; /* NUL-terminated, visible ASCII, spaces and tabs inside only */
	/*
	 * The value hardly ever repeats (traceparent, forwarded): send it as a
	 * never-indexed literal, so that it does not push the useful lines out
	 * of the compression table (RFC 7541 section 6.2.3).
	 */
	bool is_unique;
};

/*
 * Header lines received, in order of arrival. Lines lie one behind the other
 * in one buffer, each as "name NUL value NUL". Embedded; init, then done.
 */
struct h2_headers {
	char *bytes;    /* owned; NULL while empty */
	size_t len;     /* bytes used */
	size_t cap;     /* bytes allocated */
	size_t max;     /* ceiling of len */
	uint32_t count; /* lines kept */
};

/* A position inside a struct h2_headers; zero it to start at the first line. */
struct h2_headers_it {
	size_t pos;        /* offset of the next line to look at */
	const char *name;  /* the line found; borrowed from the headers */
	const char *value; /* its value, NUL-terminated; borrowed from the headers */
	size_t value_len;  /* length of value in bytes (it holds no NUL: session.h refuses those) */
};

/* Make an empty list that keeps at most `max` bytes, names and NULs included. Cannot fail. */
void h2_headers_init(struct h2_headers *headers, size_t max);

/* Free what the list holds and make it empty. */
void h2_headers_done(struct h2_headers *headers);

/*
 * Append a copy of one line. Returns 0, -E2BIG when the ceiling would be
 * passed, or -ENOMEM; the list is unchanged on failure.
 */
int h2_headers_add(
        struct h2_headers *headers, const char *name, size_t name_len, const char *value, size_t value_len);

/*
 * Step to the next line named `name` (lower case; pseudo headers with their
 * colon; NULL = any line). Returns false when there is none.
 */
bool h2_headers_next(const struct h2_headers *headers, const char *name, struct h2_headers_it *it);

/* The value of the first line named `name`, or NULL. Borrowed from the headers. */
const char *h2_headers_get(const struct h2_headers *headers, const char *name);

#endif
