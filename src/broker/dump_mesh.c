/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mesh as JSON; see dump_mesh.h. */
#include "broker/dump_mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

/* Room for "network/ip" and "namespace/hostname". */
#define NAME_MAX_LEN 600

/* --- parts --------------------------------------------------------------- */

static void kv_if(struct json *json, const char *key, const char *value)
{
	if (value[0])
		json_kv_str(json, key, value);
}

static void put_ref(struct json *json, const char *key, const struct gateway_ref *ref)
{
	char text[NAME_MAX_LEN];
	char ip[IP_STR_MAX];
	if (ref->is_host)
		snprintf(text, sizeof(text), "%s/%s", ref->ns, ref->host);
	else
		snprintf(text, sizeof(text), "%s/%s", ref->addr.network, ip_format(&ref->addr.ip, ip));
	json_key(json, key);
	json_obj(json);
	json_kv_str(json, "destination", text);
	json_kv_u64(json, "hboneMtlsPort", ref->hbone_port);
	json_obj_end(json);
}

/* As keys are ordered: by their decimal texts. */
static int by_text(const void *a, const void *b)
{
	const struct port_map *x = a, *y = b;
	char p[NUM_STR_MAX], q[NUM_STR_MAX];
	num_format(x->service_port, p);
	num_format(y->service_port, q);
	return strcmp(p, q);
}

static void put_ports(struct json *json, const char *key, const struct port_map *ports, size_t cnt)
{
	char text[NUM_STR_MAX];
	struct port_map *sorted = cnt > 1 ? mem_alloc(cnt * sizeof(*sorted)) : NULL;
	if (sorted) {
		memcpy(sorted, ports, cnt * sizeof(*sorted));
		qsort(sorted, cnt, sizeof(*sorted), by_text);
		ports = sorted;
	}
	json_key(json, key);
	json_obj(json);
	for (size_t i = 0; i < cnt; i++) {
		num_format(ports[i].service_port, text);
		json_kv_u64(json, text, ports[i].target_port);
	}
	json_obj_end(json);
	mem_free(sorted);
}

static const char *status_text(enum workload_status status)
{
	return status == WORKLOAD_HEALTHY ? "Healthy" : "Unhealthy";
}

/* --- workloads ----------------------------------------------------------- */

static void put_app_tunnel(struct json *json, const struct workload *w)
{
	json_key(json, "applicationTunnel");
	json_obj(json);
	json_key(json, "port");
	if (w->app_tunnel_port)
		json_u64(json, w->app_tunnel_port);
	else
		json_null(json);
	json_kv_str(json, "protocol", w->app_tunnel_protocol == APP_TUNNEL_PROXY ? "PROXY" : "NONE");
	json_obj_end(json);
}

static void put_locality(struct json *json, const struct locality *locality)
{
	if (!locality->region[0] && !locality->zone[0] && !locality->subzone[0])
		return;
	json_key(json, "locality");
	json_obj(json);
	json_kv_str(json, "region", locality->region);
	json_kv_str(json, "subzone", locality->subzone);
	json_kv_str(json, "zone", locality->zone);
	json_obj_end(json);
}

static void put_strings(struct json *json, const char *key, const char *const *texts, size_t cnt)
{
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < cnt; i++)
		json_str(json, texts[i]);
	json_arr_end(json);
}

static void put_memberships(struct json *json, const struct workload *w)
{
	char text[NAME_MAX_LEN];
	json_key(json, "services");
	json_arr(json);
	for (size_t i = 0; i < w->service_cnt; i++) {
		snprintf(text, sizeof(text), "%s/%s", w->services[i].ns, w->services[i].hostname);
		json_str(json, text);
	}
	json_arr_end(json);
}

static void put_ips(struct json *json, const struct workload *w)
{
	char text[IP_STR_MAX];
	json_key(json, "workloadIps");
	json_arr(json);
	for (size_t i = 0; i < w->ip_cnt; i++)
		json_str(json, ip_format(&w->ips[i], text));
	json_arr_end(json);
}

