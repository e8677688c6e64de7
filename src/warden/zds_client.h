/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The socket of the node agent's conversation: dial with back-off, hello,
 * packets to and from zds_session, the retry timer. Carries out for the
 * session what it decides; the pods carry out what it wants of them.
 */
#ifndef CULVERT_WARDEN_ZDS_CLIENT_H
#define CULVERT_WARDEN_ZDS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "warden/backoff.h"
#include "warden/pods.h"
#include "warden/ward.h"
#include "warden/zds_session.h"

/* Between two tries of all pending pods (reference node-agent.md 1.8). */
#define ZDS_RETRY_MS 5000

/* A request that is not answered by then ends the connection: an answer after the agent's 5 s would be taken
 * for another's (1.7). */
#define ZDS_ANSWER_MS 4000

/* The client. Private. */
struct zds_client {
	const struct ward_env *env;
	struct pods *pods;
	void (*changed)(struct zds_client *client); /* the node state may have changed */
	struct zds_session session;
	bool is_open;       /* between zds_client_open and zds_client_close */
	bool is_productive; /* a request of this connection has been answered with OK */
	bool must_hang_up;  /* the session wants the connection closed once control is back here */
	int fd;             /* -1 = not connected */
	struct watch watch;
	struct timer dial;   /* next attempt */
	struct timer retry;  /* next try of pending pods */
	struct timer answer; /* the request in progress must be answered by then */
	struct backoff backoff;
};

/* Prepares a client that does nothing yet. Arguments are borrowed. */
void zds_client_init(struct zds_client *client, const struct ward_env *env, struct pods *pods,
        void (*changed)(struct zds_client *client));

/* Starts dialling; a second call does nothing. */
void zds_client_open(struct zds_client *client);

/* Closes the connection and never dials again. */
void zds_client_close(struct zds_client *client);

/* Closes and frees. */
void zds_client_done(struct zds_client *client);

/* To be called from pods_events.started. */
void zds_client_started(struct zds_client *client, const char *uid, const char *error);

/* What the broker is to know of the connection. */
struct ipc_node_state zds_client_node_state(const struct zds_client *client);

#endif
