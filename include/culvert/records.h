/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plain records of the mesh: what the control plane says of workloads,
 * services and policies, after decoding and checking. Types only, no code:
 * pb makes them from bytes, the mesh file loader makes them from YAML, mesh
 * indexes, routes and judges with them, ipc carries them to silos.
 *
 * Every record and all that hangs from it lives in one arena (base/arena.h);
 * whoever holds the arena owns the record. Strings are never NULL: an absent
 * one is "". Field meanings follow reference control.md 5.1, 5.2 and 9.
 */
#ifndef CULVERT_RECORDS_H
#define CULVERT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* How a workload is reached (istio.workload.TunnelProtocol). */
enum workload_protocol { WORKLOAD_TCP = 0, WORKLOAD_HBONE = 1 };

/* Whether the workload has its own network namespace. */
enum workload_network_mode { NETWORK_MODE_STANDARD = 0, NETWORK_MODE_HOST = 1 };

/* Health as the control plane sees it. */
enum workload_status { WORKLOAD_HEALTHY = 0, WORKLOAD_UNHEALTHY = 1 };

/* ApplicationTunnel.Protocol. */
enum app_tunnel_protocol { APP_TUNNEL_NONE = 0, APP_TUNNEL_PROXY = 1 };

/* Which families of a workload's addresses a service may use. */
enum ip_families { IP_FAMILIES_AUTOMATIC = 0, IP_FAMILIES_V4 = 1, IP_FAMILIES_V6 = 2, IP_FAMILIES_DUAL = 3 };

/* LoadBalancing.Scope, one step of a routing preference. */
enum lb_scope {
	LB_SCOPE_REGION = 1,
	LB_SCOPE_ZONE = 2,
	LB_SCOPE_SUBZONE = 3,
	LB_SCOPE_NODE = 4,
	LB_SCOPE_CLUSTER = 5,
	LB_SCOPE_NETWORK = 6,
};

/* LoadBalancing.Mode. */
enum lb_mode { LB_MODE_STANDARD = 0, LB_MODE_STRICT = 1, LB_MODE_FAILOVER = 2, LB_MODE_PASSTHROUGH = 3 };

/* LoadBalancing.HealthPolicy. */
enum lb_health { LB_ONLY_HEALTHY = 0, LB_ALLOW_ALL = 1 };

/* Service.Visibility. */
enum service_visibility { VISIBILITY_PUBLIC = 0, VISIBILITY_NAMESPACE = 1 };

/* An address qualified by its network; networks compare as plain strings. */
struct net_addr {
	const char *network; /* "" = the default network */
	struct ip ip;
};

/* A range of virtual addresses, CIDR VIP. Host bits are kept as sent. */
struct net_cidr {
	const char *network; /* "" = the default network */
	struct cidr cidr;
};

/* A waypoint or gateway: either an address or a namespace/hostname. */
struct gateway_ref {
	bool is_host;         /* true: ns and host are set, false: addr is set */
	struct net_addr addr; /* destination.address */
	const char *ns;       /* destination.hostname.namespace */
	const char *host;     /* destination.hostname.hostname */
	uint16_t hbone_port;  /* hbone_mtls_port */
};

/* One entry of a weighted waypoint set. */
struct weighted_waypoint {
	struct gateway_ref ref;
	uint32_t weight; /* 0 = never chosen */
};

/* service port -> target port. target 0 = named port, resolved per endpoint. */
struct port_map {
	uint16_t service_port;
	uint16_t target_port;
};

/* Membership of a workload in a service, with its own port mapping. */
struct workload_service {
	const char *ns;               /* namespace half of the key namespace/hostname */
	const char *hostname;         /* hostname half */
	const struct port_map *ports; /* array of port_cnt */
	size_t port_cnt;
};

/* Where a workload runs; empty strings when unknown. */
struct locality {
	const char *region;
	const char *zone;
	const char *subzone;
};