/* As the mesh file has it: with the ports of each service. */
static void put_memberships_map(struct json *json, const struct workload *w)
{
	char text[NAME_MAX_LEN];
	json_key(json, "services");
	json_obj(json);
	for (size_t i = 0; i < w->service_cnt; i++) {
		snprintf(text, sizeof(text), "%s/%s", w->services[i].ns, w->services[i].hostname);
		put_ports(json, text, w->services[i].ports, w->services[i].port_cnt);
	}
	json_obj_end(json);
}

static void put_workload(struct json *json, const struct workload *w, bool is_static)
{
	json_obj(json);
	if (w->has_app_tunnel)
		put_app_tunnel(json, w);
	if (w->policy_cnt)
		put_strings(json, "authorizationPolicies", w->policies, w->policy_cnt);
	kv_if(json, "canonicalName", w->canonical_name);
	kv_if(json, "canonicalRevision", w->canonical_revision);
	json_kv_u64(json, "capacity", w->capacity);
	json_kv_str(json, "clusterId", w->cluster_id);
	kv_if(json, "hostname", w->hostname);
	put_locality(json, &w->locality);
	json_kv_str(json, "name", w->name);
	json_kv_str(json, "namespace", w->ns);
	if (w->native_tunnel)
		json_kv_bool(json, "nativeTunnel", true);
	kv_if(json, "network", w->network);
	if (w->has_network_gateway)
		put_ref(json, "networkGateway", &w->network_gateway);
	json_kv_str(json, "networkMode", w->network_mode == NETWORK_MODE_HOST ? "HostNetwork" : "Standard");
	kv_if(json, "node", w->node);
	json_kv_str(json, "protocol", w->protocol == WORKLOAD_HBONE ? "HBONE" : "TCP");
	kv_if(json, "serviceAccount", w->service_account);
	if (is_static)
		put_memberships_map(json, w);
	else if (w->service_cnt)
		put_memberships(json, w);
	json_kv_str(json, "status", status_text(w->status));
	kv_if(json, "trustDomain", w->trust_domain);
	kv_if(json, "uid", w->uid);
	if (w->has_waypoint)
		put_ref(json, "waypoint", &w->waypoint);
	put_ips(json, w);
	kv_if(json, "workloadName", w->workload_name);
	kv_if(json, "workloadType", w->workload_type);
	json_obj_end(json);
}

bool dump_workload(void *ctx, const struct workload *workload)
{
	put_workload(ctx, workload, false);
	return true;
}

bool dump_static_workload(void *ctx, const struct workload *workload)
{
	put_workload(ctx, workload, true);
	return true;
}

/* --- services ------------------------------------------------------------ */

static void put_endpoint(struct json *json, const struct service_endpoint *endpoint)
{
	json_key(json, endpoint->workload_uid);
	json_obj(json);
	put_ports(json, "port", endpoint->ports, endpoint->port_cnt);
	json_kv_str(json, "status", status_text(endpoint->status));
	json_kv_str(json, "workloadUid", endpoint->workload_uid);
	json_obj_end(json);
}

/* The endpoints behind the cursor, up to a slice of them; returns whether those were the last. */
static bool put_endpoints(struct dump_service *dump, const struct service_endpoint *endpoints, size_t cnt)
{
	size_t i = 0, put = 0;
	/* The service may have changed since the last slice: only uids count. */
	while (dump->last_uid && i < cnt && strcmp(endpoints[i].workload_uid, dump->last_uid) <= 0)
		i++;
	for (; i < cnt && put < DUMP_ENDPOINTS_SLICE; i++, put++)
		put_endpoint(dump->json, &endpoints[i]);
	mem_free(dump->last_uid);
	dump->last_uid = NULL;
	if (i < cnt) {
		dump->last_uid = mem_strdup(endpoints[i - 1].workload_uid);
		dump->is_cut = dump->last_uid == NULL;
	}
	return i == cnt || dump->is_cut;
}

static void put_cidrs(struct json *json, const struct service *s)
{
	char text[CIDR_STR_MAX];
	if (s->cidr_cnt == 0)
		return;
	json_key(json, "cidrVips");
	json_arr(json);
	for (size_t i = 0; i < s->cidr_cnt; i++) {
		json_obj(json);
		json_kv_str(json, "cidr", cidr_format(&s->cidrs[i].cidr, text));
		json_kv_str(json, "network", s->cidrs[i].network);
		json_obj_end(json);
	}
	json_arr_end(json);
}

