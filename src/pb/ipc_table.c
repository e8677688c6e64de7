/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which field of proto/ipc.proto is which member of the plain structs. One row
 * a field; a field without row does not compile. Holds no code but the checks
 * of members that belong together. Private to pb.
 */
#include "pb/ipc_table.h"

#include "ipc.pb.h"

#include "pb/codec_table.h"

/* clang-format off */

/* A record sent by us may hold NULL for "". */
static bool is_empty(const char *s)
{
	return !s || !*s;
}

/* ---- the mesh ---- */

static const struct codec_field net_addr_fields[] = {
	F_STR(struct net_addr, culvert_ipc_NetAddr, network),
	F_VAL(struct net_addr, culvert_ipc_NetAddr, ip, CODEC_IP),
};
CODEC_TABLE(net_addr, struct net_addr, culvert_ipc_NetAddr);

static const char *check_vip(const void *obj)
{
	return ((const struct net_addr *)obj)->ip.family ? NULL : "has no address";
}
/* A NetAddr that must be there, not an empty half of a choice. */
static const struct codec_msg vip = {
	.size = sizeof(struct net_addr), .fields = net_addr_fields, .field_cnt = CODEC_FIELDS_OF(culvert_ipc_NetAddr), .check = check_vip};

static const struct codec_field net_cidr_fields[] = {
	F_STR(struct net_cidr, culvert_ipc_NetCidr, network),
	F_VAL(struct net_cidr, culvert_ipc_NetCidr, cidr, CODEC_CIDR),
};
static const char *check_cidr(const void *obj)
{
	return ((const struct net_cidr *)obj)->cidr.ip.family ? NULL : "has no address";
}
CODEC_TABLE_CHECKED(net_cidr, struct net_cidr, culvert_ipc_NetCidr, check_cidr);

static const struct codec_field gateway_fields[] = {
	F_VAL(struct gateway_ref, culvert_ipc_GatewayRef, is_host, CODEC_BOOL),
	F_MSG(struct gateway_ref, culvert_ipc_GatewayRef, addr, &net_addr),
	F_STR(struct gateway_ref, culvert_ipc_GatewayRef, ns),
	F_STR(struct gateway_ref, culvert_ipc_GatewayRef, host),
	F_VAL(struct gateway_ref, culvert_ipc_GatewayRef, hbone_port, CODEC_U16),
};
static const char *check_gateway(const void *obj)
{
	const struct gateway_ref *ref = obj;
	if (ref->is_host)
		return is_empty(ref->host) ? "has no host name" : NULL;
	return ref->addr.ip.family ? NULL : "has no address";
}
CODEC_TABLE_CHECKED(gateway, struct gateway_ref, culvert_ipc_GatewayRef, check_gateway);

static const struct codec_field weighted_fields[] = {
	F_MSG(struct weighted_waypoint, culvert_ipc_WeightedWaypoint, ref, &gateway),
	F_VAL(struct weighted_waypoint, culvert_ipc_WeightedWaypoint, weight, CODEC_U32),
};
static const char *check_weighted(const void *obj)
{
	return check_gateway(&((const struct weighted_waypoint *)obj)->ref);
}
CODEC_TABLE_CHECKED(weighted, struct weighted_waypoint, culvert_ipc_WeightedWaypoint, check_weighted);

static const struct codec_field port_map_fields[] = {
	F_VAL(struct port_map, culvert_ipc_PortMap, service_port, CODEC_U16),
	F_VAL(struct port_map, culvert_ipc_PortMap, target_port, CODEC_U16),
};
CODEC_TABLE(port_map, struct port_map, culvert_ipc_PortMap);

static const struct codec_field workload_service_fields[] = {
	F_STR(struct workload_service, culvert_ipc_WorkloadService, ns),
	F_STR(struct workload_service, culvert_ipc_WorkloadService, hostname),
	F_MSGS(struct workload_service, culvert_ipc_WorkloadService, ports, port_cnt, &port_map),
};
CODEC_TABLE(workload_service, struct workload_service, culvert_ipc_WorkloadService);

static const struct codec_field locality_fields[] = {
	F_STR(struct locality, culvert_ipc_Locality, region),
	F_STR(struct locality, culvert_ipc_Locality, zone),
	F_STR(struct locality, culvert_ipc_Locality, subzone),
};
CODEC_TABLE(locality, struct locality, culvert_ipc_Locality);

