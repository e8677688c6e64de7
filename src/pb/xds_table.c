/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which field of the resources is which member of their wire form; see ipc_table.c for the manner. */
#include "pb/xds_table.h"

#include "authorization.pb.h"
#include "workload.pb.h"

#include "pb/codec_table.h"

/* clang-format off */

/* A list of numbers at member m. */
#define F_NUMBERS(S, M, f, m) \
	{CODEC_ROW(S, M, f, m.v, CODEC_U64), .is_list = true, .aux = offsetof(S, m.cnt), .max_cnt = CODEC_CNT(M, f)}
/* Lists whose members have other names than their fields. */
#define F_MSGS_AS(S, M, f, m, c, s) \
	{CODEC_ROW(S, M, f, m, CODEC_MSG), .is_list = true, .aux = offsetof(S, c), .max_cnt = CODEC_CNT(M, f), .sub = s}
#define F_STRS_AS(S, M, f, m, c) \
	{CODEC_ROW(S, M, f, m, CODEC_STRING), .is_list = true, .aux = offsetof(S, c), \
		.max = CODEC_STR_MAX(CODEC_MEMBER(M, f)[0]), .max_cnt = CODEC_CNT(M, f)}
/* A number, and a message behind a pointer, likewise. */
#define F_VAL_AS(S, M, f, m, k) {CODEC_ROW(S, M, f, m, k), .aux = CODEC_NO_AUX}
#define F_REF_AS(S, M, f, m, s) {CODEC_ROW(S, M, f, m, CODEC_REF), .aux = CODEC_NO_AUX, .sub = s}

/* ---- istio.workload ---- */

static const struct codec_field net_addr_fields[] = {
	F_STR(struct wire_net_addr, istio_workload_NetworkAddress, network),
	F_RAW(struct wire_net_addr, istio_workload_NetworkAddress, address),
	F_NUMBERS(struct wire_net_addr, istio_workload_NetworkAddress, length, length),
};
CODEC_TABLE(net_addr, struct wire_net_addr, istio_workload_NetworkAddress);

static const struct codec_field host_fields[] = {
	F_STR_AS(struct wire_host, istio_workload_NamespacedHostname, namespace, ns),
	F_STR(struct wire_host, istio_workload_NamespacedHostname, hostname),
};
CODEC_TABLE(host, struct wire_host, istio_workload_NamespacedHostname);

static const struct codec_field gateway_fields[] = {
	F_REF(struct wire_gateway, istio_workload_GatewayAddress, hostname, &host),
	F_REF(struct wire_gateway, istio_workload_GatewayAddress, address, &net_addr),
	F_VAL_AS(struct wire_gateway, istio_workload_GatewayAddress, hbone_mtls_port, port, CODEC_U64),
};
CODEC_TABLE(gateway, struct wire_gateway, istio_workload_GatewayAddress);

static const struct codec_field weighted_fields[] = {
	F_REF(struct wire_weighted, istio_workload_WeightedWaypoint, destination, &gateway),
	F_VAL(struct wire_weighted, istio_workload_WeightedWaypoint, weight, CODEC_U64),
};
CODEC_TABLE(weighted, struct wire_weighted, istio_workload_WeightedWaypoint);

static const struct codec_field port_fields[] = {
	F_VAL(struct wire_port, istio_workload_Port, service_port, CODEC_U64),
	F_VAL(struct wire_port, istio_workload_Port, target_port, CODEC_U64),
};
CODEC_TABLE(port, struct wire_port, istio_workload_Port);

static const struct codec_field port_list_fields[] = {
	F_MSGS_AS(struct wire_ports, istio_workload_PortList, ports, ports, cnt, &port),
};
CODEC_TABLE(port_list, struct wire_ports, istio_workload_PortList);

static const struct codec_field membership_fields[] = {
	F_STR(struct wire_membership, istio_workload_Membership, key),
	F_MSG(struct wire_membership, istio_workload_Membership, value, &port_list),
};
CODEC_TABLE(membership, struct wire_membership, istio_workload_Membership);

static const struct codec_field tunnel_fields[] = {
	F_VAL(struct wire_tunnel, istio_workload_ApplicationTunnel, protocol, CODEC_U64),
	F_VAL(struct wire_tunnel, istio_workload_ApplicationTunnel, port, CODEC_U64),
};
CODEC_TABLE(tunnel, struct wire_tunnel, istio_workload_ApplicationTunnel);

static const struct codec_field number_fields[] = {
	F_VAL(struct wire_number, istio_workload_Number, value, CODEC_U64),
};
CODEC_TABLE(number, struct wire_number, istio_workload_Number);

static const struct codec_field locality_fields[] = {
	F_STR(struct wire_locality, istio_workload_Locality, region),
	F_STR(struct wire_locality, istio_workload_Locality, zone),
	F_STR(struct wire_locality, istio_workload_Locality, subzone),
};
CODEC_TABLE(locality, struct wire_locality, istio_workload_Locality);