static void put_balancer(struct json *json, const struct service *s)
{
	static const char *const modes[] = {"Standard", "Strict", "Failover", "Passthrough"};
	static const char *const scopes[] = {"", "Region", "Zone", "Subzone", "Node", "Cluster", "Network"};
	json_key(json, "loadBalancer");
	json_obj(json);
	json_kv_str(json, "healthPolicy", s->lb_health == LB_ALLOW_ALL ? "AllowAll" : "OnlyHealthy");
	json_kv_str(json, "mode", modes[s->lb_mode]);
	json_key(json, "routingPreferences");
	json_arr(json);
	for (size_t i = 0; i < s->scope_cnt; i++)
		json_str(json, scopes[s->scopes[i]]);
	json_arr_end(json);
	json_obj_end(json);
}

static void put_vips(struct json *json, const struct service *s)
{
	char text[NAME_MAX_LEN];
	char ip[IP_STR_MAX];
	json_key(json, "vips");
	json_arr(json);
	for (size_t i = 0; i < s->vip_cnt; i++) {
		snprintf(text, sizeof(text), "%s/%s", s->vips[i].network, ip_format(&s->vips[i].ip, ip));
		json_str(json, text);
	}
	json_arr_end(json);
}

static void put_weighted(struct json *json, const struct service *s)
{
	if (s->weighted_cnt == 0)
		return;
	json_key(json, "weightedWaypoints");
	json_arr(json);
	for (size_t i = 0; i < s->weighted_cnt; i++) {
		json_obj(json);
		put_ref(json, "destination", &s->weighted[i].ref);
		json_kv_u64(json, "weight", s->weighted[i].weight);
		json_obj_end(json);
	}
	json_arr_end(json);
}

static void put_service_tail(struct json *json, const struct service *s)
{
	static const char *const families[] = {"", "IPv4", "IPv6", "Dual"};
	json_kv_str(json, "hostname", s->hostname);
	if (s->families != IP_FAMILIES_AUTOMATIC)
		json_kv_str(json, "ipFamilies", families[s->families]);
	if (s->has_lb)
		put_balancer(json, s);
	json_kv_str(json, "name", s->name);
	json_kv_str(json, "namespace", s->ns);
	put_ports(json, "ports", s->ports, s->port_cnt);
	put_strings(json, "subjectAltNames", s->sans, s->san_cnt);
	put_vips(json, s);
	json_kv_str(json, "visibility", s->visibility == VISIBILITY_NAMESPACE ? "Namespace" : "Public");
	if (s->has_waypoint)
		put_ref(json, "waypoint", &s->waypoint);
	put_weighted(json, s);
}

bool dump_service(void *ctx, const struct service *s, const struct service_endpoint *endpoints, size_t cnt)
{
	struct dump_service *dump = ctx;
	struct json *json = dump->json;
	if (!dump->is_open) {
		json_obj(json);
		json_kv_bool(json, "canonical", s->canonical);
		put_cidrs(json, s);
		json_key(json, "endpoints");
		json_obj(json);
		dump->is_open = true;
	}
	if (put_endpoints(dump, endpoints, cnt)) {
		json_obj_end(json);
		put_service_tail(json, s);
		json_obj_end(json);
		dump->is_open = false;
	}
	return true;
}

void dump_service_gone(struct dump_service *dump)
{
	if (!dump->is_open)
		return;
	json_obj_end(dump->json);
	json_obj_end(dump->json);
	dump->is_open = false;
	mem_free(dump->last_uid);
	dump->last_uid = NULL;
}

bool dump_staged(void *ctx, const struct service *s, const struct service_endpoint *endpoints, size_t cnt)
{
	struct dump_service *dump = ctx;
	char text[NAME_MAX_LEN];
	if (!dump->is_open) {
		snprintf(text, sizeof(text), "%s/%s", s->ns, s->hostname);
		json_key(dump->json, text);
		json_obj(dump->json);
		dump->is_open = true;
	}
	if (put_endpoints(dump, endpoints, cnt)) {
		json_obj_end(dump->json);
		dump->is_open = false;
	}
	return true;
}

