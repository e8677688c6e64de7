/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of the mesh file's keys, reference control.md 9, and the readers of
 * their values. A key is one row: name, whether it must be there, reader, place
 * in the record. None of the defaults of xDS are applied here.
 */
#include "broker/local_record.h"

#include <errno.h>
#include <string.h>

/* What every reader needs. */
struct reader {
	struct arena *arena;
	struct err *err;
};

/* Reads a value into the place of a field. 0, -EINVAL or -ENOMEM. */
typedef int read_fn(struct reader *r, const struct yaml_node *node, void *dst);

/* A row: a key of a map and where its value goes. */
struct field {
	const char *key;
	bool is_required;
	read_fn *read;
	size_t offset;
};

/* Most keys of one map. */
#define FIELDS_MAX 32
#define ROWS(table) (table), sizeof(table) / sizeof((table)[0])

static int no_memory(struct reader *r)
{
	return err_set(r->err, -ENOMEM, "%s", err_str(-ENOMEM));
}

/* Zeroed memory for cnt things; err is set when there is none. */
static void *room(struct reader *r, size_t cnt, size_t size)
{
	void *p = arena_zalloc(r->arena, cnt, size);
	if (!p)
		no_memory(r);
	return p;
}

static int read_map(struct reader *r, const struct yaml_node *node, const struct field *fields, size_t cnt,
        bool ignore_unknown, void *base)
{
	struct yaml_key keys[FIELDS_MAX];
	const struct yaml_node *values[FIELDS_MAX];

	for (size_t i = 0; i < cnt; i++)
		keys[i] = (struct yaml_key){fields[i].key, fields[i].is_required};
	int rc = yaml_map(node, keys, cnt, ignore_unknown, values, r->err);
	for (size_t i = 0; rc == 0 && i < cnt; i++) {
		if (values[i])
			rc = fields[i].read(r, values[i], (char *)base + fields[i].offset);
	}
	return rc;
}

static int read_str(struct reader *r, const struct yaml_node *node, void *dst)
{
	return yaml_str(node, dst, r->err);
}

static int read_bool(struct reader *r, const struct yaml_node *node, void *dst)
{
	return yaml_bool(node, dst, r->err);
}

static int read_u16(struct reader *r, const struct yaml_node *node, void *dst)
{
	uint64_t value;
	int rc = yaml_u64(node, UINT16_MAX, &value, r->err);
	if (rc == 0)
		*(uint16_t *)dst = (uint16_t)value;
	return rc;
}

static int read_u32(struct reader *r, const struct yaml_node *node, void *dst)
{
	uint64_t value;
	int rc = yaml_u64(node, UINT32_MAX, &value, r->err);
	if (rc == 0)
		*(uint32_t *)dst = (uint32_t)value;
	return rc;
}

/* Enumerations of records.h all have the size of an int, which one reader may fill. */
_Static_assert(sizeof(enum lb_mode) == sizeof(int), "enum is an int");

static int read_word(struct reader *r, const struct yaml_node *node, const struct yaml_word *words, void *dst)
{
	return yaml_enum(node, words, dst, r->err);
}

/* Defines read_<name>, a reader of the words given. */
#define READ_WORD(name, ...)                                                                                 \
	static int read_##name(struct reader *r, const struct yaml_node *node, void *dst)                    \
	{                                                                                                    \
		static const struct yaml_word words[] = {__VA_ARGS__, {NULL, 0}};                            \
		return read_word(r, node, words, dst);                                                       \
	}

READ_WORD(protocol, {"TCP", WORKLOAD_TCP}, {"HBONE", WORKLOAD_HBONE})
READ_WORD(network_mode, {"Standard", NETWORK_MODE_STANDARD}, {"HostNetwork", NETWORK_MODE_HOST})
READ_WORD(status, {"Healthy", WORKLOAD_HEALTHY}, {"Unhealthy", WORKLOAD_UNHEALTHY})
READ_WORD(tunnel_protocol, {"NONE", APP_TUNNEL_NONE}, {"PROXY", APP_TUNNEL_PROXY})
READ_WORD(lb_scope, {"Region", LB_SCOPE_REGION}, {"Zone", LB_SCOPE_ZONE}, {"Subzone", LB_SCOPE_SUBZONE},
        {"Node", LB_SCOPE_NODE}, {"Cluster", LB_SCOPE_CLUSTER}, {"Network", LB_SCOPE_NETWORK})
