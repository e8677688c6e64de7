/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access-log lines against upstream's real ones (reference dataplane.md 16): fields, order, quoting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "silo/access.h"

/* The last line written. */
struct sink {
	struct log log;
	char line[LIMIT_LOG_LINE + 1];
};

static void take(void *ctx, const char *line, size_t len)
{
	struct sink *sink = ctx;
	memcpy(sink->line, line, len);
	sink->line[len] = '\0';
}

static void open_sink(struct sink *sink, const char *filter, bool json)
{
	struct err err;
	memset(sink, 0, sizeof(*sink));
	assert_int_equal(log_init(&sink->log, filter, json, take, sink, &err), 0);
}

static const struct workload SERVER = {
        .uid = "",
        .name = "client-pod",
        .ns = "default",
        .trust_domain = "",
        .service_account = "",
        .network = "",
        .workload_name = "",
        .workload_type = "",
        .canonical_name = "",
        .canonical_revision = "",
        .hostname = "",
        .node = "",
        .cluster_id = "c1",
        .locality = {"", "", ""},
};
static const struct workload CLIENT = {
        .uid = "",
        .name = "srv-pod",
        .ns = "default",
        .trust_domain = "",
        .service_account = "",
        .network = "",
        .workload_name = "",
        .workload_type = "",
        .canonical_name = "",
        .canonical_revision = "",
        .hostname = "",
        .node = "",
        .cluster_id = "c1",
        .locality = {"", "", ""},
};

static struct access inbound(void)
{
	struct access access = {
	        .hbone_addr = "10.1.1.1:9090",
	        .src_workload = &CLIENT,
	        .dst_workload = &SERVER,
	        .src_identity = "spiffe://cluster.local/ns/default/sa/peer",
	        .dst_identity = "spiffe://cluster.local/ns/default/sa/default",
	        .is_inbound = true,
	};
	assert_int_equal(addr_parse("10.1.1.2:56006", 14, &access.src), 0);
	assert_int_equal(addr_parse("10.1.1.1:15008", 14, &access.dst), 0);
	return access;
}

/* What stands after the timestamp. */
static const char *rest(const struct sink *sink)
{
	const char *tab = strchr(sink->line, '\t');
	assert_non_null(tab);
	return tab + 1;
}

static void text_is_upstreams(void **state)
{
	struct sink sink;
	struct access access = inbound();
	(void)state;
	open_sink(&sink, NULL, false);
	access_complete(&sink.log, &access, 10, 5, 2, NULL);
	assert_string_equal(rest(&sink),
	        "info\taccess\tconnection complete\tsrc.addr=10.1.1.2:56006 src.workload=\"srv-pod\" src.namespace=\"default\" "
	        "src.identity=\"spiffe://cluster.local/ns/default/sa/peer\" src.cluster=\"c1\" dst.addr=10.1.1.1:15008 "
	        "dst.hbone_addr=10.1.1.1:9090 dst.workload=\"client-pod\" dst.namespace=\"default\" "
	        "dst.identity=\"spiffe://cluster.local/ns/default/sa/default\" dst.cluster=\"c1\" direction=\"inbound\" "
	        "bytes_sent=10 bytes_recv=5 duration=\"2ms\"\n");
	log_done(&sink.log);
}

static void json_is_upstreams(void **state)
{
	struct sink sink;
	struct access access = {.src_workload = &SERVER, .dst_workload = &CLIENT};
	(void)state;
	assert_int_equal(addr_parse("127.0.0.1:35596", 15, &access.src), 0);
	assert_int_equal(addr_parse("127.0.0.4:8080", 14, &access.dst), 0);
	open_sink(&sink, NULL, true);
	access_complete(&sink.log, &access, 11, 22, 2, NULL);
	const char *scope = strstr(sink.line, "\"scope\"");
	assert_non_null(scope);
	assert_string_equal(scope,
	        "\"scope\":\"access\",\"message\":\"connection complete\",\"src.addr\":\"127.0.0.1:35596\",\"src.workload\":\"client-pod\","
	        "\"src.namespace\":\"default\",\"src.cluster\":\"c1\",\"dst.addr\":\"127.0.0.4:8080\",\"dst.workload\":\"srv-pod\","
	        "\"dst.namespace\":\"default\",\"dst.cluster\":\"c1\",\"direction\":\"outbound\",\"bytes_sent\":11,\"bytes_recv\":22,"
	        "\"duration\":\"2ms\"}\n");
	log_done(&sink.log);
}

