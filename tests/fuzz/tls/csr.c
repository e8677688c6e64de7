/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: a silo's certificate request to the embedded CA. First byte:
 * bit 0 set = the rest is PEM text, else DER that is put into PEM first.
 * Whatever is signed must be a leaf for the identity that was asked for.
 */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "tls/ca.h"
#include "tls/cert.h"
#include "tls/pem.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_leaf(const struct buf *leaf)
{
	struct tls_certs certs = {0};
	ASSERT(tls_certs_add_pem(&certs, (const char *)leaf->data, leaf->len, TLS_PEM_ALL, NULL, NULL) == 0);
	ASSERT(certs.cnt == 1 && !certs.all[0].is_ca && strcmp(certs.all[0].uri_san, ALICE) == 0);
	tls_certs_done(&certs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct tls_ca *ca;
	struct buf pem, leaf;
	struct err err;
	if (len < 1)
		return 0;
	if (!ca)
		ASSERT(tls_ca_new(&ca, &err) == 0);
	buf_init(&pem, 2 * TLS_CA_CSR_MAX);
	buf_init(&leaf, 16384);
	int ret = data[0] & 1 ? buf_add(&pem, data + 1, len - 1)
	                      : pem_encode("CERTIFICATE REQUEST", data + 1, len - 1, 64, &pem);
	if (ret == 0) {
		ret = tls_ca_sign(ca, pem.data ? (const char *)pem.data : "", pem.len, ALICE, 0, &leaf, &err);
		ASSERT((ret == 0) == (leaf.len > 0));
		if (ret == 0)
			check_leaf(&leaf);
	}
	buf_done(&pem);
	buf_done(&leaf);
	return 0;
}
