/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pods of the agent. Each is driven from what is wanted of it to what the
 * kernel and the data plane have: check and rules in its namespace (job.h),
 * then Add over ZDS; on removal rules out, then Del. Whatever fails on the
 * way is tried again or undone, and no pod waits for another (reference
 * node-agent.md 1.7).
 */
#ifndef CULVERT_CNI_AGENT_PODS_H
#define CULVERT_CNI_AGENT_PODS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/map.h"
#include "job.h"
#include "pod.h"
#include "zds_server.h"

/* First and longest delay before another try, milliseconds (1.8). */
#define PODS_RETRY_MIN_MS 5
#define PODS_RETRY_MAX_MS 5000

/* Who wants a pod. */
enum pod_origin {
	POD_OF_FILE,   /* a pods file: wanted as long as it is listed */
	POD_OF_STATE,  /* the state directory: came over the socket before a restart */
	POD_OF_SOCKET, /* the control socket */
};

/* Where a pod is. */
enum pod_state {
	POD_NEW,      /* nothing was done yet */
	POD_APPLYING, /* check and rules in its namespace */
	POD_CLEANING, /* rules out of the namespace that it had before */
	POD_RENAMING, /* Del, because it now has another name or account */
	POD_ADDING,   /* Add is on its way */
	POD_PENDING,  /* failed, tried again later or by the next snapshot */
	POD_ENROLLED, /* acknowledged */
	POD_UNDOING,  /* to be removed: rules out */
	POD_DELETING, /* to be removed: Del is on its way */
};

/* How a request ended. */
enum pod_outcome {
	POD_DONE,    /* as wanted */
	POD_WAITS,   /* not yet: the pod is pending and is tried again */
	POD_REFUSED, /* failed for good; nothing has changed */
};

/* Somebody who waits for a pod; embedded in its owner. */
struct pod_waiter {
	struct list node; /* detached = not waiting */
	/* Called once; error is NULL with POD_DONE. The waiter is detached. */
	void (*done)(struct pod_waiter *waiter, enum pod_outcome outcome, const char *error);
};

/* How the agent captures, for all pods. */
struct pods_config {
	bool no_rules;    /* leave rules to somebody else: check the address only */
	bool dns;         /* capture DNS of pods that do not say */
	bool ipv6;        /* capture IPv6 */
	struct ip probe4; /* addresses of the node's own probes */
	struct ip probe6;
	const char *state_dir; /* NULL = pods of the socket are not kept; borrowed */
};

/* One pod. Private but for what pods_each shows. */
struct pod {
	struct list node; /* in pods.all */
	struct pods *pods;
	const char *uid;             /* key; own copy */
	const struct pod_spec *want; /* one reference; NULL = to be removed */
	enum pod_origin origin;
	enum pod_state state;
	struct offer *offer; /* what its namespace has and ZDS is told; NULL = nothing */
	struct offer *next;  /* being applied */
	struct offer *old;   /* being cleaned */
	bool must_rename;    /* Del before the next Add */
	bool is_undone;      /* to be removed: rules are out already */
	bool is_settled;     /* its first attempt has ended */
	bool is_listed;      /* scratch of pods_sync */
	struct job job;
	struct zds_call call;
	struct timer retry;
	uint32_t delay_ms;        /* of the next retry */
	char error[ERR_TEXT_MAX]; /* why it is not (fully) as wanted; "" = it is */
	struct list waiters;      /* struct pod_waiter.node */
};

/* All pods. */
struct pods {
	struct loop *loop; /* borrowed */
	struct log *log;   /* borrowed */
	struct pods_config config;
	struct jobs jobs;
	struct zds_server *zds; /* borrowed */
	struct map by_uid;
	struct list all;            /* struct pod.node, oldest first */
	size_t unsettled;           /* pods with their first attempt ahead */
	void (*settled)(void *ctx); /* called once when unsettled is 0 */
	void *settled_ctx;
};

/* No pods. zds is initialised with pods_source. */
void pods_init(struct pods *pods, struct loop *loop, struct log *log, const struct pods_config *config,
        struct zds_server *zds);

/* Ends running jobs and frees all. Rules and data plane stay as they are. The ZDS server must have ended. */
void pods_done(struct pods *pods);

/* What the ZDS server asks of the pods. */
struct zds_source pods_source(struct pods *pods);

/* Wants exactly the listed pods of the pods file; others of that origin go. Errors of single pods are logged.
 */
void pods_sync(struct pods *pods, const struct list *entries);

/* Wants the pods of the state directory. */
void pods_restore(struct pods *pods, const struct list *entries);

/* Calls settled (at once, if so) when every pod has had its first attempt: a snapshot before would be
 * incomplete. */
void pods_when_settled(struct pods *pods, void (*settled)(void *ctx), void *ctx);

/*
 * A request of the socket: wants the pod. waiter hears of the outcome, perhaps
 * before this returns: acknowledged, refused by the data plane (and tried
 * again), or not possible at all. While nobody is there to acknowledge it
 * waits; to wait no longer is the caller's right (list_del of its node).
 */
void pods_add(struct pods *pods, const struct pod_spec *spec, struct pod_waiter *waiter);

/* A request of the socket: the pod shall go. waiter hears of the outcome, perhaps before this returns. */
void pods_del(struct pods *pods, const char *uid, struct pod_waiter *waiter);

/* What keeps a pod from being as wanted, for whoever waits no longer; never NULL. */
const char *pods_trouble(const struct pods *pods, const char *uid);

/* Text of a state: "enrolled", "pending" ...; static. */
const char *pod_state_str(enum pod_state state);

/* Writes an array of all pods with state and error. */
void pods_write(const struct pods *pods, struct json *json);

#endif
