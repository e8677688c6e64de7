/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The embedded CA: its files, what it signs and what it refuses; openssl judges the certificates. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "fixture.h"
#include "tls/ca.h"
#include "tls/key.h"
#include "tls/pem.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"

struct folder {
	char path[64];
	int fd;
};

static int folder_up(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));
	strcpy(f->path, "/tmp/tls-ca-XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return 0;
}

static int folder_down(void **state)
{
	struct folder *f = *state;
	char line[128];
	close(f->fd);
	snprintf(line, sizeof(line), "rm -r %s", f->path);
	int ret = system(line);
	free(f);
	return ret;
}

static char *make_csr(struct tls_key *key, const char *id)
{
	struct buf csr;
	struct err err;
	buf_init(&csr, 8192);
	assert_int_equal(tls_csr_make(key, id, &csr, &err), 0);
	char *text = strdup(buf_cstr(&csr));
	buf_done(&csr);
	return text;
}

static int sign(
        struct tls_ca *ca, const char *csr, const char *id, uint32_t ttl, char **ret_leaf, struct err *err)
{
	struct buf leaf;
	buf_init(&leaf, 16384);
	memset(err, 0, sizeof(*err));
	int ret = tls_ca_sign(ca, csr, strlen(csr), id, ttl, &leaf, err);
	*ret_leaf = ret == 0 ? strdup(buf_cstr(&leaf)) : NULL;
	assert_true(ret == 0 || leaf.len == 0);
	buf_done(&leaf);
	return ret;
}

static void test_leaf(void **state)
{
	struct tls_ca *ca;
	struct tls_key *key;
	struct tls_identity *identity;
	struct tls_policy policy = {0};
	struct err err;
	char *leaf;
	int status;
	assert_int_equal(tls_ca_new(&ca, &err), 0);
	assert_int_equal(tls_key_new(&key, &err), 0);
	char *csr = make_csr(key, ALICE);
	assert_int_equal(sign(ca, csr, ALICE, 0, &leaf, &err), 0);
	char *out = run_command("openssl x509 -noout -text", leaf, &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(out, "Version: 3"));
	assert_non_null(strstr(out, "Issuer: O = cluster.local\n"));
	assert_non_null(strstr(out, "Subject: \n"));
	assert_non_null(strstr(
	        out, "X509v3 Key Usage: critical\n                Digital Signature, Key Encipherment\n"));
	assert_non_null(strstr(out,
	        "X509v3 Extended Key Usage: \n                TLS Web Server Authentication, TLS Web Client Authentication\n"));
	assert_non_null(strstr(out, "X509v3 Basic Constraints: critical\n                CA:FALSE\n"));
	assert_non_null(
	        strstr(out, "X509v3 Subject Alternative Name: critical\n                URI:" ALICE "\n"));
	assert_non_null(strstr(out, "Signature Algorithm: ecdsa-with-SHA256"));
	free(out);
	const char *chain[] = {leaf};
	assert_int_equal(
	        tls_identity_new(key, chain, 1, tls_ca_root_pem(ca), ALICE, &policy, &identity, &err), 0);
	assert_in_range(time(NULL) - tls_identity_not_before(identity), 120, 125);
	assert_in_range(tls_identity_not_after(identity) - time(NULL), 86395, 86400);
	tls_identity_unref(identity);
	free(leaf);
	free(csr);
	tls_key_unref(key);
	tls_ca_free(ca);
	tls_ca_free(NULL);
}

static void write_file(const struct folder *f, const char *name, const char *text, mode_t mode)
{
	int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void test_chain_verifies(void **state)
{
	struct folder *f = *state;
	struct tls_ca *ca;
	struct tls_key *key;
	struct err err;
	char *leaf, line[300];
	int status;
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), 0);
	assert_int_equal(tls_key_new(&key, &err), 0);
	char *csr = make_csr(key, ALICE);
	assert_int_equal(sign(ca, csr, ALICE, 600, &leaf, &err), 0);
	write_file(f, "leaf.pem", leaf, 0600);
	for (int i = 0; i < 2; i++) {
		snprintf(line, sizeof(line),
		        "openssl verify -x509_strict -CAfile %s/%s -purpose %s %s/leaf.pem", f->path,
		        TLS_CA_CERT_FILE, i ? "sslserver" : "sslclient", f->path);
		char *out = run_command(line, "", &status);
		if (status != 0)
			fail_msg("%s", out);
		free(out);
	}
	char *out = run_command("openssl x509 -noout -text", tls_ca_root_pem(ca), &status);
	assert_non_null(strstr(out, "Subject: O = cluster.local\n"));
	assert_non_null(strstr(out, "CA:TRUE"));
	assert_non_null(strstr(out, "Certificate Sign, CRL Sign"));
	assert_non_null(strstr(out, "NIST CURVE: P-256"));
	free(out);
	out = run_command("openssl x509 -noout -checkend 315000000", tls_ca_root_pem(ca), &status);
	assert_int_equal(status, 0);
	free(out);
	free(leaf);
	free(csr);
	tls_key_unref(key);
	tls_ca_free(ca);
}