void dump_staged_gone(struct dump_service *dump)
{
	if (!dump->is_open)
		return;
	json_obj_end(dump->json);
	dump->is_open = false;
	mem_free(dump->last_uid);
	dump->last_uid = NULL;
}

/* --- policies ------------------------------------------------------------ */

static void put_string_matches(struct json *json, const char *key, const struct string_match *all, size_t cnt)
{
	static const char *const kinds[] = {"Exact", "Prefix", "Suffix", "Presence"};
	if (cnt == 0)
		return;
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < cnt; i++) {
		json_obj(json);
		json_key(json, kinds[all[i].kind]);
		if (all[i].kind == MATCH_PRESENCE) {
			json_arr(json);
			json_arr_end(json);
		} else {
			json_str(json, all[i].value);
		}
		json_obj_end(json);
	}
	json_arr_end(json);
}

static void put_cidr_list(struct json *json, const char *key, const struct cidr *all, size_t cnt)
{
	char text[CIDR_STR_MAX];
	if (cnt == 0)
		return;
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < cnt; i++)
		json_str(json, cidr_format(&all[i], text));
	json_arr_end(json);
}

static void put_port_list(struct json *json, const char *key, const uint16_t *all, size_t cnt)
{
	if (cnt == 0)
		return;
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < cnt; i++)
		json_u64(json, all[i]);
	json_arr_end(json);
}

static void put_accounts(struct json *json, const char *key, const struct sa_match *all, size_t cnt)
{
	if (cnt == 0)
		return;
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < cnt; i++) {
		json_obj(json);
		json_kv_str(json, "namespace", all[i].ns);
		json_kv_str(json, "serviceAccount", all[i].service_account);
		json_obj_end(json);
	}
	json_arr_end(json);
}

static void put_match(struct json *json, const struct policy_match *m)
{
	json_obj(json);
	put_cidr_list(json, "destinationIps", m->dest_ips, m->dest_ip_cnt);
	put_port_list(json, "destinationPorts", m->dest_ports, m->dest_port_cnt);
	put_string_matches(json, "namespaces", m->namespaces, m->namespace_cnt);
	put_cidr_list(json, "notDestinationIps", m->not_dest_ips, m->not_dest_ip_cnt);
	put_port_list(json, "notDestinationPorts", m->not_dest_ports, m->not_dest_port_cnt);
	put_string_matches(json, "notNamespaces", m->not_namespaces, m->not_namespace_cnt);
	put_string_matches(json, "notPrincipals", m->not_principals, m->not_principal_cnt);
	put_accounts(json, "notServiceAccounts", m->not_accounts, m->not_account_cnt);
	put_cidr_list(json, "notSourceIps", m->not_source_ips, m->not_source_ip_cnt);
	put_string_matches(json, "principals", m->principals, m->principal_cnt);
	put_accounts(json, "serviceAccounts", m->accounts, m->account_cnt);
	put_cidr_list(json, "sourceIps", m->source_ips, m->source_ip_cnt);
	json_obj_end(json);
}

static void put_clause(struct json *json, const struct policy_clause *clause)
{
	json_arr(json);
	for (size_t i = 0; i < clause->match_cnt; i++)
		put_match(json, &clause->matches[i]);
	json_arr_end(json);
}

static void put_rule(struct json *json, const struct policy_rule *rule)
{
	json_arr(json);
	for (size_t i = 0; i < rule->clause_cnt; i++)
		put_clause(json, &rule->clauses[i]);
	json_arr_end(json);
}

bool dump_policy(void *ctx, const char *key, const struct policy *policy)
{
	static const char *const scopes[] = {"Global", "Namespace", "WorkloadSelector"};
	struct json *json = ctx;
	(void)key;
	json_obj(json);
	json_kv_str(json, "action", policy->action == POLICY_DENY ? "Deny" : "Allow");
	json_kv_bool(json, "dryRun", policy->dry_run);
	json_kv_str(json, "name", policy->name);
	json_kv_str(json, "namespace", policy->ns);
	json_key(json, "rules");
	json_arr(json);
	for (size_t i = 0; i < policy->rule_cnt; i++)
		put_rule(json, &policy->rules[i]);
	json_arr_end(json);
	json_kv_str(json, "scope", scopes[policy->scope]);
	json_obj_end(json);
	return true;
}
