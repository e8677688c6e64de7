/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of a control channel share: the channel, its connections,
 * its calls. Nobody else includes it.
 */
#ifndef CULVERT_BROKER_CONTROL_PRIV_H
#define CULVERT_BROKER_CONTROL_PRIV_H

#include "base/chain.h"
#include "base/list.h"
#include "broker/control_auth.h"
#include "broker/control_channel.h"
#include "broker/file_watch.h"
#include "broker/resolve.h"
#include "conn/dial.h"
#include "conn/link.h"
#include "grpc/frame.h"
#include "io/ring.h"
#include "tls/trust.h"

/* See control_channel.h. */
struct control_channel {
	struct broker *broker;
	enum control_purpose purpose;
	struct control_auth auth;
	struct tls_trust *trust;      /* CA: the last good roots; NULL = none yet */
	struct file_watch *watch;     /* CA with a roots file; NULL = none */
	struct control_conn *current; /* takes new calls; NULL = the next call makes one */
	struct list conns;            /* all of them: the current one and those that end */
	struct list ending;           /* calls whose end is yet to be told */
};

/* One connection: begins with the first call that wants it. */
struct control_conn {
	struct list node; /* in channel->conns */
	struct control_channel *channel;
	struct list calls; /* on this connection, waiting ones included */
	struct io_task begin;
	struct io_task reap; /* frees it when nobody needs it any more */
	struct tls_trust *trust;
	struct resolve *resolve;
	struct dial *dial;
	struct link *link;
	struct ip ips[RESOLVE_ADDR_MAX]; /* where to try */
	size_t ip_cnt;
	size_t next_ip;
	char where[ADDR_STR_MAX]; /* the address being tried, or connected to */
	bool is_ready;            /* requests may be made */
};

/* One call. */
struct control_call {
	struct list node; /* in conn->calls, then channel->ending */
	struct control_channel *channel;
	struct control_conn *conn; /* NULL once it is over */
	struct control_call_opts opts;
	const struct control_call_events *events;
	void *ctx;
	struct stream *stream; /* NULL = not opened yet, or over */
	struct chain queue;    /* written before there is a stream */
	struct grpc_reader reader;
	struct timer deadline;
	struct io_task end; /* tells on_end and frees */
	enum control_stage stage;
	struct grpc_status status;
	bool has_status;     /* the server said how the call ended */
	bool is_half_closed; /* no more messages from us */
	bool is_busy;        /* the owner's callbacks are running */
	bool is_over;        /* status is final */
	bool is_cancelled;   /* nobody wants to know */
};

/* The connection for a new call, made when there is none; NULL when out of memory (control_conn.c). */
struct control_conn *control_conn_get(struct control_channel *channel);

/* Takes no new calls from here on; goes when its calls have (control_conn.c). */
void control_conn_retire(struct control_conn *conn);

/* A call has left: the connection may have nothing left to do (control_conn.c). */
void control_conn_left(struct control_conn *conn);

/* Ends it at once; its calls were told or are about to be freed (control_conn.c). */
void control_conn_free(struct control_conn *conn);

/* Opens the call's stream on its ready connection, if there is room; else it waits (control_call.c). */
void control_call_open(struct control_call *call);

/* Fixes how the call ends and lets go of everything; on_end follows in this turn (control_call.c). */
void control_call_fail(struct control_call *call, enum control_stage stage, enum grpc_code code,
        const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Frees a call without a word (control_call.c). */
void control_call_free(struct control_call *call);

#endif