static const struct codec_field workload_fields[] = {
	F_STR(struct workload, culvert_ipc_Workload, uid),
	F_STR(struct workload, culvert_ipc_Workload, name),
	F_STR(struct workload, culvert_ipc_Workload, ns),
	F_STR(struct workload, culvert_ipc_Workload, trust_domain),
	F_STR(struct workload, culvert_ipc_Workload, service_account),
	F_STR(struct workload, culvert_ipc_Workload, network),
	F_STR(struct workload, culvert_ipc_Workload, workload_name),
	F_STR(struct workload, culvert_ipc_Workload, workload_type),
	F_STR(struct workload, culvert_ipc_Workload, canonical_name),
	F_STR(struct workload, culvert_ipc_Workload, canonical_revision),
	F_STR(struct workload, culvert_ipc_Workload, hostname),
	F_STR(struct workload, culvert_ipc_Workload, node),
	F_STR(struct workload, culvert_ipc_Workload, cluster_id),
	F_MSG(struct workload, culvert_ipc_Workload, locality, &locality),
	F_ENUM(struct workload, culvert_ipc_Workload, protocol, WORKLOAD_TCP, WORKLOAD_HBONE),
	F_ENUM(struct workload, culvert_ipc_Workload, network_mode, NETWORK_MODE_STANDARD, NETWORK_MODE_HOST),
	F_ENUM(struct workload, culvert_ipc_Workload, status, WORKLOAD_HEALTHY, WORKLOAD_UNHEALTHY),
	F_VAL(struct workload, culvert_ipc_Workload, native_tunnel, CODEC_BOOL),
	F_VAL(struct workload, culvert_ipc_Workload, capacity, CODEC_U32),
	F_VALS(struct workload, culvert_ipc_Workload, ips, ip_cnt, CODEC_IP),
	F_OPT(struct workload, culvert_ipc_Workload, waypoint, has_waypoint, &gateway),
	F_OPT(struct workload, culvert_ipc_Workload, network_gateway, has_network_gateway, &gateway),
	F_VAL(struct workload, culvert_ipc_Workload, has_app_tunnel, CODEC_BOOL),
	F_ENUM(struct workload, culvert_ipc_Workload, app_tunnel_protocol, APP_TUNNEL_NONE, APP_TUNNEL_PROXY),
	F_VAL(struct workload, culvert_ipc_Workload, app_tunnel_port, CODEC_U16),
	F_STRS(struct workload, culvert_ipc_Workload, policies, policy_cnt),
	F_MSGS(struct workload, culvert_ipc_Workload, services, service_cnt, &workload_service),
};
CODEC_TABLE(workload, struct workload, culvert_ipc_Workload);

static const struct codec_field service_fields[] = {
	F_STR(struct service, culvert_ipc_Service, name),
	F_STR(struct service, culvert_ipc_Service, ns),
	F_STR(struct service, culvert_ipc_Service, hostname),
	F_MSGS(struct service, culvert_ipc_Service, vips, vip_cnt, &vip),
	F_MSGS(struct service, culvert_ipc_Service, cidrs, cidr_cnt, &net_cidr),
	F_MSGS(struct service, culvert_ipc_Service, ports, port_cnt, &port_map),
	F_STRS(struct service, culvert_ipc_Service, sans, san_cnt),
	F_OPT(struct service, culvert_ipc_Service, waypoint, has_waypoint, &gateway),
	F_MSGS(struct service, culvert_ipc_Service, weighted, weighted_cnt, &weighted),
	F_VAL(struct service, culvert_ipc_Service, has_lb, CODEC_BOOL),
	F_ENUMS(struct service, culvert_ipc_Service, scopes, scope_cnt, LB_SCOPE_REGION, LB_SCOPE_NETWORK),
	F_ENUM(struct service, culvert_ipc_Service, lb_mode, LB_MODE_STANDARD, LB_MODE_PASSTHROUGH),
	F_ENUM(struct service, culvert_ipc_Service, lb_health, LB_ONLY_HEALTHY, LB_ALLOW_ALL),
	F_ENUM(struct service, culvert_ipc_Service, families, IP_FAMILIES_AUTOMATIC, IP_FAMILIES_DUAL),
	F_ENUM(struct service, culvert_ipc_Service, visibility, VISIBILITY_PUBLIC, VISIBILITY_NAMESPACE),
	F_VAL(struct service, culvert_ipc_Service, canonical, CODEC_BOOL),
};
CODEC_TABLE(service, struct service, culvert_ipc_Service);

