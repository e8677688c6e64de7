/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings: defaults, every type, rules across variables, and that secrets never reach a silo. */
#include <errno.h>

#include "base/param.h"
#include "unit.h"

static int load(struct settings *s, unsigned mask, struct err *e, const char *const *env)
{
	memset(e, 0, sizeof(*e));
	/* The loader writes nothing there; its type is environ's. */
	return settings_load(s, (char *const *)(uintptr_t)env, mask, e);
}

#define LOAD(s, mask, e, ...) load(s, mask, e, (const char *[]){__VA_ARGS__, NULL})

static void defaults(void **state)
{
	struct settings s;
	struct err e;
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "PATH=/bin"), 0);
	assert_false(s.dedicated);
	assert_true(s.enable_proxy && s.dns_enabled && s.dns_localhost && s.ipv6_enabled &&
	            s.inpod_port_reuse && s.keepalive_enabled);
	assert_false(s.enable_orig_src_set);
	assert_int_equal(s.dns_addr.port, 15053);
	assert_int_equal(s.packet_mark, 1337);
	assert_string_equal(s.network, "");
	assert_null(s.node_name);
	assert_string_equal(s.cluster_id, "Kubernetes");
	assert_string_equal(s.cluster_domain, "cluster.local");
	assert_string_equal(s.xds_address, "https://localhost:15012");
	assert_string_equal(s.ca_address, "https://localhost:15012");
	assert_int_equal(s.keepalive_time_ms, 180000);
	assert_int_equal(s.keepalive_interval_ms, 180000);
	assert_int_equal(s.keepalive_retries, 9);
	assert_int_equal(s.pool_max_streams, 100);
	assert_int_equal(s.pool_idle_ms, 300000);
	assert_int_equal(s.h2_stream_window, 4194304);
	assert_int_equal(s.h2_connection_window, 16777216);
	assert_int_equal(s.h2_frame_size, 1048576);
	assert_int_equal(s.secret_ttl_ms, 86400000);
	assert_int_equal(s.drain_ms, 5000);
	assert_int_equal(s.io_baseline, 0);
	assert_true(s.response_baggage && s.localhost_app_tunnel);
	assert_false(s.log_json || s.tls12_enabled || s.pqc_only || s.authz_info_logging || s.socks5 ||
	             s.fake_ca || s.leave_on_term);
	assert_null(s.crl_path);
	assert_string_equal(s.workload_name, "");
	assert_true(s.worker_cnt >= 2);
	settings_done(&s);
}

static void values(void **state)
{
	struct settings s;
	struct err e;
	assert_int_equal(
	        LOAD(&s, PARAM_ALL, &e, "ENABLE_PROXY=true", "IPV6_ENABLED=false", "ENABLE_ORIG_SRC=true",
	                "PACKET_MARK=0", "POOL_MAX_STREAMS_PER_CONNECTION=65535", "KEEPALIVE_TIME=1m",
	                "LOG_FORMAT=json", "TLS12_ENABLED=TRUE", "COMPLIANCE_POLICY=pqc",
	                "CRL_PATH=", "ISTIO_META_CLUSTER_ID=c2", "CLUSTER_ID=c1", "KUBERNETES_SERVICE_HOST=",
	                "CA_ADDRESS=istiod.x.svc:15012", "XDS_ADDRESS=", "NODE_NAME=n=1",
	                "CULVERT_IO_BASELINE=6.1", "CULVERT_ON_TERM=leave", "ISTIO_META_DNS_CAPTURE=False",
	                "ISTIO_META_DNS_PROXY_ADDR=[::1]:53", "ZTUNNEL_WORKER_THREADS=3"),
	        0);
	assert_false(s.ipv6_enabled);
	assert_true(s.ipv6_enabled_set && s.enable_orig_src && s.enable_orig_src_set);
	assert_int_equal(s.packet_mark, 0);
	assert_int_equal(s.pool_max_streams, 65535);
	assert_int_equal(s.keepalive_time_ms, 60000);
	assert_true(s.log_json && s.pqc_only && s.leave_on_term);
	assert_false(s.tls12_enabled);
	assert_null(s.crl_path);
	assert_string_equal(s.cluster_id, "c2");
	assert_null(s.xds_address);
	assert_string_equal(s.ca_address, "https://istiod.x.svc:15012");
	assert_string_equal(s.node_name, "n=1");
	assert_int_equal(s.io_baseline, 6001);
	assert_false(s.dns_enabled || s.dns_localhost);
	assert_int_equal(s.dns_addr.ip.family, 6);
	assert_int_equal(s.worker_cnt, 3);
	settings_done(&s);
	assert_int_equal(LOAD(&s, PARAM_B, &e, "KUBERNETES_SERVICE_HOST=10.0.0.1"), 0);
	assert_string_equal(s.xds_address, "https://istiod.istio-system.svc:15012");
	settings_done(&s);
}

