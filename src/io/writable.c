/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting until a socket takes bytes. The ring's poll always reports a peer's
 * end of direction (POLLRDHUP), also when asked for POLLOUT only; a socket in
 * that state would report at once for ever. Such sockets wait in one epoll
 * set instead, which can leave POLLRDHUP out, and the ring polls the set.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include "io/internal.h"

/* Sockets taken out of the set by one call. */
#define EVENT_CNT 32

static void arm(struct io *io)
{
	struct io_uring_sqe *sqe = io_sqe(io);
	io->epoll_op.in_flight = true;
	io_uring_prep_poll_add(sqe, io->epoll_fd, POLLIN);
	io_uring_sqe_set_data(sqe, &io->epoll_op);
}

static void leave(struct io *io, struct io_op *op)
{
	(void)epoll_ctl(io->epoll_fd, EPOLL_CTL_DEL, (int)(intptr_t)op->scratch, NULL);
	io->patient_cnt--;
	op->kind = IO_KIND_PLAIN;
	op->scratch = NULL;
}

void writable_dispatch(struct io *io)
{
	struct epoll_event events[EVENT_CNT];
	io->epoll_op.in_flight = false;
	/* More than fit are reported by the next poll. */
	int cnt = epoll_wait(io->epoll_fd, events, EVENT_CNT, 0);
	for (int i = 0; i < cnt; i++) {
		struct io_op *op = events[i].data.ptr;
		leave(io, op);
		io_post(io, op, POLLOUT);
	}
	if (io->patient_cnt)
		arm(io);
}

int writable_open(struct io *io)
{
	io->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return io->epoll_fd < 0 ? -errno : 0;
}

bool writable_wait_on(struct io *io, struct io_op *op, int res)
{
	if (res <= 0 || res & (POLLOUT | POLLERR | POLLHUP | POLLNVAL) || op->is_cancelled)
		return false;
	struct epoll_event event = {.events = EPOLLOUT, .data.ptr = op};
	/* No memory to wait: it looks writable, the send fails, and we are here again in the next turn. */
	if (epoll_ctl(io->epoll_fd, EPOLL_CTL_ADD, (int)(intptr_t)op->scratch, &event) < 0)
		return false;
	op->kind = IO_KIND_PATIENT;
	io->patient_cnt++;
	if (!io->epoll_op.in_flight)
		arm(io);
	return true;
}

void writable_cancel(struct io *io, struct io_op *op)
{
	leave(io, op);
	io_post(io, op, -ECANCELED);
}
