/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verdicts on leaves: trust domains, accept lists, hostile names in error texts. Names of servers:
 * test_openssl.py. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fixture.h"
#include "tls/cert.h"
#include "tls/verify.h"

#define ALICE "spiffe://td/ns/a/sa/alice"
#define BOB "spiffe://td/ns/a/sa/bob"
#define FAR "spiffe://far/ns/a/sa/bob"

struct world {
	struct authority root;
	struct tls_key *key;
};

static int world_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;
	authority_root(&w->root, "test");
	tls_key_new(&w->key, &err);
	*state = w;
	return 0;
}

static int world_down(void **state)
{
	struct world *w = *state;
	authority_done(&w->root);
	tls_key_unref(w->key);
	free(w);
	return 0;
}

/* The verdict on a leaf with these SANs; *ret_peer is malloc'd on success. */
static int judge(const struct world *w, const struct verify_rule *rule, const char *a, const char *b,
        const char *c, char **ret_peer, struct err *err)
{
	struct leaf_options options = {.uris = {a, b, c}};
	struct tls_certs certs = {0};
	char *pem = leaf_pem(&w->root, w->key, &options);
	assert_int_equal(tls_certs_add_pem(&certs, pem, strlen(pem), TLS_PEM_FIRST, NULL, err), 0);
	*ret_peer = NULL;
	int ret = verify_leaf(rule, certs.all[0].der, certs.all[0].der_len, ret_peer, err);
	tls_certs_done(&certs);
	free(pem);
	return ret;
}

static void good(const struct world *w, const struct verify_rule *rule, const char *a, const char *b,
        const char *c, const char *want)
{
	struct err err;
	char *peer;
	assert_int_equal(judge(w, rule, a, b, c, &peer, &err), 0);
	assert_string_equal(peer, want);
	free(peer);
}

static void bad(
        const struct world *w, const struct verify_rule *rule, const char *a, const char *b, const char *text)
{
	struct err err;
	char *peer;
	assert_int_equal(judge(w, rule, a, b, NULL, &peer, &err), ERR_TLS_SAN);
	assert_null(peer);
	assert_string_equal(err.text, text);
}

static void test_trust_domain(void **state)
{
	struct verify_rule rule = {.kind = VERIFY_TRUST_DOMAIN, .own_id = ALICE};
	good(*state, &rule, BOB, NULL, NULL, BOB);
	good(*state, &rule, FAR, BOB, NULL, FAR);
	good(*state, &rule, "https://x/", BOB, ALICE, BOB);
	bad(*state, &rule, FAR, NULL,
	        "identity verification error: peer did not present the expected trust domain (td), got [" FAR
	        "]");
	bad(*state, &rule, "https://x/", "spiffe://td/x",
	        "identity verification error: peer did not present the expected trust domain (td), got []");
	bad(*state, &rule, NULL, NULL,
	        "identity verification error: peer did not present the expected trust domain (td), got []");
	/* We are nobody: anyone may come, with or without a name. */
	rule.own_id = "";
	good(*state, &rule, FAR, NULL, NULL, FAR);
	good(*state, &rule, NULL, NULL, NULL, "");
}

static void test_accept(void **state)
{
	const char *list[] = {BOB, "not an id", "https://x/", FAR};
	struct verify_rule rule = {.kind = VERIFY_ACCEPT, .accept = list, .accept_cnt = 4};
	good(*state, &rule, BOB, NULL, NULL, BOB);
	good(*state, &rule, ALICE, FAR, NULL, ALICE);
	bad(*state, &rule, ALICE, NULL,
	        "identity verification error: peer did not present the expected SAN (" BOB
	        ", not an id, https://x/, " FAR "), got [" ALICE "]");
	/* A name that is no SPIFFE id never counts, even if it is listed. */
	rule.accept_cnt = 3;
	bad(*state, &rule, "https://x/", NULL,
	        "identity verification error: peer did not present the expected SAN (" BOB
	        ", not an id, https://x/), got []");
	rule.accept_cnt = 0;
	bad(*state, &rule, BOB, NULL,
	        "identity verification error: peer did not present the expected SAN (), got [" BOB "]");
}

static void test_near_misses(void **state)
{
	const char *list[] = {BOB};
	struct verify_rule rule = {.kind = VERIFY_ACCEPT, .accept = list, .accept_cnt = 1};
	static const char *const near[] = {
	        BOB "x", "spiffe://td/ns/a/sa/bo", "spiffe://TD/ns/a/sa/bob", "spiffe://td/ns/a/sa/bob/"};
	for (size_t i = 0; i < 4; i++) {
		struct err err;
		char *peer;
		assert_int_equal(judge(*state, &rule, near[i], NULL, NULL, &peer, &err), ERR_TLS_SAN);
	}
}

static void test_hostile_text(void **state)
{
	char longest[2049] = "spiffe://far/ns/a/sa/";
	struct verify_rule rule = {.kind = VERIFY_TRUST_DOMAIN, .own_id = ALICE};
	struct err err;
	char *peer;
	memset(longest + 21, 'x', sizeof(longest) - 22);
	assert_int_equal(judge(*state, &rule, longest, NULL, NULL, &peer, &err), ERR_TLS_SAN);
	assert_true(strlen(err.text) < ERR_TEXT_MAX);
	/* A line break would forge a log line. */
	bad(*state, &rule, "spiffe://far/ns/a/sa/x\ny", NULL,
	        "identity verification error: peer did not present the expected trust domain (td), got [spiffe://far/ns/a/sa/x?y]");
}

static void test_not_a_certificate(void **state)
{
	struct verify_rule rule = {.kind = VERIFY_TRUST_DOMAIN, .own_id = ""};
	struct err err;
	char *peer = NULL;
	assert_int_equal(verify_leaf(&rule, (const uint8_t *)"\x30\x00", 2, &peer, &err), ERR_TLS_HANDSHAKE);
	assert_null(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_trust_domain),
	        cmocka_unit_test(test_accept),
	        cmocka_unit_test(test_near_misses),
	        cmocka_unit_test(test_hostile_text),
	        cmocka_unit_test(test_not_a_certificate),
	};
	return cmocka_run_group_tests(tests, world_up, world_down);
}
