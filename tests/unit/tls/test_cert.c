/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Certificates as values: fields, bundles, texts for dumps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/rand.h"
#include "fixture.h"
#include "tls/cert_priv.h"
#include "tls/pem.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"

struct world {
	struct authority root;
	struct tls_key *key;
	char *leaf;
};

static int world_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;
	struct leaf_options options = {.uris = {"https://first.example/", ALICE, "spiffe://b/ns/c/sa/d"}};
	authority_root(&w->root, "test");
	tls_key_new(&w->key, &err);
	w->leaf = leaf_pem(&w->root, w->key, &options);
	*state = w;
	return 0;
}

static int world_down(void **state)
{
	struct world *w = *state;
	authority_done(&w->root);
	tls_key_unref(w->key);
	free(w->leaf);
	free(w);
	return 0;
}

static int add(struct tls_certs *certs, const char *pem, enum tls_pem_take take, unsigned *skipped)
{
	struct err err;
	return tls_certs_add_pem(certs, pem, strlen(pem), take, skipped, &err);
}

static void test_fields(void **state)
{
	struct world *w = *state;
	struct tls_certs certs = {0};
	assert_int_equal(add(&certs, w->leaf, TLS_PEM_FIRST, NULL), 0);
	assert_int_equal(add(&certs, w->root.pem, TLS_PEM_ALL, NULL), 0);
	assert_int_equal(certs.cnt, 2);
	const struct tls_cert *leaf = &certs.all[0];
	assert_string_equal(leaf->uri_san, "https://first.example/");
	assert_string_equal(leaf->spiffe_id, ALICE);
	assert_false(leaf->is_ca);
	assert_in_range(time(NULL) - leaf->not_before, 3600, 3605);
	assert_in_range(leaf->not_after - time(NULL), 3595, 3600);
	assert_in_range(leaf->serial_len, 12, X509_SERIAL_LEN);
	assert_true(certs.all[1].is_ca);
	assert_string_equal(certs.all[1].uri_san, "");
	assert_string_equal(certs.all[1].spiffe_id, "");
	assert_true(cert_has_key(leaf->der, leaf->der_len, w->key));
	assert_false(cert_has_key(leaf->der, leaf->der_len, w->root.key));
	tls_certs_done(&certs);
}

static void test_as_openssl_says(void **state)
{
	struct world *w = *state;
	struct tls_certs certs = {0};
	int status;
	char serial[TLS_CERT_SERIAL_TEXT_MAX], from[TLS_CERT_TIME_MAX], until[TLS_CERT_TIME_MAX], want[400];
	assert_int_equal(add(&certs, w->leaf, TLS_PEM_FIRST, NULL), 0);
	tls_cert_serial_text(&certs.all[0], serial);
	tls_cert_time_text(certs.all[0].not_before, from);
	tls_cert_time_text(certs.all[0].not_after, until);
	snprintf(want, sizeof(want), "%s\n%s\n%s\n", serial, from, until);
	char *out = run_command(
	        "openssl x509 -noout -serial -startdate -enddate -dateopt iso_8601 | sed 's/.*=//; s/ /T/' | "
	        "python3 -c 'import sys; n = sys.stdin.readline(); print(int(n, 16)); print(sys.stdin.read(), end=\"\")'",
	        w->leaf, &status);
	assert_string_equal(out, want);
	free(out);
	tls_certs_done(&certs);
}

static void test_serial_texts(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} rows[] = {
	        {"", 0, "0"},
	        {"\x01", 1, "1"},
	        {"\x0a", 1, "10"},
	        {"\xff", 1, "255"},
	        {"\x01\x00", 2, "256"},
	        {"\xe3\x75\x8a\xe7\xac\x16\x6f\x41", 8, "16390159146514018113"},
	        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16,
	                "340282366920938463463374607431768211455"},
	        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	                32, "115792089237316195423570985008687907853269984665640564039457584007913129639935"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tls_cert cert = {.serial_len = rows[i].len};
		char text[TLS_CERT_SERIAL_TEXT_MAX];
		memcpy(cert.serial, rows[i].bytes, rows[i].len);
		tls_cert_serial_text(&cert, text);
		assert_string_equal(text, rows[i].text);
	}
}