static void test_refusals(void **state)
{
	struct tls_ca *ca;
	struct tls_key *key;
	struct err err;
	char *leaf;
	int status;
	assert_int_equal(tls_ca_new(&ca, &err), 0);
	assert_int_equal(tls_key_new(&key, &err), 0);
	char *csr = make_csr(key, ALICE);
	assert_int_equal(sign(ca, csr, "spiffe://cluster.local/ns/default/sa/bob", 0, &leaf, &err), -EACCES);
	assert_int_equal(sign(ca, csr, ALICE "x", 0, &leaf, &err), -EACCES);
	assert_int_equal(sign(ca, csr, "alice", 0, &leaf, &err), -EINVAL);
	assert_int_equal(sign(ca, "", ALICE, 0, &leaf, &err), -EBADMSG);
	assert_int_equal(sign(ca, tls_ca_root_pem(ca), ALICE, 0, &leaf, &err), -EBADMSG);
	assert_int_equal(
	        sign(ca, "-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n",
	                ALICE, 0, &leaf, &err),
	        -EBADMSG);
	/* Requests of the openssl tool: a good one, then each of the other kinds. */
	static const struct {
		const char *key, *san;
		int want;
	} rows[] = {
	        {"-newkey ec -pkeyopt ec_paramgen_curve:P-256", "-addext subjectAltName=URI:" ALICE, 0},
	        {"-newkey ec -pkeyopt ec_paramgen_curve:P-256", "", -EACCES},
	        {"-newkey ec -pkeyopt ec_paramgen_curve:P-256", "-addext subjectAltName=DNS:alice", -EACCES},
	        {"-newkey ec -pkeyopt ec_paramgen_curve:P-256",
	                "-addext subjectAltName=URI:" ALICE ",URI:https://x/", -EACCES},
	        {"-newkey ec -pkeyopt ec_paramgen_curve:P-256",
	                "-addext subjectAltName=URI:" ALICE ",DNS:alice", -EACCES},
	        {"-newkey ec -pkeyopt ec_paramgen_curve:P-256",
	                "-addext subjectAltName=URI:" ALICE ",email:a@b.c", -EACCES},
	        {"-newkey ec -pkeyopt ec_paramgen_curve:P-384", "-addext subjectAltName=URI:" ALICE,
	                -EBADMSG},
	        {"-newkey rsa:2048", "-addext subjectAltName=URI:" ALICE, -EBADMSG},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[500];
		snprintf(line, sizeof(line),
		        "openssl req -new -nodes %s -keyout /dev/null -subj /CN=x %s 2>/dev/null",
		        rows[i].key, rows[i].san);
		char *other = run_command(line, "", &status);
		assert_int_equal(status, 0);
		int ret = sign(ca, other, ALICE, 0, &leaf, &err);
		if (ret != rows[i].want)
			fail_msg("row %zu: %d %s", i, ret, err.text);
		free(leaf);
		free(other);
	}
	free(csr);
	tls_key_unref(key);
	tls_ca_free(ca);
}

/* How many bytes of the request its signature covers, with the header before them. */
static size_t signed_end(const char *csr)
{
	struct pem_block block;
	struct buf der;
	const char *at = csr;
	buf_init(&der, 4096);
	assert_int_equal(pem_next(&at, csr + strlen(csr), &block), 1);
	assert_int_equal(pem_decode(&block, &der), 0);
	/* SEQUENCE of 256 bytes and more, then one of 128 to 255. */
	assert_memory_equal(der.data, "\x30\x82", 2);
	assert_memory_equal(der.data + 4, "\x30\x81", 2);
	size_t end = 7u + der.data[6];
	buf_done(&der);
	return end;
}

