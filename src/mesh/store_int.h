/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of the store, shared by its files only: packed workloads, nodes of
 * services, policies and identities, and how they hang together.
 */
#ifndef CULVERT_MESH_STORE_INT_H
#define CULVERT_MESH_STORE_INT_H

#include "base/list.h"
#include "mesh/intern.h"
#include "mesh/multi.h"
#include "mesh/store.h"

/* An address of a workload or service in an index. Key: network and ip, which lie side by side. */
struct addr_slot {
	struct multi multi;
	void *owner;      /* struct pw or struct svc_node, by index */
	uint32_t network; /* interned; counted by the owner */
	struct ip ip;
};

/* Bytes of an addr_slot's key. */
#define ADDR_KEY_LEN (sizeof(uint32_t) + sizeof(struct ip))

/* Strings of a workload that are interned, by position in pw.ids. */
enum pw_str {
	PW_NS,
	PW_TRUST_DOMAIN,
	PW_SERVICE_ACCOUNT,
	PW_NETWORK,
	PW_WORKLOAD_NAME,
	PW_WORKLOAD_TYPE,
	PW_CANONICAL_NAME,
	PW_CANONICAL_REVISION,
	PW_HOSTNAME,
	PW_NODE,
	PW_CLUSTER,
	PW_REGION,
	PW_ZONE,
	PW_SUBZONE,
	PW_STR_CNT
};

/* Ceiling of svc_node.key. */
#define SVC_KEY_MAX 2048

struct pw;

/* Membership of a workload in a service that may not be known yet (then it is staged). */
struct pw_ep {
	struct list in_svc;   /* on svc_node.eps; detached: a later entry of the same service stands for it */
	struct svc_node *svc; /* NULL once unlinked */
	struct pw *owner;
	uint32_t port_at; /* first of its ports in the packed ports */
	uint16_t port_cnt;
	bool is_dropped; /* not an endpoint until the workload is pushed again (control.md 8.3) */
};

/* A packed gateway reference. */
struct pw_gateway {
	uint32_t a;   /* network, or namespace of a host; interned */
	uint32_t b;   /* host name; interned */
	struct ip ip; /* of an address */
	bool is_host;
	uint16_t port;
};

/* A packed workload: one block, the arrays behind it, then uid and, where it is not part of that, name. */
struct pw {
	uint64_t seq;             /* order of insertion */
	struct list in_ident;     /* on ident_node.workloads; detached when not local */
	struct ident_node *ident; /* NULL when not local */
	char *uid;
	uint32_t size; /* of the block */
	uint32_t ids[PW_STR_CNT];
	uint32_t capacity;
	uint32_t port_cnt; /* of all eps */
	uint16_t app_port;
	uint16_t ip_cnt;
	uint16_t ep_cnt;
	uint16_t policy_cnt;
	uint8_t protocol;
	uint8_t app_protocol;
	bool is_host_network : 1;
	bool is_unhealthy : 1;
	bool is_native : 1;
	bool has_app_tunnel : 1;
	bool has_waypoint : 1;
	bool has_gateway : 1;
	bool is_stale : 1;        /* not seen since the replacement began */
	bool has_name_in_uid : 1; /* the name is what follows the last slash of uid, as in pods' uids */
	uint8_t origin : 1;
	struct addr_slot addrs[]; /* ip_cnt; ep_cnt of struct pw_ep follow */
};

/* Its memberships, ep_cnt of them. */
static inline struct pw_ep *pw_eps(const struct pw *pw)
{
	return (struct pw_ep *)(uintptr_t)(pw->addrs + pw->ip_cnt);
}

/* Workloads of our node with one namespace and service account. */
struct ident_node {
	struct list workloads; /* pw.in_ident, newest first */
	size_t cnt;            /* of pw.ident that point here, listed or about to leave */
	size_t key_len;
	char key[]; /* namespace, zero, service account */
};

/* An endpoint that a service record names, found by the uid of the workload. */
struct extra_slot {
	struct multi multi;
	struct svc_node *svc;
	const struct service_endpoint *record; /* in the service's arena */
};

/* A service in the index by bare host name. */
struct host_slot {
	struct multi multi;
	struct svc_node *svc;
};

/* A service, or the place where its endpoints wait for it. Exists while it has a record or endpoints. */
struct svc_node {
	struct list eps;      /* pw_ep.in_svc */
	struct list in_cidrs; /* on store.cidr_svcs; detached when it has no ranges */
	struct host_slot host;
	uint64_t seq;
	struct arena *arena;          /* of the record; NULL when there is none */
	const struct service *record; /* NULL: staging only */
	struct addr_slot *vips;       /* record->vip_cnt of them */
	struct extra_slot *extras;
	size_t extra_cnt;                         /* those that passed the health filter */
	const struct service_endpoint *endpoints; /* as given, extra_all of them, for comparison */
	size_t endpoint_cnt;
	enum store_origin origin;
	bool is_stale;
	size_t key_len;
	const char *ns;
	const char *hostname;
	char key[]; /* namespace, zero, host name */
};

