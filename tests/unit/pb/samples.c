/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See samples.h. Data only. */
#include "samples.h"

/* clang-format off */
#define CNT(a) (sizeof(a) / sizeof((a)[0]))
#define V4(w, x, y, z) {.family = 4, .b = {w, x, y, z}}
#define V6(last) {.family = 6, .b = {0x20, 1, 0xd, 0xb8, [15] = last}}
#define INFO {.name = "echo-1", .ns = "demo", .service_account = "echo"}

static const struct ip ips[] = {V4(10, 0, 0, 7), V6(7)};
static const char *const policies[] = {"demo/allow-web", "demo/deny-all"};
static const struct port_map ports[] = {{80, 8080}, {443, 0}, {65535, 65535}};
static const struct workload_service memberships[] = {
	{.ns = "demo", .hostname = "echo.demo.svc.cluster.local", .ports = ports, .port_cnt = CNT(ports)},
	{.ns = "demo", .hostname = "other.demo.svc.cluster.local"},
};

const struct workload sample_workload = {
	.uid = "Kubernetes//Pod/demo/echo-1",
	.name = "echo-1",
	.ns = "demo",
	.trust_domain = "cluster.local",
	.service_account = "echo",
	.network = "net1",
	.workload_name = "echo",
	.workload_type = "deployment",
	.canonical_name = "echo",
	.canonical_revision = "v1",
	.hostname = "echo.example",
	.node = "node-a",
	.cluster_id = "Kubernetes",
	.locality = {.region = "r", .zone = "z", .subzone = "s"},
	.protocol = WORKLOAD_HBONE,
	.network_mode = NETWORK_MODE_HOST,
	.status = WORKLOAD_UNHEALTHY,
	.native_tunnel = true,
	.capacity = 7,
	.ips = ips,
	.ip_cnt = CNT(ips),
	.has_waypoint = true,
	.waypoint = {.addr = {.network = "net1", .ip = V4(10, 0, 0, 9)}, .hbone_port = 15008},
	.has_network_gateway = true,
	.network_gateway = {.is_host = true, .ns = "istio-system", .host = "gw.istio-system.svc", .hbone_port = 15009},
	.has_app_tunnel = true,
	.app_tunnel_protocol = APP_TUNNEL_PROXY,
	.app_tunnel_port = 15088,
	.policies = policies,
	.policy_cnt = CNT(policies),
	.services = memberships,
	.service_cnt = CNT(memberships),
};

static const struct net_addr vips[] = {{.network = "net1", .ip = V4(10, 96, 0, 1)}, {.network = "", .ip = V6(1)}};
static const struct net_cidr cidrs[] = {{.network = "", .cidr = {.ip = V4(240, 240, 0, 3), .len = 16}}};
static const char *const sans[] = {"spiffe://cluster.local/ns/demo/sa/echo"};
static const enum lb_scope scopes[] = {LB_SCOPE_NETWORK, LB_SCOPE_REGION, LB_SCOPE_ZONE};
static const struct weighted_waypoint weighted[] = {
	{.ref = {.is_host = true, .ns = "demo", .host = "wp.demo.svc", .hbone_port = 15008}, .weight = 90},
	{.ref = {.addr = {.network = "", .ip = V4(10, 0, 0, 9)}, .hbone_port = 15008}, .weight = 0},
};

const struct service sample_service = {
	.name = "echo",
	.ns = "demo",
	.hostname = "echo.demo.svc.cluster.local",
	.vips = vips,
	.vip_cnt = CNT(vips),
	.cidrs = cidrs,
	.cidr_cnt = CNT(cidrs),
	.ports = ports,
	.port_cnt = CNT(ports),
	.sans = sans,
	.san_cnt = CNT(sans),
	.has_waypoint = true,
	.waypoint = {.is_host = true, .ns = "demo", .host = "wp.demo.svc", .hbone_port = 15008},
	.weighted = weighted,
	.weighted_cnt = CNT(weighted),
	.has_lb = true,
	.scopes = scopes,
	.scope_cnt = CNT(scopes),
	.lb_mode = LB_MODE_FAILOVER,
	.lb_health = LB_ALLOW_ALL,
	.families = IP_FAMILIES_DUAL,
	.visibility = VISIBILITY_NAMESPACE,
	.canonical = true,
};