static void bad_values(void **state)
{
	static const struct {
		const char *env;
		const char *text;
	} rows[] = {
	        {"ENABLE_PROXY=yes",
	                "invalid env var ENABLE_PROXY=yes (provided string was not `true` or `false`)"},
	        {"ENABLE_PROXY=",
	                "invalid env var ENABLE_PROXY= (provided string was not `true` or `false`)"},
	        {"IPV6_ENABLED=1",
	                "invalid env var IPV6_ENABLED=1 (provided string was not `true` or `false`)"},
	        {"IPV6_ENABLED=True",
	                "invalid env var IPV6_ENABLED=True (provided string was not `true` or `false`)"},
	        {"PACKET_MARK=0x539", "invalid env var PACKET_MARK=0x539 (invalid digit found in string)"},
	        {"PACKET_MARK=4294967296",
	                "invalid env var PACKET_MARK=4294967296 (number too large to fit in target type)"},
	        {"PACKET_MARK=", "invalid env var PACKET_MARK= (cannot parse integer from empty string)"},
	        {"POOL_MAX_STREAMS_PER_CONNECTION=0",
	                "invalid env var POOL_MAX_STREAMS_PER_CONNECTION=0 (number too small)"},
	        {"HTTP2_FRAME_SIZE=100", "invalid env var HTTP2_FRAME_SIZE=100 (number too small)"},
	        {"KEEPALIVE_TIME=", "invalid env var KEEPALIVE_TIME= (Empty input)"},
	        {"KEEPALIVE_TIME=1.5s", NULL},
	        {"SECRET_TTL=99999999999999999999999", NULL},
	        {"PROXY_MODE=both", "invalid env var PROXY_MODE=both (must be shared or dedicated)"},
	        {"CULVERT_ON_TERM=die", NULL},
	        {"CULVERT_ACCESS_LOG=some", NULL},
	        {"CULVERT_SECCOMP=maybe", "invalid env var CULVERT_SECCOMP=maybe (must be kill, log or off)"},
	        {"CULVERT_IO_BASELINE=6", NULL},
	        {"ISTIO_META_DNS_PROXY_ADDR=somewhere:53", NULL},
	        {"ISTIO_META_DNS_PROXY_ADDR=localhost:65536", NULL},
	        {"CLUSTER_DOMAIN=", NULL},
	        {"CLUSTER_DOMAIN=a..b", NULL},
	        {"CLUSTER_DOMAIN=a b", NULL},
	        {"CA_ADDRESS=ftp://x", "invalid uri: CA_ADDRESS=ftp://x"},
	        {"CA_ADDRESS=https://", NULL},
	        {"CA_ADDRESS=a b", NULL},
	        {"XDS_ADDRESS=host:99999", NULL},
	        {"XDS_ADDRESS=[::1:80", NULL},
	        {"ALT_CA_HOSTNAME=a b", NULL},
	        {"XDS_ON_DEMAND=true",
	                "error parsing proxy config: DNS proxy does not currently support on-demand mode"},
	        {"XDS_HEADER_a-bin=x", "failed to parse header key: XDS_HEADER_a-bin"},
	        {"XDS_HEADER_a b=x", "failed to parse header key: XDS_HEADER_a b"},
	        {"CA_HEADER_=x", "failed to parse header key: CA_HEADER_"},
	        {"CA_HEADER_a=x\ny", "failed to parse header value: CA_HEADER_a"},
	        {"CULVERT_ADMIN_PORT=65536", NULL},
	        {"ZTUNNEL_RESOURCE_CPU_LIMIT=-1", NULL},
	        {"ZTUNNEL_CPU_LIMIT=x", NULL},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		struct settings s;
		struct err e;
		if (LOAD(&s, PARAM_ALL, &e, rows[i].env) != -EINVAL)
			fail_msg("%s was accepted", rows[i].env);
		if (rows[i].text)
			assert_string_equal(e.text, rows[i].text);
		assert_true(e.text[0] != '\0');
		settings_done(&s);
	}
}

