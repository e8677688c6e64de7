/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * X.509 certificates as values: what a dump, a renewal timer or an identity
 * check wants to know of one. Trust is not judged here: a parsed certificate
 * is only well formed (session.h verifies peers).
 */
#ifndef TLS_CERT_H
#define TLS_CERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

/* Largest DER certificate that is read; real ones are below 4 KB. */
#define TLS_CERT_DER_MAX 16384u
/* Most certificates in one PEM bundle: the system's store holds about 150. */
#define TLS_CERT_BUNDLE_MAX 512u
/* Longest serial number kept, bytes; RFC 5280 4.1.2.2 allows 20. */
#define TLS_CERT_SERIAL_MAX 32u
/* Room for the decimal form of the longest serial and its NUL. */
#define TLS_CERT_SERIAL_TEXT_MAX 80u
/* Room for an RFC 3339 time in whole seconds and its NUL. */
#define TLS_CERT_TIME_MAX 32u

/* One parsed certificate; owns all it points to. */
struct tls_cert {
	uint8_t *der;                        /* the certificate itself */
	size_t der_len;                      /* bytes */
	int64_t not_before;                  /* start of validity, seconds since the epoch, UTC */
	int64_t not_after;                   /* end of validity, same unit */
	uint8_t serial[TLS_CERT_SERIAL_MAX]; /* big endian, no leading zero byte */
	size_t serial_len;                   /* bytes, 0 for the number zero */
	char *uri_san;                       /* first URI subjectAltName, "" when there is none */
	char *spiffe_id; /* first URI subjectAltName that parses as SPIFFE, "" when there is none */
	bool is_ca;      /* basicConstraints CA:TRUE */
};

/* A list of certificates, in the order they were read. */
struct tls_certs {
	struct tls_cert *all; /* array of cnt, owned */
	size_t cnt;           /* entries in all */
};

/* Which blocks of a PEM text are read, and what a bad one means. */
enum tls_pem_take {
	TLS_PEM_FIRST,      /* the first block only; it must be a good certificate */
	TLS_PEM_ALL,        /* every block; each must be a good certificate */
	TLS_PEM_ALL_USABLE, /* every CERTIFICATE block; those that do not parse are skipped and counted */
};

/* Parses one DER certificate of exactly `len` bytes. `ret_cert` is owned by the caller (tls_cert_done).
 * Returns 0, ERR_CERT_PARSE or -ENOMEM. */
int tls_cert_parse(const uint8_t *der, size_t len, struct tls_cert *ret_cert, struct err *err);

/* Frees what `cert` owns and clears it. */
void tls_cert_done(struct tls_cert *cert);

/*
 * Appends the certificates of a PEM text of `len` bytes to `certs` (zeroed by
 * the caller at first). `skipped` counts unusable blocks of
 * TLS_PEM_ALL_USABLE; it may be NULL. Text outside the blocks is ignored.
 * Returns 0; ERR_CERT_PARSE for a bad block, or for no block at all unless
 * TLS_PEM_ALL_USABLE was asked for; ERR_TOO_MANY above TLS_CERT_BUNDLE_MAX;
 * -ENOMEM.
 * On failure `certs` keeps what it had before the call.
 */
int tls_certs_add_pem(struct tls_certs *certs, const char *pem, size_t len, enum tls_pem_take take,
        unsigned *skipped, struct err *err);

/* Frees all certificates and clears the list. */
void tls_certs_done(struct tls_certs *certs);

/*
 * Appends `cert` as PEM, LF line ends, `columns` characters a line (64 as
 * openssl does, 60 for the config dump, control.md 11.5; between 4 and 76).
 * Returns 0 or the error of `out`.
 */
int tls_cert_pem(const struct tls_cert *cert, unsigned columns, struct buf *out);

/* The serial number in decimal, as dumps show it. */
void tls_cert_serial_text(const struct tls_cert *cert, char ret_text[TLS_CERT_SERIAL_TEXT_MAX]);

/* A time of a certificate as RFC 3339, UTC, whole seconds, "Z". */
void tls_cert_time_text(int64_t seconds, char ret_text[TLS_CERT_TIME_MAX]);

#endif