static const struct endpoint endpoints[] = {
	{.workload = &sample_workload, .ports = ports, .port_cnt = CNT(ports), .status = WORKLOAD_UNHEALTHY},
	{.workload = &sample_workload},
};

static const struct string_match strings[] = {
	{MATCH_EXACT, "web"}, {MATCH_PREFIX, "we"}, {MATCH_SUFFIX, "eb"}, {MATCH_PRESENCE, ""}};
static const struct sa_match accounts[] = {{.ns = "demo", .service_account = "web"}, {.ns = "", .service_account = ""}};
static const struct cidr nets[] = {{.ip = V4(10, 1, 2, 3), .len = 8}, {.ip = V6(0), .len = 0}};
static const uint16_t match_ports[] = {0, 80, 65535};
static const struct policy_match matches[] = {
	{
		.namespaces = strings,
		.namespace_cnt = CNT(strings),
		.not_namespaces = strings,
		.not_namespace_cnt = 1,
		.principals = strings,
		.principal_cnt = 2,
		.not_principals = strings,
		.not_principal_cnt = 3,
		.accounts = accounts,
		.account_cnt = CNT(accounts),
		.not_accounts = accounts,
		.not_account_cnt = 1,
		.source_ips = nets,
		.source_ip_cnt = CNT(nets),
		.not_source_ips = nets,
		.not_source_ip_cnt = 1,
		.dest_ips = nets,
		.dest_ip_cnt = CNT(nets),
		.not_dest_ips = nets,
		.not_dest_ip_cnt = 1,
		.dest_ports = match_ports,
		.dest_port_cnt = CNT(match_ports),
		.not_dest_ports = match_ports,
		.not_dest_port_cnt = 2,
	},
	{.dest_ports = match_ports, .dest_port_cnt = 1},
};
static const struct policy_clause clauses[] = {{.matches = matches, .match_cnt = CNT(matches)}, {.match_cnt = 0}};
static const struct policy_rule rules[] = {{.clauses = clauses, .clause_cnt = CNT(clauses)}, {.clause_cnt = 0}};

const struct policy sample_policy = {
	.name = "deny-all",
	.ns = "demo",
	.scope = POLICY_SELECTOR,
	.action = POLICY_DENY,
	.dry_run = true,
	.rules = rules,
	.rule_cnt = CNT(rules),
};

static const struct policy policy_set[] = {
	{
		.name = "deny-all",
		.ns = "demo",
		.scope = POLICY_SELECTOR,
		.action = POLICY_DENY,
		.dry_run = true,
		.rules = rules,
		.rule_cnt = CNT(rules),
	},
	{.name = "nothing", .ns = "istio-system"},
};

static const struct ipc_inherited inherited[] = {
	{IPC_FD_OUTBOUND, 7}, {IPC_FD_INBOUND_PLAINTEXT, 8}, {IPC_FD_INBOUND_HBONE, 9}, {IPC_FD_METRICS, 4711}};
static const char *const chain[] = {
	"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nBBBB\n-----END CERTIFICATE-----\n"};
static const uint64_t numbers[] = {1, UINT64_MAX, 0};
static const struct ipc_metric metrics[] = {
	{.set = 4, .labels = (const uint8_t *)"source\0a\0\xc3\xa9", .labels_len = 11, .present = 0x15, .values = numbers, .value_cnt = 3},
	{.set = 8},
};
static const struct ipc_connection connections[] = {
	{.inbound = true,
		.src = {V4(10, 0, 0, 1), 40000},
		.original_dst = "echo.demo.svc.cluster.local",
		.actual_dst = {V6(7), 8080},
		.protocol = "HBONE",
		.sent = 1,
		.received = UINT64_MAX},
	{.src = {V6(7), 0}, .original_dst = "10.96.0.1:80", .actual_dst = {V4(10, 0, 0, 2), 15008}, .protocol = "TCP"},
};
static const struct ipc_cert certs[] = {{.pem = "-----BEGIN", .serial = "249898194162858192030122644956637077169",
	.valid_from = 1763000000, .expires = 1763086400}};