READ_WORD(lb_mode, {"Standard", LB_MODE_STANDARD}, {"Strict", LB_MODE_STRICT}, {"Failover", LB_MODE_FAILOVER},
        {"Passthrough", LB_MODE_PASSTHROUGH})
READ_WORD(lb_health, {"OnlyHealthy", LB_ONLY_HEALTHY}, {"AllowAll", LB_ALLOW_ALL})
READ_WORD(families, {"Dual", IP_FAMILIES_DUAL}, {"IPv4", IP_FAMILIES_V4}, {"IPv6", IP_FAMILIES_V6})
READ_WORD(visibility, {"Public", VISIBILITY_PUBLIC}, {"Namespace", VISIBILITY_NAMESPACE})
READ_WORD(policy_scope, {"Global", POLICY_GLOBAL}, {"Namespace", POLICY_NAMESPACE},
        {"WorkloadSelector", POLICY_SELECTOR})
READ_WORD(policy_action, {"Allow", POLICY_ALLOW}, {"Deny", POLICY_DENY})

/* An array and its length, as they stand side by side while a list is read. */
struct array {
	void *items;
	size_t cnt;
};

/* Reads a list with one reader for all elements. */
static int read_list(
        struct reader *r, const struct yaml_node *node, size_t size, read_fn *read, struct array *ret_array)
{
	int rc = yaml_list(node, r->err);
	if (rc < 0)
		return rc;
	char *items = room(r, yaml_cnt(node), size), *at = items;
	if (!items)
		return -ENOMEM;
	for (const struct yaml_node *it = yaml_first(node); it; it = yaml_next(it), at += size) {
		rc = read(r, it, at);
		if (rc < 0)
			return rc;
	}
	*ret_array = (struct array){items, yaml_cnt(node)};
	return 0;
}

/* Defines read_<name>, which fills array and count of a struct, found from the array's place. */
#define READ_LIST(name, type, owner, items_field, cnt_field, read_item)                                      \
	static int read_##name(struct reader *r, const struct yaml_node *node, void *dst)                    \
	{                                                                                                    \
		type *to = (type *)(void *)((char *)dst - offsetof(type, items_field));                      \
		struct array list = {0};                                                                     \
		int rc = read_list(r, node, sizeof(owner), read_item, &list);                                \
		if (rc == 0) {                                                                               \
			to->items_field = list.items;                                                        \
			to->cnt_field = list.cnt;                                                            \
		}                                                                                            \
		return rc;                                                                                   \
	}

static int read_ip(struct reader *r, const struct yaml_node *node, void *dst)
{
	const char *text;
	int rc = yaml_str(node, &text, r->err);
	if (rc == 0 && ip_parse(text, strlen(text), dst) < 0)
		rc = yaml_error(node, r->err, "an IP address is expected");
	return rc;
}

static int read_cidr(struct reader *r, const struct yaml_node *node, void *dst)
{
	const char *text;
	int rc = yaml_str(node, &text, r->err);
	if (rc == 0 && (!strchr(text, '/') || cidr_parse(text, strlen(text), dst) < 0))
		rc = yaml_error(node, r->err, "a range ip/length is expected");
	return rc;
}

/* Splits at the first slash: *ret_head in the arena, *ret_tail in the text. */
static int split(struct reader *r, const char *text, const char **ret_head, const char **ret_tail)
{
	const char *slash = strchr(text, '/');
	if (!slash)
		return -EINVAL;
	*ret_head = slash == text ? "" : arena_strndup(r->arena, text, (size_t)(slash - text));
	*ret_tail = slash + 1;
	return *ret_head ? 0 : no_memory(r);
}

static int read_net_addr(struct reader *r, const struct yaml_node *node, void *dst)
{
	struct net_addr *addr = dst;
	const char *text, *ip;
	int rc = yaml_str(node, &text, r->err);

	if (rc == 0)
		rc = split(r, text, &addr->network, &ip);
	if (rc == 0 && ip_parse(ip, strlen(ip), &addr->ip) < 0)
		rc = -EINVAL;
	return rc == -EINVAL ? yaml_error(node, r->err, "network/ip is expected") : rc;
}

static int read_cidr_vip(struct reader *r, const struct yaml_node *node, void *dst)
{
	static const struct field fields[] = {
	        {"network", false, read_str, offsetof(struct net_cidr, network)},
	        {"cidr", true, read_cidr, offsetof(struct net_cidr, cidr)},
	};
	((struct net_cidr *)dst)->network = "";
	return read_map(r, node, ROWS(fields), true, dst);
}

