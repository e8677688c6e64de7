/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Identities: the CA's answers of every shape (reference control.md 6.3), and what is kept of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "fixture.h"
#include "base/mem.h"
#include "tls/ctx.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"
#define BOB "spiffe://cluster.local/ns/default/sa/bob"

static const struct tls_policy plain;
static const char junk[] = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";

struct world {
	struct authority root, middle, other;
	struct tls_key *key;
	char *leaf, *far_leaf;
};

static int world_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;
	struct leaf_options options = {.uris = {ALICE}};
	authority_root(&w->root, "root");
	authority_root(&w->other, "other");
	authority_under(&w->middle, "middle", &w->root);
	tls_key_new(&w->key, &err);
	w->leaf = leaf_pem(&w->root, w->key, &options);
	w->far_leaf = leaf_pem(&w->middle, w->key, &options);
	*state = w;
	return 0;
}

static int world_down(void **state)
{
	struct world *w = *state;
	authority_done(&w->root);
	authority_done(&w->middle);
	authority_done(&w->other);
	tls_key_unref(w->key);
	free(w->leaf);
	free(w->far_leaf);
	free(w);
	return 0;
}

/* Takes a CA's answer as the broker cuts it: all but the last element, the last. */
static int answer(const struct world *w, const char *const *elements, size_t cnt, const char *expected,
        struct tls_identity **ret_identity, struct err *err)
{
	memset(err, 0, sizeof(*err));
	*ret_identity = NULL;
	if (cnt < 2)
		return tls_identity_new(w->key, elements, cnt, "", expected, &plain, ret_identity, err);
	return tls_identity_new(
	        w->key, elements, cnt - 1, elements[cnt - 1], expected, &plain, ret_identity, err);
}

static void test_no_element(void **state)
{
	struct tls_identity *identity;
	struct err err;
	assert_int_equal(answer(*state, NULL, 0, ALICE, &identity, &err), ERR_SIGNING);
	assert_string_equal(err.text, "chain returned from CA is empty for: " ALICE);
	assert_null(identity);
}

static void test_one_element(void **state)
{
	struct world *w = *state;
	const char *elements[] = {w->leaf};
	struct tls_identity *identity;
	struct err err;
	assert_int_equal(answer(w, elements, 1, ALICE, &identity, &err), ERR_SIGNING);
	assert_string_equal(err.text, "no root certificate present");
}

static void test_two_elements(void **state)
{
	struct world *w = *state;
	const char *elements[] = {w->leaf, w->root.pem};
	struct tls_identity *identity;
	struct err err;
	assert_int_equal(answer(w, elements, 2, ALICE, &identity, &err), 0);
	assert_int_equal(tls_identity_chain(identity)->cnt, 1);
	assert_int_equal(tls_identity_roots(identity)->cnt, 1);
	assert_string_equal(tls_identity_id(identity), ALICE);
	assert_in_range(time(NULL) - tls_identity_not_before(identity), 3600, 3605);
	assert_in_range(tls_identity_not_after(identity) - time(NULL), 3595, 3600);
	struct tls_identity *again = tls_identity_ref(identity);
	tls_identity_unref(identity);
	assert_string_equal(tls_identity_id(again), ALICE);
	tls_identity_unref(again);
	tls_identity_unref(NULL);
}

static void test_three_elements(void **state)
{
	struct world *w = *state;
	const char *elements[] = {w->far_leaf, w->middle.pem, w->root.pem};
	struct tls_identity *identity;
	struct err err;
	WOLFSSL_CTX *first, *second;
	assert_int_equal(answer(w, elements, 3, ALICE, &identity, &err), 0);
	assert_int_equal(tls_identity_chain(identity)->cnt, 2);
	assert_int_equal(tls_identity_roots(identity)->cnt, 1);
	/* Contexts are made once. */
	assert_int_equal(tls_identity_ctx(identity, false, &first, &err), 0);
	assert_int_equal(tls_identity_ctx(identity, false, &second, &err), 0);
	assert_ptr_equal(first, second);
	assert_int_equal(tls_identity_ctx(identity, true, &second, &err), 0);
	assert_ptr_not_equal(first, second);
	tls_identity_unref(identity);
}

static void test_only_first_blocks_count(void **state)
{
	struct world *w = *state;
	char two[8192];
	snprintf(two, sizeof(two), "%s%s", w->leaf, junk);
	const char *elements[] = {two, w->root.pem};
	struct tls_identity *identity;
	struct err err;
	assert_int_equal(answer(w, elements, 2, ALICE, &identity, &err), 0);
	assert_int_equal(tls_identity_chain(identity)->cnt, 1);
	tls_identity_unref(identity);
}

