/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event loop for the programs without a ring (first process, warden, node
 * agent): epoll, a timer wheel, signals as a descriptor. Callbacks are never
 * re-entrant; a watch may be removed and freed from any callback.
 */
#ifndef CULVERT_BASE_LOOP_H
#define CULVERT_BASE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/wheel.h"

/* Events taken from the kernel at once. */
#define LOOP_BATCH 32

/* Interest in a descriptor, embedded in its owner. */
struct watch {
	int fd;          /* borrowed; -1 = not watched */
	uint32_t events; /* EPOLLIN, EPOLLOUT ... (level-triggered) */
	/* Called with the events that happened; EPOLLERR and EPOLLHUP come unasked. */
	void (*ready)(struct watch *watch, uint32_t events);
};

/* The loop. now may be read, the rest is private. */
struct loop {
	int epoll_fd;
	bool stopped;
	uint64_t now; /* clock_ms() of this round */
	struct wheel wheel;
	struct epoll_event batch[LOOP_BATCH]; /* events being dispatched */
	int batch_cnt;
};

/* -errno. */
int loop_init(struct loop *loop);

/* Closes the epoll descriptor; watches and timers must be gone or never be used again. */
void loop_done(struct loop *loop);

/* Starts watching fd. watch->ready must be set. -errno. */
int loop_add(struct loop *loop, struct watch *watch, int fd, uint32_t events);

/* Changes the events of interest. -errno. */
int loop_mod(struct loop *loop, struct watch *watch, uint32_t events);

/* Stops watching (before the fd is closed); events already fetched are dropped. Harmless when not watched. */
void loop_del(struct loop *loop, struct watch *watch);

/* Sets a timer delay_ms from now. */
void loop_after(struct loop *loop, struct timer *timer, uint64_t delay_ms);

/* Unsets a timer. */
void loop_cancel(struct loop *loop, struct timer *timer);

/* Waits once, at most max_wait_ms (-1 = as long as it takes), and dispatches. 0 or -errno. */
int loop_step(struct loop *loop, int max_wait_ms);

/* Steps until loop_stop. 0 or -errno. */
int loop_run(struct loop *loop);

/* Makes loop_run return after the present round. */
void loop_stop(struct loop *loop);

/* Blocks the signals and gives a non-blocking signalfd for them (caller closes). -errno. */
int loop_signal_fd(const sigset_t *signals, int *ret_fd);

/* Next signal number from a signalfd, 0 when there is none; *ret_pid (may be NULL) its sender. -errno. */
int loop_signal_next(int fd, pid_t *ret_pid);

#endif
