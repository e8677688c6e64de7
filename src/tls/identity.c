/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identities: see identity.h. Checks what the CA answered and keeps it; knows
 * the library only through the contexts it caches.
 */
#include "tls/identity.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "tls/cert_priv.h"
#include "tls/ctx.h"

struct tls_identity {
	unsigned refs;            /* references */
	struct tls_key *key;      /* one reference */
	struct tls_certs chain;   /* leaf, intermediates */
	struct tls_certs roots;   /* anchors */
	struct tls_policy policy; /* copied */
	const char *id;           /* of the leaf's first URI SAN, "" if that is no SPIFFE id */
	WOLFSSL_CTX *client;      /* NULL until first used */
	WOLFSSL_CTX *server;      /* likewise */
};

/* The leaf's first URI SAN, if it parses. */
static const char *own_id(const struct tls_cert *leaf)
{
	struct spiffe id;
	return spiffe_parse(leaf->uri_san, strlen(leaf->uri_san), &id) == 0 ? leaf->uri_san : "";
}

static int take_chain(struct tls_identity *identity, const char *const *chain, size_t cnt, struct err *err)
{
	for (size_t i = 0; i < cnt; i++) {
		int ret = tls_certs_add_pem(
		        &identity->chain, chain[i], strlen(chain[i]), TLS_PEM_FIRST, NULL, err);
		if (ret != 0)
			return ret;
	}
	return 0;
}

static int take_roots(struct tls_identity *identity, const char *roots, struct err *err)
{
	int ret = tls_certs_add_pem(&identity->roots, roots, strlen(roots), TLS_PEM_ALL_USABLE, NULL, err);
	if (ret == 0 && identity->roots.cnt == 0)
		ret = err_set(err, ERR_SIGNING, "no root certificate present");
	return ret;
}

static int check_leaf(const struct tls_identity *identity, const char *expected, struct err *err)
{
	const struct tls_cert *leaf = &identity->chain.all[0];
	if (expected && strcmp(leaf->uri_san, expected) != 0)
		return err_set(err, ERR_SIGNING, "did not find expected SAN: %s", expected);
	if (!cert_has_key(leaf->der, leaf->der_len, identity->key))
		return err_set(err, ERR_SIGNING, "the certificate was not issued for our key");
	return 0;
}

int tls_identity_new(struct tls_key *key, const char *const *chain, size_t chain_cnt, const char *roots,
        const char *expected, const struct tls_policy *policy, struct tls_identity **ret_identity,
        struct err *err)
{
	if (chain_cnt == 0)
		return err_set(err, ERR_SIGNING, "chain returned from CA is empty for: %s",
		        expected ? expected : "");
	struct tls_identity *identity = mem_zalloc(1, sizeof(*identity));
	if (!identity)
		return err_set(err, -ENOMEM, "out of memory");
	identity->refs = 1;
	identity->key = tls_key_ref(key);
	identity->policy = *policy;
	int ret = take_chain(identity, chain, chain_cnt, err);
	if (ret == 0)
		ret = take_roots(identity, roots, err);
	if (ret == 0)
		ret = check_leaf(identity, expected, err);
	if (ret != 0) {
		tls_identity_unref(identity);
		return ret;
	}
	identity->id = own_id(&identity->chain.all[0]);
	*ret_identity = identity;
	return 0;
}

struct tls_identity *tls_identity_ref(struct tls_identity *identity)
{
	identity->refs++;
	return identity;
}

void tls_identity_unref(struct tls_identity *identity)
{
	if (!identity || --identity->refs > 0)
		return;
	wolfSSL_CTX_free(identity->client);
	wolfSSL_CTX_free(identity->server);
	tls_certs_done(&identity->chain);
	tls_certs_done(&identity->roots);
	tls_key_unref(identity->key);
	mem_free(identity);
}

const struct tls_certs *tls_identity_chain(const struct tls_identity *identity)
{
	return &identity->chain;
}

const struct tls_certs *tls_identity_roots(const struct tls_identity *identity)
{
	return &identity->roots;
}

const char *tls_identity_id(const struct tls_identity *identity)
{
	return identity->id;
}

int64_t tls_identity_not_before(const struct tls_identity *identity)
{
	return identity->chain.all[0].not_before;
}

int64_t tls_identity_not_after(const struct tls_identity *identity)
{
	return identity->chain.all[0].not_after;
}

int tls_identity_ctx(struct tls_identity *identity, bool is_server, WOLFSSL_CTX **ret_ctx, struct err *err)
{
	WOLFSSL_CTX **ctx = is_server ? &identity->server : &identity->client;
	if (!*ctx) {
		int ret = ctx_new(is_server, &identity->policy, &identity->chain, &identity->roots, ctx, err);
		if (ret != 0)
			return ret;
	}
	*ret_ctx = *ctx;
	return 0;
}

struct tls_key *tls_identity_key(const struct tls_identity *identity)
{
	return identity->key;
}

const struct tls_policy *tls_identity_policy(const struct tls_identity *identity)
{
	return &identity->policy;
}