static const struct codec_field endpoint_fields[] = {
	F_REF(struct endpoint, culvert_ipc_Endpoint, workload, &workload),
	F_MSGS(struct endpoint, culvert_ipc_Endpoint, ports, port_cnt, &port_map),
	F_ENUM(struct endpoint, culvert_ipc_Endpoint, status, WORKLOAD_HEALTHY, WORKLOAD_UNHEALTHY),
};
static const char *check_endpoint(const void *obj)
{
	return ((const struct endpoint *)obj)->workload ? NULL : "has no workload";
}
CODEC_TABLE_CHECKED(endpoint, struct endpoint, culvert_ipc_Endpoint, check_endpoint);

static const struct codec_field string_match_fields[] = {
	F_ENUM(struct string_match, culvert_ipc_StringMatch, kind, MATCH_EXACT, MATCH_PRESENCE),
	F_STR(struct string_match, culvert_ipc_StringMatch, value),
};
CODEC_TABLE(string_match, struct string_match, culvert_ipc_StringMatch);

static const struct codec_field sa_match_fields[] = {
	F_STR(struct sa_match, culvert_ipc_SaMatch, ns),
	F_STR(struct sa_match, culvert_ipc_SaMatch, service_account),
};
CODEC_TABLE(sa_match, struct sa_match, culvert_ipc_SaMatch);

static const struct codec_field match_fields[] = {
	F_MSGS(struct policy_match, culvert_ipc_PolicyMatch, namespaces, namespace_cnt, &string_match),
	F_MSGS(struct policy_match, culvert_ipc_PolicyMatch, not_namespaces, not_namespace_cnt, &string_match),
	F_MSGS(struct policy_match, culvert_ipc_PolicyMatch, principals, principal_cnt, &string_match),
	F_MSGS(struct policy_match, culvert_ipc_PolicyMatch, not_principals, not_principal_cnt, &string_match),
	F_MSGS(struct policy_match, culvert_ipc_PolicyMatch, accounts, account_cnt, &sa_match),
	F_MSGS(struct policy_match, culvert_ipc_PolicyMatch, not_accounts, not_account_cnt, &sa_match),
	F_VALS(struct policy_match, culvert_ipc_PolicyMatch, source_ips, source_ip_cnt, CODEC_CIDR),
	F_VALS(struct policy_match, culvert_ipc_PolicyMatch, not_source_ips, not_source_ip_cnt, CODEC_CIDR),
	F_VALS(struct policy_match, culvert_ipc_PolicyMatch, dest_ips, dest_ip_cnt, CODEC_CIDR),
	F_VALS(struct policy_match, culvert_ipc_PolicyMatch, not_dest_ips, not_dest_ip_cnt, CODEC_CIDR),
	F_VALS(struct policy_match, culvert_ipc_PolicyMatch, dest_ports, dest_port_cnt, CODEC_U16),
	F_VALS(struct policy_match, culvert_ipc_PolicyMatch, not_dest_ports, not_dest_port_cnt, CODEC_U16),
};
CODEC_TABLE(match, struct policy_match, culvert_ipc_PolicyMatch);

static const struct codec_field clause_fields[] = {
	F_MSGS(struct policy_clause, culvert_ipc_PolicyClause, matches, match_cnt, &match),
};
CODEC_TABLE(clause, struct policy_clause, culvert_ipc_PolicyClause);

static const struct codec_field rule_fields[] = {
	F_MSGS(struct policy_rule, culvert_ipc_PolicyRule, clauses, clause_cnt, &clause),
};
CODEC_TABLE(rule, struct policy_rule, culvert_ipc_PolicyRule);

static const struct codec_field policy_fields[] = {
	F_STR(struct policy, culvert_ipc_Policy, name),
	F_STR(struct policy, culvert_ipc_Policy, ns),
	F_ENUM(struct policy, culvert_ipc_Policy, scope, POLICY_GLOBAL, POLICY_SELECTOR),
	F_ENUM(struct policy, culvert_ipc_Policy, action, POLICY_ALLOW, POLICY_DENY),
	F_VAL(struct policy, culvert_ipc_Policy, dry_run, CODEC_BOOL),
	F_MSGS(struct policy, culvert_ipc_Policy, rules, rule_cnt, &rule),
};
CODEC_TABLE(policy, struct policy, culvert_ipc_Policy);

