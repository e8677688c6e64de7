/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The certificate request, PKCS#10 (RFC 2986), in the one form the mesh's CAs
 * expect (reference control.md 6.2). Knows the key only through its signature.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "tls/ext.h"
#include "tls/key_priv.h"
#include "tls/pem.h"
#include "tls/spiffe.h"

/* extensionRequest (RFC 2985 5.4.2). */
static const uint8_t oid_extension_request[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e};

/* CertificationRequestInfo; elements are written last to first. */
static void csr_info(struct der *d, const struct tls_key *key, const char *uri)
{
	der_init(d);
	der_ext_uri_san(d, &uri, 1);
	der_wrap(d, DER_SEQ, 0);
	der_wrap(d, DER_SET, 0);
	der_elem(d, DER_OID, oid_extension_request, sizeof(oid_extension_request));
	der_wrap(d, DER_SEQ, 0);
	der_wrap(d, DER_CTX0, 0);
	der_spki(d, tls_key_point(key));
	der_elem(d, DER_SEQ, "", 0);         /* empty subject */
	der_uint(d, (const uint8_t *)"", 1); /* version 1 is written 0 */
	der_wrap(d, DER_SEQ, 0);
}

int tls_csr_make(struct tls_key *key, const char *spiffe_uri, struct buf *out, struct err *err)
{
	struct spiffe id;
	if (spiffe_parse(spiffe_uri, strlen(spiffe_uri), &id) != 0)
		return err_set(err, -EINVAL, "invalid spiffe identity: %s", spiffe_uri);
	struct der info;
	struct der csr;
	csr_info(&info, key, spiffe_uri);
	int ret = tls_key_sign_der(key, &info, &csr);
	if (ret == 0)
		ret = pem_encode("CERTIFICATE REQUEST", der_bytes(&csr), der_len(&csr), 64, out);
	return ret == 0 ? 0 : err_sys(err, ret, "failed to create CSR");
}
