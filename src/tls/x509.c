/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Certificates we make: see x509.h. Elements are written last to first
 * (der.h).
 */
#include "tls/x509.h"

#include <errno.h>
#include <string.h>

#include "tls/lib.h"

int x509_key_id(const uint8_t *point, uint8_t ret_id[EXT_KEY_ID_LEN])
{
	uint8_t hash[WC_SHA256_DIGEST_SIZE];
	if (wc_Sha256Hash(point, KEY_POINT_LEN, hash) != 0)
		return -EIO;
	memcpy(ret_id, hash, EXT_KEY_ID_LEN);
	return 0;
}

/* The extensions with their [3]. */
static void put_extensions(struct der *d, const struct x509_plan *plan, const uint8_t *subject_id)
{
	size_t since = der_len(d);
	der_ext_authority_key(d, plan->issuer_id);
	if (plan->is_ca)
		der_ext_subject_key(d, subject_id);
	if (plan->uri_cnt)
		der_ext_uri_san(d, plan->uris, plan->uri_cnt);
	der_ext_basic(d, plan->is_ca);
	if (!plan->is_ca)
		der_ext_both_auth(d);
	der_ext_key_usage(
	        d, plan->is_ca ? EXT_KU_CERT_SIGN | EXT_KU_CRL_SIGN : EXT_KU_SIGNATURE | EXT_KU_ENCIPHER);
	der_wrap(d, DER_SEQ, since);
	der_wrap(d, DER_CTX3, since);
}

static void put_validity(struct der *d, const struct x509_plan *plan)
{
	size_t since = der_len(d);
	der_time(d, plan->not_after);
	der_time(d, plan->not_before);
	der_wrap(d, DER_SEQ, since);
}

static void put_version(struct der *d)
{
	size_t since = der_len(d);
	der_uint(d, (const uint8_t *)"\x02", 1); /* version 3 is written 2 */
	der_wrap(d, DER_CTX0, since);
}

int x509_make(const struct x509_plan *plan, struct tls_key *signer, struct der *ret_cert)
{
	uint8_t serial[X509_SERIAL_LEN];
	uint8_t subject_id[EXT_KEY_ID_LEN];
	int ret = tls_key_random(signer, serial, sizeof(serial));
	if (ret == 0)
		ret = x509_key_id(plan->point, subject_id);
	if (ret != 0)
		return ret;
	struct der d;
	der_init(&d);
	put_extensions(&d, plan, subject_id);
	der_spki(&d, plan->point);
	der_elem(&d, DER_SEQ, plan->subject.rdns, plan->subject.len);
	put_validity(&d, plan);
	der_elem(&d, DER_SEQ, plan->issuer.rdns, plan->issuer.len);
	der_ecdsa_sha256(&d);
	der_uint(&d, serial, sizeof(serial));
	put_version(&d);
	der_wrap(&d, DER_SEQ, 0);
	return tls_key_sign_der(signer, &d, ret_cert);
}
