/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of io share; nobody else includes this. */
#ifndef CULVERT_IO_INTERNAL_H
#define CULVERT_IO_INTERNAL_H

#include <liburing.h>

#include "io/ring.h"

/* Group numbers of the two provided-buffer rings. */
enum pbuf_group { PBUF_SMALL, PBUF_BULK, PBUF_GROUP_CNT };

/* What an operation holds while it is in flight. */
enum io_kind {
	IO_KIND_PLAIN,    /* nothing of ours */
	IO_KIND_SMALL,    /* may take from PBUF_SMALL */
	IO_KIND_BULK,     /* may take from PBUF_BULK */
	IO_KIND_OWN,      /* scratch is the chunk it receives into */
	IO_KIND_SEND,     /* scratch is a struct gather, or NULL */
	IO_KIND_QUIET,    /* the same, and without a completion of the kernel it has succeeded */
	IO_KIND_WRITABLE, /* waits in the ring; scratch is the descriptor */
	IO_KIND_PATIENT,  /* waits in the epoll set; scratch is the descriptor */
};

/* iovecs of one gathered send. */
struct gather {
	struct gather *next;
	struct msghdr msg;
	struct iovec iov[IO_IOV_MAX];
};

/* Gathers kept for reuse; more are freed. */
#define GATHER_IDLE_MAX 8

/*
 * One provided-buffer ring, registered at its first use and given back when
 * idle: an idle process pays neither locked memory nor buffers.
 */
struct pbuf {
	struct io_uring_buf_ring *ring; /* NULL = not registered */
	struct chunk
	        *slots[IO_SMALL_CNT]; /* chunk of each buffer id that the kernel has; NULL = to be refilled */
	unsigned cnt;                 /* slots in use: entries of the ring */
	unsigned filled;              /* slots that have a chunk */
	size_t payload;               /* bytes of each buffer */
	uint64_t retry_ms;            /* not before this is registering tried again */
	size_t armed;                 /* receives in flight that may take from it */
	enum pbuf_group group;
};

/* A completion, copied out of the ring before anything is dispatched. */
struct reaped {
	struct io_op *op;
	int32_t res;
	uint32_t flags;
};

struct io {
	struct io_uring ring;
	struct io_features features;
	struct chunk_pool pool;
	struct wheel wheel;
	uint64_t now_ms;
	uint64_t alarm_ms;              /* when the ring's timeout ends a wait; WHEEL_NONE = none is armed */
	struct __kernel_timespec alarm; /* its time, until it is submitted; its address is its mark */
	struct list phases[IO_PHASE_CNT]; /* deferred tasks */
	struct list starved;              /* tasks waiting for buffers */
	struct pbuf pbufs[PBUF_GROUP_CNT];
	struct gather *idle_gathers;
	unsigned idle_gather_cnt;
	struct reaped *reaped; /* completions of this turn; grows when submission itself must reap */
	size_t reaped_cnt;
	size_t reaped_cap;
	size_t in_flight;
	struct io_op *quiets;       /* quiet sends not told yet, the last one first */
	bool is_expected;           /* somebody waits for one of them: the turn does not sleep */
	int epoll_fd;               /* set of sockets whose peer has ended: see writable.c */
	struct io_op epoll_op;      /* the ring's poll of it; not counted in in_flight */
	size_t patient_cnt;         /* operations in the set */
	struct timer trim;          /* gives memory back after activity has ended */
	bool is_busy;               /* something completed since the last trim */
	void (*on_idle)(void *ctx); /* see io_on_idle(); NULL = nobody */
	void *idle_ctx;
	bool is_stopped;
};

/* Names of the reason why no ring could be made; see io_new(). Split out for tests. */
int io_start_error(int code, int sysctl_disabled, uint64_t memlock, struct err *err);

/* Notes activity: memory is trimmed some time after it has ended. */
void io_touch(struct io *io);

/* A submission entry, never NULL: submits when the queue is full. */
struct io_uring_sqe *io_sqe(struct io *io);

/* Copies all completions that are there into io->reaped. */
void io_reap(struct io *io);

/* Tells the owners of quiet sends that were submitted and about which the kernel has said nothing. */
void io_settle_quiets(struct io *io);

/* Calls the owner of one completion. */
void io_dispatch(struct io *io, const struct reaped *reaped);

/* An operation ends without the kernel: dispatched with the completions of this turn. */
void io_post(struct io *io, struct io_op *op, int res);

/* True if a completion of a WRITABLE operation only said that the peer has ended: it goes on waiting in the
 * epoll set. */
bool writable_wait_on(struct io *io, struct io_op *op, int res);

/* The ring's poll of the set reported: ends the operations whose sockets take bytes. */
void writable_dispatch(struct io *io);

/* Takes a PATIENT operation out of the set and ends it with -ECANCELED. */
void writable_cancel(struct io *io, struct io_op *op);

/* Makes the set, which is used rarely but must not fail when it is. */
int writable_open(struct io *io);

/* Prepares a group; nothing is allocated. */
void pbuf_init(struct pbuf *pbuf, enum pbuf_group group, unsigned cnt, size_t payload);

/* Registers and fills the group if it is not; 0 or a negative errno (then receives bring their own chunk). */
int pbuf_start(struct io *io, struct pbuf *pbuf);

/* Gives new chunks for those that were taken, as far as the pool allows. */
void pbuf_refill(struct io *io, struct pbuf *pbuf);

/* The chunk of a completion with `flags`, with `len` valid bytes; NULL when it has none. */
struct chunk *pbuf_take(struct pbuf *pbuf, uint32_t flags, int len);

/* Unregisters the group and frees its chunks; only while nothing is armed. */
void pbuf_stop(struct io *io, struct pbuf *pbuf);

/* Gives the pages of large waiting buffers back to the kernel; they come again when bytes arrive. */
void pbuf_rest(struct pbuf *pbuf);

/* Frees the chunks of a group whose ring is gone already. */
void pbuf_forget(struct pbuf *pbuf);

#endif
