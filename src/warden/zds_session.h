/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The node agent's conversation as a state machine (reference node-agent.md
 * 1.5): what each message means before and after the snapshot, what is acked,
 * refused or a violation. Pure: no socket, no process, no clock; effects go
 * through a table of functions, so that tests can write them down.
 *
 * One request at a time: between the call of a request function and its reply
 * no other request may be handed in (zds_session_is_busy).
 */
#ifndef CULVERT_WARDEN_ZDS_SESSION_H
#define CULVERT_WARDEN_ZDS_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "culvert/records.h"
#include "pb/zds.h"

/* What is known of a uid, seen from an Add with a certain namespace. */
enum zds_presence {
	ZDS_ABSENT,  /* unknown, pending, failed, or up in another namespace: must be started */
	ZDS_RUNNING, /* up in the very namespace */
};

struct zds_session;

/* Effects. All are called with the ctx of the session and return at once. */
struct zds_ops {
	/* Answers the request in progress; error NULL = OK. */
	void (*reply)(void *ctx, const char *error);
	/* The agent broke the protocol: after the reply the connection must go. */
	void (*hang_up)(void *ctx);
	/* What is known of a uid and the namespace behind fd. */
	enum zds_presence (*find)(void *ctx, const char *uid, int netns_fd);
	/*
	 * Starts (or moves, or restarts) the proxy of a pod; takes netns_fd over.
	 * The result comes by zds_session_started, possibly before this returns.
	 */
	void (*start)(void *ctx, const char *uid, const struct workload_info *info, int netns_fd);
	/* Ends a pod's proxy at once and forgets the pod, whatever its state. */
	void (*stop)(void *ctx, const char *uid);
	/* Forgets a pod if it is pending, not if its proxy runs. */
	void (*forget_pending)(void *ctx, const char *uid);
	/* The same for all pods: a new connection starts with none. */
	void (*forget_all_pending)(void *ctx);
	/* Ends and forgets every pod for which is_kept says no. */
	void (*reconcile)(void *ctx, bool (*is_kept)(const struct zds_session *session, const char *uid),
	        const struct zds_session *session);
	/* Starts all pending pods again; results by zds_session_started. */
	void (*retry_pending)(void *ctx);
	/* Number of pods whose start failed and waits for a retry. */
	size_t (*pending_cnt)(void *ctx);
	/* Sets the retry timer (5 s), if it is not set; zds_session_tick is called when it fires. */
	void (*arm_retry)(void *ctx);
	/* Unsets it. */
	void (*disarm_retry)(void *ctx);
};

/* The session over all connections. Private but for is_connected and has_snapshot. */
struct zds_session {
	const struct zds_ops *ops;
	void *ctx;
	bool is_connected;                 /* hello has been sent */
	bool has_snapshot;                 /* SnapshotSent came on this connection */
	bool is_busy;                      /* an Add waits for its start */
	struct map names;                  /* uids named by Add or Keep before the snapshot; owned strings */
	char busy_uid[ZDS_PACKET_MAX + 1]; /* of that Add */
};

/* Prepares a session without connection. ops and ctx are borrowed. */
void zds_session_init(struct zds_session *session, const struct zds_ops *ops, void *ctx);

/* Frees the names. */
void zds_session_done(struct zds_session *session);

/* The hello went out on a new connection. */
void zds_session_connected(struct zds_session *session);

/* The connection has gone. A start in progress goes on, unanswered. */
void zds_session_lost(struct zds_session *session);

/* Hands in a request and its descriptor (taken over; -1 = none; zds_recv_request has checked that the two
 * belong together). */
void zds_session_request(struct zds_session *session, const struct zds_request *req, int netns_fd);

/* A start asked for by ops->start or ops->retry_pending has ended; error NULL = listeners accept. */
void zds_session_started(struct zds_session *session, const char *uid, const char *error);

/* The retry timer has fired. */
void zds_session_tick(struct zds_session *session);

/* Whether a request waits for its answer. */
static inline bool zds_session_is_busy(const struct zds_session *session)
{
	return session->is_busy;
}

#endif