/* Where a gateway reference leads: an address if it can be one, else a name. */
static int read_destination(struct reader *r, const struct yaml_node *node, void *dst)
{
	struct gateway_ref *ref = dst;
	const char *text, *head, *tail;
	int rc = yaml_str(node, &text, r->err);

	if (rc < 0)
		return rc;
	rc = split(r, text, &head, &tail);
	if (rc == -EINVAL)
		return yaml_error(node, r->err, "network/ip or namespace/hostname is expected");
	if (rc < 0)
		return rc;
	ref->is_host = ip_parse(tail, strlen(tail), &ref->addr.ip) < 0;
	if (ref->is_host) {
		ref->ns = head;
		ref->host = tail;
	} else {
		ref->addr.network = head;
	}
	return 0;
}

static int read_gateway(struct reader *r, const struct yaml_node *node, void *dst)
{
	static const struct field fields[] = {
	        {"destination", true, read_destination, 0},
	        {"hboneMtlsPort", true, read_u16, offsetof(struct gateway_ref, hbone_port)},
	};
	*(struct gateway_ref *)dst = (struct gateway_ref){.addr.network = "", .ns = "", .host = ""};
	return read_map(r, node, ROWS(fields), false, dst);
}

/* Defines read_<name>: a gateway reference and the mark that it is there. */
#define READ_GATEWAY(name, type, field, mark)                                                                \
	static int read_##name(struct reader *r, const struct yaml_node *node, void *dst)                    \
	{                                                                                                    \
		type *to = (type *)(void *)((char *)dst - offsetof(type, field));                            \
		to->mark = true;                                                                             \
		return read_gateway(r, node, dst);                                                           \
	}

READ_GATEWAY(waypoint, struct workload, waypoint, has_waypoint)
READ_GATEWAY(network_gateway, struct workload, network_gateway, has_network_gateway)
READ_GATEWAY(service_waypoint, struct service, waypoint, has_waypoint)

static int read_weighted(struct reader *r, const struct yaml_node *node, void *dst)
{
	static const struct field fields[] = {
	        {"destination", true, read_gateway, offsetof(struct weighted_waypoint, ref)},
	        {"weight", true, read_u32, offsetof(struct weighted_waypoint, weight)},
	};
	return read_map(r, node, ROWS(fields), false, dst);
}

/* A map port -> port. */
static int read_port_map(struct reader *r, const struct yaml_node *node, struct array *ret_array)
{
	if (yaml_kind(node) != YAML_MAP)
		return yaml_error(node, r->err, "a map of ports is expected");
	struct port_map *ports = room(r, yaml_cnt(node), sizeof(*ports)), *at = ports;
	if (!ports)
		return -ENOMEM;
	for (const struct yaml_node *key = yaml_first(node); key; key = yaml_next(key), at++) {
		int rc = read_u16(r, key, &at->service_port);
		if (rc == 0)
			rc = read_u16(r, yaml_value(key), &at->target_port);
		if (rc < 0)
			return rc;
	}
	*ret_array = (struct array){ports, yaml_cnt(node)};
	return 0;
}

/* Defines read_<name>: a port map into array and count of a struct. */
#define READ_PORTS(name, type)                                                                               \
	static int read_##name(struct reader *r, const struct yaml_node *node, void *dst)                    \
	{                                                                                                    \
		type *to = (type *)(void *)((char *)dst - offsetof(type, ports));                            \
		struct array list = {0};                                                                     \
		int rc = read_port_map(r, node, &list);                                                      \
		to->ports = list.items;                                                                      \
		to->port_cnt = list.cnt;                                                                     \
		return rc;                                                                                   \
	}

READ_PORTS(service_ports, struct service)
READ_PORTS(endpoint_ports, struct service_endpoint)

static int read_membership(struct reader *r, const struct yaml_node *key, struct workload_service *to)
{
	const char *text;
	struct array ports = {0};
	int rc = yaml_str(key, &text, r->err);

	if (rc == 0)
		rc = split(r, text, &to->ns, &to->hostname);
	if (rc == -EINVAL)
		rc = yaml_error(key, r->err, "namespace/hostname is expected");
	if (rc == 0)
		rc = read_port_map(r, yaml_value(key), &ports);
	to->ports = ports.items;
	to->port_cnt = ports.cnt;
	return rc;
}

