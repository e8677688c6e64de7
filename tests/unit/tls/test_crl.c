/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is taken for a CRL and what is not; sessions before and after a set arrives. Chains, signatures and
 * handshakes with OpenSSL's CRLs are in tests/e2e/test_n_inbound.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/buf.h"
#include "fixture.h"
#include "tls/cert.h"
#include "tls/crl.h"
#include "tls/der.h"
#include "tls/key.h"
#include "tls/lib.h"
#include "tls/pem.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"
#define BOB "spiffe://cluster.local/ns/default/sa/bob"

static const uint8_t ECDSA_SHA256[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2};

static void algorithm(struct der *d)
{
	size_t since = der_len(d);
	der_elem(d, DER_OID, ECDSA_SHA256, sizeof(ECDSA_SHA256));
	der_wrap(d, DER_SEQ, since);
}

/* A CRL of `issuer`, signed by `signer`, that lists one serial, and ran out long ago. */
static void make_crl(
        struct der *out, const struct authority *issuer, struct tls_key *signer, const struct tls_cert *cert)
{
	struct der tbs;
	uint8_t hash[WC_SHA256_DIGEST_SIZE];
	uint8_t signature[128];
	size_t signature_len = sizeof(signature);
	der_init(&tbs);
	if (cert) {
		der_time(&tbs, 1000000000);
		der_uint(&tbs, cert->serial, cert->serial_len);
		der_wrap(&tbs, DER_SEQ, 0);
		der_wrap(&tbs, DER_SEQ, 0);
	}
	der_time(&tbs, 1000000100);
	der_time(&tbs, 1000000000);
	size_t since = der_len(&tbs);
	der_raw(&tbs, der_bytes(&issuer->name), der_len(&issuer->name));
	der_wrap(&tbs, DER_SEQ, since);
	algorithm(&tbs);
	der_uint(&tbs, (const uint8_t *)"\x01", 1);
	der_wrap(&tbs, DER_SEQ, 0);
	assert_int_equal(wc_Sha256Hash(der_bytes(&tbs), (word32)der_len(&tbs), hash), 0);
	assert_int_equal(tls_key_sign(signer, hash, sizeof(hash), signature, &signature_len), 0);
	der_init(out);
	der_bits(out, signature, signature_len);
	algorithm(out);
	der_raw(out, der_bytes(&tbs), der_len(&tbs));
	der_wrap(out, DER_SEQ, 0);
}

struct world {
	struct authority root;
	struct authority middle;
	struct tls_revocation *revocation;
	struct tls_identity *alice;
	struct tls_identity *bob;
	int told;
};

static int world_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	authority_root(&w->root, "test");
	authority_under(&w->middle, "middle", &w->root);
	w->revocation = tls_revocation_new();
	const struct tls_policy policy = {.revocation = w->revocation};
	const struct leaf_options alice = {.uris = {ALICE}};
	const struct leaf_options bob = {.uris = {BOB}};
	w->alice = identity_under(&w->root, &w->middle, &alice, &policy);
	w->bob = identity_under(&w->root, &w->root, &bob, &policy);
	*state = w;
	return 0;
}

static int world_down(void **state)
{
	struct world *w = *state;
	tls_identity_unref(w->alice);
	tls_identity_unref(w->bob);
	tls_revocation_free(w->revocation);
	authority_done(&w->middle);
	authority_done(&w->root);
	free(w);
	return 0;
}

static struct tls_crls *crls_of(const struct der *der)
{
	struct tls_crls *crls = NULL;
	struct err err = {0};
	assert_int_equal(tls_crls_new(der_bytes(der), der_len(der), &crls, &err), 0);
	assert_int_equal(tls_crls_cnt(crls), 1);
	return crls;
}

static void on_told(void *ctx)
{
	(*(int *)ctx)++;
}

static void expect(struct world *w, int client_ret, int server_ret)
{
	struct pair p;
	pair_init(&p, w->alice, w->bob, BOB);
	pair_handshake(&p);
	assert_int_equal(p.server_ret, server_ret);
	if (client_ret)
		assert_true(p.client_ret < 0 || p.server_ret < 0);
	else
		assert_int_equal(p.client_ret, 0);
	pair_done(&p);
}

static const struct tls_cert *cert_of(struct tls_identity *identity, size_t i)
{
	return &tls_identity_chain(identity)->all[i];
}

static void judges_handshakes(void **state)
{
	struct world *w = *state;
	struct der der;
	expect(w, 0, 0);
	/* The leaf, by its own issuer. */
	make_crl(&der, &w->middle, w->middle.key, cert_of(w->alice, 0));
	tls_revocation_set(w->revocation, crls_of(&der));
	expect(w, -1, ERR_TLS_REVOKED);
	/* The intermediate, by the root. */
	make_crl(&der, &w->root, w->root.key, cert_of(w->alice, 1));
	tls_revocation_set(w->revocation, crls_of(&der));
	expect(w, -1, ERR_TLS_REVOKED);
	/* Its serial on another issuer's list means nothing. */
	make_crl(&der, &w->root, w->root.key, cert_of(w->alice, 0));
	tls_revocation_set(w->revocation, crls_of(&der));
	expect(w, 0, 0);
	/* An empty list; nothing at all. */
	make_crl(&der, &w->middle, w->middle.key, NULL);
	tls_revocation_set(w->revocation, crls_of(&der));
	expect(w, 0, 0);
	/* Another's signature under the issuer's name: not ignored. */
	make_crl(&der, &w->middle, w->root.key, NULL);
	tls_revocation_set(w->revocation, crls_of(&der));
	expect(w, -1, ERR_TLS_HANDSHAKE);
	tls_revocation_set(w->revocation, NULL);
	expect(w, 0, 0);
}

