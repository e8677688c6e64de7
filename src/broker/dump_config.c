/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings as upstream's config structure prints them; see dump_config.h. Secrets (the token) are not in it.
 */
#include "broker/dump_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "broker/admin.h"
#include "broker/resolv_conf.h"
#include "broker_revision.h"

/* Ports of the proxy (reference control.md 3.8); fixed. */
#define PORT_OUTBOUND 15001
#define PORT_PLAINTEXT 15006
#define PORT_INBOUND 15008
#define PORT_SOCKS5 15080
/* Where the name servers are found; and a ceiling for such a file, which has a few lines. */
#define RESOLV_CONF_PATH "/etc/resolv.conf"
#define RESOLV_CONF_MAX 65536
/* Bytes of an identity: three names of at most 253 and what is between. */
#define IDENTITY_MAX 1024
/* "1": the loopback interface has no IPv6. */
#define LO_DISABLED_PATH "/proc/sys/net/ipv6/conf/lo/disable_ipv6"

/* --- forms --------------------------------------------------------------- */

static void kv_null(struct json *json, const char *key)
{
	json_key(json, key);
	json_null(json);
}

static void kv_duration(struct json *json, const char *key, uint64_t ms)
{
	json_key(json, key);
	json_obj(json);
	json_kv_u64(json, "nanos", ms % 1000 * 1000000);
	json_kv_u64(json, "secs", ms / 1000);
	json_obj_end(json);
}

/* Every address of a port, as text. */
static const char *any_addr(const struct settings *s, uint16_t port, char dst[ADDR_STR_MAX])
{
	snprintf(dst, ADDR_STR_MAX, "%s:%u", s->ipv6_enabled ? "[::]" : "0.0.0.0", port);
	return dst;
}

static void kv_any(struct json *json, const char *key, const struct settings *s, uint16_t port)
{
	char text[ADDR_STR_MAX];
	json_kv_str(json, key, any_addr(s, port, text));
}

static void kv_socket(struct json *json, const char *key, const char *addr)
{
	json_key(json, key);
	json_obj(json);
	json_kv_str(json, "SocketAddr", addr);
	json_obj_end(json);
}

static bool has_localhost_v6(const struct settings *s)
{
	struct buf text;
	if (!s->ipv6_enabled)
		return false;
	buf_init(&text, 16);
	bool is_off = file_read(LO_DISABLED_PATH, &text) == 0 && text.len > 0 && text.data[0] == '1';
	buf_done(&text);
	return !is_off;
}

static void kv_localhost(struct json *json, const char *key, const struct settings *s, uint16_t port)
{
	json_key(json, key);
	json_obj(json);
	json_key(json, "Localhost");
	json_arr(json);
	json_bool(json, has_localhost_v6(s));
	json_u64(json, port);
	json_arr_end(json);
	json_obj_end(json);
}

/* Where roots come from: the kind is decided as upstream does (reference control.md 3.2). */
static void kv_roots(struct json *json, const char *key, const char *value)
{
	json_key(json, key);
	if (strcmp(value, "SYSTEM") == 0) {
		json_str(json, "Default");
	} else if (access(value, F_OK) == 0) {
		json_obj(json);
		json_kv_str(json, "File", value);
		json_obj_end(json);
	} else {
		json_str(json, "Static");
	}
}

static void kv_pairs(struct json *json, const char *key, const struct setting_pairs *pairs)
{
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < pairs->cnt; i++) {
		json_arr(json);
		json_str(json, pairs->pairs[i].key);
		json_str(json, pairs->pairs[i].value);
		json_arr_end(json);
	}
	json_arr_end(json);
}

static int by_key(const void *a, const void *b)
{
	const struct setting_pair *x = a, *y = b;
	return strcmp(x->key, y->key);
}