static const struct ipc_certificate certificates[] = {
	{.identity = "spiffe://cluster.local/ns/demo/sa/echo", .state = "Available", .chain = certs, .chain_cnt = 1, .roots = certs, .root_cnt = 1},
	{.identity = "spiffe://cluster.local/ns/demo/sa/b", .state = "Initializing"},
};

#define ADDR_KEY {.addr = {.network = "net1", .ip = V4(10, 96, 0, 1)}}
static const struct addr servers[] = {{.ip = {.family = 4, .b = {10, 0, 0, 10}}, .port = 53}, {.ip = {.family = 6, .b = {0xfd, [15] = 1}}, .port = 53}};

static const struct ip resolved[] = {V4(192, 0, 2, 9), V6(9)};

#define HOST_KEY {.is_host = true, .ns = "demo", .host = "echo.demo.svc.cluster.local"}

const struct sample samples[] = {
	{"hello-silo", {.type = IPC_HELLO, .hello = {.release = "0.1.0", .proto_min = 1, .proto_max = 3, .features = 0x8000000000000001,
		.role = IPC_ROLE_SILO, .uid = "53c44d9a-e323-4f61-98dd-a67acd5dc095", .info = INFO, .netns_dev = 4, .netns_ino = 4026532008,
		.pid = 4711, .start_time = 123456789, .broker_attached = true, .is_ready = true}}},
	{"hello-warden", {.type = IPC_HELLO, .hello = {.release = "0.1.0", .proto_min = 1, .proto_max = 1, .role = IPC_ROLE_WARDEN,
		.info = {.name = "", .ns = "", .service_account = ""}, .uid = ""}}},
	{"unsupported", {.id = 9, .type = IPC_UNSUPPORTED, .unsupported = {.type = 4711}}},
	{"heritage", {.type = IPC_HERITAGE, .heritage = {.uid = "u1", .info = INFO, .fds = inherited, .fd_cnt = CNT(inherited),
		.run_name = "u1", .first = true, .mode = IPC_SILO_DEDICATED}}},
	{"attach-broker", {.type = IPC_ATTACH_BROKER}},
	{"drain", {.type = IPC_DRAIN, .drain = {.graceful = true, .deadline_ms = 30000}}},
	{"ready", {.type = IPC_READY}},
	{"start-failed", {.type = IPC_START_FAILED, .start_failed = {.text = "Bind([::]:15008): Address already in use"}}},
	{"drained", {.type = IPC_DRAINED, .drained = {.forced = true}}},
	{"silo-attach", {.type = IPC_SILO_ATTACH, .silo_attach = {.uid = "u1", .info = INFO, .pid = 12}}},
	{"silo-state", {.type = IPC_SILO_STATE, .silo_state = {.uid = "u1", .info = INFO, .state = IPC_SILO_GONE, .reason = "netns is gone",
		.restarts = 3, .netns_ino = 4026532008, .pid = 12}}},
	{"node-state", {.type = IPC_NODE_STATE, .node_state = {.connected = true, .snapshot = true, .pending_cnt = 2}}},
	{"mesh-state", {.type = IPC_MESH_STATE, .mesh_state = {.complete = true}}},
	{"stop-request", {.type = IPC_STOP_REQUEST}},
	{"log-pipe", {.type = IPC_LOG_PIPE}},
	{"ask-workload", {.id = 1, .type = IPC_ASK_WORKLOAD}},
	{"answer-workload", {.id = 1, .type = IPC_ANSWER_WORKLOAD,
		.answer_workload = {.found = true, .generation = 77, .workload = &sample_workload}}},
	{"answer-workload-none", {.id = 1, .type = IPC_ANSWER_WORKLOAD, .answer_workload = {.generation = 78}}},
	{"ask-certificate", {.id = 0xffffffff, .type = IPC_ASK_CERTIFICATE, .ask_certificate = {
		.identity = "spiffe://cluster.local/ns/demo/sa/echo", .csr = (const uint8_t *)"\x30\x00\xff", .csr_len = 3, .waiting = true}}},
	{"answer-certificate", {.id = 2, .type = IPC_ANSWER_CERTIFICATE, .answer_certificate = {.chain = chain, .chain_cnt = CNT(chain),
		.roots = "-----BEGIN CERTIFICATE-----\nCCCC\n-----END CERTIFICATE-----\n", .error = ""}}},
	{"answer-certificate-error", {.id = 2, .type = IPC_ANSWER_CERTIFICATE, .answer_certificate = {.roots = "", .error = "signing error",
		.retry_ms = 1500}}},
	{"ask-address", {.id = 3, .type = IPC_ASK_ADDRESS, .ask_address = ADDR_KEY}},
	{"ask-address-unfiltered", {.id = 3, .type = IPC_ASK_ADDRESS, .ask_address = {.unfiltered = true,
		.addr = {.network = "", .ip = V6(9)}}}},
	{"ask-host", {.id = 4, .type = IPC_ASK_HOST, .ask_host = HOST_KEY}},
	{"ask-host-dns", {.id = 4, .type = IPC_ASK_HOST, .ask_host = {.is_host = true, .ns = "", .host = "echo", .dns = true}}},
	{"ask-resolver", {.id = 8, .type = IPC_ASK_RESOLVER}},
	{"answer-resolver", {.id = 8, .type = IPC_ANSWER_RESOLVER, .answer_resolver = {.servers = servers, .server_cnt = CNT(servers),
		.timeout_ms = 5000, .attempts = 2, .edns = true, .hosts = "127.0.0.1 localhost\n"}}},
	{"ask-resolve", {.id = 9, .type = IPC_ASK_RESOLVE, .ask_resolve = {.host = "db.example.com"}}},
	{"answer-resolve", {.id = 9, .type = IPC_ANSWER_RESOLVE, .answer_resolve = {.host = "db.example.com", .ips = resolved, .ip_cnt = CNT(resolved),
		.error = ""}}},
	{"answer-resolve-failed", {.id = 9, .type = IPC_ANSWER_RESOLVE, .answer_resolve = {.host = "db.example.com", .error = "no server answered"}}},
	{"answer-view", {.id = 3, .type = IPC_ANSWER_VIEW, .answer_view = {.key = ADDR_KEY, .known = true, .generation = UINT64_MAX, .page = 2,
		.last = true, .workload = &sample_workload, .service = &sample_service, .endpoints = endpoints, .endpoint_cnt = CNT(endpoints)}}},
	{"answer-view-unknown", {.type = IPC_ANSWER_VIEW, .answer_view = {.key = HOST_KEY, .generation = 5, .last = true}}},
	{"ask-policies", {.id = 5, .type = IPC_ASK_POLICIES}},
	{"answer-policies", {.id = 5, .type = IPC_ANSWER_POLICIES, .answer_policies = {.generation = 6, .page = 1, .last = true,
		.policies = policy_set, .policy_cnt = CNT(policy_set)}}},
	{"evict", {.type = IPC_EVICT, .evict = HOST_KEY}},
	{"forget-all", {.type = IPC_FORGET_ALL}},
	{"set-log", {.type = IPC_SET_LOG, .set_log = {.filter = "info,access=debug"}}},
	{"crl", {.type = IPC_CRL}},
	{"ask-state", {.id = 6, .type = IPC_ASK_STATE, .ask_state = {.what = IPC_STATE_CONNECTIONS | IPC_STATE_CERTIFICATES}}},
	{"ask-metrics", {.id = 7, .type = IPC_ASK_METRICS}},
	{"answer-metrics", {.type = IPC_ANSWER_METRICS, .answer_metrics = {.page = 1, .last = true, .metrics = metrics,
		.metric_cnt = CNT(metrics)}}},
	{"answer-state", {.id = 6, .type = IPC_ANSWER_STATE, .answer_state = {.page = 3, .last = true, .connections = connections,
		.connection_cnt = CNT(connections), .certificates = certificates, .certificate_cnt = CNT(certificates)}}},
};
const size_t sample_cnt = CNT(samples);
