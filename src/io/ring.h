/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only io_uring of the tree: one ring, one timer wheel and one chunk pool
 * per process. Operations are embedded in their owners and report to a
 * callback. Knows descriptors and bytes; knows no protocol, no stream, no mesh.
 *
 * Rules for every caller
 * - Nothing here calls back from inside a call of yours: callbacks run only
 *   from io_turn(), after all completions of the turn have been collected.
 * - An operation that is in flight belongs to the kernel: its owner counts it
 *   and is not freed before the last completion (io_result.more == false).
 *   A cancelled operation still completes, usually with -ECANCELED.
 * - Work that should happen once per turn (flush a dirty socket) is deferred:
 *   io_defer(). All deferred work is done before the turn submits.
 */
#ifndef CULVERT_IO_RING_H
#define CULVERT_IO_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/chain.h"
#include "base/err.h"
#include "base/list.h"
#include "base/wheel.h"

struct io;

/* Entries of the submission queue; fuller turns submit early (design 4). */
#define IO_SQ_CNT 64
/* Entries of the completion queue; more completions overflow into the kernel's list and are picked up next
 * turn. */
#define IO_CQ_CNT 256
/* Most iovecs of one gathered send. */
#define IO_IOV_MAX 64
/* Provided small buffers of CHUNK_SMALL bytes; a power of two, all of them together are the most that all
 * sockets can be handed in one turn. */
#define IO_SMALL_CNT 32
/* Most bytes of a bulk receive: thirty-two full HTTP/2 DATA frames of 16,375 bytes, so none is cut. */
#define IO_BULK_LEN (32 * 16375)
/* Provided bulk buffers of CHUNK_BULK bytes; a power of two. */
#define IO_BULK_CNT 4

/* Chunks of one process together, bytes: above it reads wait and writes fail. */
#define IO_POOL_MAX (256u << 20)

/* What an operation came back with. */
struct io_result {
	/* >= 0: the result of the like-named call (bytes, descriptor, poll mask); < 0: negative errno. */
	int res;
	/* true: the operation stays armed and will report again (multishot). */
	bool more;
	/* Receive only: the bytes, now owned by the callback; NULL at end of stream and on error. */
	struct chunk *chunk;
};

/* One operation; embed it in the owner. io_op_init() it once; reusable whenever not in flight. */
struct io_op {
	/* Called for every completion; may start operations, may free the owner when nothing else of it is in
	 * flight. */
	void (*done)(struct io_op *op, const struct io_result *result);
	/* Ring-internal: a gathered send's iovecs, or the chunk lent to a receive, until it completes. */
	void *scratch;
	/* true between submission and the last completion. Read only. */
	bool in_flight;
	/* true once io_cancel() was called in this flight. Read only. */
	bool is_cancelled;
	/* Ring-internal: what the operation holds (enum io_kind). */
	uint8_t kind;
	/* Ring-internal: bytes that a quiet send handed over. */
	uint32_t quiet_len;
	/* Ring-internal: the next quiet send whose end is not known yet. */
	struct io_op *quiet_next;
};

/* When in a turn a deferred task runs; lower ones first, until none is left. */
enum io_phase {
	IO_PHASE_WORK, /* reactions: stream events, pumps, wake-ups */
	IO_PHASE_LINK, /* HTTP/2 and TLS output of links */
	IO_PHASE_SOCK, /* socket queues: the one send per turn */
	IO_PHASE_CNT,
};

/* Work deferred to later in the same turn; embed it in the owner. */
struct io_task {
	/* What to do; may defer again (a later phase or the same), may free the owner. */
	void (*run)(struct io_task *task);
	/* Ring-internal: place in the phase's queue; NULL pointers = not queued. */
	struct list node;
};

/* How to make a ring. */
struct io_opts {
	/* true: behave as on Linux 6.1 even if the kernel has more (CULVERT_IO_BASELINE=6.1). */
	bool baseline61;
	/* Ceiling of all chunks' payload together, bytes; 0 = IO_POOL_MAX. */
	size_t pool_max;
};

/* What the ring found at start; for the log. */
struct io_features {
	bool no_sqarray;    /* IORING_SETUP_NO_SQARRAY is in use (Linux 6.6) */
	bool registered_fd; /* the ring's own descriptor is registered */
	bool restricted;    /* opcodes, flags and register calls are restricted */
};

/*
 * Makes the ring (single issuer, deferred task work), restricts it to what this
 * file uses, enables it. The calling thread is the only one that may use it.
 * On failure returns a negative errno and `err` names the reason in words that
 * tell the operator what to change: the sysctl kernel.io_uring_disabled, the
 * seccomp profile of the container, or the limit of locked memory.
 */
int io_new(const struct io_opts *opts, struct io **ret_io, struct err *err);

/*
 * Calls `on_idle` about a second after the last completion, when no socket is
 * read: the moment to give memory back. Once for each burst of activity.
 */
void io_on_idle(struct io *io, void (*on_idle)(void *ctx), void *ctx);

/*
 * Frees the ring, its buffers and its pool. NULL is fine. Operations still in flight are dropped without a
 * callback; chunks that are still out leak, so at the end of a process only.
 */