static void judges_what_is_established(void **state)
{
	struct world *w = *state;
	struct pair p;
	struct der der;
	int told = 0;
	pair_init(&p, w->alice, w->bob, BOB);
	tls_on_revoked(p.server, on_told, &told);
	pair_handshake(&p);
	assert_int_equal(p.server_ret, 0);
	make_crl(&der, &w->middle, w->middle.key, NULL);
	tls_revocation_set(w->revocation, crls_of(&der));
	assert_int_equal(told, 0);
	make_crl(&der, &w->middle, w->middle.key, cert_of(w->alice, 0));
	tls_revocation_set(w->revocation, crls_of(&der));
	assert_int_equal(told, 1);
	pair_done(&p);
	/* Gone sessions are not asked. */
	make_crl(&der, &w->middle, w->middle.key, cert_of(w->alice, 0));
	tls_revocation_set(w->revocation, crls_of(&der));
	assert_int_equal(told, 1);
}

/* C5: everything under an intermediate goes with it. */
static void test_C5_revoked_intermediate_of_what_is_established(void **state)
{
	struct world *w = *state;
	struct pair p;
	struct der der;
	int server_told = 0, client_told = 0;
	pair_init(&p, w->alice, w->bob, BOB);
	tls_on_revoked(p.server, on_told, &server_told);
	tls_on_revoked(p.client, on_told, &client_told);
	pair_handshake(&p);
	assert_int_equal(p.server_ret, 0);
	make_crl(&der, &w->root, w->root.key, cert_of(w->alice, 1));
	tls_revocation_set(w->revocation, crls_of(&der));
	assert_int_equal(server_told, 1);
	/* The server's certificate is by the root itself. */
	assert_int_equal(client_told, 0);
	pair_done(&p);
}

/* C6: a list that comes while a handshake is under way is the one that it is judged by. */
static void test_C6_list_that_comes_during_a_handshake(void **state)
{
	struct world *w = *state;
	struct pair p;
	struct der der;
	pair_init(&p, w->alice, w->bob, BOB);
	p.client_ret = p.server_ret = -EAGAIN;
	pair_rounds(&p, 1);
	assert_int_equal(p.client_ret, -EAGAIN);
	assert_int_equal(p.server_ret, -EAGAIN);
	make_crl(&der, &w->middle, w->middle.key, cert_of(w->alice, 0));
	tls_revocation_set(w->revocation, crls_of(&der));
	pair_rounds(&p, 9);
	assert_int_equal(p.server_ret, ERR_TLS_REVOKED);
	pair_done(&p);
}

static void expect_refused(const void *bytes, size_t len)
{
	struct tls_crls *crls = NULL;
	struct err err = {0};
	assert_int_equal(tls_crls_new(bytes, len, &crls, &err), ERR_CERT_PARSE);
	assert_true(err.text[0]);
}

static void reads_files(void **state)
{
	struct world *w = *state;
	struct tls_crls *crls = NULL;
	struct der der;
	struct buf pem;
	make_crl(&der, &w->root, w->root.key, cert_of(w->bob, 0));
	assert_int_equal(tls_crls_new("", 0, &crls, NULL), 0);
	assert_int_equal(tls_crls_cnt(crls), 0);
	tls_crls_free(crls);
	/* Other blocks are skipped, two lists are two. */
	buf_init(&pem, 1u << 16);
	buf_add_str(&pem, w->root.pem);
	assert_int_equal(tls_crls_new(pem.data, pem.len, &crls, NULL), 0);
	assert_int_equal(tls_crls_cnt(crls), 0);
	tls_crls_free(crls);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pem_encode("X509 CRL", der_bytes(&der), der_len(&der), 64, &pem), 0);
	assert_int_equal(tls_crls_new(pem.data, pem.len, &crls, NULL), 0);
	assert_int_equal(tls_crls_cnt(crls), 2);
	tls_crls_free(crls);
	expect_refused(pem.data, pem.len - 30);
	buf_done(&pem);
	/* Cut, followed by something, or not DER at all. */
	for (size_t len = 1; len < der_len(&der); len++)
		expect_refused(der_bytes(&der), len);
	uint8_t longer[DER_MAX + 1] = {0};
	memcpy(longer, der_bytes(&der), der_len(&der));
	expect_refused(longer, der_len(&der) + 1);
	expect_refused("garbage", 7);
	tls_crls_free(NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(judges_handshakes),
	        T(judges_what_is_established),
	        T(test_C5_revoked_intermediate_of_what_is_established),
	        T(test_C6_list_that_comes_during_a_handshake),
	        T(reads_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
