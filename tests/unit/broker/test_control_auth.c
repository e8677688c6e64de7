/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses, tokens and header lines of the channels to the control plane, from settings as the environment
 * gives them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "broker/control_auth.h"
#include "tls/trust.h"

/* What one test looks at. */
struct bench {
	struct settings settings;
	struct control_auth auth;
	struct log log;
	struct err err;
	int code;
};

static void drop(void *ctx, const char *bytes, size_t len)
{
}

static struct bench *bench_new(enum control_purpose purpose, const char *const *env)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_int_equal(log_init(&bench->log, NULL, false, drop, NULL, &bench->err), 0);
	assert_int_equal(
	        settings_load(&bench->settings, (char *const *)(uintptr_t)env, PARAM_B, &bench->err), 0);
	bench->code = control_auth_init(&bench->auth, &bench->settings, purpose, &bench->log, &bench->err);
	return bench;
}

#define BENCH(purpose, ...) bench_new(purpose, (const char *[]){__VA_ARGS__, NULL})

static void bench_free(struct bench *bench)
{
	settings_done(&bench->settings);
	log_done(&bench->log);
	free(bench);
}

/* "name=value;" of all lines. */
static int lines_of(struct bench *bench, char *out, size_t cap)
{
	struct control_lines lines;
	size_t len = 0;
	int r;

	memset(&bench->err, 0, sizeof(bench->err));
	out[0] = '\0';
	r = control_lines_make(&bench->auth, &lines, &bench->err);
	for (size_t i = 0; r == 0 && i < lines.cnt; i++)
		len += (size_t)snprintf(
		        out + len, cap - len, "%s=%s;", lines.lines[i].name, lines.lines[i].value);
	control_lines_done(&lines);
	return r;
}

