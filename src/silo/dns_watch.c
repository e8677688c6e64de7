/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waiting for sockets; see dns_watch.h. */
#include "silo/dns_watch.h"

#include "base/fd.h"

static void done(struct io_op *op, const struct io_result *result)
{
	struct dns_watch *watch = list_entry(op, struct dns_watch, op);
	if (result->more)
		return;
	if (watch->is_closed)
		watch->gone(watch);
	else
		watch->ready(watch);
}

void dns_watch_init(struct dns_watch *watch, struct io *io, int fd, void (*ready)(struct dns_watch *watch),
        void (*gone)(struct dns_watch *watch))
{
	*watch = (struct dns_watch){.io = io, .fd = fd, .ready = ready, .gone = gone};
	io_op_init(&watch->op, done);
}

void dns_watch_wait(struct dns_watch *watch, unsigned events)
{
	io_poll(watch->io, &watch->op, watch->fd, events, false);
}

void dns_watch_close(struct dns_watch *watch)
{
	if (watch->is_closed)
		return;
	watch->is_closed = true;
	fd_close(&watch->fd);
	if (watch->op.in_flight)
		io_cancel(watch->io, &watch->op);
	else
		watch->gone(watch);
}