static int kv_map(struct json *json, const char *key, const struct setting_pairs *pairs)
{
	struct setting_pair *sorted = mem_zalloc(pairs->cnt + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < pairs->cnt; i++)
		sorted[i] = pairs->pairs[i];
	qsort(sorted, pairs->cnt, sizeof(*sorted), by_key);
	json_key(json, key);
	json_obj(json);
	for (size_t i = 0; i < pairs->cnt; i++)
		json_kv_str(json, sorted[i].key, sorted[i].value);
	json_obj_end(json);
	mem_free(sorted);
	return 0;
}

static void kv_workload(
        struct json *json, const char *key, const char *name, const char *ns, const char *service_account)
{
	json_key(json, key);
	if (!name || !ns || !service_account) {
		json_null(json);
		return;
	}
	json_obj(json);
	json_kv_str(json, "name", name);
	json_kv_str(json, "namespace", ns);
	json_kv_str(json, "serviceAccount", service_account);
	json_obj_end(json);
}

/* --- resolver ------------------------------------------------------------ */

static void put_server_transport(struct json *json, uint16_t port, const char *type)
{
	json_obj(json);
	kv_null(json, "bind_addr");
	json_kv_u64(json, "port", port);
	json_key(json, "protocol");
	json_obj(json);
	json_kv_str(json, "type", type);
	json_obj_end(json);
	json_obj_end(json);
}

static void put_server(struct json *json, const struct addr *server)
{
	char text[IP_STR_MAX];
	json_obj(json);
	json_key(json, "connections");
	json_arr(json);
	put_server_transport(json, server->port, "udp");
	put_server_transport(json, server->port, "tcp");
	json_arr_end(json);
	json_kv_str(json, "ip", ip_format(&server->ip, text));
	json_kv_bool(json, "trust_negative_responses", true);
	json_obj_end(json);
}

static unsigned put_resolver(struct json *json)
{
	struct resolv_conf conf = {.ndots = 1};
	struct buf text;
	buf_init(&text, RESOLV_CONF_MAX);
	if (file_read(RESOLV_CONF_PATH, &text) == 0)
		resolv_conf_parse((const char *)text.data, text.len, &conf);
	buf_done(&text);
	json_key(json, "dnsResolverCfg");
	json_obj(json);
	kv_null(json, "domain");
	json_key(json, "name_servers");
	json_arr(json);
	for (size_t i = 0; i < conf.server_cnt; i++)
		put_server(json, &conf.servers[i]);
	json_arr_end(json);
	json_key(json, "search");
	json_arr(json);
	for (size_t i = 0; i < conf.search_cnt; i++)
		json_str(json, conf.search[i]);
	json_arr_end(json);
	json_obj_end(json);
	return conf.ndots;
}

/* The keys of upstream's resolver library; the values say how ours behaves. */
static void put_resolver_opts(struct json *json, const struct settings *s, unsigned ndots)
{
	static const char *const lists[] = {"allow_answers", NULL, "avoid_local_udp_ports"};
	json_key(json, "dnsResolverOpts");
	json_obj(json);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (!lists[i]) {
			json_kv_u64(json, "attempts", 2);
			continue;
		}
		json_key(json, lists[i]);
		json_arr(json);
		json_arr_end(json);
	}
	json_kv_u64(json, "cache_size", 4096);
	json_kv_bool(json, "case_randomization", false);
	json_key(json, "deny_answers");
	json_arr(json);
	json_arr_end(json);
	json_kv_bool(json, "edns0", false);
	json_kv_u64(json, "edns_payload_len", 1232);
	json_kv_str(json, "ip_strategy", s->ipv6_enabled ? "Ipv4AndIpv6" : "Ipv4Only");
	json_kv_u64(json, "max_active_requests", 32);
	json_kv_u64(json, "ndots", ndots);
	kv_null(json, "negative_max_ttl");
	kv_null(json, "negative_min_ttl");
	json_kv_u64(json, "num_concurrent_reqs", 2);
	json_kv_bool(json, "os_port_selection", false);
	kv_null(json, "positive_max_ttl");
	kv_null(json, "positive_min_ttl");
	json_kv_bool(json, "preserve_intermediates", true);
	json_kv_bool(json, "recursion_desired", true);
	json_kv_str(json, "server_ordering_strategy", "QueryStatistics");
	json_kv_u64(json, "timeout", 5);
	kv_null(json, "trust_anchor");
	json_kv_bool(json, "try_tcp_on_error", false);
	json_kv_str(json, "use_hosts_file", "Auto");
	json_obj_end(json);
}