/* ---- bodies of records ---- */

static const struct codec_msg empty = {.size = 0};

static const struct codec_field info_fields[] = {
	F_STR(struct workload_info, culvert_ipc_Info, name),
	F_STR(struct workload_info, culvert_ipc_Info, ns),
	F_STR(struct workload_info, culvert_ipc_Info, service_account),
};
CODEC_TABLE(info, struct workload_info, culvert_ipc_Info);

static const struct codec_field hello_fields[] = {
	F_STR(struct ipc_hello, culvert_ipc_Hello, release),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, proto_min, CODEC_U32),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, proto_max, CODEC_U32),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, features, CODEC_U64),
	F_ENUM(struct ipc_hello, culvert_ipc_Hello, role, IPC_ROLE_WARDEN, IPC_ROLE_CTL),
	F_STR(struct ipc_hello, culvert_ipc_Hello, uid),
	F_MSG(struct ipc_hello, culvert_ipc_Hello, info, &info),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, netns_dev, CODEC_U64),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, netns_ino, CODEC_U64),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, pid, CODEC_I32),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, start_time, CODEC_U64),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, broker_attached, CODEC_BOOL),
	F_VAL(struct ipc_hello, culvert_ipc_Hello, is_ready, CODEC_BOOL),
};
static const char *check_hello(const void *obj)
{
	const struct ipc_hello *hello = obj;
	if (hello->role == IPC_ROLE_NONE)
		return "has no role";
	return hello->proto_min >= 1 && hello->proto_min <= hello->proto_max ? NULL : "has no protocol range";
}
CODEC_TABLE_CHECKED(hello, struct ipc_hello, culvert_ipc_Hello, check_hello);

static const struct codec_field unsupported_fields[] = {
	F_VAL(struct ipc_unsupported, culvert_ipc_Unsupported, type, CODEC_U32),
};
CODEC_TABLE(unsupported, struct ipc_unsupported, culvert_ipc_Unsupported);

static const struct codec_field inherited_fields[] = {
	F_ENUM(struct ipc_inherited, culvert_ipc_Inherited, kind, IPC_FD_OUTBOUND, IPC_FD_METRICS),
	F_VAL(struct ipc_inherited, culvert_ipc_Inherited, fd, CODEC_I32),
};
static const char *check_inherited(const void *obj)
{
	const struct ipc_inherited *inherited = obj;
	if (inherited->kind < IPC_FD_OUTBOUND)
		return "has no kind";
	return inherited->fd >= 3 ? NULL : "is a standard descriptor";
}
CODEC_TABLE_CHECKED(inherited, struct ipc_inherited, culvert_ipc_Inherited, check_inherited);

static const struct codec_field heritage_fields[] = {
	F_STR(struct ipc_heritage, culvert_ipc_Heritage, uid),
	F_MSG(struct ipc_heritage, culvert_ipc_Heritage, info, &info),
	F_MSGS(struct ipc_heritage, culvert_ipc_Heritage, fds, fd_cnt, &inherited),
	F_STR(struct ipc_heritage, culvert_ipc_Heritage, run_name),
	F_VAL(struct ipc_heritage, culvert_ipc_Heritage, first, CODEC_BOOL),
	F_ENUM(struct ipc_heritage, culvert_ipc_Heritage, mode, IPC_SILO_POD, IPC_SILO_DEDICATED),
};
CODEC_TABLE(heritage, struct ipc_heritage, culvert_ipc_Heritage);

static const struct codec_field drain_fields[] = {
	F_VAL(struct ipc_drain, culvert_ipc_Drain, graceful, CODEC_BOOL),
	F_VAL(struct ipc_drain, culvert_ipc_Drain, deadline_ms, CODEC_U64),
};
CODEC_TABLE(drain, struct ipc_drain, culvert_ipc_Drain);

static const struct codec_field start_failed_fields[] = {
	F_STR(struct ipc_start_failed, culvert_ipc_StartFailed, text),
};
CODEC_TABLE(start_failed, struct ipc_start_failed, culvert_ipc_StartFailed);

