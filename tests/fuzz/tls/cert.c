/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: a peer's leaf under each rule, and the fields of a parsed
 * certificate. First byte: bit 0 set = the rest is PEM text, else DER.
 */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "tls/cert.h"
#include "tls/spiffe.h"
#include "tls/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_fields(const struct tls_cert *cert)
{
	char serial[TLS_CERT_SERIAL_TEXT_MAX], when[TLS_CERT_TIME_MAX];
	struct buf pem;
	struct spiffe id;
	buf_init(&pem, 4 * TLS_CERT_DER_MAX);
	ASSERT(cert->spiffe_id[0] == 0 || spiffe_parse(cert->spiffe_id, strlen(cert->spiffe_id), &id) == 0);
	tls_cert_serial_text(cert, serial);
	tls_cert_time_text(cert->not_before, when);
	tls_cert_time_text(cert->not_after, when);
	ASSERT(tls_cert_pem(cert, 60, &pem) == 0);
	/* What is written must read as the same. */
	struct tls_certs back = {0};
	ASSERT(tls_certs_add_pem(&back, (const char *)pem.data, pem.len, TLS_PEM_ALL, NULL, NULL) == 0);
	ASSERT(back.cnt == 1 && back.all[0].der_len == cert->der_len);
	ASSERT(memcmp(back.all[0].der, cert->der, cert->der_len) == 0);
	tls_certs_done(&back);
	buf_done(&pem);
}

static void judge(const uint8_t *der, size_t len)
{
	static const char *const accept[] = {"spiffe://cluster.local/ns/default/sa/alice", "junk"};
	const struct verify_rule rules[] = {
	        {.kind = VERIFY_TRUST_DOMAIN, .own_id = "spiffe://cluster.local/ns/default/sa/bob"},
	        {.kind = VERIFY_TRUST_DOMAIN, .own_id = ""},
	        {.kind = VERIFY_ACCEPT, .accept = accept, .accept_cnt = 2},
	        {.kind = VERIFY_NAMES, .names = {"istiod.istio-system.svc", "10.0.0.1"}},
	        {.kind = VERIFY_NAMES, .names = {"fd00::1", NULL}},
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct err err;
		char *peer = NULL;
		int ret = verify_leaf(&rules[i], der, len, &peer, &err);
		ASSERT((ret == 0) == (peer != NULL));
		ASSERT(ret == 0 || err.text[0] != 0);
		mem_free(peer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 1)
		return 0;
	struct tls_certs certs = {0};
	struct tls_cert cert;
	if (data[0] & 1) {
		unsigned skipped;
		if (tls_certs_add_pem(&certs, (const char *)data + 1, len - 1, TLS_PEM_ALL_USABLE, &skipped,
		            NULL) == 0) {
			for (size_t i = 0; i < certs.cnt; i++)
				check_fields(&certs.all[i]);
		}
		tls_certs_done(&certs);
		return 0;
	}
	judge(data + 1, len - 1);
	if (tls_cert_parse(data + 1, len - 1, &cert, NULL) == 0) {
		check_fields(&cert);
		tls_cert_done(&cert);
	}
	return 0;
}
