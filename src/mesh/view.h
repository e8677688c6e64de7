/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A view: the immutable answer to "what is behind this address or name, as
 * this workload may see it". The broker's store makes it, ipc carries it, the
 * silo's cache keeps it, routing reads it. Knows neither of the three.
 */
#ifndef CULVERT_MESH_VIEW_H
#define CULVERT_MESH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "culvert/records.h"

/* What a view may be asked for. */
enum view_kind {
	VIEW_ADDRESS = 0, /* network and ip */
	VIEW_HOST = 1,    /* namespace and host name */
	VIEW_NAME = 2,    /* name that a DNS client asked for */
};

/*
 * The question. Strings are never NULL.
 * VIEW_HOST with ns "" asks for the host name in whatever namespace the asker
 * sees it best (reference dataplane.md 3.5, row 2); with a namespace exactly
 * that one is meant and visibility is not applied (row 1). VIEW_NAME asks for
 * the service that DNS answers with (control.md 10.3), hostname is the
 * lower-case name of the query and ns ""; the store is told which host name that is.
 */
struct view_key {
	enum view_kind kind;
	bool unfiltered;      /* VIEW_ADDRESS: service visibility is not applied (dataplane.md 8.3, 4) */
	const char *network;  /* VIEW_ADDRESS; "" = the default network */
	struct ip ip;         /* VIEW_ADDRESS */
	const char *ns;       /* VIEW_HOST */
	const char *hostname; /* VIEW_HOST, VIEW_NAME; compared byte by byte */
};

/*
 * The answer, in its own arena. Everything it points to lives there. Not
 * known means that neither a workload nor a service is there. Workloads come
 * without their services and policies, which only their own proxy needs. Endpoints are
 * those of `service`, at most LIMIT_VIEW_ENDPOINTS, each with its workload;
 * if the asker itself is an endpoint it is among them.
 */
struct view {
	struct arena *arena;             /* holds the view itself; counted */
	struct view_key key;             /* the question */
	bool known;                      /* workload or service is set */
	uint64_t generation;             /* of the store when it was made; tells pages of two answers apart */
	const struct workload *workload; /* with that ip or host name, or NULL */
	const struct service *service;   /* with that virtual address or host name, or NULL */
	const struct endpoint *endpoints;
	size_t endpoint_cnt;
};

/* A key for an address, visibility applied. Borrows network. */
struct view_key view_key_address(const char *network, const struct ip *ip);

/* A key for a host name; ns "" = any namespace. Borrows both. */
struct view_key view_key_host(const char *ns, const char *hostname);

/* A key for a name that a DNS client asked for, lower case. Borrows it. */
struct view_key view_key_name(const char *name);

/* A copy of a key whose strings lie in one block (freed with mem_free by the caller). 0 or -ENOMEM. */
int view_key_copy(const struct view_key *key, struct view_key *ret_key, char **ret_block);

/* Whether two keys ask the same. */
bool view_key_eq(const struct view_key *a, const struct view_key *b);

/* Longest view_key_bytes; keys above it (absurd names) are refused. */
#define VIEW_KEY_BYTES_MAX 640

/*
 * Writes the key as bytes, equal for equal keys only, for use in a map.
 * Returns the length, or -ENAMETOOLONG when it does not fit into `cap`.
 */
int view_key_bytes(const struct view_key *key, void *dst, size_t cap);

/*
 * Makes a view out of parts that already lie in `arena` (workload, service,
 * each endpoint's workload and ports); key strings and the endpoint array are
 * copied in. Endpoints above LIMIT_VIEW_ENDPOINTS are refused with
 * ERR_TOO_MANY. On success the caller's reference to the arena belongs to the
 * view; on failure (-ENOMEM too) it stays with the caller.
 */
int view_new(struct arena *arena, const struct view_key *key, uint64_t generation,
        const struct workload *workload, const struct service *service, const struct endpoint *endpoints,
        size_t endpoint_cnt, struct view **ret_view);

/* One more reference; returns view. NULL gives NULL. */
struct view *view_ref(struct view *view);

/* One reference less; the last one frees it. NULL is fine. */
void view_unref(struct view *view);

#endif