static const struct codec_field drained_fields[] = {
	F_VAL(struct ipc_drained, culvert_ipc_Drained, forced, CODEC_BOOL),
};
CODEC_TABLE(drained, struct ipc_drained, culvert_ipc_Drained);

static const struct codec_field silo_attach_fields[] = {
	F_STR(struct ipc_silo_attach, culvert_ipc_SiloAttach, uid),
	F_MSG(struct ipc_silo_attach, culvert_ipc_SiloAttach, info, &info),
	F_VAL(struct ipc_silo_attach, culvert_ipc_SiloAttach, pid, CODEC_I32),
};
CODEC_TABLE(silo_attach, struct ipc_silo_attach, culvert_ipc_SiloAttach);

static const struct codec_field silo_state_fields[] = {
	F_STR(struct ipc_silo_state, culvert_ipc_SiloState, uid),
	F_MSG(struct ipc_silo_state, culvert_ipc_SiloState, info, &info),
	F_ENUM(struct ipc_silo_state, culvert_ipc_SiloState, state, IPC_SILO_PENDING, IPC_SILO_GONE),
	F_STR(struct ipc_silo_state, culvert_ipc_SiloState, reason),
	F_VAL(struct ipc_silo_state, culvert_ipc_SiloState, restarts, CODEC_U32),
	F_VAL(struct ipc_silo_state, culvert_ipc_SiloState, netns_ino, CODEC_U64),
	F_VAL(struct ipc_silo_state, culvert_ipc_SiloState, pid, CODEC_I32),
};
CODEC_TABLE(silo_state, struct ipc_silo_state, culvert_ipc_SiloState);

static const struct codec_field node_state_fields[] = {
	F_VAL(struct ipc_node_state, culvert_ipc_NodeState, connected, CODEC_BOOL),
	F_VAL(struct ipc_node_state, culvert_ipc_NodeState, snapshot, CODEC_BOOL),
	F_VAL(struct ipc_node_state, culvert_ipc_NodeState, pending_cnt, CODEC_U32),
	F_VAL(struct ipc_node_state, culvert_ipc_NodeState, settled, CODEC_BOOL),
};
CODEC_TABLE(node_state, struct ipc_node_state, culvert_ipc_NodeState);

static const struct codec_field mesh_state_fields[] = {
	F_VAL(struct ipc_mesh_state, culvert_ipc_MeshState, complete, CODEC_BOOL),
};
CODEC_TABLE(mesh_state, struct ipc_mesh_state, culvert_ipc_MeshState);

static const struct codec_field answer_workload_fields[] = {
	F_VAL(struct ipc_answer_workload, culvert_ipc_AnswerWorkload, found, CODEC_BOOL),
	F_VAL(struct ipc_answer_workload, culvert_ipc_AnswerWorkload, generation, CODEC_U64),
	F_REF(struct ipc_answer_workload, culvert_ipc_AnswerWorkload, workload, &workload),
};
static const char *check_answer_workload(const void *obj)
{
	const struct ipc_answer_workload *answer = obj;
	return answer->found == (answer->workload != NULL) ? NULL : "found and workload disagree";
}
CODEC_TABLE_CHECKED(answer_workload, struct ipc_answer_workload, culvert_ipc_AnswerWorkload, check_answer_workload);

static const struct codec_field ask_certificate_fields[] = {
	F_STR(struct ipc_ask_certificate, culvert_ipc_AskCertificate, identity),
	F_BYTES(struct ipc_ask_certificate, culvert_ipc_AskCertificate, csr, csr_len),
	F_VAL(struct ipc_ask_certificate, culvert_ipc_AskCertificate, waiting, CODEC_BOOL),
};
CODEC_TABLE(ask_certificate, struct ipc_ask_certificate, culvert_ipc_AskCertificate);

static const struct codec_field answer_certificate_fields[] = {
	F_STRS(struct ipc_answer_certificate, culvert_ipc_AnswerCertificate, chain, chain_cnt),
	F_STR(struct ipc_answer_certificate, culvert_ipc_AnswerCertificate, roots),
	F_STR(struct ipc_answer_certificate, culvert_ipc_AnswerCertificate, error),
	F_VAL(struct ipc_answer_certificate, culvert_ipc_AnswerCertificate, retry_ms, CODEC_U64),
};
static const char *check_answer_certificate(const void *obj)
{
	const struct ipc_answer_certificate *answer = obj;
	return (answer->chain_cnt == 0) != is_empty(answer->error) ? NULL : "neither chain nor error, or both";
}
CODEC_TABLE_CHECKED(answer_certificate, struct ipc_answer_certificate, culvert_ipc_AnswerCertificate, check_answer_certificate);

