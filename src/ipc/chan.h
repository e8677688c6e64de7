/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A channel between two of our processes: a non-blocking SOCK_SEQPACKET
 * socket, one record and at most one descriptor per packet, a bounded queue for
 * what the kernel does not take at once. The owner polls the descriptor (epoll
 * or ring) and calls in; the channel calls nobody back. Every received record
 * has passed ipc/guard.h before it is decoded.
 */
#ifndef CULVERT_IPC_CHAN_H
#define CULVERT_IPC_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "ipc/guard.h"
#include "pb/ipc.h"

/* Most records waiting in a channel's queue: a reader that is this late is taken for dead. */
#define CHAN_QUEUE_MAX LIMIT_IPC_QUEUE

/* Most bytes waiting in the same queue: as much as a receiver would gather of one answer (gather.h). */
#define CHAN_QUEUE_BYTES_MAX (4u << 20)

/* Working memory for one packet, one per process: channels share it, as nothing stays in it between calls. */
struct chan_scratch {
	uint8_t bytes[IPC_RECORD_MAX];
};

/* The channel. phase and peer of guard may be read, the rest is private. */
struct chan {
	int fd; /* owned; -1 after chan_done */
	struct guard guard;
	struct chan_scratch *scratch; /* borrowed */
	struct list queue;            /* packets waiting, oldest first */
	size_t queue_cnt;
	size_t queue_bytes;
	uint32_t proto;    /* agreed protocol version, 0 before Hello */
	bool hello_sent;   /* ours is out or queued: nothing goes before it, no second one after */
	uint64_t features; /* the peer's features, 0 before Hello */
};

/* A received record; release with chan_msg_done. */
struct chan_msg {
	struct arena *arena; /* holds everything rec points to; take a reference to keep it */
	struct ipc_record rec;
	int fd; /* descriptor that came along, owned; set to -1 when you take it over */
};

/*
 * Takes over fd (connected, SOCK_SEQPACKET, non-blocking). peer and
 * expects_setup: see guard_init. scratch is borrowed for the channel's life.
 */
void chan_init(struct chan *chan, int fd, enum ipc_role self, enum ipc_role peer, bool expects_setup,
        struct chan_scratch *scratch);

/* Closes the socket and everything queued. Harmless on a done channel. */
void chan_done(struct chan *chan);

/*
 * Sends a record or queues it. pass_fd (or -1) is taken over in every case,
 * also on failure. 0 = sent or queued; -ENOBUFS = queue full (the peer does
 * not read: close the channel); -EPIPE/-ECONNRESET = peer gone; encoding and
 * permit errors as ipc_encode and guard_check_send (channel still good).
 */
int chan_send(struct chan *chan, const struct ipc_record *rec, int pass_fd, struct err *err);

/* Sends every page of a paged answer (see ipc_encode_page). Items too large for a page are left out: their
 * number goes to *ret_skipped (may be NULL). Errors as chan_send. */
int chan_send_pages(struct chan *chan, const struct ipc_record *whole, size_t *ret_skipped, struct err *err);

/* Sends our Hello: release, protocol range and features are filled in here, role from the channel. Must be
 * the first record sent. */
int chan_send_hello(struct chan *chan, const struct ipc_hello *hello, int pass_fd, struct err *err);

/* Whether records wait: the owner then polls for writability and calls chan_flush. */
static inline bool chan_wants_write(const struct chan *chan)
{
	return chan->queue_cnt > 0;
}

/* Sends what waits. 0 (also when some still waits), or the errno of a dead peer. */
int chan_flush(struct chan *chan);

/*
 * Receives the next record. 0 = *ret_msg is filled (also for Hello, after it
 * was checked for compatibility); -EAGAIN = nothing there; -EPIPE = the peer
 * has closed; anything else with its text = violation or failure: close the
 * channel. Unknown asks are answered "unsupported" here and skipped. At most
 * one call's worth of work: call until -EAGAIN, with a bound.
 */
int chan_recv(struct chan *chan, struct chan_msg *ret_msg, struct err *err);

/* Closes the descriptor and drops the arena. */
void chan_msg_done(struct chan_msg *msg);

#endif
