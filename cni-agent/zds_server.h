/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent's end of ZDS (reference node-agent.md 1.7): listener, the
 * connections in the order of their arrival, who is told what. Knows offers,
 * not how they came to be.
 */
#ifndef CULVERT_CNI_AGENT_ZDS_SERVER_H
#define CULVERT_CNI_AGENT_ZDS_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "offer.h"
#include "unix_socket.h"

/* Connections at once; a node has one daemon, two during an update. */
#define ZDS_CONN_MAX 16
/* Least time between two accepts, milliseconds: five a second, burst one (1.1). */
#define ZDS_ACCEPT_MS 200

/* An update in flight, embedded in its owner and not freed before done. */
struct zds_call {
	size_t open;     /* connections that have not answered; 0 = not in flight */
	bool is_refused; /* the data plane said no (as opposed to: nobody could answer); valid in done */
	char error[512]; /* first failure, "" = none */
	/* Called once from the loop; error is NULL or what went wrong (borrowed). The call may be used again.
	 */
	void (*done)(struct zds_call *call, const char *error);
};

/* Where a snapshot comes from and who hears of its acknowledgements. */
struct zds_source {
	void *ctx;
	/*
	 * What every new connection is told: an array of offers with one
	 * reference each, the array freed with mem_free by the caller; NULL
	 * for none. -ENOMEM.
	 */
	int (*snapshot)(void *ctx, struct offer ***ret_offers, size_t *ret_cnt);
	/* An Add of a snapshot was answered; error NULL = OK. */
	void (*answered)(void *ctx, const struct offer *offer, const char *error);
};

/* The server. Private but for conn_cnt. */
struct zds_server {
	struct loop *loop; /* borrowed */
	struct log *log;   /* borrowed */
	struct zds_source source;
	struct unix_socket socket;
	struct watch watch; /* of socket */
	struct timer pace;  /* accepts again when it fires */
	struct list conns;  /* struct zds_conn.node, newest last */
	size_t conn_cnt;
};

/* Nothing is open yet. */
void zds_server_init(struct zds_server *server, struct loop *loop, struct log *log, struct zds_source source);

/* Binds and listens, without accepting: a daemon that comes early waits in the queue (1.1). -errno with text.
 */
int zds_server_listen(struct zds_server *server, const char *path, struct err *err);

/* Begins to accept. -errno. */
int zds_server_accept(struct zds_server *server);

/* Serves a connected SEQPACKET socket as if it had been accepted; takes fd over. -errno. */
int zds_server_adopt(struct zds_server *server, int fd);

/* Closes all connections without calling done, and the listener; removes the socket file if it is still ours.
 */
void zds_server_done(struct zds_server *server);

/*
 * Adds the pod on the newest connection. 0 = in flight, done follows;
 * -ENOTCONN, -ENOBUFS (its queue is full), -ENOMEM: not.
 */
int zds_server_add(struct zds_server *server, struct zds_call *call, struct offer *offer);

/*
 * Deletes the pod on all connections. 1 = in flight, done follows (with an
 * error when one of them was lost or full); 0 = nobody is connected; -ENOBUFS,
 * -ENOMEM: nobody could be told.
 */
int zds_server_del(struct zds_server *server, struct zds_call *call, struct offer *offer);

#endif
