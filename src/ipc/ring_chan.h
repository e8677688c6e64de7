/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A channel (chan.h) driven by the ring: for the processes that have one, silo
 * and broker. The warden polls its channels itself and links none of this.
 * Knows no record's meaning.
 */
#ifndef CULVERT_IPC_RING_CHAN_H
#define CULVERT_IPC_RING_CHAN_H

#include "base/err.h"
#include "io/ring.h"
#include "ipc/chan.h"

struct ring_chan;

/* Records taken from one channel before others get their turn: a flood on one must not starve the rest. */
#define RING_CHAN_TURN_MAX 32

/* What a channel tells its owner. */
struct ring_chan_events {
	/*
	 * A record. The message belongs to the channel and ends with the call: take the descriptor by setting
	 * fd to -1, keep the arena by a reference. A negative return value closes the channel (text in err),
	 * as a violation does.
	 */
	int (*on_record)(void *ctx, struct chan_msg *msg, struct err *err);
	/*
	 * The peer closed (code -EPIPE), broke the rules, or the owner's on_record refused. Comes once, from
	 * a turn of the ring; the owner then calls ring_chan_free.
	 */
	void (*on_closed)(void *ctx, int code, const char *text);
};

/*
 * Takes over fd as chan_init does and starts to read at once; peer,
 * expects_setup and scratch likewise. `events` is borrowed. Returns 0 or
 * -ENOMEM (fd stays the caller's).
 */
int ring_chan_new(struct io *io, int fd, enum ipc_role self, enum ipc_role peer, bool expects_setup,
        struct chan_scratch *scratch, const struct ring_chan_events *events, void *ctx,
        struct ring_chan **ret_rc);

/* Closes and frees; no event comes after. NULL is fine. */
void ring_chan_free(struct ring_chan *rc);

/*
 * Sends a record as chan_send. A peer that is gone or does not read is
 * reported by on_closed later; then the result is that code too. Encoding and
 * permit errors are our own mistake and leave the channel open.
 */
int ring_chan_send(struct ring_chan *rc, const struct ipc_record *rec, int pass_fd, struct err *err);

/* Sends all pages of an answer as chan_send_pages; errors as above. */
int ring_chan_send_pages(struct ring_chan *rc, const struct ipc_record *whole, struct err *err);

/* Sends the Hello; see chan_send_hello. */
int ring_chan_send_hello(struct ring_chan *rc, const struct ipc_hello *hello, int pass_fd, struct err *err);

/* Descriptor of the channel, for SO_PEERCRED and the like. */
int ring_chan_fd(const struct ring_chan *rc);

/* Records that wait to be sent: a producer of pushes holds back while there are many. */
size_t ring_chan_queued(const struct ring_chan *rc);

#endif