/* One character changed, at every place: nothing of what is signed may change. */
static void test_tampered(void **state)
{
	struct tls_ca *ca;
	struct tls_key *key;
	struct err err;
	char *leaf;
	assert_int_equal(tls_ca_new(&ca, &err), 0);
	assert_int_equal(tls_key_new(&key, &err), 0);
	char *csr = make_csr(key, ALICE);
	char *end = strstr(csr, "-----END");
	size_t refused_cnt = 0;
	size_t chars = signed_end(csr) * 4 / 3;
	for (char *at = strchr(csr, '\n') + 1; at < end; at++) {
		char keep = *at;
		if (keep == '\n')
			continue;
		*at = keep == 'A' ? 'B' : 'A';
		int ret = sign(ca, csr, ALICE, 0, &leaf, &err);
		/* Behind the signed part the library overlooks this and that, as long as the signature itself
		 * is whole. */
		assert_true(ret != 0 || chars == 0);
		refused_cnt += ret != 0;
		chars -= chars > 0;
		free(leaf);
		*at = keep;
	}
	assert_true(refused_cnt > 300);
	assert_int_equal(sign(ca, csr, ALICE, 0, &leaf, &err), 0);
	free(leaf);
	free(csr);
	tls_key_unref(key);
	tls_ca_free(ca);
}

static void test_lifetimes(void **state)
{
	static const struct {
		uint32_t ttl;
		int64_t life;
	} rows[] = {{0, 86400}, {60, 60}, {TLS_CA_TTL_MAX, TLS_CA_TTL_MAX}, {UINT32_MAX, TLS_CA_TTL_MAX}};
	struct tls_ca *ca;
	struct tls_key *key;
	struct err err;
	assert_int_equal(tls_ca_new(&ca, &err), 0);
	assert_int_equal(tls_key_new(&key, &err), 0);
	char *csr = make_csr(key, ALICE);
	for (size_t i = 0; i < 4; i++) {
		struct tls_certs certs = {0};
		char *leaf;
		assert_int_equal(sign(ca, csr, ALICE, rows[i].ttl, &leaf, &err), 0);
		assert_int_equal(tls_certs_add_pem(&certs, leaf, strlen(leaf), TLS_PEM_FIRST, NULL, &err), 0);
		assert_int_equal(certs.all[0].not_after - certs.all[0].not_before, rows[i].life + 120);
		tls_certs_done(&certs);
		free(leaf);
	}
	free(csr);
	tls_key_unref(key);
	tls_ca_free(ca);
}

static void test_root_is_kept(void **state)
{
	struct folder *f = *state;
	struct tls_ca *ca, *again;
	struct stat st;
	struct err err;
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), 0);
	assert_int_equal(fstatat(f->fd, TLS_CA_KEY_FILE, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fstatat(f->fd, TLS_CA_CERT_FILE, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(tls_ca_open(f->fd, &again, &err), 0);
	assert_string_equal(tls_ca_root_pem(ca), tls_ca_root_pem(again));
	tls_ca_free(again);
	/* The certificate alone is lost: the key decides, so what was signed stays good. */
	assert_int_equal(unlinkat(f->fd, TLS_CA_CERT_FILE, 0), 0);
	assert_int_equal(tls_ca_open(f->fd, &again, &err), 0);
	assert_string_not_equal(tls_ca_root_pem(ca), tls_ca_root_pem(again));
	struct tls_key *key;
	struct tls_identity *a, *b;
	struct tls_policy policy = {0};
	char *leaf;
	assert_int_equal(tls_key_new(&key, &err), 0);
	char *csr = make_csr(key, ALICE);
	assert_int_equal(sign(ca, csr, ALICE, 0, &leaf, &err), 0);
	const char *chain[] = {leaf};
	assert_int_equal(tls_identity_new(key, chain, 1, tls_ca_root_pem(ca), ALICE, &policy, &a, &err), 0);
	assert_int_equal(
	        tls_identity_new(key, chain, 1, tls_ca_root_pem(again), ALICE, &policy, &b, &err), 0);
	struct pair p;
	pair_init(&p, a, b, ALICE);
	pair_handshake(&p);
	assert_int_equal(p.client_ret, 0);
	assert_int_equal(p.server_ret, 0);
	pair_done(&p);
	tls_identity_unref(a);
	tls_identity_unref(b);
	free(leaf);
	free(csr);
	tls_key_unref(key);
	tls_ca_free(ca);
	tls_ca_free(again);
}

static size_t files_in(const struct folder *f)
{
	DIR *dir = opendir(f->path);
	size_t cnt = 0;
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		cnt += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(dir);
	return cnt;
}

/* A root made with the openssl tool, of another shape than ours, is taken over. */
static void test_foreign_root(void **state)
{
	struct folder *f = *state;
	struct tls_ca *ca;
	struct tls_key *key;
	struct err err;
	char *leaf, line[500];
	int status;
	snprintf(line, sizeof(line),
	        "cd %s && umask 077 && openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout %s "
	        "-out %s -days 2 -subj '/C=DE/O=Acme/CN=Root of it all' -addext keyUsage=critical,keyCertSign",
	        f->path, TLS_CA_KEY_FILE, TLS_CA_CERT_FILE);
	free(run_command(line, "", &status));
	assert_int_equal(status, 0);
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), 0);
	assert_int_equal(tls_key_new(&key, &err), 0);
	char *csr = make_csr(key, ALICE);
	/* No leaf outlives its root. */
	assert_int_equal(sign(ca, csr, ALICE, TLS_CA_TTL_MAX, &leaf, &err), 0);
	struct tls_certs certs = {0};
	assert_int_equal(tls_certs_add_pem(&certs, leaf, strlen(leaf), TLS_PEM_FIRST, NULL, &err), 0);
	assert_in_range(certs.all[0].not_after - time(NULL), 2 * 86400 - 60, 2 * 86400);
	tls_certs_done(&certs);
	write_file(f, "leaf.pem", leaf, 0600);
	snprintf(line, sizeof(line), "openssl verify -x509_strict -CAfile %s/%s %s/leaf.pem", f->path,
	        TLS_CA_CERT_FILE, f->path);
	char *out = run_command(line, "", &status);
	if (status != 0)
		fail_msg("%s", out);
	free(out);
	free(leaf);
	free(csr);
	tls_key_unref(key);
	tls_ca_free(ca);
}