static const struct codec_field key_fields[] = {
	F_VAL(struct ipc_key, culvert_ipc_Key, is_host, CODEC_BOOL),
	F_MSG(struct ipc_key, culvert_ipc_Key, addr, &net_addr),
	F_STR(struct ipc_key, culvert_ipc_Key, ns),
	F_STR(struct ipc_key, culvert_ipc_Key, host),
	F_VAL(struct ipc_key, culvert_ipc_Key, unfiltered, CODEC_BOOL),
	F_VAL(struct ipc_key, culvert_ipc_Key, dns, CODEC_BOOL),
};
static const char *check_key(const void *obj)
{
	const struct ipc_key *k = obj;
	if (k->is_host)
		return is_empty(k->host) || k->addr.ip.family ? "is not one host name" : NULL;
	return !k->addr.ip.family || !is_empty(k->host) ? "is not one address" : NULL;
}
CODEC_TABLE_CHECKED(key, struct ipc_key, culvert_ipc_Key, check_key);

static const struct codec_field answer_view_fields[] = {
	F_MSG(struct ipc_answer_view, culvert_ipc_AnswerView, key, &key),
	F_VAL(struct ipc_answer_view, culvert_ipc_AnswerView, known, CODEC_BOOL),
	F_VAL(struct ipc_answer_view, culvert_ipc_AnswerView, generation, CODEC_U64),
	F_VAL(struct ipc_answer_view, culvert_ipc_AnswerView, page, CODEC_U32),
	F_VAL(struct ipc_answer_view, culvert_ipc_AnswerView, last, CODEC_BOOL),
	F_REF(struct ipc_answer_view, culvert_ipc_AnswerView, workload, &workload),
	F_REF(struct ipc_answer_view, culvert_ipc_AnswerView, service, &service),
	F_MSGS(struct ipc_answer_view, culvert_ipc_AnswerView, endpoints, endpoint_cnt, &endpoint),
};
static const char *check_answer_view(const void *obj)
{
	const struct ipc_answer_view *view = obj;
	const char *wrong = check_key(&view->key);
	bool holds = view->workload || view->service || view->endpoint_cnt;
	return wrong ? wrong : holds && !view->known ? "not known, but not empty" : NULL;
}
CODEC_TABLE_CHECKED(answer_view, struct ipc_answer_view, culvert_ipc_AnswerView, check_answer_view);

static const struct codec_field answer_policies_fields[] = {
	F_VAL(struct ipc_answer_policies, culvert_ipc_AnswerPolicies, generation, CODEC_U64),
	F_VAL(struct ipc_answer_policies, culvert_ipc_AnswerPolicies, page, CODEC_U32),
	F_VAL(struct ipc_answer_policies, culvert_ipc_AnswerPolicies, last, CODEC_BOOL),
	F_MSGS(struct ipc_answer_policies, culvert_ipc_AnswerPolicies, policies, policy_cnt, &policy),
};
CODEC_TABLE(answer_policies, struct ipc_answer_policies, culvert_ipc_AnswerPolicies);

static const struct codec_field set_log_fields[] = {
	F_STR(struct ipc_set_log, culvert_ipc_SetLog, filter),
};
CODEC_TABLE(set_log, struct ipc_set_log, culvert_ipc_SetLog);

static const struct codec_field ask_state_fields[] = {
	F_VAL(struct ipc_ask_state, culvert_ipc_AskState, what, CODEC_U32),
};
CODEC_TABLE(ask_state, struct ipc_ask_state, culvert_ipc_AskState);

static const struct codec_field connection_fields[] = {
	F_VAL(struct ipc_connection, culvert_ipc_Connection, inbound, CODEC_BOOL),
	F_VAL(struct ipc_connection, culvert_ipc_Connection, src, CODEC_ADDR),
	F_STR(struct ipc_connection, culvert_ipc_Connection, original_dst),
	F_VAL(struct ipc_connection, culvert_ipc_Connection, actual_dst, CODEC_ADDR),
	F_STR(struct ipc_connection, culvert_ipc_Connection, protocol),
	F_VAL(struct ipc_connection, culvert_ipc_Connection, sent, CODEC_U64),
	F_VAL(struct ipc_connection, culvert_ipc_Connection, received, CODEC_U64),
};
CODEC_TABLE(connection, struct ipc_connection, culvert_ipc_Connection);

