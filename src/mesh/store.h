/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mesh as the broker knows it: workloads, services and policies with all
 * their indices (reference control.md 8), and the views that are cut from it.
 * Records are kept packed; what comes out is a copy. Pure: knows neither
 * where records come from nor who asks.
 */
#ifndef CULVERT_MESH_STORE_H
#define CULVERT_MESH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "culvert/records.h"
#include "mesh/view.h"

/* Ceilings: ten times what the reference promises to carry; above them inserts fail with -ENOSPC. */
#define STORE_WORKLOADS_MAX 1000000
#define STORE_SERVICES_MAX 200000
#define STORE_POLICIES_MAX 100000
/* Of one workload record; a larger one is refused with ERR_TOO_MANY. */
#define STORE_WORKLOAD_IPS_MAX 1024
#define STORE_WORKLOAD_SERVICES_MAX 4096
#define STORE_WORKLOAD_POLICIES_MAX 4096

struct store; /* opaque */

/* Who brought a record. A full replacement concerns the records of one origin only. */
enum store_origin { STORE_XDS = 0, STORE_FILE = 1 };

/* An endpoint that a service record itself names (mesh file only). */
struct service_endpoint {
	const char *workload_uid;
	const struct port_map *ports; /* array of port_cnt */
	size_t port_cnt;
	enum workload_status status;
};

/* What a change concerns. */
enum store_subject {
	STORE_ADDRESS = 0, /* network, ip: views of this address */
	STORE_CIDR,        /* network, cidr: views of every address inside */
	STORE_HOST,        /* ns, hostname: host views, those with ns "" as well */
	STORE_OWN,         /* name, ns, service_account: the record of a local workload */
	STORE_POLICY,      /* ns ("" = all namespaces), policy_key: the policies in force */
};

/* One change; strings are borrowed for the length of the call and "" where not said above. */
struct store_change {
	enum store_subject subject;
	const char *network;
	struct ip ip;
	struct cidr cidr;
	const char *ns;
	const char *hostname;
	const char *name;
	const char *service_account;
	const char *policy_key; /* namespace/name */
	bool is_selector;       /* STORE_POLICY: it concerns the workloads that list it, not a namespace */
};

/*
 * Hears of changes, after they are in the store, possibly several times of
 * the same. Must not change the store from within; reading is fine.
 */
struct store_watcher {
	void *ctx;
	void (*changed)(void *ctx, const struct store_change *change);
};

/* Whether a view of that key may differ after the change. */
bool store_change_hits(const struct store_change *change, const struct view_key *key);

/* An empty store. node "" (NODE_NAME unset) = every workload is local. NULL when out of memory. */
struct store *store_new(const char *node);

/* Frees everything. NULL is fine. */
void store_free(struct store *store);

/* Sets the one watcher; NULL removes it. */
void store_watch(struct store *store, const struct store_watcher *watcher);

/* Grows with every effective change. Starts at 1. */
uint64_t store_generation(const struct store *store);

/* Grows with every change of a policy; re-evaluation of connections hangs on it. */
uint64_t store_policy_generation(const struct store *store);

/*
 * Inserts or replaces a workload by its uid: it leaves all indices first,
 * then joins them anew (control.md 8.2). Of an unchanged one only the order
 * is new, and nobody is told unless that decides something. The record is copied. 0, -ENOMEM,
 * -ENOSPC, or ERR_TOO_MANY; the store is unchanged on failure.
 */
int store_insert_workload(struct store *store, const struct workload *workload, enum store_origin origin);

/* Takes a workload out with its endpoints. 0 or -ENOENT. */
int store_remove_workload(struct store *store, const char *uid);

/*
 * Inserts or replaces a service by namespace and hostname; endpoints are
 * carried over, staged ones taken (control.md 8.3). endpoints may be NULL. The
 * record is copied. Errors as above.
 */
int store_insert_service(struct store *store, const struct service *service,
        const struct service_endpoint *endpoints, size_t endpoint_cnt, enum store_origin origin);

/* Takes a service out, its endpoints and staging too. 0 or -ENOENT. */
int store_remove_service(struct store *store, const char *ns, const char *hostname);

/*
 * Removes what an xDS removal of the Address type names: the workload with
 * that uid, else the service namespace/hostname. -ENOENT: neither; never an
 * error for the control plane.
 */
int store_remove_address(struct store *store, const char *name);

/* Inserts or replaces a policy under its resource name. The record is copied. Errors as above. */
int store_insert_policy(
        struct store *store, const char *key, const struct policy *policy, enum store_origin origin);

/* Takes a policy out. 0 or -ENOENT. */
int store_remove_policy(struct store *store, const char *key);

/*
 * A full replacement of the records of one origin: begin, insert what there
 * is now, commit; those not inserted again are removed at commit. One at a
 * time.
 */
void store_replace_begin(struct store *store, enum store_origin origin);

/* Ends a replacement; with is_complete false (an insert failed) nothing is removed. */
void store_replace_commit(struct store *store, bool is_complete);

/* The two kinds of resources that xDS names (reference control.md 5.1, 5.2). */
enum store_resource {
	STORE_RESOURCE_ADDRESS = 0, /* name = uid of a workload, or namespace/hostname of a service */
	STORE_RESOURCE_POLICY,      /* name = resource name of a policy */
};

/* One name; borrowed for the call. Return false to stop. */
typedef bool store_name_fn(void *ctx, const char *name);

/* Walks the names of all records, in no particular order and without a copy. The store must not change
 * meanwhile. */
void store_each_name(const struct store *store, enum store_resource resource, store_name_fn *fn, void *ctx);