/* --- the parts of the alphabet ------------------------------------------- */

static void put_a_to_c(struct json *json, const struct settings *s)
{
	kv_localhost(json, "adminAddr", s, s->admin_port);
	json_kv_str(json, "altCaHostname", s->alt_ca_hostname);
	json_kv_str(json, "altXdsHostname", s->alt_xds_hostname);
	json_kv_str(json, "caAddress", s->ca_address);
	kv_pairs(json, "caHeaders", &s->ca_headers);
	kv_roots(json, "caRootCert", s->ca_root_ca);
	json_kv_str(json, "clusterDomain", s->cluster_domain);
	json_kv_str(json, "clusterId", s->meta_cluster_id ? s->meta_cluster_id : s->cluster_id);
	json_kv_u64(json, "connectionWindowSize", s->h2_connection_window);
	json_kv_str(json, "crlPath", s->crl_path && s->crl_path[0] ? s->crl_path : NULL);
}

static void put_d_to_i(struct json *json, const struct settings *s)
{
	char text[ADDR_STR_MAX];
	json_kv_bool(json, "dnsProxy", s->dns_enabled);
	if (s->dns_localhost)
		kv_localhost(json, "dnsProxyAddr", s, s->dns_addr.port);
	else
		kv_socket(json, "dnsProxyAddr", addr_format(&s->dns_addr, text));
	put_resolver_opts(json, s, put_resolver(json));
	json_kv_bool(json, "enableEnhancedBaggage", s->response_baggage);
	json_kv_bool(json, "fakeCa", s->fake_ca);
	json_kv_bool(json, "fakeSelfInbound", false);
	json_kv_u64(json, "frameSize", s->h2_frame_size);
	json_key(json, "illegalPorts");
	json_arr(json);
	json_u64(json, PORT_OUTBOUND);
	json_u64(json, PORT_PLAINTEXT);
	json_u64(json, PORT_INBOUND);
	if (s->socks5)
		json_u64(json, PORT_SOCKS5);
	json_arr_end(json);
	kv_any(json, "inboundAddr", s, PORT_INBOUND);
	kv_any(json, "inboundPlaintextAddr", s, PORT_PLAINTEXT);
	json_kv_bool(json, "inpodPortReuse", s->inpod_port_reuse);
	json_kv_str(json, "inpodUds", s->inpod_uds);
	json_kv_bool(json, "ipv6Enabled", s->ipv6_enabled);
}

static int put_l_to_p(struct json *json, const struct settings *s)
{
	json_kv_str(json, "localNode", s->node_name);
	json_kv_bool(json, "localhostAppTunnel", s->localhost_app_tunnel);
	json_kv_str(json, "network", s->network);
	json_kv_u64(json, "numWorkerThreads", s->worker_cnt);
	kv_any(json, "outboundAddr", s, PORT_OUTBOUND);
	if (s->dedicated && !s->packet_mark_set)
		kv_null(json, "packetMark");
	else
		json_kv_u64(json, "packetMark", s->packet_mark);
	json_kv_u64(json, "poolMaxStreamsPerConn", s->pool_max_streams);
	kv_duration(json, "poolUnusedReleaseTimeout", s->pool_idle_ms);
	json_kv_str(json, "preferedServiceNamespace", s->prefered_namespace);
	json_kv_bool(json, "proxy", s->enable_proxy);
	json_kv_str(json, "proxyArgs", "proxy ztunnel");
	int r = kv_map(json, "proxyMetadata", &s->metadata);
	json_kv_str(json, "proxyMode", s->dedicated ? "Dedicated" : "Shared");
	kv_workload(json, "proxyWorkloadInformation", s->has_workload_info ? s->workload_name : NULL,
	        s->workload_ns, s->workload_service_account);
	return r;
}