static const struct codec_field cert_fields[] = {
	F_STR(struct ipc_cert, culvert_ipc_Cert, pem),
	F_STR(struct ipc_cert, culvert_ipc_Cert, serial),
	F_VAL(struct ipc_cert, culvert_ipc_Cert, valid_from, CODEC_U64),
	F_VAL(struct ipc_cert, culvert_ipc_Cert, expires, CODEC_U64),
};
CODEC_TABLE(cert, struct ipc_cert, culvert_ipc_Cert);

static const struct codec_field certificate_fields[] = {
	F_STR(struct ipc_certificate, culvert_ipc_Certificate, identity),
	F_STR(struct ipc_certificate, culvert_ipc_Certificate, state),
	F_MSGS(struct ipc_certificate, culvert_ipc_Certificate, chain, chain_cnt, &cert),
	F_MSGS(struct ipc_certificate, culvert_ipc_Certificate, roots, root_cnt, &cert),
};
CODEC_TABLE(certificate, struct ipc_certificate, culvert_ipc_Certificate);

static const struct codec_field answer_state_fields[] = {
	F_VAL(struct ipc_answer_state, culvert_ipc_AnswerState, page, CODEC_U32),
	F_VAL(struct ipc_answer_state, culvert_ipc_AnswerState, last, CODEC_BOOL),
	F_MSGS(struct ipc_answer_state, culvert_ipc_AnswerState, connections, connection_cnt, &connection),
	F_MSGS(struct ipc_answer_state, culvert_ipc_AnswerState, certificates, certificate_cnt, &certificate),
};
CODEC_TABLE(answer_state, struct ipc_answer_state, culvert_ipc_AnswerState);

static const struct codec_field metric_fields[] = {
	F_VAL(struct ipc_metric, culvert_ipc_Metric, set, CODEC_U32),
	F_BYTES(struct ipc_metric, culvert_ipc_Metric, labels, labels_len),
	F_VAL(struct ipc_metric, culvert_ipc_Metric, present, CODEC_U32),
	F_VALS(struct ipc_metric, culvert_ipc_Metric, values, value_cnt, CODEC_U64),
};
static const char *check_metric(const void *obj)
{
	const struct ipc_metric *metric = obj;
	return (size_t)__builtin_popcount(metric->present) == metric->value_cnt ? NULL : "values and columns differ";
}
CODEC_TABLE_CHECKED(metric, struct ipc_metric, culvert_ipc_Metric, check_metric);

static const struct codec_field answer_metrics_fields[] = {
	F_VAL(struct ipc_answer_metrics, culvert_ipc_AnswerMetrics, page, CODEC_U32),
	F_VAL(struct ipc_answer_metrics, culvert_ipc_AnswerMetrics, last, CODEC_BOOL),
	F_MSGS(struct ipc_answer_metrics, culvert_ipc_AnswerMetrics, metrics, metric_cnt, &metric),
};
CODEC_TABLE(answer_metrics, struct ipc_answer_metrics, culvert_ipc_AnswerMetrics);

static const struct codec_field answer_resolver_fields[] = {
	F_VALS(struct ipc_answer_resolver, culvert_ipc_AnswerResolver, servers, server_cnt, CODEC_ADDR),
	F_VAL(struct ipc_answer_resolver, culvert_ipc_AnswerResolver, timeout_ms, CODEC_U64),
	F_VAL(struct ipc_answer_resolver, culvert_ipc_AnswerResolver, attempts, CODEC_U32),
	F_VAL(struct ipc_answer_resolver, culvert_ipc_AnswerResolver, edns, CODEC_BOOL),
	F_STR(struct ipc_answer_resolver, culvert_ipc_AnswerResolver, hosts),
};
CODEC_TABLE(answer_resolver, struct ipc_answer_resolver, culvert_ipc_AnswerResolver);

static const struct codec_field ask_resolve_fields[] = {
	F_STR(struct ipc_ask_resolve, culvert_ipc_AskResolve, host),
};
CODEC_TABLE(ask_resolve, struct ipc_ask_resolve, culvert_ipc_AskResolve);