/* On whose behalf a view is cut. */
struct store_asker {
	const struct workload
	        *workload; /* its namespace, place and uid count; NULL: nothing is hidden, no place */
	uint64_t seed;     /* chooses the subset of a large service; the same seed keeps it */
};

/*
 * The answer to a key: workload, service and chosen endpoints (dataplane.md
 * 3.4, 3.5). Always an answer, known or not, unless -ENOMEM or
 * -ENAMETOOLONG. *ret_view is one reference.
 */
int store_view(const struct store *store, const struct store_asker *asker, const struct view_key *key,
        struct view **ret_view);

/* store_view of an address, visibility applied. */
int store_view_address(const struct store *store, const struct store_asker *asker, const char *network,
        const struct ip *ip, struct view **ret_view);

/* store_view of a host name. */
int store_view_host(const struct store *store, const struct store_asker *asker, const char *ns,
        const char *hostname, struct view **ret_view);

/* What DNS answers with, beyond what the asker may see (control.md 10.3, 5). */
struct store_dns {
	const char *domain;    /* of the cluster; services without addresses count under .svc.<domain> only */
	const char *preferred; /* namespace that wins a tie behind the asker's own and canonical ones; NULL =
	                          none */
};

/* Whether DNS answers for exactly this host name when this asker asks. */
bool store_has_name(const struct store *store, const struct store_asker *asker, const struct store_dns *dns,
        const char *hostname);

/* The view of a VIEW_NAME key: of the service that store_has_name() said true to; hostname NULL: not known.
 * Errors as of store_view. */
int store_view_name(const struct store *store, const struct store_asker *asker, const struct store_dns *dns,
        const struct view_key *key, const char *hostname, struct view **ret_view);

/*
 * The record of the workload that a proxy works for: name, namespace and
 * service account match and its node is ours (control.md 8.2). Copied into
 * `arena`. 0, -ENOENT, -ENOMEM.
 */
int store_own_workload(const struct store *store, const struct workload_info *info, struct arena *arena,
        const struct workload **ret_workload);

/* The workload that wins an address (control.md 8.2) if its node is ours, copied into `arena`. 0, -ENOENT,
 * -ENOMEM. */
int store_local_workload_at(const struct store *store, const char *network, const struct ip *ip,
        struct arena *arena, const struct workload **ret_workload);

/* A workload by uid, copied into `arena`. 0, -ENOENT, -ENOMEM. */
int store_workload(const struct store *store, const char *uid, struct arena *arena,
        const struct workload **ret_workload);

/*
 * The policies in force for a workload: global ones, its namespace's, and
 * those it lists (dataplane.md 10.1), copied into `arena` in a stable order
 * (by key). missing, when not NULL, hears the listed keys that are not there.
 */
int store_policies(const struct store *store, const struct workload *workload, struct arena *arena,
        const struct policy *const **ret_policies, size_t *ret_cnt,
        void (*missing)(void *ctx, const char *key), void *ctx);

/* Callbacks of the walks below; records are borrowed for the call. Return false to stop. */
typedef bool store_workload_fn(void *ctx, const struct workload *workload);
typedef bool store_service_fn(void *ctx, const struct service *service,
        const struct service_endpoint *endpoints, size_t endpoint_cnt);
typedef bool store_policy_fn(void *ctx, const char *key, const struct policy *policy);

/* Walks all workloads in order of uid. 0 or -ENOMEM. */
int store_each_workload(const struct store *store, store_workload_fn *fn, void *ctx);

/* Walks the services in order of namespace and hostname, with their present endpoints by uid. 0 or -ENOMEM.
 */
int store_each_service(const struct store *store, store_service_fn *fn, void *ctx);

/* Walks the policies in order of key. 0 or -ENOMEM. */
int store_each_policy(const struct store *store, store_policy_fn *fn, void *ctx);

/* What a walk that pauses goes through. */
enum store_kind {
	STORE_WORKLOADS, /* by uid */
	STORE_SERVICES,  /* with a record; by host name, then namespace */
	STORE_STAGED,   /* endpoints whose service has no record yet (control.md 8.3); by "namespace/hostname"
	                 */
	STORE_POLICIES, /* by key */
};

/* The keys of one kind at one moment, copied: the store may change while they are gone through. Opaque. */
struct store_keys;

/* Notes the keys of all records of a kind; those of one origin only when `origin` is not NULL (STORE_STAGED
 * has none). 0 or -ENOMEM. Free with store_keys_free. */
int store_keys_new(const struct store *store, enum store_kind kind, const enum store_origin *origin,
        struct store_keys **ret_keys);

/* Frees them. NULL is fine. */
void store_keys_free(struct store_keys *keys);

/* How many there are. */
size_t store_keys_cnt(const struct store_keys *keys);

/*
 * Shows the present record of key i (< store_keys_cnt) to fn, whose result does not matter. By kind:
 * workloads, services, policies; staged endpoints come as a service with only namespace and host name; keys
 * of one origin give services with the endpoints that their record names, not those of workloads. 0, -ENOENT
 * (it has gone meanwhile), -ENOMEM.
 */
int store_show_workload(
        const struct store *store, const struct store_keys *keys, size_t i, store_workload_fn *fn, void *ctx);
int store_show_service(
        const struct store *store, const struct store_keys *keys, size_t i, store_service_fn *fn, void *ctx);
int store_show_policy(
        const struct store *store, const struct store_keys *keys, size_t i, store_policy_fn *fn, void *ctx);

/* Sizes, for logs and dumps. */
struct store_counts {
	size_t workloads;
	size_t services; /* with a record; staged ones don't count */
	size_t policies;
	size_t workload_bytes; /* heap held by packed workloads */
};

/* The present sizes. */
struct store_counts store_counts(const struct store *store);

#endif
