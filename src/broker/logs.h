/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one writer of stdout: the broker's own lines and those of all silos. A
 * slow reader of stdout never holds anybody up: lines wait in a bounded
 * queue, what does not fit is counted and reported.
 */
#ifndef CULVERT_BROKER_LOGS_H
#define CULVERT_BROKER_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/log.h"
#include "io/ring.h"

/* Bytes that wait for stdout; some 5,000 lines, a second of a busy node. */
#define LOGS_QUEUE_MAX (1u << 20)

/* The writer; embed it. Private. */
struct logs {
	struct io *io;
	struct log *log;   /* gives the reports their form; borrowed */
	int out_fd;        /* stdout, opened anew without waiting where it is a pipe; -1 = it cannot be */
	struct buf queue;  /* what stdout has not taken yet */
	struct io_op room; /* poll for room on stdout */
	uint64_t dropped;  /* lines lost since the last report */
};

/* A silo's pipe of log lines. */
struct log_pipe;

/* Prepares the writer. `log` (borrowed, may still be empty) writes into it and words its reports. */
void logs_init(struct logs *logs, struct io *io, struct log *log);

/* Writes what is left, waiting at most a second for a slow reader, and frees the queue. */
void logs_done(struct logs *logs);

/* Writes or queues whole lines. For struct log: ctx is the struct logs. */
void logs_write(void *ctx, const char *line, size_t len);

/* Forwards the lines of pipe `fd` until it ends. 0, or -ENOMEM (fd is closed). */
int log_pipe_new(struct logs *logs, int fd, struct log_pipe **ret_pipe);

/* Takes what is still in the pipe and closes it. NULL is fine. */
void log_pipe_free(struct log_pipe *pipe);

#endif
