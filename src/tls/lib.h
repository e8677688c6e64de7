/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The wolfSSL headers as src/tls uses them, in their one order (options
 * first), and the few helpers every file here needs of the library. Internal
 * to src/tls: nothing outside may see a wolfSSL type.
 */
#ifndef TLS_LIB_H
#define TLS_LIB_H

#include <wolfssl/options.h>
#include <wolfssl/wolfcrypt/settings.h>
#include <wolfssl/ssl.h>
#include <wolfssl/wolfcrypt/asn.h>
#include <wolfssl/wolfcrypt/asn_public.h>
#include <wolfssl/wolfcrypt/coding.h>
#include <wolfssl/wolfcrypt/ecc.h>
#include <wolfssl/wolfcrypt/error-crypt.h>
#include <wolfssl/wolfcrypt/random.h>
#include <wolfssl/wolfcrypt/sha256.h>

#ifndef HAVE_PK_CALLBACKS
#error "wolfSSL without --enable-pkcallbacks: run scripts/setup again"
#endif
#ifndef WOLFSSL_ALWAYS_VERIFY_CB
#error "wolfSSL without WOLFSSL_ALWAYS_VERIFY_CB: identities would go unchecked"
#endif

struct err;

/* Initialises the library; cheap when it is already. 0 or -ENOMEM. */
int tls_lib_init(void);

/*
 * The code and text of a library error during a handshake or on a session:
 * -ENOMEM, else `code`. `err` may be NULL. `alert` is the number of a fatal
 * alert the peer sent, or -1.
 */
int tls_lib_error(int lib_error, int alert, int code, struct err *err);

/* Name of an alert as logs show it ("CertificateUnknown"), "unknown alert" if it has none. */
const char *tls_alert_name(int alert);

#endif