static void put_r_to_s(struct json *json, const struct settings *s)
{
	char text[ADDR_STR_MAX];
	kv_socket(json, "readinessAddr", any_addr(s, ADMIN_READINESS_PORT, text));
	json_key(json, "requireOriginalSource");
	if (s->enable_orig_src_set)
		json_bool(json, s->enable_orig_src);
	else
		json_null(json);
	kv_duration(json, "secretTtl", s->secret_ttl_ms);
	kv_duration(json, "selfTerminationDeadline", s->drain_ms);
	json_key(json, "socketConfig");
	json_obj(json);
	json_kv_bool(json, "keepaliveEnabled", s->keepalive_enabled);
	kv_duration(json, "keepaliveInterval", s->keepalive_interval_ms);
	json_kv_u64(json, "keepaliveRetries", s->keepalive_retries);
	kv_duration(json, "keepaliveTime", s->keepalive_time_ms);
	json_kv_bool(json, "userTimeoutEnabled", s->user_timeout_enabled);
	json_obj_end(json);
	json_kv_str(json, "socks5Addr", s->socks5 ? "127.0.0.1:15080" : NULL);
	kv_socket(json, "statsAddr", any_addr(s, s->stats_port, text));
}

static void put_w_to_z(struct json *json, const struct settings *s)
{
	bool is_self = s->pod_name && s->pod_namespace && s->service_account;
	json_kv_u64(json, "windowSize", s->h2_stream_window);
	json_kv_str(json, "xdsAddress", s->xds_address);
	kv_pairs(json, "xdsHeaders", &s->xds_headers);
	json_kv_bool(json, "xdsOnDemand", s->xds_on_demand);
	kv_roots(json, "xdsRootCert", s->xds_root_ca);
	json_key(json, "ztunnelIdentity");
	if (is_self) {
		struct buf text;
		buf_init(&text, IDENTITY_MAX);
		buf_printf(&text, "spiffe://%s/ns/%s/sa/%s", s->trust_domain, s->pod_namespace,
		        s->service_account);
		json_strn(json, (const char *)text.data, text.len);
		buf_done(&text);
	} else {
		json_null(json);
	}
	kv_workload(
	        json, "ztunnelWorkload", is_self ? s->pod_name : NULL, s->pod_namespace, s->service_account);
}

int dump_config(struct json *json, const struct settings *settings)
{
	put_a_to_c(json, settings);
	put_d_to_i(json, settings);
	int r = put_l_to_p(json, settings);
	put_r_to_s(json, settings);
	put_w_to_z(json, settings);
	return r;
}

void dump_version(struct json *json, const struct settings *settings)
{
	static const char dirty[] = "-dirty";
	size_t len = strlen(CULVERT_GIT_REVISION);
	bool is_dirty =
	        len >= sizeof(dirty) && strcmp(&CULVERT_GIT_REVISION[len - strlen(dirty)], dirty) == 0;
	json_kv_str(json, "buildProfile", CULVERT_BUILD_TYPE);
	json_kv_str(json, "buildStatus", is_dirty ? "Modified" : "Clean");
	json_kv_str(json, "cryptoProvider", "wolfssl-" CULVERT_WOLFSSL_VERSION);
	json_kv_str(json, "gitRevision", CULVERT_GIT_REVISION);
	json_kv_str(json, "istioVersion", settings->istio_version);
	json_kv_str(json, "rustVersion", "none");
	json_kv_str(json, "version", CULVERT_VERSION);
}