static const struct codec_field workload_fields[] = {
	F_STR(struct wire_workload, istio_workload_Workload, name),
	F_STR_AS(struct wire_workload, istio_workload_Workload, namespace, ns),
	F_RAWS(struct wire_workload, istio_workload_Workload, addresses, address_cnt),
	F_STR(struct wire_workload, istio_workload_Workload, network),
	F_VAL(struct wire_workload, istio_workload_Workload, tunnel_protocol, CODEC_U64),
	F_STR(struct wire_workload, istio_workload_Workload, trust_domain),
	F_STR(struct wire_workload, istio_workload_Workload, service_account),
	F_REF(struct wire_workload, istio_workload_Workload, waypoint, &gateway),
	F_STR(struct wire_workload, istio_workload_Workload, node),
	F_STR(struct wire_workload, istio_workload_Workload, canonical_name),
	F_STR(struct wire_workload, istio_workload_Workload, canonical_revision),
	F_VAL(struct wire_workload, istio_workload_Workload, workload_type, CODEC_U64),
	F_STR(struct wire_workload, istio_workload_Workload, workload_name),
	F_VAL(struct wire_workload, istio_workload_Workload, native_tunnel, CODEC_BOOL),
	F_STRS_AS(struct wire_workload, istio_workload_Workload, authorization_policies, policies, policy_cnt),
	F_VAL(struct wire_workload, istio_workload_Workload, status, CODEC_U64),
	F_STR(struct wire_workload, istio_workload_Workload, cluster_id),
	F_REF(struct wire_workload, istio_workload_Workload, network_gateway, &gateway),
	F_STR(struct wire_workload, istio_workload_Workload, uid),
	F_STR(struct wire_workload, istio_workload_Workload, hostname),
	F_MSGS(struct wire_workload, istio_workload_Workload, services, service_cnt, &membership),
	F_REF(struct wire_workload, istio_workload_Workload, application_tunnel, &tunnel),
	F_MSG(struct wire_workload, istio_workload_Workload, locality, &locality),
	F_VAL(struct wire_workload, istio_workload_Workload, network_mode, CODEC_U64),
	F_REF(struct wire_workload, istio_workload_Workload, capacity, &number),
};
CODEC_TABLE(workload, struct wire_workload, istio_workload_Workload);

static const struct codec_field lb_fields[] = {
	{CODEC_ROW(struct wire_lb, istio_workload_LoadBalancing, routing_preference, scopes, CODEC_U64), .is_list = true, .aux = offsetof(struct wire_lb, scope_cnt),
		.max_cnt = CODEC_CNT(istio_workload_LoadBalancing, routing_preference)},
	F_VAL(struct wire_lb, istio_workload_LoadBalancing, mode, CODEC_U64),
	F_VAL(struct wire_lb, istio_workload_LoadBalancing, health_policy, CODEC_U64),
};
CODEC_TABLE(lb, struct wire_lb, istio_workload_LoadBalancing);

static const struct codec_field service_fields[] = {
	F_STR(struct wire_service, istio_workload_Service, name),
	F_STR_AS(struct wire_service, istio_workload_Service, namespace, ns),
	F_STR(struct wire_service, istio_workload_Service, hostname),
	F_MSGS(struct wire_service, istio_workload_Service, addresses, address_cnt, &net_addr),
	F_MSGS_AS(struct wire_service, istio_workload_Service, ports, ports.ports, ports.cnt, &port),
	F_STRS_AS(struct wire_service, istio_workload_Service, subject_alt_names, sans, san_cnt),
	F_REF(struct wire_service, istio_workload_Service, waypoint, &gateway),
	F_REF_AS(struct wire_service, istio_workload_Service, load_balancing, lb, &lb),
	F_VAL(struct wire_service, istio_workload_Service, ip_families, CODEC_U64),
	F_VAL(struct wire_service, istio_workload_Service, canonical, CODEC_BOOL),
	F_MSGS_AS(struct wire_service, istio_workload_Service, weighted_waypoints, weighted, weighted_cnt, &weighted),
	F_VAL(struct wire_service, istio_workload_Service, visibility, CODEC_U64),
};
CODEC_TABLE(service, struct wire_service, istio_workload_Service);

static const struct codec_field xds_table_address_fields[] = {
	F_REF(struct wire_address, istio_workload_Address, workload, &workload),
	F_REF(struct wire_address, istio_workload_Address, service, &service),
};
const struct codec_msg xds_table_address = {
	.size = sizeof(struct wire_address), .fields = xds_table_address_fields, .field_cnt = CODEC_FIELDS_OF(istio_workload_Address)};