/* What upstream panics about has an exit status of its own. */
static void panics(void **state)
{
	struct settings s;
	struct err e;
	int rc = LOAD(&s, PARAM_B, &e, "CA_ADDRESS=");
	assert_int_equal(settings_exit_status(rc), 101);
	assert_string_equal(e.text, "ca_address must be set to use CA");
	rc = LOAD(&s, PARAM_S, &e, "SOMETHING=\xff");
	assert_int_equal(settings_exit_status(rc), 101);
	assert_string_equal(e.text, "environment variable SOMETHING is not valid UTF-8");
	rc = LOAD(&s, PARAM_B, &e, "CA_ADDRESS=ftp://x");
	assert_int_equal(settings_exit_status(rc), 1);
}

static void from_proxy_config(void **state)
{
	struct settings s;
	struct err e;
	assert_int_equal(
	        LOAD(&s, PARAM_ALL, &e, "CULVERT_DISCOVERY_ADDRESS=istiod:15010", "CULVERT_ADMIN_PORT=1",
	                "CULVERT_STATS_PORT=2", "CULVERT_CONCURRENCY=7", "CULVERT_META_A=config",
	                "CULVERT_META_B=config", "ISTIO_META_B=own", "CULVERT_META_CLUSTER_ID=c",
	                "CULVERT_META_DNS_CAPTURE=false", "CULVERT_META_DNS_PROXY_ADDR=[::1]:53"),
	        0);
	assert_string_equal(s.xds_address, "https://istiod:15010");
	assert_int_equal(s.admin_port, 1);
	assert_int_equal(s.stats_port, 2);
	assert_int_equal(s.worker_cnt, 7);
	assert_false(s.dns_enabled);
	assert_int_equal(s.dns_addr.port, 53);
	/* It reaches the node's metadata, not the header (control.md 3.3). */
	assert_string_equal(s.cluster_id, "Kubernetes");
	assert_int_equal(s.metadata.cnt, 5);
	assert_string_equal(s.metadata.pairs[0].key, "B");
	assert_string_equal(s.metadata.pairs[0].value, "own");
	assert_string_equal(s.metadata.pairs[1].key, "A");
	settings_done(&s);
	/* A mesh file alone is the whole mesh, except where somebody names a control plane or Kubernetes runs
	 * us. */
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "LOCAL_XDS_PATH=/x"), 0);
	assert_null(s.xds_address);
	settings_done(&s);
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "LOCAL_XDS_PATH=/x", "KUBERNETES_SERVICE_HOST="), 0);
	assert_string_equal(s.xds_address, "https://istiod.istio-system.svc:15012");
	settings_done(&s);
	assert_int_equal(
	        LOAD(&s, PARAM_ALL, &e, "LOCAL_XDS_PATH=/x", "CULVERT_DISCOVERY_ADDRESS=istiod:15010"), 0);
	assert_string_equal(s.xds_address, "https://istiod:15010");
	settings_done(&s);
	/* What the environment says wins; XDS_ADDRESS also when it is empty. */
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "CULVERT_DISCOVERY_ADDRESS=istiod:15010", "XDS_ADDRESS=",
	                         "CULVERT_META_DNS_CAPTURE=false", "ISTIO_META_DNS_CAPTURE=true",
	                         "CULVERT_CONCURRENCY=7", "ZTUNNEL_WORKER_THREADS=3"),
	        0);
	assert_null(s.xds_address);
	assert_true(s.dns_enabled);
	assert_int_equal(s.worker_cnt, 3);
	assert_int_equal(s.admin_port, 15000);
	assert_int_equal(s.stats_port, 15020);
	settings_done(&s);
}