/* A workload (istio.workload.Workload). */
struct workload {
	const char *uid;          /* primary key */
	const char *name;         /* pod name */
	const char *ns;           /* namespace */
	const char *trust_domain; /* "" is legal in local mode */
	const char *service_account;
	const char *network;
	const char *workload_name;      /* telemetry: deployment name */
	const char *workload_type;      /* deployment, cronjob, pod, job */
	const char *canonical_name;     /* telemetry */
	const char *canonical_revision; /* telemetry */
	const char *hostname;           /* resolved on demand when there is no address */
	const char *node;
	const char *cluster_id;
	struct locality locality;
	enum workload_protocol protocol;
	enum workload_network_mode network_mode;
	enum workload_status status;
	bool native_tunnel;
	uint32_t capacity;    /* weight; 0 = never chosen */
	const struct ip *ips; /* array of ip_cnt */
	size_t ip_cnt;
	bool has_waypoint;
	struct gateway_ref waypoint;
	bool has_network_gateway;
	struct gateway_ref network_gateway;
	bool has_app_tunnel;
	enum app_tunnel_protocol app_tunnel_protocol;
	uint16_t app_tunnel_port;    /* 0 = no override */
	const char *const *policies; /* selector-scoped policy keys namespace/name, array of policy_cnt */
	size_t policy_cnt;
	const struct workload_service *services; /* array of service_cnt */
	size_t service_cnt;
};

/* A service (istio.workload.Service), without its endpoints. */
struct service {
	const char *name;
	const char *ns;
	const char *hostname;
	const struct net_addr *vips; /* array of vip_cnt */
	size_t vip_cnt;
	const struct net_cidr *cidrs; /* array of cidr_cnt */
	size_t cidr_cnt;
	const struct port_map *ports; /* array of port_cnt */
	size_t port_cnt;
	const char *const *sans; /* acceptable SPIFFE identities, array of san_cnt */
	size_t san_cnt;
	bool has_waypoint;
	struct gateway_ref waypoint;
	const struct weighted_waypoint *weighted; /* array of weighted_cnt */
	size_t weighted_cnt;
	bool has_lb;                 /* false: standard mode, only healthy */
	const enum lb_scope *scopes; /* array of scope_cnt, in order */
	size_t scope_cnt;
	enum lb_mode lb_mode;
	enum lb_health lb_health;
	enum ip_families families;
	enum service_visibility visibility;
	bool canonical;
};

/* One endpoint of a service as a route decision needs it. */
struct endpoint {
	const struct workload *workload; /* borrowed from the same view */
	const struct port_map *ports;    /* this endpoint's own mapping, array of port_cnt */
	size_t port_cnt;
	enum workload_status status;
};

/* Policy scope and action (istio.security.Authorization). */
enum policy_scope { POLICY_GLOBAL = 0, POLICY_NAMESPACE = 1, POLICY_SELECTOR = 2 };
enum policy_action { POLICY_ALLOW = 0, POLICY_DENY = 1 };

/* How a string is compared. */
enum match_kind { MATCH_EXACT = 0, MATCH_PREFIX = 1, MATCH_SUFFIX = 2, MATCH_PRESENCE = 3 };

struct string_match {
	enum match_kind kind;
	const char *value; /* "" for MATCH_PRESENCE */
};

struct sa_match {
	const char *ns;
	const char *service_account;
};

/*
 * One match: AND of its fields; a field holds when (any positive value
 * matches or there is none) and no negative value matches
 * (reference dataplane.md 10.3). Arrays may be NULL when their count is 0.
 */
struct policy_match {
	const struct string_match *namespaces, *not_namespaces;
	size_t namespace_cnt, not_namespace_cnt;
	const struct string_match *principals, *not_principals;
	size_t principal_cnt, not_principal_cnt;
	const struct sa_match *accounts, *not_accounts;
	size_t account_cnt, not_account_cnt;
	const struct cidr *source_ips, *not_source_ips;
	size_t source_ip_cnt, not_source_ip_cnt;
	const struct cidr *dest_ips, *not_dest_ips;
	size_t dest_ip_cnt, not_dest_ip_cnt;
	const uint16_t *dest_ports, *not_dest_ports;
	size_t dest_port_cnt, not_dest_port_cnt;
};

/* OR of matches; none = holds. */
struct policy_clause {
	const struct policy_match *matches;
	size_t match_cnt;
};

/* AND of clauses; none = holds. */
struct policy_rule {
	const struct policy_clause *clauses;
	size_t clause_cnt;
};

/* An authorization policy: OR of rules; none = never matches. */
struct policy {
	const char *name;
	const char *ns;
	enum policy_scope scope;
	enum policy_action action;
	bool dry_run;
	const struct policy_rule *rules;
	size_t rule_cnt;
};

/* Who a silo works for, as the node agent said it (ZDS WorkloadInfo). */
struct workload_info {
	const char *name;
	const char *ns;
	const char *service_account;
};

#endif
