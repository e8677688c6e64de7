/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One number space for errors: negative errno values, then culvert's own
 * codes below -1000 from culvert/errors.tbl.h. Set-up code adds a struct err
 * with a text that is wrapped upward and printed once by the owner.
 * Knows nothing of logs or processes.
 */
#ifndef CULVERT_BASE_ERR_H
#define CULVERT_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of an error text with its terminator; longer texts are cut. */
#define ERR_TEXT_MAX 512

/* What a failed connection shows as response_flags (reference control.md 12). */
enum response_flag {
	RESPONSE_FLAG_NONE = 0,             /* "-" */
	RESPONSE_FLAG_DENY,                 /* policy said no */
	RESPONSE_FLAG_CONNECT,              /* any other failure */
	RESPONSE_FLAG_TLS_FAILURE,          /* TLS could not be set up */
	RESPONSE_FLAG_H2_HANDSHAKE_FAILURE, /* HTTP/2 failed */
	RESPONSE_FLAG_NETWORK_POLICY,       /* connect to 15008 timed out */
	RESPONSE_FLAG_IDENTITY_ERROR,       /* no certificate */
	RESPONSE_FLAG_CERT_REVOKED,         /* peer is on the CRL */
};

/* Positions of the rows; only used to number the codes. */
enum err_row {
#define E(name, text, flag) ERR_ROW_##name,
#include "culvert/errors.tbl.h"
#undef E
	ERR_ROW_CNT
};

/* Our own codes, ERR_<NAME>, from -1001 downward in the order of the table. */
enum err_code {
#define E(name, text, flag) ERR_##name = -1001 - ERR_ROW_##name,
#include "culvert/errors.tbl.h"
#undef E
};

/* An error with its story; zeroed = no error. */
struct err {
	int code;                /* 0, negative errno or ERR_x */
	char text[ERR_TEXT_MAX]; /* terminated, without newline; "" when code is 0 */
};

/*
 * Sets code and formatted text. err may be NULL. Returns code, so that
 * `return err_set(err, -EINVAL, "...")` reads naturally.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Like err_set, the text being the formatted one, ": " and err_str(code). */
int err_sys(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts the formatted text and ": " before the present text. err may be NULL. Returns the present code. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Text of a code: ours from the table, else the C library's; never NULL, static. 0 gives "success". */
const char *err_str(int code);

/*
 * Text of an I/O error as upstream prints it: "Connection refused (os error
 * 111)" for an errno value, err_str() for our own codes. Writes at most cap
 * bytes with terminator into dst, returns dst.
 */
const char *err_io_text(int code, char *dst, size_t cap);

/* Response flag of a code: from the table for ours, NONE for 0, else CONNECT. */
enum response_flag err_flag(int code);

/* Response flag of a failure's words: of the longest text of the table that they begin with, else CONNECT;
 * NULL gives NONE. */
enum response_flag err_text_flag(const char *text);

/* Label text of a flag, "-" for NONE; static. */
const char *response_flag_str(enum response_flag flag);

#endif
