/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Library contexts: see ctx.h. Everything that is the same for all sessions
 * of an identity is set here; must not know identities or sessions beyond
 * their callbacks.
 */
#include "tls/ctx.h"

#include <errno.h>

#include "base/buf.h"
#include "base/err.h"

/* Ceiling of our own chain as PEM; the mesh's have two or three certificates of 1 KB. */
#define CTX_CHAIN_MAX (256u << 10)

#define SUITES_13 "TLS13-AES256-GCM-SHA384:TLS13-AES128-GCM-SHA256"
#define SUITES_12                                                                                            \
	":ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256"                                       \
	":ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"

static WOLFSSL_METHOD *method(bool is_server, const struct tls_policy *policy)
{
	if (policy->tls12)
		return is_server ? wolfTLS_server_method() : wolfTLS_client_method();
	return is_server ? wolfTLSv1_3_server_method() : wolfTLSv1_3_client_method();
}

static int set_protocol(WOLFSSL_CTX *ctx, const struct tls_policy *policy)
{
	if (policy->tls12 && wolfSSL_CTX_SetMinVersion(ctx, WOLFSSL_TLSV1_2) != WOLFSSL_SUCCESS)
		return -EINVAL;
	if (wolfSSL_CTX_set_cipher_list(ctx, policy->tls12 ? SUITES_13 SUITES_12 : SUITES_13) !=
	        WOLFSSL_SUCCESS)
		return -EINVAL;
	return 0;
}

static int set_groups(WOLFSSL_CTX *ctx, const struct tls_policy *policy)
{
#ifdef WOLFSSL_HAVE_MLKEM
	int all[] = {
	        WOLFSSL_ECC_X25519, WOLFSSL_ECC_SECP256R1, WOLFSSL_ECC_SECP384R1, WOLFSSL_X25519MLKEM768};
	int hybrid[] = {WOLFSSL_X25519MLKEM768};
	int ret = policy->pqc_only ? wolfSSL_CTX_set_groups(ctx, hybrid, 1)
	                           : wolfSSL_CTX_set_groups(ctx, all, 4);
#else
	int all[] = {WOLFSSL_ECC_X25519, WOLFSSL_ECC_SECP256R1, WOLFSSL_ECC_SECP384R1};
	int ret = policy->pqc_only ? WOLFSSL_FAILURE : wolfSSL_CTX_set_groups(ctx, all, 3);
#endif
	return ret == WOLFSSL_SUCCESS ? 0 : -EINVAL;
}

int ctx_key_share(const struct tls_policy *policy)
{
#ifdef WOLFSSL_HAVE_MLKEM
	if (policy->pqc_only)
		return WOLFSSL_X25519MLKEM768;
#endif
	return WOLFSSL_ECC_X25519;
}

static int set_chain(WOLFSSL_CTX *ctx, const struct tls_certs *chain)
{
	struct buf pem;
	buf_init(&pem, CTX_CHAIN_MAX);
	for (size_t i = 0; i < chain->cnt; i++)
		tls_cert_pem(&chain->all[i], 64, &pem);
	int ret = pem.err;
	if (ret == 0 &&
	        wolfSSL_CTX_use_certificate_chain_buffer(ctx, pem.data, (long)pem.len) != WOLFSSL_SUCCESS)
		ret = -EINVAL;
	buf_done(&pem);
	wolfSSL_CTX_SetEccSignCb(ctx, session_on_sign);
	return ret;
}

/* Anchors the library cannot use are left out, like those that do not parse. */
static void set_roots(WOLFSSL_CTX *ctx, const struct tls_certs *roots)
{
	for (size_t i = 0; i < roots->cnt; i++) {
		/* An anchor is trusted whatever its own dates say. */
		wolfSSL_CTX_load_verify_buffer_ex(ctx, roots->all[i].der, (long)roots->all[i].der_len,
		        WOLFSSL_FILETYPE_ASN1, 0, WOLFSSL_LOAD_FLAG_DATE_ERR_OKAY);
	}
}

int ctx_new(bool is_server, const struct tls_policy *policy, const struct tls_certs *chain,
        const struct tls_certs *roots, WOLFSSL_CTX **ret_ctx, struct err *err)
{
	WOLFSSL_CTX *ctx = wolfSSL_CTX_new(method(is_server, policy));
	if (!ctx)
		return err_set(err, -ENOMEM, "out of memory for a TLS context");
	int ret = set_protocol(ctx, policy);
	if (ret == 0)
		ret = set_groups(ctx, policy);
	if (ret == 0 && chain)
		ret = set_chain(ctx, chain);
	/* One generator for all sessions instead of one each; right only in the process that makes it. */
	if (ret == 0 && wolfSSL_CTX_new_rng(ctx) != WOLFSSL_SUCCESS)
		ret = -ENOMEM;
	if (ret != 0) {
		wolfSSL_CTX_free(ctx);
		if (ret == -ENOMEM)
			return err_set(err, -ENOMEM, "out of memory for a TLS context");
		return err_set(err, ERR_TLS_SETUP, "the TLS library refuses the %s",
		        policy->pqc_only ? "post-quantum policy or the certificate chain"
		                         : "certificate chain");
	}
	set_roots(ctx, roots);
	wolfSSL_CTX_set_verify(
	        ctx, WOLFSSL_VERIFY_PEER | WOLFSSL_VERIFY_FAIL_IF_NO_PEER_CERT, session_on_verify);
	wolfSSL_CTX_SetIORecv(ctx, session_on_recv);
	wolfSSL_CTX_SetIOSend(ctx, session_on_send);
	*ret_ctx = ctx;
	return 0;
}