static void across_variables(void **state)
{
	struct settings s;
	struct err e;
	assert_int_equal(
	        LOAD(&s, PARAM_ALL, &e, "ENABLE_PROXY=false", "ISTIO_META_DNS_CAPTURE=off"), -EINVAL);
	assert_string_equal(e.text, "error parsing proxy config: ztunnel run without any servers enabled");
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "LOCAL_XDS=", "LOCAL_XDS_PATH=/x"), -EINVAL);
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "CA_ADDRESS=", "FAKE_CA=true"), 0);
	settings_done(&s);
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "XDS_ON_DEMAND=true", "ISTIO_META_DNS_CAPTURE=no"), 0);
	settings_done(&s);
	assert_int_equal(
	        LOAD(&s, PARAM_ALL, &e, "PROXY_MODE=dedicated", "PROXY_WORKLOAD_INFO=ns/name/sa/x"), 0);
	assert_true(s.dedicated && s.has_workload_info);
	assert_string_equal(s.workload_ns, "ns");
	assert_string_equal(s.workload_name, "name");
	assert_string_equal(s.workload_service_account, "sa/x");
	assert_int_equal(s.packet_mark, 0);
	settings_done(&s);
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "PROXY_MODE=dedicated", "PACKET_MARK=7"), 0);
	assert_false(s.has_workload_info);
	assert_int_equal(s.packet_mark, 7);
	settings_done(&s);
	assert_int_equal(
	        LOAD(&s, PARAM_ALL, &e, "PROXY_MODE=dedicated", "PROXY_WORKLOAD_INFO=ns/name"), -EINVAL);
	assert_int_equal(LOAD(&s, PARAM_ALL, &e, "PROXY_MODE=shared", "PROXY_WORKLOAD_INFO=ns/name"), 0);
	assert_false(s.has_workload_info);
	settings_done(&s);
}

static void drain_times(void **state)
{
	static const struct {
		const char *grace;
		uint64_t seconds;
	} rows[] = {{"0", 1}, {"1", 1}, {"2", 1}, {"5", 4}, {"10", 9}, {"11", 6}, {"30", 25}};
	struct settings s;
	struct err e;
	for (size_t i = 0; i < CNT(rows); i++) {
		char env[64];
		snprintf(env, sizeof(env), "TERMINATION_GRACE_PERIOD_SECONDS=%s", rows[i].grace);
		assert_int_equal(LOAD(&s, PARAM_S, &e, env), 0);
		assert_int_equal(s.drain_ms, rows[i].seconds * 1000);
		settings_done(&s);
	}
	assert_int_equal(LOAD(&s, PARAM_S, &e, "TERMINATION_GRACE_PERIOD_SECONDS=30",
	                         "CONNECTION_TERMINATION_DEADLINE=2s"),
	        0);
	assert_int_equal(s.drain_ms, 2000);
	settings_done(&s);
	assert_int_equal(LOAD(&s, PARAM_S, &e, "TERMINATION_GRACE_PERIOD_SECONDS=18446744073709551615"), 0);
	assert_true(s.drain_ms == UINT64_MAX);
	settings_done(&s);
}