static void test_time_texts(void **state)
{
	char text[TLS_CERT_TIME_MAX];
	tls_cert_time_text(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00Z");
	tls_cert_time_text(4670162151, text);
	assert_string_equal(text, "2117-12-28T19:15:51Z");
}

static void test_pem_again(void **state)
{
	struct world *w = *state;
	struct tls_certs certs = {0};
	struct buf text;
	buf_init(&text, 65536);
	assert_int_equal(add(&certs, w->leaf, TLS_PEM_FIRST, NULL), 0);
	assert_int_equal(tls_cert_pem(&certs.all[0], 64, &text), 0);
	assert_string_equal(buf_cstr(&text), w->leaf);
	buf_clear(&text);
	assert_int_equal(tls_cert_pem(&certs.all[0], 60, &text), 0);
	const char *line = strchr(buf_cstr(&text), '\n') + 1;
	assert_int_equal(strchr(line, '\n') - line, 60);
	tls_certs_done(&certs);
	buf_done(&text);
}

static void test_bundles(void **state)
{
	struct world *w = *state;
	struct tls_certs certs = {0};
	unsigned skipped = 7;
	char all[20000];
	const char *junk = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
	const char *other = "-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n";
	snprintf(all, sizeof(all), "# roots\n%s%s%s%s", w->root.pem, junk, other, w->leaf);
	assert_int_equal(add(&certs, all, TLS_PEM_ALL_USABLE, &skipped), 0);
	assert_int_equal(certs.cnt, 2);
	assert_int_equal(skipped, 2);
	/* Strict reading takes none of it, and leaves what was there. */
	assert_int_equal(add(&certs, all, TLS_PEM_ALL, NULL), ERR_CERT_PARSE);
	assert_int_equal(certs.cnt, 2);
	/* Only the first block of an element counts. */
	assert_int_equal(add(&certs, all, TLS_PEM_FIRST, NULL), 0);
	assert_int_equal(certs.cnt, 3);
	assert_int_equal(add(&certs, junk, TLS_PEM_FIRST, NULL), ERR_CERT_PARSE);
	assert_int_equal(add(&certs, other, TLS_PEM_FIRST, NULL), ERR_CERT_PARSE);
	assert_int_equal(add(&certs, "", TLS_PEM_FIRST, NULL), ERR_CERT_PARSE);
	assert_int_equal(add(&certs, "", TLS_PEM_ALL, NULL), ERR_CERT_PARSE);
	assert_int_equal(add(&certs, "", TLS_PEM_ALL_USABLE, &skipped), 0);
	assert_int_equal(skipped, 0);
	assert_int_equal(
	        add(&certs, "-----BEGIN CERTIFICATE-----\nMAA=\n", TLS_PEM_ALL, NULL), ERR_CERT_PARSE);
	assert_int_equal(add(&certs, "-----BEGIN CERTIFICATE-----\nMAA=\n", TLS_PEM_ALL_USABLE, &skipped), 0);
	assert_int_equal(skipped, 1);
	assert_int_equal(certs.cnt, 3);
	tls_certs_done(&certs);
	assert_int_equal(certs.cnt, 0);
}

static void test_too_many(void **state)
{
	struct world *w = *state;
	struct tls_certs certs = {0};
	size_t len = strlen(w->root.pem);
	char *all = malloc(len * (TLS_CERT_BUNDLE_MAX + 1) + 1);
	for (size_t i = 0; i <= TLS_CERT_BUNDLE_MAX; i++)
		strcpy(all + i * len, w->root.pem);
	assert_int_equal(add(&certs, all, TLS_PEM_ALL_USABLE, NULL), ERR_TOO_MANY);
	assert_int_equal(certs.cnt, 0);
	all[len * TLS_CERT_BUNDLE_MAX] = 0;
	assert_int_equal(add(&certs, all, TLS_PEM_ALL_USABLE, NULL), 0);
	assert_int_equal(certs.cnt, TLS_CERT_BUNDLE_MAX);
	tls_certs_done(&certs);
	free(all);
}

static void test_damage(void **state)
{
	struct world *w = *state;
	struct tls_certs certs = {0};
	struct tls_cert cert;
	struct err err;
	assert_int_equal(add(&certs, w->leaf, TLS_PEM_FIRST, NULL), 0);
	size_t len = certs.all[0].der_len;
	uint8_t *copy = malloc(len + 1);
	memcpy(copy, certs.all[0].der, len);
	copy[len] = 0;
	/* Cut anywhere, or with something behind it: not a certificate. */
	for (size_t i = 0; i < len; i++)
		assert_int_equal(tls_cert_parse(copy, i, &cert, &err), ERR_CERT_PARSE);
	assert_int_equal(tls_cert_parse(copy, len + 1, &cert, &err), ERR_CERT_PARSE);
	assert_int_equal(tls_cert_parse(copy, len, &cert, &err), 0);
	tls_cert_done(&cert);
	/* Any byte changed: refused or parsed, but nothing worse. */
	for (size_t i = 0; i < len; i++) {
		uint8_t keep = copy[i];
		copy[i] ^= (uint8_t)(1 + rand_below(255));
		if (tls_cert_parse(copy, len, &cert, &err) == 0)
			tls_cert_done(&cert);
		copy[i] = keep;
	}
	free(copy);
	tls_certs_done(&certs);
}

static void test_nul_in_name(void **state)
{
	struct world *w = *state;
	struct leaf_options options = {.uris = {"spiffe://td/ns/a/sa/b@evil"}};
	char *pem = leaf_pem(&w->root, w->key, &options);
	struct tls_certs certs = {0};
	struct tls_cert cert;
	struct err err;
	assert_int_equal(add(&certs, pem, TLS_PEM_FIRST, NULL), 0);
	assert_string_equal(certs.all[0].uri_san, "spiffe://td/ns/a/sa/b@evil");
	uint8_t *at = memmem(certs.all[0].der, certs.all[0].der_len, "@evil", 5);
	*at = 0;
	if (tls_cert_parse(certs.all[0].der, certs.all[0].der_len, &cert, &err) == 0) {
		assert_string_equal(cert.uri_san, "");
		assert_string_equal(cert.spiffe_id, "");
		tls_cert_done(&cert);
	}
	tls_certs_done(&certs);
	free(pem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_fields),
	        cmocka_unit_test(test_as_openssl_says),
	        cmocka_unit_test(test_serial_texts),
	        cmocka_unit_test(test_time_texts),
	        cmocka_unit_test(test_pem_again),
	        cmocka_unit_test(test_bundles),
	        cmocka_unit_test(test_too_many),
	        cmocka_unit_test(test_damage),
	        cmocka_unit_test(test_nul_in_name),
	};
	return cmocka_run_group_tests(tests, world_up, world_down);
}
