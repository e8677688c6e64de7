/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys and certificate requests, judged by the openssl tool. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "fixture.h"
#include "tls/key_priv.h"
#include "tls/spiffe.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"

static char *csr_for(const char *id)
{
	struct tls_key *key;
	struct buf csr;
	struct err err;
	buf_init(&csr, 8192);
	assert_int_equal(tls_key_new(&key, &err), 0);
	assert_int_equal(tls_csr_make(key, id, &csr, &err), 0);
	tls_key_unref(key);
	char *text = strdup(buf_cstr(&csr));
	buf_done(&csr);
	return text;
}

static void test_csr(void **state)
{
	int status;
	char *csr = csr_for(ALICE);
	assert_ptr_equal(strstr(csr, "-----BEGIN CERTIFICATE REQUEST-----\n"), csr);
	assert_null(strchr(csr, '\r'));
	char *out = run_command("openssl req -verify -noout -text", csr, &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(out, "self-signature verify OK"));
	assert_non_null(strstr(out, "Version: 1 (0x0)"));
	assert_non_null(strstr(out, "Subject: \n"));
	assert_non_null(strstr(out, "NIST CURVE: P-256"));
	assert_non_null(strstr(
	        out, "X509v3 Subject Alternative Name: critical\n                    URI:" ALICE "\n"));
	assert_non_null(strstr(out, "Signature Algorithm: ecdsa-with-SHA256"));
	free(out);
	/* One attribute with one extension. */
	out = run_command(
	        "openssl asn1parse | grep -c 'OBJECT.*Extension Request\\|OBJECT.*X509v3'", csr, &status);
	assert_string_equal(out, "2\n");
	free(out);
	free(csr);
}

static void test_csr_long_and_bad(void **state)
{
	char id[SPIFFE_MAX + 10] = "spiffe://td/ns/a/sa/";
	struct tls_key *key;
	struct buf csr;
	struct err err;
	int status;
	for (size_t len = 100; len <= SPIFFE_MAX; len += len < 300 ? 1 : 437) {
		if (len > 140 && len < 250)
			len = 250;
		memset(id + 20, 'x', len - 20);
		id[len] = 0;
		char *text = csr_for(id);
		if (len == 127 || len == 128 || len == 256 || len > 1000) {
			char *out = run_command("openssl req -verify -noout -text", text, &status);
			assert_int_equal(status, 0);
			assert_non_null(strstr(out, id));
			free(out);
		}
		free(text);
	}
	buf_init(&csr, 8192);
	assert_int_equal(tls_key_new(&key, &err), 0);
	assert_int_equal(tls_csr_make(key, "spiffe://td/x", &csr, &err), -EINVAL);
	assert_string_equal(err.text, "invalid spiffe identity: spiffe://td/x");
	csr.max = 100;
	assert_int_equal(tls_csr_make(key, ALICE, &csr, &err), -EMSGSIZE);
	tls_key_unref(key);
	buf_done(&csr);
}

static void test_keys_differ(void **state)
{
	struct tls_key *a, *b;
	struct err err;
	assert_int_equal(tls_key_new(&a, &err), 0);
	assert_int_equal(tls_key_new(&b, &err), 0);
	assert_memory_not_equal(tls_key_point(a), tls_key_point(b), KEY_POINT_LEN);
	tls_key_unref(a);
	tls_key_unref(b);
	tls_key_unref(NULL);
}

/* Whether the mapping around `p` has this flag in /proc/self/smaps. */
static bool has_flag(const void *p, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool is_inside = false;
	bool found = false;
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			is_inside = (unsigned long)p >= from && (unsigned long)p < to;
		else if (is_inside && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	fclose(f);
	return found;
}

static void test_memory_is_guarded(void **state)
{
	struct tls_key *key;
	struct err err;
	assert_int_equal(tls_key_new(&key, &err), 0);
	const void *page = tls_key_page(key);
	assert_true(has_flag(page, " dd"));
	if (!HAS_ASAN)
		assert_int_equal(has_flag(page, " lo"), tls_key_is_locked(key));
	struct tls_key *again = tls_key_ref(key);
	assert_ptr_equal(again, key);
	tls_key_unref(key);
	assert_true(has_flag(page, " dd"));
	tls_key_unref(again);
	assert_false(has_flag(page, " dd"));
}

static void test_pem(void **state)
{
	struct tls_key *key, *back;
	struct buf pem;
	struct err err;
	int status;
	assert_int_equal(tls_key_new(&key, &err), 0);
	buf_init(&pem, 4096);
	assert_int_equal(tls_key_pem(key, &pem), 0);
	assert_int_equal(tls_key_from_pem((const char *)pem.data, pem.len, &back, &err), 0);
	assert_memory_equal(tls_key_point(key), tls_key_point(back), KEY_POINT_LEN);
	tls_key_unref(back);
	/* openssl reads it, finds both halves to belong together, and writes it as PKCS#8. */
	char *out = run_command("openssl pkey -check -noout", buf_cstr(&pem), &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(out, "Key is valid"));
	free(out);
	char *pkcs8 = run_command("openssl pkcs8 -topk8 -nocrypt", buf_cstr(&pem), &status);
	assert_int_equal(tls_key_from_pem(pkcs8, strlen(pkcs8), &back, &err), 0);
	assert_memory_equal(tls_key_point(key), tls_key_point(back), KEY_POINT_LEN);
	free(pkcs8);
	tls_key_unref(back);
	tls_key_unref(key);
	buf_done(&pem);
}

static void test_bad_pem(void **state)
{
	struct tls_key *key;
	struct err err;
	int status;
	char *p384 =
	        run_command("openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384", "", &status);
	char *rsa = run_command(
	        "openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:1024 || openssl genpkey "
	        "-algorithm RSA -pkeyopt rsa_keygen_bits:1024 2>/dev/null",
	        "", &status);
	const char *bad[] = {"", "junk", p384, rsa,
	        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
	        "-----BEGIN PRIVATE KEY-----\nAAAA\n"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tls_key_from_pem(bad[i], strlen(bad[i]), &key, &err), -EBADMSG);
	free(p384);
	free(rsa);
}

static void test_der_sign(void **state)
{
	struct tls_key *key;
	struct err err;
	uint8_t hash[32] = {1}, sig[KEY_SIG_MAX];
	assert_int_equal(tls_key_new(&key, &err), 0);
	for (int i = 0; i < 100; i++) {
		size_t len = sizeof(sig);
		assert_int_equal(tls_key_sign(key, hash, sizeof(hash), sig, &len), 0);
		assert_in_range(len, 66, 72);
		assert_int_equal(sig[0], 0x30);
	}
	tls_key_unref(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_csr),
	        cmocka_unit_test(test_csr_long_and_bad),
	        cmocka_unit_test(test_keys_differ),
	        cmocka_unit_test(test_memory_is_guarded),
	        cmocka_unit_test(test_pem),
	        cmocka_unit_test(test_bad_pem),
	        cmocka_unit_test(test_der_sign),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
