/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mesh file's schema, reference control.md 9: the example there, every
 * key, and what is refused with which words. What the records then mean is
 * shown by the goldens of the mesh.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "broker/local_file.h"

static size_t fail_at;

bool mem_should_fail(size_t len)
{
	return fail_at && --fail_at == 0;
}

static struct store *load(const char *text)
{
	struct store *store = store_new("");
	struct local_file *file;
	struct err err = {0};

	if (local_file_parse("mesh.yaml", text, strlen(text), &file, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(local_file_apply(file, store, &err), 0);
	local_file_free(file);
	return store;
}

static void refuse(const char *text, const char *want)
{
	struct local_file *file;
	struct err err = {0};

	assert_int_equal(local_file_parse("mesh.yaml", text, strlen(text), &file, &err), -EINVAL);
	assert_string_equal(err.text, want);
}

static const char example[] = "workloads:\n"
                              "- uid: c1//v1/Pod/shop/cart-0\n"
                              "  name: cart-0\n"
                              "  namespace: shop\n"
                              "  serviceAccount: cart\n"
                              "  trustDomain: cluster.local\n"
                              "  workloadIps: [\"10.20.0.5\"]\n"
                              "  protocol: HBONE\n"
                              "  node: node-a\n"
                              "  authorizationPolicies: [shop/only-web]\n"
                              "  services:\n"
                              "    shop/cart.shop.svc.cluster.local: {80: 8080}\n"
                              "services:\n"
                              "- name: cart\n"
                              "  namespace: shop\n"
                              "  hostname: cart.shop.svc.cluster.local\n"
                              "  vips: [/10.96.0.7]\n"
                              "  ports: {80: 8080}\n"
                              "policies:\n"
                              "- name: only-web\n"
                              "  namespace: shop\n"
                              "  scope: WorkloadSelector\n"
                              "  action: Allow\n"
                              "  dryRun: false\n"
                              "  rules: [[[{principals: [!Exact cluster.local/ns/shop/sa/web]}]]]\n";

static void test_example(void **state)
{
	struct store *store = load(example);
	struct arena *arena = arena_new(1 << 20);
	struct ip vip = ip_v4(10, 96, 0, 7);
	const struct workload *w;
	const struct policy *const *policies;
	size_t cnt;
	struct view *view;

	assert_int_equal(store_workload(store, "c1//v1/Pod/shop/cart-0", arena, &w), 0);
	assert_string_equal(w->service_account, "cart");
	assert_int_equal(w->protocol, WORKLOAD_HBONE);
	assert_int_equal(w->capacity, 1);
	/* No defaults of xDS. */
	assert_string_equal(w->cluster_id, "");
	assert_string_equal(w->workload_type, "");
	assert_int_equal(store_view_address(store, NULL, "", &vip, &view), 0);
	assert_string_equal(view->service->name, "cart");
	assert_int_equal(view->endpoint_cnt, 1);
	assert_int_equal(view->endpoints[0].ports[0].target_port, 8080);
	view_unref(view);
	assert_int_equal(store_policies(store, w, arena, &policies, &cnt, NULL, NULL), 0);
	assert_int_equal(cnt, 1);
	assert_string_equal(policies[0]->rules[0].clauses[0].matches[0].principals[0].value,
	        "cluster.local/ns/shop/sa/web");
	arena_unref(arena);
	store_free(store);
}

static void test_every_workload_key(void **state)
{
	struct store *store = load(
	        "workloads:\n"
	        "- {workloadIps: [10.0.0.1, '::1'], namespace: ns, services: {a/b: {1: 2}, c/d: {}}, uid: u, name: n,"
	        " trustDomain: td, serviceAccount: sa, network: net, workloadName: wn, workloadType: job, canonicalName: cn,"
	        " canonicalRevision: cr, hostname: hn, node: nd, clusterId: ci, protocol: TCP, networkMode: HostNetwork,"
	        " status: Unhealthy, nativeTunnel: true, applicationTunnel: {protocol: PROXY, port: 7},"
	        " waypoint: {destination: net/10.0.0.9, hboneMtlsPort: 1}, networkGateway: {destination: gn/gh, hboneMtlsPort: 2},"
	        " authorizationPolicies: [p/q], locality: {region: r, zone: z, subzone: s, extra: ignored}, capacity: 4294967295}\n");
	struct arena *arena = arena_new(1 << 20);
	const struct workload *w;

	assert_int_equal(store_workload(store, "u", arena, &w), 0);
	assert_int_equal(w->ip_cnt, 2);
	assert_int_equal(w->ips[1].family, 6);
	assert_string_equal(w->ns, "ns");
	assert_int_equal(w->service_cnt, 2);
	assert_string_equal(w->services[0].ns, "a");
	assert_string_equal(w->services[0].hostname, "b");
	assert_int_equal(w->services[0].ports[0].service_port, 1);
	assert_string_equal(w->name, "n");
	assert_string_equal(w->trust_domain, "td");
	assert_string_equal(w->service_account, "sa");
	assert_string_equal(w->network, "net");
	assert_string_equal(w->workload_name, "wn");
	assert_string_equal(w->workload_type, "job");
	assert_string_equal(w->canonical_name, "cn");
	assert_string_equal(w->canonical_revision, "cr");
	assert_string_equal(w->hostname, "hn");
	assert_string_equal(w->node, "nd");
	assert_string_equal(w->cluster_id, "ci");
	assert_int_equal(w->protocol, WORKLOAD_TCP);
	assert_int_equal(w->network_mode, NETWORK_MODE_HOST);
	assert_int_equal(w->status, WORKLOAD_UNHEALTHY);
	assert_true(w->native_tunnel && w->has_app_tunnel);
	assert_int_equal(w->app_tunnel_protocol, APP_TUNNEL_PROXY);
	assert_int_equal(w->app_tunnel_port, 7);
	assert_true(w->has_waypoint && !w->waypoint.is_host);
	assert_string_equal(w->waypoint.addr.network, "net");
	assert_true(w->has_network_gateway && w->network_gateway.is_host);
	assert_string_equal(w->network_gateway.host, "gh");
	assert_int_equal(w->network_gateway.hbone_port, 2);
	assert_string_equal(w->policies[0], "p/q");
	assert_string_equal(w->locality.subzone, "s");
	assert_int_equal(w->capacity, UINT32_MAX);
	arena_unref(arena);
	store_free(store);
}

static void test_every_service_key(void **state)
{
	struct store *store = load(
	        "services:\n"
	        "- {name: n, namespace: ns, hostname: h, vips: [/10.0.0.1, net/10.0.0.2], ports: {'80': 8080, 81: 0},"
	        " cidrVips: [{network: net, cidr: 10.8.0.0/16, extra: ignored}, {cidr: '::/0'}],"
	        " endpoints: {u: {workloadUid: u, port: {80: 7}, status: Unhealthy}, v: {port: {}}},"
	        " subjectAltNames: [s1, s2], waypoint: {destination: a/b, hboneMtlsPort: 3},"
	        " weightedWaypoints: [{destination: {destination: /10.0.0.3, hboneMtlsPort: 4}, weight: 5}],"
	        " loadBalancer: {routingPreferences: [Region, Zone, Subzone, Node, Cluster, Network], mode: Strict, healthPolicy: AllowAll},"
	        " ipFamilies: IPv6, canonical: true, visibility: Namespace}\n"
	        "workloads:\n"
	        "- {workloadIps: [], namespace: ns, services: {}, uid: u}\n"
	        "- {workloadIps: [], namespace: ns, services: {}, uid: v}\n");
	struct view *view;

	assert_int_equal(store_view_host(store, NULL, "ns", "h", &view), 0);
	const struct service *s = view->service;
	assert_string_equal(s->name, "n");
	assert_int_equal(s->vip_cnt, 2);
	assert_string_equal(s->vips[1].network, "net");
	assert_int_equal(s->port_cnt, 2);
	assert_int_equal(s->ports[0].service_port, 80);
	assert_int_equal(s->cidr_cnt, 2);
	assert_string_equal(s->cidrs[0].network, "net");
	assert_int_equal(s->cidrs[1].cidr.len, 0);
	assert_int_equal(s->san_cnt, 2);
	assert_true(s->has_waypoint && s->waypoint.is_host);
	assert_int_equal(s->weighted_cnt, 1);
	assert_int_equal(s->weighted[0].weight, 5);
	assert_int_equal(s->weighted[0].ref.hbone_port, 4);
	assert_true(s->has_lb);
	assert_int_equal(s->scope_cnt, 6);
	assert_int_equal(s->scopes[5], LB_SCOPE_NETWORK);
	assert_int_equal(s->lb_mode, LB_MODE_STRICT);
	assert_int_equal(s->lb_health, LB_ALLOW_ALL);
	assert_int_equal(s->families, IP_FAMILIES_V6);
	assert_int_equal(s->visibility, VISIBILITY_NAMESPACE);
	assert_true(s->canonical);
	assert_int_equal(view->endpoint_cnt, 2);
	assert_int_equal(view->endpoints[0].status, WORKLOAD_UNHEALTHY);
	assert_int_equal(view->endpoints[0].ports[0].target_port, 7);
	view_unref(view);
	store_free(store);
}

static bool check_policy(void *ctx, const char *key, const struct policy *p)
{
	const struct policy_match *m = &p->rules[0].clauses[0].matches[0];

	assert_string_equal(key, "ns/n");
	assert_int_equal(p->scope, POLICY_NAMESPACE);
	assert_int_equal(p->action, POLICY_DENY);
	assert_true(p->dry_run);
	assert_int_equal(p->rule_cnt, 2);
	assert_int_equal(p->rules[1].clause_cnt, 0);
	assert_int_equal(m->namespace_cnt, 4);
	assert_int_equal(m->namespaces[1].kind, MATCH_PREFIX);
	assert_int_equal(m->namespaces[2].kind, MATCH_SUFFIX);
	assert_int_equal(m->namespaces[3].kind, MATCH_PRESENCE);
	assert_string_equal(m->namespaces[3].value, "");
	assert_int_equal(m->not_namespace_cnt, 1);
	assert_int_equal(m->principal_cnt, 1);
	assert_int_equal(m->not_principal_cnt, 1);
	assert_string_equal(m->accounts[0].service_account, "s");
	assert_string_equal(m->not_accounts[0].ns, "b");
	assert_int_equal(m->source_ips[0].len, 8);
	assert_int_equal(m->not_source_ip_cnt, 2);
	assert_int_equal(m->dest_ips[0].ip.family, 6);
	assert_int_equal(m->not_dest_ip_cnt, 1);
	assert_int_equal(m->dest_ports[1], 81);
	assert_int_equal(m->not_dest_ports[0], 0);
	*(int *)ctx += 1;
	return true;
}

static void test_every_policy_key(void **state)
{
	struct store *store = load(
	        "policies:\n"
	        "- {name: n, namespace: ns, scope: Namespace, action: Deny, dryRun: true, rules: [[[{"
	        "namespaces: [!Exact a, !Prefix b, !Suffix c, !Presence []], notNamespaces: [!Exact d],"
	        " principals: [!Exact ''], notPrincipals: [!Presence []], serviceAccounts: [{namespace: a, serviceAccount: s, extra: x}],"
	        " notServiceAccounts: [{namespace: b, serviceAccount: t}], sourceIps: [10.0.0.0/8], notSourceIps: [10.1.1.1/32, '::1/128'],"
	        " destinationIps: ['2001:db8::/32'], notDestinationIps: [0.0.0.0/0], destinationPorts: [80, 81],"
	        " notDestinationPorts: [0], unknownKey: ignored}]], []]}\n");
	int seen = 0;

	assert_int_equal(store_each_policy(store, check_policy, &seen), 0);
	assert_int_equal(seen, 1);
	store_free(store);
}

static void test_empty(void **state)
{
	static const char *const texts[] = {
	        "", "~", "{}", "workloads:\n", "workloads: []\nservices: []\npolicies: []\n"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct store *store = load(texts[i]);
		assert_int_equal(store_counts(store).workloads + store_counts(store).services +
		                         store_counts(store).policies,
		        0);
		store_free(store);
	}
}

#define W(rest) "workloads:\n- {workloadIps: [], namespace: n, services: {}" rest "}\n"
#define S(rest) "services:\n- {name: n, namespace: n, hostname: h, vips: [], ports: {}" rest "}\n"
#define P(match)                                                                                             \
	"policies:\n- {name: n, namespace: n, scope: Global, action: Allow, dryRun: false, rules: [[[" match \
	"]]]}\n"

static void test_refused_workloads(void **state)
{
	static const char *const rows[][2] = {
	        {"other: []\n", "mesh.yaml:1: unknown key `other`"},
	        {"workloads:\n- {namespace: n, services: {}}\n",
	                "mesh.yaml:2: workloads[0]: missing key `workloadIps`"},
	        {"workloads:\n- {workloadIps: [], services: {}}\n",
	                "mesh.yaml:2: workloads[0]: missing key `namespace`"},
	        {"workloads:\n- {workloadIps: [], namespace: n}\n",
	                "mesh.yaml:2: workloads[0]: missing key `services`"},
	        {W(", extra: 1"), "mesh.yaml:2: workloads[0].extra: unknown key"},
	        {W(", protocol: hbone"), "mesh.yaml:2: workloads[0].protocol: one of TCP, HBONE is expected"},
	        {W(", networkMode: Host"),
	                "mesh.yaml:2: workloads[0].networkMode: one of Standard, HostNetwork is expected"},
	        {W(", status: healthy"),
	                "mesh.yaml:2: workloads[0].status: one of Healthy, Unhealthy is expected"},
	        {W(", nativeTunnel: 1"), "mesh.yaml:2: workloads[0].nativeTunnel: true or false is expected"},
	        {W(", capacity: 4294967296"),
	                "mesh.yaml:2: workloads[0].capacity: a number from 0 to 4294967295 is expected"},
	        {W(", capacity: -1"),
	                "mesh.yaml:2: workloads[0].capacity: a number from 0 to 4294967295 is expected"},
	        {W(", locality: {region: r, zone: z}"),
	                "mesh.yaml:2: workloads[0].locality: missing key `subzone`"},
	        {W(", applicationTunnel: {port: 1}"),
	                "mesh.yaml:2: workloads[0].applicationTunnel: missing key `protocol`"},
	        {W(", applicationTunnel: {protocol: PROXY, x: 1}"),
	                "mesh.yaml:2: workloads[0].applicationTunnel.x: unknown key"},
	        {W(", waypoint: {destination: nowhere, hboneMtlsPort: 1}"),
	                "mesh.yaml:2: workloads[0].waypoint.destination: network/ip or namespace/hostname is expected"},
	        {W(", waypoint: {destination: a/b}"),
	                "mesh.yaml:2: workloads[0].waypoint: missing key `hboneMtlsPort`"},
	        {W(", waypoint: {destination: a/b, hboneMtlsPort: 65536}"),
	                "mesh.yaml:2: workloads[0].waypoint.hboneMtlsPort: a number from 0 to 65535 is expected"},
	        {W(", authorizationPolicies: a/b"),
	                "mesh.yaml:2: workloads[0].authorizationPolicies: a list is expected, found a text"},
	        {W(", name: [a]"), "mesh.yaml:2: workloads[0].name: a text is expected, found a list"},
	        {"workloads:\n- {workloadIps: [10.0.0.256], namespace: n, services: {}}\n",
	                "mesh.yaml:2: workloads[0].workloadIps[0]: an IP address is expected"},
	        {"workloads:\n- {workloadIps: [], namespace: n, services: {noslash: {}}}\n",
	                "mesh.yaml:2: workloads[0].services.noslash: namespace/hostname is expected"},
	        {"workloads:\n- {workloadIps: [], namespace: n, services: {a/b: [80]}}\n",
	                "mesh.yaml:2: workloads[0].services.a/b: a map of ports is expected"},
	        {"workloads:\n- {workloadIps: [], namespace: n, services: {a/b: {http: 80}}}\n",
	                "mesh.yaml:2: workloads[0].services.a/b.http: a number from 0 to 65535 is expected"},
	        {"workloads:\n- {workloadIps: [], namespace: n, services: []}\n",
	                "mesh.yaml:2: workloads[0].services: a map of services is expected"},
	        {"workloads:\n- {workloadIps: [], namespace: n, services: {}, uid: a, uid: b}\n",
	                "mesh.yaml:2: duplicate key `uid`"},
	        {"workloads:\n- text\n", "mesh.yaml:2: workloads[0]: a map is expected, found a text"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(rows[i][0], rows[i][1]);
}

static void test_refused_services(void **state)
{
	static const char *const rows[][2] = {
	        {"services:\n- {name: n}\n", "mesh.yaml:2: services[0]: missing key `namespace`"},
	        {"services:\n- {name: n, namespace: n, hostname: h, ports: {}}\n",
	                "mesh.yaml:2: services[0]: missing key `vips`"},
	        {"services:\n- {name: n, namespace: n, hostname: h, vips: []}\n",
	                "mesh.yaml:2: services[0]: missing key `ports`"},
	        {"services:\n- {name: n, namespace: n, hostname: h, vips: [10.0.0.1], ports: {}}\n",
	                "mesh.yaml:2: services[0].vips[0]: network/ip is expected"},
	        {"services:\n- {name: n, namespace: n, hostname: h, vips: [/10.0.0.0/8], ports: {}}\n",
	                "mesh.yaml:2: services[0].vips[0]: network/ip is expected"},
	        {S(", cidrVips: [/10.0.0.0/8]"),
	                "mesh.yaml:2: services[0].cidrVips[0]: a map is expected, found a text"},
	        {S(", cidrVips: [{cidr: 10.0.0.1}]"),
	                "mesh.yaml:2: services[0].cidrVips[0].cidr: a range ip/length is expected"},
	        {S(", cidrVips: [{cidr: 10.0.0.1/33}]"),
	                "mesh.yaml:2: services[0].cidrVips[0].cidr: a range ip/length is expected"},
	        {S(", loadBalancer: {mode: Strict, healthPolicy: AllowAll}"),
	                "mesh.yaml:2: services[0].loadBalancer: missing key `routingPreferences`"},
	        {S(", loadBalancer: {routingPreferences: [Rack], mode: Strict, healthPolicy: AllowAll}"),
	                "mesh.yaml:2: services[0].loadBalancer.routingPreferences[0]: one of Region, Zone, Subzone, Node, Cluster, Network is expected"},
	        {S(", ipFamilies: Automatic"),
	                "mesh.yaml:2: services[0].ipFamilies: one of Dual, IPv4, IPv6 is expected"},
	        {S(", visibility: public"),
	                "mesh.yaml:2: services[0].visibility: one of Public, Namespace is expected"},
	        {S(", weightedWaypoints: [{destination: a/b, weight: 1}]"),
	                "mesh.yaml:2: services[0].weightedWaypoints[0].destination: a map is expected, found a text"},
	        {S(", endpoints: {u: {workloadUid: u}}"),
	                "mesh.yaml:2: services[0].endpoints.u: missing key `port`"},
	        {S(", endpoints: [u]"), "mesh.yaml:2: services[0].endpoints: a map of endpoints is expected"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(rows[i][0], rows[i][1]);
}

static void test_refused_policies(void **state)
{
	static const char *const rows[][2] = {
	        {"policies:\n- {name: n, namespace: n, scope: Global, action: Allow, rules: []}\n",
	                "mesh.yaml:2: policies[0]: missing key `dryRun`"},
	        {"policies:\n- {name: n, namespace: n, scope: Global, action: Allow, dryRun: false}\n",
	                "mesh.yaml:2: policies[0]: missing key `rules`"},
	        {"policies:\n- {name: n, namespace: n, scope: Mesh, action: Allow, dryRun: false, rules: []}\n",
	                "mesh.yaml:2: policies[0].scope: one of Global, Namespace, WorkloadSelector is expected"},
	        {"policies:\n- {name: n, namespace: n, scope: Global, action: Audit, dryRun: false, rules: []}\n",
	                "mesh.yaml:2: policies[0].action: one of Allow, Deny is expected"},
	        {"policies:\n- {name: n, namespace: n, scope: Global, action: Allow, dryRun: false, rules: [{}]}\n",
	                "mesh.yaml:2: policies[0].rules[0]: a list is expected, found a map"},
	        {P("{principals: [{Exact: x}]}"),
	                "mesh.yaml:2: policies[0].rules[0][0][0].principals[0]: one of !Exact x, !Prefix x, !Suffix x, !Presence [] is expected"},
	        {P("{principals: [plain]}"),
	                "mesh.yaml:2: policies[0].rules[0][0][0].principals[0]: one of !Exact x, !Prefix x, !Suffix x, !Presence [] is expected"},
	        {P("{principals: [!Regex x]}"),
	                "mesh.yaml:2: policies[0].rules[0][0][0].principals[0]: one of !Exact x, !Prefix x, !Suffix x, !Presence [] is expected"},
	        {P("{namespaces: [!Exact [x]]}"),
	                "mesh.yaml:2: policies[0].rules[0][0][0].namespaces[0]: a text is expected, found a list"},
	        {P("{namespaces: [!Presence [x]]}"),
	                "mesh.yaml:2: policies[0].rules[0][0][0].namespaces[0]: one of !Exact x, !Prefix x, !Suffix x, !Presence [] is expected"},
	        {P("{sourceIps: [10.0.0.1]}"),
	                "mesh.yaml:2: policies[0].rules[0][0][0].sourceIps[0]: a range ip/length is expected"},
	        {P("{serviceAccounts: [{namespace: a}]}"),
	                "mesh.yaml:2: policies[0].rules[0][0][0].serviceAccounts[0]: missing key `serviceAccount`"},
	        {P("{destinationPorts: [65536]}"),
	                "mesh.yaml:2: policies[0].rules[0][0][0].destinationPorts[0]: a number from 0 to 65535 is expected"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(rows[i][0], rows[i][1]);
}

static void test_bad_file_changes_nothing(void **state)
{
	struct store *store = load(example);
	struct local_file *file = NULL;
	struct err err = {0};
	uint64_t before = store_generation(store);
	/* The good first half must not get in either. */
	static const char bad[] = W("") "services:\n- {}\n";

	assert_int_equal(local_file_parse("mesh.yaml", bad, strlen(bad), &file, &err), -EINVAL);
	assert_null(file);
	assert_true(store_generation(store) == before);
	assert_int_equal(store_counts(store).workloads, 1);
	store_free(store);
}

static void test_load_from_disk(void **state)
{
	char path[] = "/tmp/mesh-file-XXXXXX";
	struct store *store = store_new("");
	struct local_file *file;
	struct err err = {0};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(local_file_load(path, &file, &err), 0);
	assert_int_equal(local_file_apply(file, store, &err), 0);
	local_file_free(file);
	assert_int_equal(file_write(path, example, strlen(example), 0600), 0);
	assert_int_equal(local_file_load(path, &file, &err), 0);
	assert_int_equal(local_file_apply(file, store, &err), 0);
	assert_int_equal(store_counts(store).workloads, 1);
	uint64_t before = store_generation(store);
	assert_int_equal(local_file_apply(file, store, &err), 0);
	/* The same file again is no change. */
	assert_true(store_generation(store) == before);
	local_file_free(file);
	unlink(path);
	assert_int_equal(local_file_load(path, &file, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
	local_file_free(NULL);
	store_free(store);
}

static void test_allocation_failures(void **state)
{
	int rc = -ENOMEM;
	size_t n = 1;

	for (; rc < 0 && n < 5000; n++) {
		struct store *store = store_new("");
		struct local_file *file = NULL;
		struct err err = {0};
		fail_at = n;
		rc = local_file_parse("mesh.yaml", example, strlen(example), &file, &err);
		if (rc == 0)
			rc = local_file_apply(file, store, &err);
		fail_at = 0;
		assert_true(rc == 0 || (rc == -ENOMEM && err.code == -ENOMEM && err.text[0]));
		local_file_free(file);
		store_free(store);
	}
	assert_int_equal(rc, 0);
	assert_true(n > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_example),
	        cmocka_unit_test(test_every_workload_key),
	        cmocka_unit_test(test_every_service_key),
	        cmocka_unit_test(test_every_policy_key),
	        cmocka_unit_test(test_empty),
	        cmocka_unit_test(test_refused_workloads),
	        cmocka_unit_test(test_refused_services),
	        cmocka_unit_test(test_refused_policies),
	        cmocka_unit_test(test_bad_file_changes_nothing),
	        cmocka_unit_test(test_load_from_disk),
	        cmocka_unit_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