/* Policies of one namespace; "" holds the global ones. */
struct ns_node {
	struct list policies;
	char ns[];
};

/* A policy. */
struct policy_node {
	struct list in_ns;   /* on ns_node.policies; detached when selector-scoped */
	struct ns_node *ns;  /* NULL when selector-scoped */
	struct arena *arena; /* holds this node too */
	const char *key;
	const struct policy *record;
	enum store_origin origin;
	bool is_stale;
};

struct store {
	const char *node;
	struct store_watcher watcher;
	uint64_t generation;
	uint64_t policy_generation;
	uint64_t seq;
	bool is_replacing;
	enum store_origin replaced;
	size_t workload_bytes;
	size_t service_cnt;
	struct intern names;
	struct map workloads;  /* pw by uid */
	struct map addresses;  /* addr_slot of workloads, multi */
	struct map idents;     /* ident_node */
	struct map services;   /* svc_node by key */
	struct map hosts;      /* host_slot by host name, multi; those with a record */
	struct map vips;       /* addr_slot of services, multi */
	struct map extras;     /* extra_slot by uid, multi */
	struct list cidr_svcs; /* svc_node.in_cidrs in order of insertion */
	struct map policies;   /* policy_node by key */
	struct map policy_ns;  /* ns_node by namespace */
};

/* --- pack.c: workloads in and out of their packed form --- */

/* What of a workload goes into a copy. */
enum pw_detail {
	PW_FULL, /* everything */
	PW_VIEW, /* without services and policies, which only its own proxy needs */
};

/* Packs a record: names interned, service nodes made; linked nowhere. 0, -ENOMEM, -ENOSPC, ERR_TOO_MANY. */
int pw_new(
        struct store *store, const struct workload *workload, enum store_origin origin, struct pw **ret_pw);

/* Gives names and service nodes back and frees. Must be linked nowhere. NULL is fine. */
void pw_free(struct store *store, struct pw *pw);

/* Whether two packed records say the same. */
bool pw_same(const struct pw *a, const struct pw *b);

/* Copies out into an arena. like: an earlier copy in the same arena whose strings may be shared, or NULL. */
int pw_unpack(const struct store *store, const struct pw *pw, struct arena *arena, enum pw_detail detail,
        const struct workload *like, struct workload *ret_workload);

/* Packed parts that others read in place. */
const char *pw_name(const struct pw *pw);
const char *pw_text(const struct store *store, const struct pw *pw, enum pw_str str);
const struct port_map *pw_ports(const struct pw *pw, const struct pw_ep *ep);

/* --- store.c --- */

/* Tells the watcher and moves the generation. */
void store_tell(struct store *store, const struct store_change *change);

/* Tells that views of a service with that record (the present or a former one) may differ; NULL: nothing to
 * tell. */
void store_tell_service(struct store *store, const struct svc_node *svc, const struct service *record);

/* --- store_service.c --- */

/* The node of a service, made when missing (give back with svc_settle). NULL: *ret_rc says why. */
struct svc_node *svc_get(struct store *store, const char *ns, const char *hostname, int *ret_rc);

/* The node of a service, or NULL. */
struct svc_node *svc_find(const struct store *store, const char *ns, const char *hostname);

/* The node of what xDS names "namespace/hostname" (split at the first slash), or NULL. */
struct svc_node *svc_find_name(const struct store *store, const char *name);

/* Frees the node when it has neither record nor endpoints. */
void svc_settle(struct store *store, struct svc_node *svc);

/* Decides whether a newly pushed endpoint counts: staged always, else by health (control.md 8.3). */
void svc_admit(struct pw_ep *ep);

/* Frees a node whatever hangs from it; only when the whole store goes. */
void svc_free(struct svc_node *svc);

/* Removes the stale services of the replaced origin. */
void svc_sweep(struct store *store);

/* --- store_policy.c --- */

/* Frees a policy that is in no index any more. NULL is fine. */
void policy_free(struct policy_node *policy);

/* Removes the stale policies of the replaced origin. */
void policy_sweep(struct store *store);

/* --- store_view.c --- */

/* The workload with that address that wins the address (control.md 8.2), or NULL. */
const struct pw *view_find_workload(const struct store *store, const char *network, const struct ip *ip);

/* Whether an extra endpoint counts beside the memberships that workloads declare; its workload then. */
const struct pw *view_extra_workload(
        const struct store *store, const struct svc_node *svc, const struct service_endpoint *extra);

#endif