void io_free(struct io *io);

/* What the kernel gave us. */
const struct io_features *io_features(const struct io *io);

/* The process's pool of chunks; lives as long as the ring. */
struct chunk_pool *io_pool(struct io *io);

/* Monotonic milliseconds, as of the start of this turn. */
uint64_t io_now_ms(const struct io *io);

/* Operations in flight; 0 = the ring has nothing to wait for. */
size_t io_in_flight(const struct io *io);

/*
 * One turn: runs deferred work, submits what was prepared and waits for at least one
 * completion or timer (`may_wait` false: does not wait), collects completions,
 * dispatches them, runs due timers and deferred work. Returns 0, or a negative
 * errno when the ring itself is broken. With no timer set and nothing to do it
 * sleeps without a tick.
 */
int io_turn(struct io *io, bool may_wait);

/* Turns until io_stop(). Returns 0, or what io_turn() returned. */
int io_run(struct io *io);

/* Makes io_run() return at the end of the current turn. */
void io_stop(struct io *io);

/* Starts (or restarts) `timer` to fire once `delay_ms` from now. Prepare it with timer_init() first. */
void io_timer_start(struct io *io, struct timer *timer, uint64_t delay_ms);

/* Stops `timer`; fine when it is not running. */
void io_timer_stop(struct io *io, struct timer *timer);

/* Prepares a task that calls `run`. */
void io_task_init(struct io_task *task, void (*run)(struct io_task *task));

/* Queues `task` for `phase` of this turn (or of the next one, when called outside of a turn); a no-op when it
 * is queued already. */
void io_defer(struct io *io, struct io_task *task, enum io_phase phase);

/* Takes `task` out of its queue; fine when it is not queued. */
void io_undefer(struct io_task *task);

/* Sets the callback of an operation that is not in flight. */
void io_op_init(struct io_op *op, void (*done)(struct io_op *op, const struct io_result *result));

/*
 * Polls `fd` for `events` (POLLIN, POLLOUT). Multishot reports every wake-up until cancelled and may
 * end by itself (more == false without a cancel): start it again. For descriptors
 * that somebody else reads: IPC channels, signalfd, pipes, netlink. The caller
 * must read until EAGAIN: a wake-up is edge-like.
 */
void io_poll(struct io *io, struct io_op *op, int fd, unsigned events, bool is_multishot);

/* Accepts on listening socket `fd` until cancelled; result.res = descriptor (close-on-exec) or negative
 * errno. */
void io_accept(struct io *io, struct io_op *op, int fd);

/* Connects `fd`; `addr` must stay valid until the operation completes. */
void io_connect(struct io *io, struct io_op *op, int fd, const struct sockaddr *addr, socklen_t addr_len);

/*
 * Receives small pieces until cancelled, each in a chunk of up to CHUNK_SMALL bytes that is lent only
 * when bytes have arrived. It may end at any time by itself (more == false): start it again; at once, unless
 * it ended with -ENOBUFS (all buffers are handed out): then by io_wait_buffers().
 */
void io_recv_small(struct io *io, struct io_op *op, int fd);

/* Receives once, up to IO_BULK_LEN bytes, in a chunk lent when bytes have arrived. -ENOBUFS as above. */
void io_recv_bulk(struct io *io, struct io_op *op, int fd);

/*
 * After -ENOBUFS: runs `task` (which starts the receive again) as soon as there are buffers, at the earliest
 * later in this turn; when all memory is out (IO_POOL_MAX) that is when some of it has come back.
 * io_undefer() gives up waiting.
 */
void io_wait_buffers(struct io *io, struct io_task *task);

/*
 * Sends the first up to IO_IOV_MAX pieces of `chain` in one call; the result is the number of bytes taken,
 * possibly fewer, or -EAGAIN when there is no room: io_writable() tells when there is. The bytes must stay
 * untouched until the operation completes (appending to the chain is fine); the caller consumes them. Returns
 * how many bytes were handed over.
 */
size_t io_send(struct io *io, struct io_op *op, int fd, const struct chain *chain);

/*
 * The same for a send for whose success nobody waits: that alone does not end a turn's wait, it is told at
 * the start of the next turn that something else brings. Anything but success is told at once. One system
 * call then sends and waits.
 */
size_t io_send_quiet(struct io *io, struct io_op *op, int fd, const struct chain *chain);

/* Somebody waits after all for what `op` sends: this turn ends without waiting. A no-op unless `op` is a
 * quiet send in flight. */
void io_expect(struct io *io, const struct io_op *op);

/*
 * Reports once when `fd` takes bytes again or is broken (result > 0), whether or not the peer has ended its
 * direction: there the ring's own poll would report at once, again and again, and a waiting send would end up
 * on a worker thread.
 */
void io_writable(struct io *io, struct io_op *op, int fd);

/* Closes `fd` with this turn's submission; nobody is told. The caller forgets the number. */
void io_close(struct io *io, int fd);

/* Asks the kernel to cancel `op`, which still completes. A no-op when it is not in flight. */
void io_cancel(struct io *io, struct io_op *op);

#endif