static void pairs(void **state)
{
	struct settings s;
	struct err e;
	assert_int_equal(
	        LOAD(&s, PARAM_B, &e, "XDS_HEADER_Foo_Bar=x y", "XDS_HEADER_b=", "CA_HEADER_Q=1=2",
	                "ISTIO_META_A=1", "ISTIO_META_ISTIO_META_B=2", "ISTIO_METAJSON_C={}", "XDS_HEADER_"),
	        0);
	assert_int_equal(s.xds_headers.cnt, 2);
	assert_string_equal(s.xds_headers.pairs[0].key, "foo_bar");
	assert_string_equal(s.xds_headers.pairs[0].value, "x y");
	assert_string_equal(s.xds_headers.pairs[1].value, "");
	assert_int_equal(s.ca_headers.cnt, 1);
	assert_string_equal(s.ca_headers.pairs[0].key, "q");
	assert_string_equal(s.ca_headers.pairs[0].value, "1=2");
	assert_int_equal(s.metadata.cnt, 2);
	assert_string_equal(s.metadata.pairs[0].key, "A");
	assert_string_equal(s.metadata.pairs[1].key, "B");
	assert_int_equal(s.metadata_json.cnt, 1);
	assert_string_equal(s.metadata_json.pairs[0].key, "C");
	settings_done(&s);
}

static void silo_sees_only_its_own(void **state)
{
	static const char *const list[] = {"AUTH_TOKEN=secret", "PACKET_MARK=7", "CA_HEADER_X=secret",
	        "LOCAL_XDS=secret", "PATH=/bin", "RUST_LOG=debug", "ISTIO_META_SECRET=x",
	        "ISTIO_META_DNS_CAPTURE=true", "NODE_NAMES=x", "odd", "=x", "PROXY_CONFIG=secret", NULL};
	char *const *env = (char *const *)(uintptr_t)list;
	char **out;
	assert_int_equal(settings_silo_env(env, &out), 0);
	assert_string_equal(out[0], "PACKET_MARK=7");
	assert_string_equal(out[1], "RUST_LOG=debug");
	assert_string_equal(out[2], "ISTIO_META_DNS_CAPTURE=true");
	assert_string_equal(out[3], "GLIBC_TUNABLES=glibc.malloc.tcache_count=0");
	assert_null(out[4]);
	mem_free(out);
	assert_false(settings_is_silo_name("AUTH_TOKEN", 10));
	assert_true(settings_is_silo_name("NETWORK=x", 7));
	/* A silo does not look at what it is not meant to read, even when it is there. */
	struct settings s;
	struct err e;
	assert_int_equal(load(&s, PARAM_S, &e, list), 0);
	assert_null(s.auth_token);
	assert_int_equal(s.metadata.cnt, 0);
	settings_done(&s);
	allocations_left = 0;
	assert_int_equal(settings_silo_env(env, &out), -ENOMEM);
	allocations_left = -1;
}

static void table(void **state)
{
	size_t cnt = 0;
	for (const struct param_info *p; (p = param_info(cnt)); cnt++) {
		assert_true(p->readers != 0 && (p->readers & ~PARAM_ALL) == 0);
		assert_true(strlen(p->text) > 5 && strlen(p->type) >= 3);
		for (size_t i = 0; i < cnt; i++)
			assert_string_not_equal(param_info(i)->env, p->env);
	}
	assert_true(cnt > 60);
}

static void out_of_memory(void **state)
{
	struct settings s;
	struct err e;
	char big[3000] = "NETWORK=";
	memset(big + 8, 'x', sizeof(big) - 9);
	big[sizeof(big) - 1] = '\0';
	for (long n = 0, rc = -ENOMEM; rc < 0; n++) {
		allocations_left = n;
		rc = LOAD(&s, PARAM_ALL, &e, big, "XDS_HEADER_a=b", "CA_ADDRESS=x");
		allocations_left = -1;
		assert_true(rc == 0 || rc == -ENOMEM);
		settings_done(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(defaults),
	        cmocka_unit_test(values),
	        cmocka_unit_test(bad_values),
	        cmocka_unit_test(panics),
	        cmocka_unit_test(from_proxy_config),
	        cmocka_unit_test(across_variables),
	        cmocka_unit_test(drain_times),
	        cmocka_unit_test(pairs),
	        cmocka_unit_test(silo_sees_only_its_own),
	        cmocka_unit_test(table),
	        cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
