/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The broker: the mesh as the node knows it, and everyone it answers to. One
 * per node, unprivileged; made in main.c and handed down by pointer.
 */
#ifndef CULVERT_BROKER_BROKER_H
#define CULVERT_BROKER_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/param.h"
#include "broker/interest.h"
#include "broker/logs.h"
#include "io/ring.h"
#include "ipc/chan.h"
#include "mesh/store.h"

struct certs;
struct crl;
struct h2_env;
struct mesh_file;
struct metrics;
struct warden;
struct web;
struct xds;

/* The workloads of the node as the warden reports them, for dumps. */
struct pod {
	struct list node; /* in broker.pods */
	char *uid;        /* owned, like the next four */
	char *name;
	char *ns;
	char *service_account;
	char *reason; /* why it is pending; "" otherwise */
	bool is_up;
	bool is_self;      /* the daemon's own: no workload of the node agent */
	uint32_t restarts; /* crashes so far */
	int32_t pid;       /* of the silo; 0 = none */
	uint64_t netns_ino;
};

/* What must hold before the node is ready, and what the node agent's side looks like. */
struct readiness {
	bool mesh_complete;    /* the first complete state of the mesh is in */
	bool warden_up;        /* a warden is attached */
	bool node_connected;   /* it talks to the node agent */
	bool node_snapshot;    /* and has had the snapshot */
	uint32_t node_pending; /* workloads that wait for a retry */
	bool node_settled;     /* once there was a snapshot and nothing pending */
	bool was_up;           /* proxies have been started: shared mode a warden came, dedicated the silo */
	bool was_ready;        /* the node has been ready once */
	unsigned awaited;      /* tasks that were not done when last looked at, as bits (ready.c) */
	uint64_t since_us;     /* clock_us() when the readiness was first looked at; 0 = not yet */
};

/* The broker. */
struct broker {
	struct io *io;
	struct log log;
	struct logs logs;
	struct settings settings;
	struct chan_scratch scratch; /* working memory of all channels */
	struct store *store;
	struct mesh_file *mesh_file; /* NULL = none */
	struct certs *certs;
	struct crl *crl;          /* NULL = CRLs are off */
	struct xds *xds;          /* NULL = no control plane */
	struct metrics *metrics;  /* 15020 */
	struct h2_env *h2_env;    /* shared part of the channels to the control plane; NULL = there is none */
	struct warden *warden;    /* the listener for wardens and the present one */
	struct list silos;        /* struct silo_peer */
	struct interest interest; /* which of them want to hear of what */
	struct list pods;         /* struct pod */
	size_t pod_cnt;           /* <= LIMIT_PODS */
	struct readiness ready;
	struct web *readiness_web; /* 15021 */
	struct web *admin_web;     /* unix socket in the run directory */
	struct web *admin_v4_web;  /* 15000 on 127.0.0.1 */
	struct web *admin_v6_web;  /* 15000 on ::1; NULL = no IPv6 there */
	unsigned dump_cnt;         /* config dumps under way, <= DUMPS_MAX */
	bool has_log_filter;       /* levels were changed at run time: new silos are told */
	int run_fd;                /* the instance's folder */
	bool is_draining;          /* the daemon is going down */
};

/* Sets whether the mesh state is complete, and tells the warden when that changes. */
void broker_set_mesh_complete(struct broker *broker, bool is_complete);

/* The daemon goes down: endpoints close, silos are answered to the end. */
void broker_drain(struct broker *broker);

/* Something that readiness hangs on has changed. */
void broker_ready_note(struct broker *broker);

/* Texts of tasks that are not done, sorted, joined by ", "; "" when the node is ready (reference
 * control.md 11.2). */
void broker_pending_text(struct broker *broker, char *dst, size_t cap);

#endif