static void addresses(void **state)
{
	static const struct {
		const char *env;
		const char *host;
		unsigned port;
		const char *authority;
	} cases[] = {
	        {"CA_ADDRESS=istiod.ns.svc:15012", "istiod.ns.svc", 15012, "istiod.ns.svc:15012"},
	        {"CA_ADDRESS=https://a/b?c", "a", 443, "a"},
	        {"CA_ADDRESS=[fd00::1]:99", "fd00::1", 99, "[fd00::1]:99"},
	        {"A=b", "localhost", 15012, "localhost:15012"},
	        {"KUBERNETES_SERVICE_HOST=", "istiod.istio-system.svc", 15012,
	                "istiod.istio-system.svc:15012"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench *bench = BENCH(CONTROL_CA, cases[i].env);

		assert_int_equal(bench->code, 0);
		assert_string_equal(bench->auth.host, cases[i].host);
		assert_int_equal(bench->auth.port, cases[i].port);
		assert_string_equal(bench->auth.authority, cases[i].authority);
		assert_false(bench->auth.is_plain);
		bench_free(bench);
	}
}

static void bad_settings(void **state)
{
	struct bench *bench = BENCH(CONTROL_XDS, "XDS_ADDRESS=a:1", "ALT_XDS_HOSTNAME=no name");

	assert_int_equal(bench->code, -EINVAL);
	assert_non_null(strstr(bench->err.text, "ALT_XDS_HOSTNAME"));
	bench_free(bench);
	bench = BENCH(CONTROL_XDS, "XDS_ADDRESS=", "FAKE_CA=true");
	assert_null(control_address(&bench->settings, CONTROL_XDS));
	assert_int_equal(bench->code, -EINVAL);
	assert_non_null(strstr(bench->err.text, "XDS_ADDRESS"));
	bench_free(bench);
	bench = BENCH(CONTROL_XDS, "XDS_ADDRESS=http://a", "FAKE_CA=true");
	assert_int_equal(bench->code, 0);
	assert_true(bench->auth.is_plain);
	assert_int_equal(bench->auth.port, 80);
	bench_free(bench);
}

static void a_token_itself(void **state)
{
	struct bench *bench =
	        BENCH(CONTROL_CA, "CA_ADDRESS=a:1", "AUTH_TOKEN=secret", "CLUSTER_ID=c1", "CA_HEADER_X-A=1",
	                "CA_HEADER_Authorization=mine", "CA_HEADER_grpc-status=0", "XDS_HEADER_X-B=2");
	char lines[1024];

	assert_int_equal(lines_of(bench, lines, sizeof(lines)), 0);
	assert_string_equal(lines,
	        "te=trailers;content-type=application/grpc;authorization=Bearer secret;clusterid=c1;x-a=1;");
	bench_free(bench);
}

static void no_token(void **state)
{
	struct bench *bench =
	        BENCH(CONTROL_XDS, "XDS_ADDRESS=a:1", "AUTH_TOKEN=", "XDS_HEADER_clusterid=mine");
	char lines[1024];

	assert_int_equal(lines_of(bench, lines, sizeof(lines)), 0);
	assert_string_equal(lines, "te=trailers;content-type=application/grpc;clusterid=mine;");
	bench_free(bench);
}

static void a_token_file(void **state)
{
	char path[] = "/tmp/culvert-test-token-XXXXXX";
	char env[128];
	char lines[1024];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	snprintf(env, sizeof(env), "AUTH_TOKEN=%s", path);
	struct bench *bench = BENCH(CONTROL_CA, "CA_ADDRESS=a:1", env);
	assert_int_equal(lines_of(bench, lines, sizeof(lines)), -ENOENT);
	assert_non_null(strstr(bench->err.text, path));
	assert_int_equal(file_write(path, " \n", 2, 0600), 0);
	assert_int_equal(lines_of(bench, lines, sizeof(lines)), -EINVAL);
	assert_non_null(strstr(bench->err.text, "token file exists, but was empty"));
	assert_int_equal(file_write(path, "one\ntwo", 7, 0600), 0);
	assert_int_equal(lines_of(bench, lines, sizeof(lines)), -EINVAL);
	assert_non_null(strstr(bench->err.text, "failed to parse header value"));
	assert_int_equal(file_write(path, "one\r\n", 5, 0600), 0);
	assert_int_equal(lines_of(bench, lines, sizeof(lines)), 0);
	assert_non_null(strstr(lines, "authorization=Bearer one;"));
	assert_int_equal(file_write(path, "two", 3, 0600), 0);
	assert_int_equal(lines_of(bench, lines, sizeof(lines)), 0);
	assert_non_null(strstr(lines, "authorization=Bearer two;"));
	unlink(path);
	bench_free(bench);
}

static void too_many_headers(void **state)
{
	char names[40][32];
	const char *env[42] = {"CA_ADDRESS=a:1"};
	char lines[4096];

	for (size_t i = 0; i < 40; i++) {
		snprintf(names[i], sizeof(names[i]), "CA_HEADER_h%zu=x", i);
		env[i + 1] = names[i];
	}
	struct bench *bench = bench_new(CONTROL_CA, env);
	assert_int_equal(lines_of(bench, lines, sizeof(lines)), ERR_TOO_MANY);
	bench_free(bench);
}

static void roots_by_kind(void **state)
{
	struct bench *bench = BENCH(CONTROL_CA, "CA_ADDRESS=a:1", "CA_ROOT_CA=/no/such/file");
	struct tls_trust *trust = NULL;

	assert_int_equal(bench->auth.roots_kind, CONTROL_ROOTS_FILE);
	assert_int_equal(control_auth_trust(&bench->auth, &trust, &bench->err), -ENOENT);
	assert_non_null(strstr(bench->err.text, "/no/such/file"));
	bench_free(bench);
	bench = BENCH(CONTROL_CA, "CA_ADDRESS=a:1", "CA_ROOT_CA=SYSTEM", "SSL_CERT_FILE=/no/such/bundle");
	assert_int_equal(bench->auth.roots_kind, CONTROL_ROOTS_SYSTEM);
	assert_int_equal(control_auth_trust(&bench->auth, &trust, &bench->err), -ENOENT);
	assert_non_null(strstr(bench->err.text, "/no/such/bundle"));
	bench_free(bench);
	bench = BENCH(CONTROL_CA, "CA_ADDRESS=a:1",
	        "CA_ROOT_CA=-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n");
	assert_int_equal(bench->auth.roots_kind, CONTROL_ROOTS_TEXT);
	assert_int_equal(control_auth_trust(&bench->auth, &trust, &bench->err), -EINVAL);
	assert_non_null(strstr(bench->err.text, "no certificate in the root certificates"));
	assert_null(trust);
	bench_free(bench);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        cmocka_unit_test(addresses),
	        cmocka_unit_test(bad_settings),
	        cmocka_unit_test(a_token_itself),
	        cmocka_unit_test(no_token),
	        cmocka_unit_test(a_token_file),
	        cmocka_unit_test(too_many_headers),
	        cmocka_unit_test(roots_by_kind),
	};

	return cmocka_run_group_tests_name("broker control_auth", tests, NULL, NULL);
}
