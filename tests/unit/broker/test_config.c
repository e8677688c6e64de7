/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ProxyConfig (reference control.md 3.3): both sources, their merge, and what is fatal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker/config.h"

/* The printed variables, separated by blanks, or the error. */
static const char *print(const char *mesh, const char *proxy_config)
{
	static char text[4096];
	char path[] = "/tmp/culvert-config-XXXXXX";
	struct err err = {0};
	struct buf out;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	if (mesh)
		assert_int_equal(write(fd, mesh, strlen(mesh)), strlen(mesh));
	close(fd);
	if (!mesh)
		unlink(path);
	buf_init(&out, CONFIG_TEXT_MAX);
	int rc = config_print(path, proxy_config, &out, &err);
	unlink(path);
	for (size_t i = 0; i < out.len; i++)
		if (out.data[i] == 0)
			out.data[i] = ' ';
	const char *all = buf_cstr(&out);
	/* The file's name differs from run to run. */
	const char *why = strstr(err.text, path);
	snprintf(text, sizeof(text), "%s", rc < 0 ? why ? why + strlen(path) : err.text : all);
	buf_done(&out);
	return text;
}

static void test_nothing(void **state)
{
	assert_string_equal(print(NULL, NULL), "");
	assert_string_equal(print(NULL, ""), "");
	assert_string_equal(print("", NULL), "");
	assert_string_equal(print("trustDomain: td\n", NULL), "");
	assert_string_equal(print("defaultConfig:\n", NULL), "");
}

static void test_values(void **state)
{
	assert_string_equal(print(NULL, "discoveryAddress: istiod:15012\n"
	                                "proxyAdminPort: 15099\n"
	                                "statsPort: 15098\n"
	                                "concurrency: 8\n"
	                                "unknown: {key: [1]}\n"
	                                "proxyMetadata: {ISTIO_META_A: 1, NO_PREFIX: true, empty: ''}\n"),
	        "CULVERT_DISCOVERY_ADDRESS=istiod:15012 CULVERT_ADMIN_PORT=15099 CULVERT_STATS_PORT=15098 "
	        "CULVERT_CONCURRENCY=8 CULVERT_META_A=1 CULVERT_META_NO_PREFIX=true CULVERT_META_empty= ");
	assert_string_equal(
	        print(NULL, "{\"statsPort\": 1, \"proxyMetadata\": {\"ISTIO_META_DNS_CAPTURE\": \"false\"}}"),
	        "CULVERT_STATS_PORT=1 CULVERT_META_DNS_CAPTURE=false ");
}

static void test_merge(void **state)
{
	assert_string_equal(print("defaultConfig:\n"
	                          "  discoveryAddress: mesh:1\n"
	                          "  statsPort: 1\n"
	                          "  proxyMetadata: {A: mesh, B: mesh}\n",
	                            "statsPort: 2\nproxyMetadata: {ISTIO_META_B: own, C: own}\n"),
	        "CULVERT_DISCOVERY_ADDRESS=mesh:1 CULVERT_STATS_PORT=2 CULVERT_META_A=mesh "
	        "CULVERT_META_B=own CULVERT_META_C=own ");
}

static void test_fatal(void **state)
{
	assert_string_equal(print(NULL, "statsPort: 1\n"),
	        "error parsing proxy config: PROXY_CONFIG:1: missing field `proxyMetadata`");
	assert_string_equal(
	        print("defaultConfig: {}\n", NULL), ":1: defaultConfig: missing field `proxyMetadata`");
	assert_non_null(strstr(print(NULL, "proxyMetadata: {}\nstatsPort: 65536\n"), "statsPort"));
	assert_non_null(strstr(print(NULL, "proxyMetadata: {}\nstatsPort: x\n"), "statsPort"));
	assert_non_null(strstr(print(NULL, "proxyMetadata: {A: [1]}\n"), "proxyMetadata"));
	assert_non_null(strstr(print(NULL, "proxyMetadata: [1]\n"), "expected a map"));
	assert_non_null(strstr(print(NULL, "proxyMetadata: {A=B: x}\n"), "handed on"));
	assert_non_null(strstr(print(NULL, "{"), "PROXY_CONFIG"));
	assert_non_null(strstr(print(NULL, "text"), "PROXY_CONFIG"));
	assert_non_null(strstr(print("- 1\n", NULL), "expected a map"));
	assert_non_null(strstr(print("defaultConfig: [1]\n", NULL), "defaultConfig"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_nothing),
	        cmocka_unit_test(test_values),
	        cmocka_unit_test(test_merge),
	        cmocka_unit_test(test_fatal),
	};
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