static void test_bad_files(void **state)
{
	struct folder *f = *state;
	struct tls_ca *ca = NULL;
	struct err err;
	assert_int_equal(tls_ca_open(-1, &ca, &err), -EBADF);
	/* Mode. */
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), 0);
	tls_ca_free(ca);
	ca = NULL;
	assert_int_equal(fchmodat(f->fd, TLS_CA_KEY_FILE, 0640, 0), 0);
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), -EPERM);
	assert_int_equal(fchmodat(f->fd, TLS_CA_KEY_FILE, 0600, 0), 0);
	/* A link instead of the file. */
	assert_int_equal(renameat(f->fd, TLS_CA_KEY_FILE, f->fd, "elsewhere"), 0);
	assert_int_equal(symlinkat("elsewhere", f->fd, TLS_CA_KEY_FILE), 0);
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), -ELOOP);
	assert_int_equal(unlinkat(f->fd, TLS_CA_KEY_FILE, 0), 0);
	/* A pipe must not hang. */
	assert_int_equal(mkfifoat(f->fd, TLS_CA_KEY_FILE, 0600), 0);
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), -EPERM);
	assert_int_equal(unlinkat(f->fd, TLS_CA_KEY_FILE, 0), 0);
	/* Another key than the certificate's: a new one is made, which does not fit. */
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "is not the certificate of"));
	/* Broken contents. */
	assert_int_equal(renameat(f->fd, "elsewhere", f->fd, TLS_CA_KEY_FILE), 0);
	write_file(f, TLS_CA_CERT_FILE, "junk", 0600);
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), -EBADMSG);
	write_file(f, TLS_CA_KEY_FILE, "junk", 0600);
	assert_int_equal(tls_ca_open(f->fd, &ca, &err), -EBADMSG);
	assert_non_null(strstr(err.text, TLS_CA_KEY_FILE));
	assert_null(ca);
	assert_int_equal(files_in(f), 2);
}

/* Many processes at once: all end with the same root, and nothing is left over. */
static void test_race(void **state)
{
	enum { CNT = 12 };
	struct folder *f = *state;
	int go[2], results[2];
	char first[8192] = "", root[8192];
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(results), 0);
	for (int i = 0; i < CNT; i++) {
		if (fork() != 0)
			continue;
		struct tls_ca *ca;
		struct err err;
		char byte;
		close(go[1]);
		if (read(go[0], &byte, 1) != 0 || tls_ca_open(f->fd, &ca, &err) != 0)
			_exit(1);
		memset(root, 0, sizeof(root));
		strcpy(root, tls_ca_root_pem(ca));
		_exit(write(results[1], root, 2048) == 2048 ? 0 : 1);
	}
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < CNT; i++) {
		assert_int_equal(read(results[0], root, 2048), 2048);
		if (i == 0)
			memcpy(first, root, 2048);
		assert_memory_equal(first, root, 2048);
	}
	for (int i = 0; i < CNT; i++) {
		int status;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	close(results[0]);
	close(results[1]);
	assert_int_equal(files_in(f), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_leaf),
	        cmocka_unit_test_setup_teardown(test_chain_verifies, folder_up, folder_down),
	        cmocka_unit_test(test_refusals),
	        cmocka_unit_test(test_tampered),
	        cmocka_unit_test(test_lifetimes),
	        cmocka_unit_test_setup_teardown(test_root_is_kept, folder_up, folder_down),
	        cmocka_unit_test_setup_teardown(test_foreign_root, folder_up, folder_down),
	        cmocka_unit_test_setup_teardown(test_bad_files, folder_up, folder_down),
	        cmocka_unit_test_setup_teardown(test_race, folder_up, folder_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
