/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The certificate service's two messages (reference control.md 5.3, 6.2):
 * request out, response in. Bytes only; what a good chain is, is not judged
 * here.
 */
#ifndef CULVERT_PB_CITADEL_H
#define CULVERT_PB_CITADEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* The method of a certificate request. */
#define CITADEL_PATH "/istio.v1.auth.IstioCertificateService/CreateCertificate"

/* A request; texts are borrowed. */
struct citadel_request {
	const char *csr;          /* PEM */
	uint64_t validity_s;      /* wanted life of the certificate, seconds */
	const char *impersonated; /* SPIFFE id of the workload that we ask for; NULL = we ask for ourselves */
};

/* Appends the encoded request. ERR_TOO_LARGE, ERR_BAD_UTF8, -ENOMEM, -EMSGSIZE. */
int citadel_request_encode(const struct citadel_request *request, struct buf *out, struct err *err);

/* Decodes a response: the elements of its chain, in `arena`. ERR_PROTOCOL, ERR_TOO_LARGE, ERR_TOO_MANY,
 * ERR_BAD_UTF8, -ENOMEM. */
int citadel_response_decode(const uint8_t *bytes, size_t len, struct arena *arena,
        const char *const **ret_chain, size_t *ret_cnt, struct err *err);

#endif