static const struct codec_field answer_resolve_fields[] = {
	F_STR(struct ipc_answer_resolve, culvert_ipc_AnswerResolve, host),
	F_VALS(struct ipc_answer_resolve, culvert_ipc_AnswerResolve, ips, ip_cnt, CODEC_IP),
	F_STR(struct ipc_answer_resolve, culvert_ipc_AnswerResolve, error),
};
CODEC_TABLE(answer_resolve, struct ipc_answer_resolve, culvert_ipc_AnswerResolve);

const struct codec_msg *const ipc_table_workload = &workload;
const struct codec_msg *const ipc_table_service = &service;
const struct codec_msg *const ipc_table_endpoint = &endpoint;
const struct codec_msg *const ipc_table_policy = &policy;
const struct codec_msg *const ipc_table_key = &key;
const struct codec_msg *const ipc_table_connection = &connection;
const struct codec_msg *const ipc_table_certificate = &certificate;
const struct codec_msg *const ipc_table_metric = &metric;

/* Type, field of Record.body, table. */
#define BODIES(X) \
	X(IPC_HELLO, hello, &hello) \
	X(IPC_UNSUPPORTED, unsupported, &unsupported) \
	X(IPC_HERITAGE, heritage, &heritage) \
	X(IPC_ATTACH_BROKER, attach_broker, &empty) \
	X(IPC_DRAIN, drain, &drain) \
	X(IPC_READY, ready, &empty) \
	X(IPC_START_FAILED, start_failed, &start_failed) \
	X(IPC_DRAINED, drained, &drained) \
	X(IPC_SILO_ATTACH, silo_attach, &silo_attach) \
	X(IPC_SILO_STATE, silo_state, &silo_state) \
	X(IPC_NODE_STATE, node_state, &node_state) \
	X(IPC_MESH_STATE, mesh_state, &mesh_state) \
	X(IPC_STOP_REQUEST, stop_request, &empty) \
	X(IPC_LOG_PIPE, log_pipe, &empty) \
	X(IPC_ASK_WORKLOAD, ask_workload, &empty) \
	X(IPC_ANSWER_WORKLOAD, answer_workload, &answer_workload) \
	X(IPC_ASK_CERTIFICATE, ask_certificate, &ask_certificate) \
	X(IPC_ANSWER_CERTIFICATE, answer_certificate, &answer_certificate) \
	X(IPC_ASK_ADDRESS, ask_address, &key) \
	X(IPC_ASK_HOST, ask_host, &key) \
	X(IPC_ANSWER_VIEW, answer_view, &answer_view) \
	X(IPC_ASK_POLICIES, ask_policies, &empty) \
	X(IPC_ANSWER_POLICIES, answer_policies, &answer_policies) \
	X(IPC_EVICT, evict, &key) \
	X(IPC_FORGET_ALL, forget_all, &empty) \
	X(IPC_SET_LOG, set_log, &set_log) \
	X(IPC_ASK_STATE, ask_state, &ask_state) \
	X(IPC_ANSWER_STATE, answer_state, &answer_state) \
	X(IPC_ASK_METRICS, ask_metrics, &empty) \
	X(IPC_ANSWER_METRICS, answer_metrics, &answer_metrics) \
	X(IPC_ASK_RESOLVER, ask_resolver, &empty) \
	X(IPC_ANSWER_RESOLVER, answer_resolver, &answer_resolver) \
	X(IPC_ASK_RESOLVE, ask_resolve, &ask_resolve) \
	X(IPC_ANSWER_RESOLVE, answer_resolve, &answer_resolve) \
	X(IPC_CRL, crl, &empty)

#define BODY_ROW(type, field, table) [type] = table,
#define BODY_SAME(type, field, table) \
	_Static_assert((int)(type) == culvert_ipc_Record_##field##_tag, #field ": enum ipc_type and Record.body differ");
#define BODY_ONE(type, field, table) +1

BODIES(BODY_SAME)
_Static_assert(0 BODIES(BODY_ONE) + 1 == CODEC_FIELDS_OF(culvert_ipc_Record), "a body of Record has no table");

static const struct codec_msg *const bodies[IPC_TYPE_END] = {BODIES(BODY_ROW)};

/* clang-format on */

const struct codec_msg *ipc_table_body(uint32_t type)
{
	return type < IPC_TYPE_END ? bodies[type] : NULL;
}