static void test_several_roots(void **state)
{
	struct world *w = *state;
	char roots[8192];
	snprintf(roots, sizeof(roots), "%s%s%s", w->other.pem, junk, w->root.pem);
	const char *elements[] = {w->leaf, roots};
	struct tls_identity *identity;
	struct err err;
	assert_int_equal(answer(w, elements, 2, ALICE, &identity, &err), 0);
	assert_int_equal(tls_identity_roots(identity)->cnt, 2);
	/* A peer under either is let in; one whose roots lack ours refuses us, so both have both. */
	struct leaf_options bob = {.uris = {BOB}};
	struct tls_identity *under_other;
	struct tls_key *key;
	assert_int_equal(tls_key_new(&key, &err), 0);
	char *leaf = leaf_pem(&w->other, key, &bob);
	assert_int_equal(
	        tls_identity_new(key, (const char *const[]){leaf}, 1, roots, BOB, &plain, &under_other, &err),
	        0);
	struct pair p;
	pair_init(&p, identity, under_other, BOB);
	pair_handshake(&p);
	assert_int_equal(p.client_ret, 0);
	assert_int_equal(p.server_ret, 0);
	pair_done(&p);
	tls_identity_unref(under_other);
	tls_identity_unref(identity);
	tls_key_unref(key);
	free(leaf);
}

static void test_bad_blocks(void **state)
{
	struct world *w = *state;
	const char *bad_leaf[] = {junk, w->root.pem};
	const char *bad_middle[] = {w->far_leaf, "", w->root.pem};
	const char *bad_roots[] = {w->leaf, junk};
	struct tls_identity *identity;
	struct err err;
	assert_int_equal(answer(w, bad_leaf, 2, ALICE, &identity, &err), ERR_CERT_PARSE);
	assert_int_equal(answer(w, bad_middle, 3, ALICE, &identity, &err), ERR_CERT_PARSE);
	assert_int_equal(answer(w, bad_roots, 2, ALICE, &identity, &err), ERR_SIGNING);
	assert_string_equal(err.text, "no root certificate present");
	assert_null(identity);
}

static void test_wrong_identity(void **state)
{
	struct world *w = *state;
	const char *elements[] = {w->leaf, w->root.pem};
	struct tls_identity *identity;
	struct err err;
	assert_int_equal(answer(w, elements, 2, BOB, &identity, &err), ERR_SIGNING);
	assert_string_equal(err.text, "did not find expected SAN: " BOB);
	/* Dedicated mode does not look. */
	assert_int_equal(answer(w, elements, 2, NULL, &identity, &err), 0);
	tls_identity_unref(identity);
}

static void test_wrong_key(void **state)
{
	struct world *w = *state;
	struct tls_identity *identity = NULL;
	struct err err;
	const char *chain[] = {w->leaf};
	assert_int_equal(tls_identity_new(w->root.key, chain, 1, w->root.pem, ALICE, &plain, &identity, &err),
	        ERR_SIGNING);
	assert_string_equal(err.text, "the certificate was not issued for our key");
	assert_null(identity);
}

static void test_no_spiffe_id(void **state)
{
	struct world *w = *state;
	struct leaf_options options = {.uris = {"https://a/", ALICE}};
	char *leaf = leaf_pem(&w->root, w->key, &options);
	const char *elements[] = {leaf, w->root.pem};
	struct tls_identity *identity;
	struct err err;
	assert_int_equal(answer(w, elements, 2, NULL, &identity, &err), 0);
	assert_string_equal(tls_identity_id(identity), "");
	tls_identity_unref(identity);
	assert_int_equal(answer(w, elements, 2, ALICE, &identity, &err), ERR_SIGNING);
	free(leaf);
}

static unsigned fail_at;

bool mem_should_fail(size_t len)
{
	return fail_at && --fail_at == 0;
}

static void test_out_of_memory(void **state)
{
	struct world *w = *state;
	const char *elements[] = {w->far_leaf, w->middle.pem, w->root.pem};
	struct tls_identity *identity;
	struct err err;
	int ret = -ENOMEM;
	unsigned n;
	for (n = 1; ret != 0; n++) {
		fail_at = n;
		ret = answer(w, elements, 3, ALICE, &identity, &err);
		assert_true(ret == 0 || ret == -ENOMEM);
		assert_true(n < 200);
	}
	fail_at = 0;
	assert_true(n > 10);
	tls_identity_unref(identity);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_no_element),
	        cmocka_unit_test(test_one_element),
	        cmocka_unit_test(test_two_elements),
	        cmocka_unit_test(test_three_elements),
	        cmocka_unit_test(test_only_first_blocks_count),
	        cmocka_unit_test(test_several_roots),
	        cmocka_unit_test(test_bad_blocks),
	        cmocka_unit_test(test_wrong_identity),
	        cmocka_unit_test(test_wrong_key),
	        cmocka_unit_test(test_no_spiffe_id),
	        cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, world_up, world_down);
}
