/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The resources as they stand on the wire, before anything is judged: numbers
 * at full width, addresses as bytes, enums as numbers. Private to pb.
 */
#ifndef CULVERT_PB_XDS_TABLE_H
#define CULVERT_PB_XDS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "culvert/records.h"
#include "pb/codec.h"

/* A number that may be absent: a list of which the last entry counts. */
struct wire_numbers {
	const uint64_t *v;
	size_t cnt;
};

/* NetworkAddress. */
struct wire_net_addr {
	const char *network;
	struct codec_raw address;
	struct wire_numbers length;
};

/* NamespacedHostname. */
struct wire_host {
	const char *ns;
	const char *hostname;
};

/* GatewayAddress; NULL arms are absent. */
struct wire_gateway {
	const struct wire_host *hostname;
	const struct wire_net_addr *address;
	uint64_t port;
};

/* WeightedWaypoint. */
struct wire_weighted {
	const struct wire_gateway *destination;
	uint64_t weight;
};

/* Port. */
struct wire_port {
	uint64_t service_port;
	uint64_t target_port;
};

/* An array of ports. */
struct wire_ports {
	const struct wire_port *ports;
	size_t cnt;
};

/* An entry of Workload.services. */
struct wire_membership {
	const char *key;
	struct wire_ports value;
};

/* ApplicationTunnel. */
struct wire_tunnel {
	uint64_t protocol;
	uint64_t port;
};

/* google.protobuf.UInt32Value. */
struct wire_number {
	uint64_t value;
};

/* Locality. */
struct wire_locality {
	const char *region;
	const char *zone;
	const char *subzone;
};

/* Workload. */
struct wire_workload {
	const char *name, *ns, *network, *trust_domain, *service_account, *node, *canonical_name,
	        *canonical_revision, *workload_name, *cluster_id, *uid, *hostname;
	const struct codec_raw *addresses;
	size_t address_cnt;
	uint64_t tunnel_protocol, workload_type, status, network_mode;
	bool native_tunnel;
	const struct wire_gateway *waypoint, *network_gateway;
	const char *const *policies;
	size_t policy_cnt;
	const struct wire_membership *services;
	size_t service_cnt;
	const struct wire_tunnel *application_tunnel;
	struct wire_locality locality;
	const struct wire_number *capacity;
};

/* LoadBalancing. */
struct wire_lb {
	const uint64_t *scopes;
	size_t scope_cnt;
	uint64_t mode;
	uint64_t health_policy;
};

/* Service. */
struct wire_service {
	const char *name, *ns, *hostname;
	const struct wire_net_addr *addresses;
	size_t address_cnt;
	struct wire_ports ports;
	const char *const *sans;
	size_t san_cnt;
	const struct wire_gateway *waypoint;
	const struct wire_lb *lb;
	uint64_t ip_families;
	bool canonical;
	const struct wire_weighted *weighted;
	size_t weighted_cnt;
	uint64_t visibility;
};

/* Address. */
struct wire_address {
	const struct wire_workload *workload;
	const struct wire_service *service;
};

/* StringMatch: the arm that is there has an entry. */
struct wire_match {
	const char *const *exact, *const *prefix, *const *suffix;
	size_t exact_cnt, prefix_cnt, suffix_cnt;
	const struct wire_number *presence;
	size_t presence_cnt;
};

/* An array of string matches. */
struct wire_matches {
	const struct wire_match *v;
	size_t cnt;
};

/* istio.security.Address. */
struct wire_prefix {
	struct codec_raw address;
	uint64_t length;
};

/* An array of prefixes. */
struct wire_prefixes {
	const struct wire_prefix *v;
	size_t cnt;
};

/* ServiceAccountMatch. */
struct wire_account {
	const char *ns;
	const char *account;
};

/* An array of account matches. */
struct wire_accounts {
	const struct wire_account *v;
	size_t cnt;
};

/* Match. */
struct wire_condition {
	struct wire_matches namespaces, not_namespaces, principals, not_principals;
	struct wire_prefixes source_ips, not_source_ips, dest_ips, not_dest_ips;
	struct wire_numbers dest_ports, not_dest_ports;
	struct wire_accounts accounts, not_accounts;
};

/* Clause. */
struct wire_clause {
	const struct wire_condition *matches;
	size_t match_cnt;
};

/* Rule. */
struct wire_rule {
	const struct wire_clause *clauses;
	size_t clause_cnt;
};

/* Authorization. */
struct wire_policy {
	const char *name;
	const char *ns;
	uint64_t scope;
	uint64_t action;
	bool dry_run;
	const struct wire_rule *rules;
	size_t rule_cnt;
};

extern const struct codec_msg xds_table_address; /* struct wire_address */
extern const struct codec_msg xds_table_policy;  /* struct wire_policy */

/* What the conversions of xds_address.c and xds_policy.c share. */
struct xds_reader {
	struct arena *arena; /* where records go */
	struct err *err;     /* gets the reason */
};

/* A number of a proto enum as upstream sees it: an int32. */
static inline int32_t wire_enum(uint64_t v)
{
	return (int32_t)(uint32_t)v;
}

/* "decode error: unknown enumeration value N" unless 0 <= v <= max. */
int xds_read_enum(struct xds_reader *r, uint64_t v, int32_t max);

/* cnt zeroed things from the arena, NULL with the error set when there is no memory. */
void *xds_room(struct xds_reader *r, size_t cnt, size_t size);

/* Judge a decoded resource (reference control.md 4.5, dataplane.md 3.1, 10.4). 0, ERR_UNSUPPORTED, -ENOMEM.
 */
int xds_read_workload(
        struct xds_reader *r, const struct wire_workload *wire, const struct workload **ret_workload);
int xds_read_service(
        struct xds_reader *r, const struct wire_service *wire, const struct service **ret_service);
int xds_read_policy(struct xds_reader *r, const struct wire_policy *wire, const struct policy **ret_policy);

#endif