_Static_assert(sizeof(xds_table_address_fields) / sizeof(xds_table_address_fields[0]) == CODEC_FIELDS_OF(istio_workload_Address), "fields and rows differ");

/* ---- istio.security ---- */

static const struct codec_field nothing_fields[] = {
	F_VAL_AS(struct wire_number, istio_security_Nothing, unused, value, CODEC_U64),
};
CODEC_TABLE(nothing, struct wire_number, istio_security_Nothing);

static const struct codec_field string_match_fields[] = {
	F_STRS(struct wire_match, istio_security_StringMatch, exact, exact_cnt),
	F_STRS(struct wire_match, istio_security_StringMatch, prefix, prefix_cnt),
	F_STRS(struct wire_match, istio_security_StringMatch, suffix, suffix_cnt),
	F_MSGS(struct wire_match, istio_security_StringMatch, presence, presence_cnt, &nothing),
};
CODEC_TABLE(string_match, struct wire_match, istio_security_StringMatch);

static const struct codec_field account_fields[] = {
	F_STR_AS(struct wire_account, istio_security_ServiceAccountMatch, namespace, ns),
	F_STR_AS(struct wire_account, istio_security_ServiceAccountMatch, serviceAccount, account),
};
CODEC_TABLE(account, struct wire_account, istio_security_ServiceAccountMatch);

static const struct codec_field prefix_fields[] = {
	F_RAW(struct wire_prefix, istio_security_Address, address),
	F_VAL(struct wire_prefix, istio_security_Address, length, CODEC_U64),
};
CODEC_TABLE(prefix, struct wire_prefix, istio_security_Address);

static const struct codec_field condition_fields[] = {
	F_MSGS_AS(struct wire_condition, istio_security_Match, namespaces, namespaces.v, namespaces.cnt, &string_match),
	F_MSGS_AS(struct wire_condition, istio_security_Match, not_namespaces, not_namespaces.v, not_namespaces.cnt, &string_match),
	F_MSGS_AS(struct wire_condition, istio_security_Match, principals, principals.v, principals.cnt, &string_match),
	F_MSGS_AS(struct wire_condition, istio_security_Match, not_principals, not_principals.v, not_principals.cnt, &string_match),
	F_MSGS_AS(struct wire_condition, istio_security_Match, source_ips, source_ips.v, source_ips.cnt, &prefix),
	F_MSGS_AS(struct wire_condition, istio_security_Match, not_source_ips, not_source_ips.v, not_source_ips.cnt, &prefix),
	F_MSGS_AS(struct wire_condition, istio_security_Match, destination_ips, dest_ips.v, dest_ips.cnt, &prefix),
	F_MSGS_AS(struct wire_condition, istio_security_Match, not_destination_ips, not_dest_ips.v, not_dest_ips.cnt, &prefix),
	F_NUMBERS(struct wire_condition, istio_security_Match, destination_ports, dest_ports),
	F_NUMBERS(struct wire_condition, istio_security_Match, not_destination_ports, not_dest_ports),
	F_MSGS_AS(struct wire_condition, istio_security_Match, service_accounts, accounts.v, accounts.cnt, &account),
	F_MSGS_AS(struct wire_condition, istio_security_Match, not_service_accounts, not_accounts.v, not_accounts.cnt, &account),
};
CODEC_TABLE(condition, struct wire_condition, istio_security_Match);

static const struct codec_field clause_fields[] = {
	F_MSGS(struct wire_clause, istio_security_Clause, matches, match_cnt, &condition),
};
CODEC_TABLE(clause, struct wire_clause, istio_security_Clause);

static const struct codec_field rule_fields[] = {
	F_MSGS(struct wire_rule, istio_security_Rule, clauses, clause_cnt, &clause),
};
CODEC_TABLE(rule, struct wire_rule, istio_security_Rule);

static const struct codec_field xds_table_policy_fields[] = {
	F_STR(struct wire_policy, istio_security_Authorization, name),
	F_STR_AS(struct wire_policy, istio_security_Authorization, namespace, ns),
	F_VAL(struct wire_policy, istio_security_Authorization, scope, CODEC_U64),
	F_VAL(struct wire_policy, istio_security_Authorization, action, CODEC_U64),
	F_MSGS(struct wire_policy, istio_security_Authorization, rules, rule_cnt, &rule),
	F_VAL(struct wire_policy, istio_security_Authorization, dry_run, CODEC_BOOL),
};
const struct codec_msg xds_table_policy = {
	.size = sizeof(struct wire_policy), .fields = xds_table_policy_fields, .field_cnt = CODEC_FIELDS_OF(istio_security_Authorization)};
_Static_assert(sizeof(xds_table_policy_fields) / sizeof(xds_table_policy_fields[0]) == CODEC_FIELDS_OF(istio_security_Authorization), "fields and rows differ");
