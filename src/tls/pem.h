/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PEM armour (RFC 7468): finds and decodes blocks, and writes them. Text
 * outside the blocks is ignored. Knows no certificate. Internal to src/tls.
 */
#ifndef TLS_PEM_H
#define TLS_PEM_H

#include <stddef.h>
#include <stdint.h>

struct buf;

/* Longest label between the dashes; known ones are below 30 bytes. */
#define PEM_LABEL_MAX 64u

/* One block found. */
struct pem_block {
	char label[PEM_LABEL_MAX]; /* "CERTIFICATE" and so on, NUL-terminated */
	const char *body;          /* base64 text between the lines, borrowed */
	size_t body_len;           /* bytes */
};

/*
 * Finds the next block in [*at, end) and moves *at behind it. Returns 1 with
 * `ret_block`, 0 when there is none, -EBADMSG for a BEGIN without its END or
 * with an overlong label.
 */
int pem_next(const char **at, const char *end, struct pem_block *ret_block);

/* Decodes the body into `out` (appended; its max is the ceiling). 0, -EBADMSG (no base64, nothing in it),
 * -EMSGSIZE, -ENOMEM. */
int pem_decode(const struct pem_block *block, struct buf *out);

/* Appends a block with lines of `columns` characters and LF ends. 0 or the error of `out`. */
int pem_encode(const char *label, const uint8_t *der, size_t len, unsigned columns, struct buf *out);

#endif