static int read_memberships(struct reader *r, const struct yaml_node *node, void *dst)
{
	struct workload *w = (struct workload *)(void *)((char *)dst - offsetof(struct workload, services));

	if (yaml_kind(node) != YAML_MAP)
		return yaml_error(node, r->err, "a map of services is expected");
	struct workload_service *list = room(r, yaml_cnt(node), sizeof(*list));
	if (!list)
		return -ENOMEM;
	w->services = list;
	for (const struct yaml_node *key = yaml_first(node); key; key = yaml_next(key)) {
		int rc = read_membership(r, key, &list[w->service_cnt++]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_endpoint(struct reader *r, const struct yaml_node *key, struct service_endpoint *to)
{
	static const struct field fields[] = {
	        {"workloadUid", false, read_str, offsetof(struct service_endpoint, workload_uid)},
	        {"port", true, read_endpoint_ports, offsetof(struct service_endpoint, ports)},
	        {"status", false, read_status, offsetof(struct service_endpoint, status)},
	};
	int rc = yaml_str(key, &to->workload_uid, r->err);
	return rc < 0 ? rc : read_map(r, yaml_value(key), ROWS(fields), false, to);
}

static int read_endpoints(struct reader *r, const struct yaml_node *node, void *dst)
{
	struct local_service *s =
	        (struct local_service *)(void *)((char *)dst - offsetof(struct local_service, endpoints));

	if (yaml_kind(node) != YAML_MAP)
		return yaml_error(node, r->err, "a map of endpoints is expected");
	struct service_endpoint *list = room(r, yaml_cnt(node), sizeof(*list));
	if (!list)
		return -ENOMEM;
	s->endpoints = list;
	for (const struct yaml_node *key = yaml_first(node); key; key = yaml_next(key)) {
		int rc = read_endpoint(r, key, &list[s->endpoint_cnt++]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_locality(struct reader *r, const struct yaml_node *node, void *dst)
{
	static const struct field fields[] = {
	        {"region", true, read_str, offsetof(struct locality, region)},
	        {"zone", true, read_str, offsetof(struct locality, zone)},
	        {"subzone", true, read_str, offsetof(struct locality, subzone)},
	};
	return read_map(r, node, ROWS(fields), true, dst);
}

static int read_app_tunnel(struct reader *r, const struct yaml_node *node, void *dst)
{
	static const struct field fields[] = {
	        {"protocol", true, read_tunnel_protocol, offsetof(struct workload, app_tunnel_protocol)},
	        {"port", false, read_u16, offsetof(struct workload, app_tunnel_port)},
	};
	struct workload *w =
	        (struct workload *)(void *)((char *)dst - offsetof(struct workload, has_app_tunnel));
	w->has_app_tunnel = true;
	return read_map(r, node, ROWS(fields), false, w);
}

READ_LIST(ips, struct workload, struct ip, ips, ip_cnt, read_ip)
READ_LIST(policies, struct workload, const char *, policies, policy_cnt, read_str)
READ_LIST(vips, struct service, struct net_addr, vips, vip_cnt, read_net_addr)
READ_LIST(cidrs, struct service, struct net_cidr, cidrs, cidr_cnt, read_cidr_vip)
READ_LIST(sans, struct service, const char *, sans, san_cnt, read_str)
READ_LIST(weighteds, struct service, struct weighted_waypoint, weighted, weighted_cnt, read_weighted)
READ_LIST(scopes, struct service, enum lb_scope, scopes, scope_cnt, read_lb_scope)

static int read_lb(struct reader *r, const struct yaml_node *node, void *dst)
{
	static const struct field fields[] = {
	        {"routingPreferences", true, read_scopes, offsetof(struct service, scopes)},
	        {"mode", true, read_lb_mode, offsetof(struct service, lb_mode)},
	        {"healthPolicy", true, read_lb_health, offsetof(struct service, lb_health)},
	};
	struct service *s = (struct service *)(void *)((char *)dst - offsetof(struct service, has_lb));
	s->has_lb = true;
	return read_map(r, node, ROWS(fields), false, s);
}

int local_workload(
        const struct yaml_node *node, struct arena *arena, struct workload *ret_workload, struct err *err)
{
#define AT(field) offsetof(struct workload, field)
	static const struct field fields[] = {
	        {"workloadIps", true, read_ips, AT(ips)},
	        {"namespace", true, read_str, AT(ns)},
	        {"services", true, read_memberships, AT(services)},
	        {"uid", false, read_str, AT(uid)},
	        {"name", false, read_str, AT(name)},
	        {"trustDomain", false, read_str, AT(trust_domain)},
	        {"serviceAccount", false, read_str, AT(service_account)},
	        {"network", false, read_str, AT(network)},
	        {"workloadName", false, read_str, AT(workload_name)},
	        {"workloadType", false, read_str, AT(workload_type)},
	        {"canonicalName", false, read_str, AT(canonical_name)},
	        {"canonicalRevision", false, read_str, AT(canonical_revision)},
	        {"hostname", false, read_str, AT(hostname)},
	        {"node", false, read_str, AT(node)},
	        {"clusterId", false, read_str, AT(cluster_id)},
	        {"protocol", false, read_protocol, AT(protocol)},
	        {"networkMode", false, read_network_mode, AT(network_mode)},
	        {"status", false, read_status, AT(status)},
	        {"nativeTunnel", false, read_bool, AT(native_tunnel)},
	        {"applicationTunnel", false, read_app_tunnel, AT(has_app_tunnel)},
	        {"waypoint", false, read_waypoint, AT(waypoint)},
	        {"networkGateway", false, read_network_gateway, AT(network_gateway)},
	        {"authorizationPolicies", false, read_policies, AT(policies)},
	        {"locality", false, read_locality, AT(locality)},
	        {"capacity", false, read_u32, AT(capacity)},
	};
#undef AT
	struct reader r = {.arena = arena, .err = err};
	const struct gateway_ref none = {.addr.network = "", .ns = "", .host = ""};
	struct workload w = {
	        .uid = "",
	        .name = "",
	        .ns = "",
	        .trust_domain = "",
	        .service_account = "",
	        .network = "",
	        .workload_name = "",
	        .workload_type = "",
	        .canonical_name = "",
	        .canonical_revision = "",
	        .hostname = "",
	        .node = "",
	        .cluster_id = "",
	        .locality = {"", "", ""},
	        .capacity = 1,
	        .waypoint = none,
	        .network_gateway = none,
	};

	int rc = read_map(&r, node, ROWS(fields), false, &w);
	if (rc == 0)
		*ret_workload = w;
	return rc;
}

int local_service(
        const struct yaml_node *node, struct arena *arena, struct local_service *ret_service, struct err *err)
{
#define AT(field) offsetof(struct local_service, field)
	static const struct field fields[] = {
	        {"name", true, read_str, AT(service.name)},
	        {"namespace", true, read_str, AT(service.ns)},
	        {"hostname", true, read_str, AT(service.hostname)},
	        {"vips", true, read_vips, AT(service.vips)},
	        {"ports", true, read_service_ports, AT(service.ports)},
	        {"cidrVips", false, read_cidrs, AT(service.cidrs)},
	        {"endpoints", false, read_endpoints, AT(endpoints)},
	        {"subjectAltNames", false, read_sans, AT(service.sans)},
	        {"waypoint", false, read_service_waypoint, AT(service.waypoint)},
	        {"weightedWaypoints", false, read_weighteds, AT(service.weighted)},
	        {"loadBalancer", false, read_lb, AT(service.has_lb)},
	        {"ipFamilies", false, read_families, AT(service.families)},
	        {"canonical", false, read_bool, AT(service.canonical)},
	        {"visibility", false, read_visibility, AT(service.visibility)},
	};
#undef AT
	struct reader r = {.arena = arena, .err = err};
	struct local_service s = {
	        .service = {.name = "",
	                .ns = "",
	                .hostname = "",
	                .waypoint = {.addr.network = "", .ns = "", .host = ""}},
	};

	int rc = read_map(&r, node, ROWS(fields), false, &s);
	if (rc == 0)
		*ret_service = s;
	return rc;
}

/* A string match is written as a tag: !Exact x, !Prefix x, !Suffix x, !Presence []. */
static int read_string_match(struct reader *r, const struct yaml_node *node, void *dst)
{
	static const struct yaml_word tags[] = {
	        {"!Exact", MATCH_EXACT},
	        {"!Prefix", MATCH_PREFIX},
	        {"!Suffix", MATCH_SUFFIX},
	        {NULL, 0},
	};
	struct string_match *m = dst;

	m->value = "";
	if (strcmp(yaml_tag(node), "!Presence") == 0 && yaml_cnt(node) == 0) {
		m->kind = MATCH_PRESENCE;
		return 0;
	}
	for (const struct yaml_word *tag = tags; tag->text; tag++) {
		if (strcmp(yaml_tag(node), tag->text) != 0)
			continue;
		m->kind = (enum match_kind)tag->value;
		return yaml_str(node, &m->value, r->err);
	}
	return yaml_error(node, r->err, "one of !Exact x, !Prefix x, !Suffix x, !Presence [] is expected");
}

static int read_sa_match(struct reader *r, const struct yaml_node *node, void *dst)
{
	static const struct field fields[] = {
	        {"namespace", true, read_str, offsetof(struct sa_match, ns)},
	        {"serviceAccount", true, read_str, offsetof(struct sa_match, service_account)},
	};
	return read_map(r, node, ROWS(fields), true, dst);
}

#define READ_MATCHES(name, owner, cnt, read_item)                                                            \
	READ_LIST(name, struct policy_match, owner, name, cnt, read_item)
READ_MATCHES(namespaces, struct string_match, namespace_cnt, read_string_match)
READ_MATCHES(not_namespaces, struct string_match, not_namespace_cnt, read_string_match)
READ_MATCHES(principals, struct string_match, principal_cnt, read_string_match)
READ_MATCHES(not_principals, struct string_match, not_principal_cnt, read_string_match)
READ_MATCHES(accounts, struct sa_match, account_cnt, read_sa_match)
READ_MATCHES(not_accounts, struct sa_match, not_account_cnt, read_sa_match)
READ_MATCHES(source_ips, struct cidr, source_ip_cnt, read_cidr)
READ_MATCHES(not_source_ips, struct cidr, not_source_ip_cnt, read_cidr)
READ_MATCHES(dest_ips, struct cidr, dest_ip_cnt, read_cidr)
READ_MATCHES(not_dest_ips, struct cidr, not_dest_ip_cnt, read_cidr)
READ_MATCHES(dest_ports, uint16_t, dest_port_cnt, read_u16)
READ_MATCHES(not_dest_ports, uint16_t, not_dest_port_cnt, read_u16)

static int read_match(struct reader *r, const struct yaml_node *node, void *dst)
{
#define AT(field) offsetof(struct policy_match, field)
	static const struct field fields[] = {
	        {"namespaces", false, read_namespaces, AT(namespaces)},
	        {"notNamespaces", false, read_not_namespaces, AT(not_namespaces)},
	        {"principals", false, read_principals, AT(principals)},
	        {"notPrincipals", false, read_not_principals, AT(not_principals)},
	        {"serviceAccounts", false, read_accounts, AT(accounts)},
	        {"notServiceAccounts", false, read_not_accounts, AT(not_accounts)},
	        {"sourceIps", false, read_source_ips, AT(source_ips)},
	        {"notSourceIps", false, read_not_source_ips, AT(not_source_ips)},
	        {"destinationIps", false, read_dest_ips, AT(dest_ips)},
	        {"notDestinationIps", false, read_not_dest_ips, AT(not_dest_ips)},
	        {"destinationPorts", false, read_dest_ports, AT(dest_ports)},
	        {"notDestinationPorts", false, read_not_dest_ports, AT(not_dest_ports)},
	};
#undef AT
	return read_map(r, node, ROWS(fields), true, dst);
}

/* A clause is a list of matches, a rule a list of clauses: both are an array with its count and nothing else.
 */
READ_LIST(clause, struct policy_clause, struct policy_match, matches, match_cnt, read_match)
READ_LIST(rule, struct policy_rule, struct policy_clause, clauses, clause_cnt, read_clause)
READ_LIST(rules, struct policy, struct policy_rule, rules, rule_cnt, read_rule)
_Static_assert(offsetof(struct policy_clause, matches) == 0 && offsetof(struct policy_rule, clauses) == 0,
        "an element's place is its array's place");

int local_policy(
        const struct yaml_node *node, struct arena *arena, struct policy *ret_policy, struct err *err)
{
#define AT(field) offsetof(struct policy, field)
	static const struct field fields[] = {
	        {"name", true, read_str, AT(name)},
	        {"namespace", true, read_str, AT(ns)},
	        {"scope", true, read_policy_scope, AT(scope)},
	        {"action", true, read_policy_action, AT(action)},
	        {"dryRun", true, read_bool, AT(dry_run)},
	        {"rules", true, read_rules, AT(rules)},
	};
#undef AT
	struct reader r = {.arena = arena, .err = err};
	struct policy p = {.name = "", .ns = ""};

	int rc = read_map(&r, node, ROWS(fields), false, &p);
	if (rc == 0)
		*ret_policy = p;
	return rc;
}