static void an_error_raises_the_level(void **state)
{
	struct sink sink;
	struct access access = inbound();
	(void)state;
	open_sink(&sink, NULL, false);
	access_complete(&sink.log, &access, 0, 0, 0, "http status: 401 Unauthorized");
	assert_true(strncmp(rest(&sink), "error\taccess\t", 13) == 0);
	assert_non_null(strstr(sink.line, "duration=\"0ms\" error=\"http status: 401 Unauthorized\"\n"));
	log_done(&sink.log);
}

static void a_denial_has_four_fields(void **state)
{
	struct sink sink;
	struct addr src, dst;
	(void)state;
	assert_int_equal(addr_parse("127.0.0.1:59938", 15, &src), 0);
	assert_int_equal(addr_parse("10.10.0.2:80", 12, &dst), 0);
	open_sink(&sink, NULL, false);
	access_denied(&sink.log, &src, &dst, false, "no healthy upstream: 10.10.0.2:80");
	assert_string_equal(rest(&sink),
	        "warn\taccess\tconnection failed\tsrc.addr=127.0.0.1:59938 dst.addr=10.10.0.2:80 "
	        "direction=\"outbound\" error=\"no healthy upstream: 10.10.0.2:80\"\n");
	log_done(&sink.log);
}

static void opened_is_for_debugging(void **state)
{
	struct sink sink;
	struct access access = inbound();
	(void)state;
	open_sink(&sink, NULL, false);
	access_opened(&sink.log, &access);
	assert_string_equal(sink.line, "");
	log_done(&sink.log);
	open_sink(&sink, "access=debug", false);
	access_opened(&sink.log, &access);
	assert_non_null(strstr(sink.line, "debug\taccess\tconnection opened\t"));
	assert_non_null(strstr(sink.line, "direction=\"inbound\"\n"));
	log_done(&sink.log);
}

static void without_a_pod_name_the_service_stands_in(void **state)
{
	struct sink sink;
	struct workload nameless = CLIENT;
	struct access access = inbound();
	(void)state;
	nameless.name = "";
	nameless.canonical_name = "checkout";
	access.src_workload = &nameless;
	open_sink(&sink, NULL, false);
	access_complete(&sink.log, &access, 0, 0, 0, NULL);
	assert_non_null(strstr(sink.line, "src.workload=\"checkout\""));
	log_done(&sink.log);
}

/* Which of opened, complete, complete with error, failed are written, by filter and mode; ERR: mode refused.
 */
static void test_limit(void **state)
{
	static const struct {
		const char *filter, *mode, *written;
	} rows[] = {
	        {"debug", "all", "ocef"},
	        {"info", "all", "cef"},
	        {"debug", "errors", "ef"},
	        {"info,access=debug", "errors", "ef"},
	        {"off", "errors", ""},
	        {"info,access=error", "errors", "e"},
	        {"debug", "off", ""},
	        {"off,access=trace", "off", ""},
	};
	const struct access access = {
	        .src = {.ip = {.family = 4}, .port = 1}, .dst = {.ip = {.family = 4}, .port = 2}};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sink sink;
		struct err err;
		char written[8] = "";
		open_sink(&sink, rows[i].filter, false);
		assert_int_equal(access_limit(&sink.log, rows[i].mode, &err), 0);
		for (const char *kind = "ocef"; *kind; kind++) {
			sink.line[0] = '\0';
			if (*kind == 'o')
				access_opened(&sink.log, &access);
			else if (*kind == 'f')
				access_denied(&sink.log, &access.src, &access.dst, false, "no");
			else
				access_complete(&sink.log, &access, 1, 2, 3, *kind == 'e' ? "no" : NULL);
			if (sink.line[0])
				written[strlen(written)] = *kind;
		}
		assert_string_equal(written, rows[i].written);
		log_done(&sink.log);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(text_is_upstreams),
	        cmocka_unit_test(json_is_upstreams),
	        cmocka_unit_test(an_error_raises_the_level),
	        cmocka_unit_test(a_denial_has_four_fields),
	        cmocka_unit_test(opened_is_for_debugging),
	        cmocka_unit_test(without_a_pod_name_the_service_stands_in),
	        cmocka_unit_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
