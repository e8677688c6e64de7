/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: a CRL file, PEM or DER, and a chain judged by it. The input is
 * file and certificate at once: whatever it is, walking it stays inside.
 */
#include <stdint.h>

#include "base/check.h"
#include "base/err.h"
#include "tls/crl_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct tls_crls *crls = NULL;
	struct tls_certs roots = {0};
	struct crl_span chain[] = {{data, len}};
	const struct crl_member member = {.roots = &roots, .chain = chain, .chain_cnt = 1};
	struct err err = {0};
	int r = tls_crls_new(data, len, &crls, &err);
	ASSERT(r == 0 || (r < 0 && err.text[0]));
	if (r < 0)
		return 0;
	ASSERT(tls_crls_cnt(crls) <= TLS_CRL_MAX);
	r = crl_check(crls, &member, &err);
	ASSERT(r == 0 || r == ERR_TLS_HANDSHAKE);
	tls_crls_free(crls);
	return 0;
}
