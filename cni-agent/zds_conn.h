/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One ZDS connection: hello, snapshot, then updates, strictly one request and
 * one answer at a time (reference node-agent.md 1.4, 1.7). Any packet that was
 * not asked for ends it. For zds_server.c.
 */
#ifndef CULVERT_CNI_AGENT_ZDS_CONN_H
#define CULVERT_CNI_AGENT_ZDS_CONN_H

#include <stdbool.h>
#include <stddef.h>

#include "pb/zds.h"
#include "zds_server.h"

/* Deadline of the hello, of writing a request and of its answer each, milliseconds (1.8). */
#define ZDS_DEADLINE_MS 5000
/* Updates waiting on one connection (1.8). */
#define ZDS_QUEUE_MAX 100

/* What the connection waits for. */
enum zds_phase { ZDS_PHASE_HELLO, ZDS_PHASE_IDLE, ZDS_PHASE_WRITE, ZDS_PHASE_ANSWER };

/* A request to send. */
struct zds_item {
	struct list node;
	enum zds_request_type type;
	struct offer *offer;   /* one reference; NULL for ZDS_SNAPSHOT_SENT */
	struct zds_call *call; /* who waits; NULL = part of the snapshot */
};

/* The connection. */
struct zds_conn {
	struct list node; /* in zds_server.conns */
	struct zds_server *server;
	int fd;          /* owned */
	unsigned number; /* for the log: the descriptor's number at accept */
	enum zds_phase phase;
	struct watch watch;
	struct timer deadline;    /* of the phase */
	struct timer kick;        /* sends from the loop, never from within a push */
	struct zds_item *current; /* sent or being sent; NULL in hello and idle */
	struct list snapshot;     /* items, first of all */
	struct list updates;      /* items, after the snapshot */
	size_t update_cnt;
};

/* Starts waiting for the hello; takes fd over. -errno. */
int zds_conn_new(struct zds_server *server, int fd, struct zds_conn **ret_conn);

/* Queues an update; a reference of offer is taken. -ENOBUFS, -ENOMEM. */
int zds_conn_push(
        struct zds_conn *conn, enum zds_request_type type, struct offer *offer, struct zds_call *call);

/* Closes and frees. With why, whatever waits on it fails with that text; with NULL nobody is called. */
void zds_conn_close(struct zds_conn *conn, const char *why);

/* One connection has answered (or failed, error non-NULL) for call; the last one calls done. */
void zds_call_answered(struct zds_call *call, const char *error);

#endif
