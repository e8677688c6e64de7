/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pods of this node and their silos: start, restart after a crash, move to
 * another namespace, end; what of it the broker is told. Knows nothing of the
 * node agent's protocol: the session (zds_session.h) decides what is wanted.
 */
#ifndef CULVERT_WARDEN_PODS_H
#define CULVERT_WARDEN_PODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "warden/backoff.h"
#include "warden/broker_link.h"
#include "warden/netns.h"
#include "warden/ward.h"

/* State of a pod. */
enum pod_state {
	POD_STARTING, /* its silo is on the way to Ready */
	POD_UP,       /* its silo serves */
	POD_PENDING,  /* the start that the agent asked for failed; waits for pods_retry */
	POD_CRASHED,  /* its silo died after serving; restarts after a back-off */
};

struct pods;

/* A pod that the node agent has named, or whose silo has been adopted, or the daemon's own (IPC_SILO_SELF),
 * which the agent's requests do not reach. */
struct pod {
	char *uid;                      /* owned; key */
	struct workload_info info;      /* strings owned */
	char name[RUNDIR_NAME_MAX];     /* its name in files */
	char socket[RUNDIR_SOCKET_MAX]; /* its present silo's control socket */
	struct pods *pods;
	enum pod_state state;
	bool is_asked;   /* the agent's start is in progress: pods_events.started is owed */
	bool has_failed; /* the agent's last start failed and no retry has succeeded yet */
	bool has_served; /* a silo of this pod was up before */
	bool is_told;    /* the present broker has heard of it */
	bool is_gone;    /* out of the map, kept until the broker has been told; only if is_told, so there are
	                    never more of these than pods */
	enum ipc_silo_mode mode;
	int netns_fd; /* owned; -1 never while in the map */
	struct netns_id netns;
	struct ward *ward; /* its silo; NULL while PENDING and CRASHED */
	struct backoff backoff;
	struct timer timer;        /* restart after a crash */
	uint32_t restart_cnt;      /* crashes so far */
	char reason[ERR_TEXT_MAX]; /* why it is not up */
	int broker_fd;             /* broker's end of the ward's channel, not handed over yet; -1 = none */
	struct pod *sweep_next;    /* next of those taken out together */
	struct list dirty;         /* on pods.dirty: the broker has to be told */
};

/* Events for the owner. */
struct pods_events {
	/* A start asked for by pods_start or pods_retry has ended; error NULL = it serves. */
	void (*started)(void *ctx, const char *uid, const char *error);
	/* pods_failed_cnt may have changed. */
	void (*changed)(void *ctx);
	/* After pods_end_all: the last silo is gone. */
	void (*all_ended)(void *ctx);
};

/* All pods. Private. */
struct pods {
	const struct ward_env *env;
	struct broker_link *broker;
	const struct netns_guard *guard;
	const struct pods_events *events;
	void *ctx;
	struct map map;     /* of struct pod by uid */
	struct list dirty;  /* pods of which the broker does not know the present state */
	struct list ending; /* wards without pod, until they are dead */
	size_t failed_cnt;  /* pods with has_failed */
	bool is_ending;     /* pods_end_all has been called */
};

/* Prepares an empty set. All arguments are borrowed. */
void pods_init(struct pods *pods, const struct ward_env *env, struct broker_link *broker,
        const struct netns_guard *guard, const struct pods_events *events, void *ctx);

/* Frees everything; silos that still run go on. */
void pods_done(struct pods *pods);

/* The pod of a uid, NULL = unknown. Borrowed. */
struct pod *pods_find(const struct pods *pods, const char *uid);

/* Whether the pod's silo is up in the namespace of fd. */
bool pods_is_up_in(const struct pods *pods, const char *uid, int netns_fd);

/*
 * Starts a silo for a pod in the namespace of netns_fd (taken over), or
 * restarts a pending or crashed one, or moves it when the namespace differs.
 * events->started follows, possibly before this returns.
 */
void pods_start(struct pods *pods, const char *uid, const struct workload_info *info, int netns_fd,
        enum ipc_silo_mode mode);

/*
 * Starts the silo of the daemon's own pod in the namespace of netns_fd (taken
 * over), unless there is one. Nobody is told how it ends: it is tried until it
 * works.
 */
void pods_start_self(struct pods *pods, const struct workload_info *info, int netns_fd);

/* Enters a pod whose silo is adopted: ward_keep has been called. netns_fd is taken over. -EEXIST, -ENOMEM,
 * -ENOSPC: the caller keeps ward and closes nothing else. */
int pods_adopt(struct pods *pods, struct ward *ward, const struct ipc_hello *hello, const char *socket,
        int netns_fd, enum ipc_silo_mode mode);

/* Ends a pod's silo at once (farewell in the background) and forgets the pod. */
void pods_stop(struct pods *pods, const char *uid);

/* Forgets a pod whose start failed (also while it is tried again). */
void pods_forget_pending(struct pods *pods, const char *uid);

/* The same for all. */
void pods_forget_all_pending(struct pods *pods);

/* pods_stop for every pod of the agent for which keep says no. */
void pods_sweep(struct pods *pods, bool (*keep)(void *ctx, const char *uid), void *ctx);

/* Starts all pods whose start failed again. */
void pods_retry(struct pods *pods);

/* Pods whose start failed and has not succeeded since. */
size_t pods_failed_cnt(const struct pods *pods);

/* Ends all silos gracefully within deadline_ms and forgets all pods; all_ended follows. */
void pods_end_all(struct pods *pods, uint64_t deadline_ms);

/* SIGKILL for every silo, also for those that are ending. */
void pods_kill_all(struct pods *pods);

/* A broker is there: tell it everything. */
void pods_broker_opened(struct pods *pods);

/* The broker is gone: silos must be given channels to the next one. */
void pods_broker_lost(struct pods *pods);

/* Tells the broker as much of what it does not know as there is room for. */
void pods_tell_broker(struct pods *pods);

#endif
