/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * May this connection pass, and which policy said so (reference dataplane.md
 * 10). Pure; what upstream logs on the way is reported to the caller.
 */
#ifndef CULVERT_MESH_RBAC_H
#define CULVERT_MESH_RBAC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "culvert/records.h"
#include "mesh/identity.h"

/* The connection as policies see it. */
struct rbac_conn {
	struct ip source;         /* TCP peer */
	struct addr destination;  /* next hop (HBONE) or original destination (plaintext) */
	bool has_identity;        /* false: nothing was proven, only negative conditions hold */
	struct identity identity; /* of the client certificate */
};

/* What happened on the way to a decision, for the decision log (dataplane.md 10.6). */
enum rbac_event {
	RBAC_DENY_MATCH = 0,      /* "deny policy match" */
	RBAC_ALLOW_MATCH,         /* "allow policy match" */
	RBAC_NO_ALLOW_POLICIES,   /* "no allow policies, allow" */
	RBAC_ALLOW_UNMATCHED,     /* "no allow policies matched" */
	RBAC_DRY_DENY_MATCH,      /* "dry-run: deny policy match" */
	RBAC_DRY_ALLOW_MATCH,     /* "dry-run: allow policy match" */
	RBAC_DRY_ALLOW_UNMATCHED, /* "dry-run: no allow policies match" */
};

/* Receives the events in the order of evaluation. */
struct rbac_observer {
	void *ctx;
	/* policy is NULL for the events that concern none. */
	void (*event)(void *ctx, enum rbac_event event, const struct policy *policy);
};

/* The decision. */
struct rbac_result {
	bool is_allowed;
	int code;                    /* 0, ERR_DENIED or ERR_NOT_ALLOWED */
	const struct policy *policy; /* that decided, or NULL; borrowed from the list given in */
};

/*
 * Judges a connection by the policies that apply to our workload (in any
 * order; dataplane.md 10.2). observer may be NULL.
 */
struct rbac_result rbac_check(const struct policy *const *policies, size_t policy_cnt,
        const struct rbac_conn *conn, const struct rbac_observer *observer);

/* Whether one policy matches the connection, whatever its action and dry-run mark (dataplane.md 10.3). */
bool rbac_policy_matches(const struct policy *policy, const struct rbac_conn *conn);

/*
 * Writes the reason of a denial as the access log and the 401 show it, without
 * the prefix "connection closed due to policy rejection: ". Cut to `cap`.
 */
void rbac_reason(const struct rbac_result *result, char *dst, size_t cap);

/* Text of an event in the decision log; static. */
const char *rbac_event_text(enum rbac_event event);

#endif
