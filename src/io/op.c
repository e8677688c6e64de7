/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Operations: preparing each kind, and handing its completion to the owner
 * with the chunk that the kernel filled. Failures are results like any other.
 */
#include <errno.h>
#include <poll.h>

#include "base/mem.h"
#include "io/internal.h"

void io_op_init(struct io_op *op, void (*done)(struct io_op *op, const struct io_result *result))
{
	*op = (struct io_op){.done = done};
}

struct io_uring_sqe *io_sqe(struct io *io)
{
	struct io_uring_sqe *sqe;
	while (!(sqe = io_uring_get_sqe(&io->ring))) {
		int r = io_uring_submit(&io->ring);
		/* The kernel wants completions taken first; they are dispatched with this turn's others. */
		if (r < 0)
			io_reap(io);
		ASSERT(r >= 0 || r == -EBUSY || r == -EAGAIN || r == -EINTR);
	}
	return sqe;
}

/* An entry for `op`, which is in flight from here; the caller prepares it before anything else. */
static struct io_uring_sqe *begin(struct io *io, struct io_op *op, enum io_kind kind)
{
	ASSERT(!op->in_flight);
	op->in_flight = true;
	op->is_cancelled = false;
	op->kind = (uint8_t)kind;
	op->scratch = NULL;
	io->in_flight++;
	return io_sqe(io);
}

void io_poll(struct io *io, struct io_op *op, int fd, unsigned events, bool is_multishot)
{
	struct io_uring_sqe *sqe = begin(io, op, IO_KIND_PLAIN);
	if (is_multishot)
		io_uring_prep_poll_multishot(sqe, fd, events);
	else
		io_uring_prep_poll_add(sqe, fd, events);
	io_uring_sqe_set_data(sqe, op);
}

void io_accept(struct io *io, struct io_op *op, int fd)
{
	struct io_uring_sqe *sqe = begin(io, op, IO_KIND_PLAIN);
	io_uring_prep_multishot_accept(sqe, fd, NULL, NULL, SOCK_CLOEXEC);
	io_uring_sqe_set_data(sqe, op);
}

void io_connect(struct io *io, struct io_op *op, int fd, const struct sockaddr *addr, socklen_t addr_len)
{
	struct io_uring_sqe *sqe = begin(io, op, IO_KIND_PLAIN);
	io_uring_prep_connect(sqe, fd, addr, addr_len);
	io_uring_sqe_set_data(sqe, op);
}

/* Without provided buffers (no locked memory left) a receive brings a chunk of its own. */
static void recv_own(struct io *io, struct io_op *op, int fd, size_t want)
{
	struct chunk *c = chunk_new(&io->pool, want);
	struct io_uring_sqe *sqe = begin(io, op, IO_KIND_OWN);
	op->scratch = c;
	/* No memory: a receive from an empty group ends with -ENOBUFS, which owners can wait out. */
	if (c)
		io_uring_prep_recv(sqe, fd, chunk_bytes(c), want, 0);
	else
		io_uring_prep_recv(sqe, fd, NULL, 0, 0);
	if (!c) {
		sqe->flags |= IOSQE_BUFFER_SELECT;
		sqe->buf_group = PBUF_GROUP_CNT;
	}
	io_uring_sqe_set_data(sqe, op);
}

void io_recv_small(struct io *io, struct io_op *op, int fd)
{
	struct pbuf *pbuf = &io->pbufs[PBUF_SMALL];
	if (pbuf_start(io, pbuf) < 0) {
		recv_own(io, op, fd, CHUNK_SMALL);
		return;
	}
	struct io_uring_sqe *sqe = begin(io, op, IO_KIND_SMALL);
	pbuf->armed++;
	io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = PBUF_SMALL;
	io_uring_sqe_set_data(sqe, op);
}

void io_recv_bulk(struct io *io, struct io_op *op, int fd)
{
	struct pbuf *pbuf = &io->pbufs[PBUF_BULK];
	if (pbuf_start(io, pbuf) < 0) {
		recv_own(io, op, fd, CHUNK_LARGE);
		return;
	}
	struct io_uring_sqe *sqe = begin(io, op, IO_KIND_BULK);
	pbuf->armed++;
	io_uring_prep_recv(sqe, fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = PBUF_BULK;
	io_uring_sqe_set_data(sqe, op);
}

static struct gather *gather_get(struct io *io)
{
	struct gather *g = io->idle_gathers;
	if (!g)
		return mem_alloc(sizeof(*g));
	io->idle_gathers = g->next;
	io->idle_gather_cnt--;
	return g;
}

static void gather_put(struct io *io, struct gather *g)
{
	if (!g)
		return;
	if (io->idle_gather_cnt >= GATHER_IDLE_MAX) {
		mem_free(g);
		return;
	}
	g->next = io->idle_gathers;
	io->idle_gathers = g;
	io->idle_gather_cnt++;
}

static size_t start_send(struct io *io, struct io_op *op, int fd, const struct chain *chain, bool is_quiet)
{
	const struct chunk *first = chain->head;
	size_t len = first->len;
	/* To take less than everything is a failure then, which the kernel does tell. */
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (is_quiet ? MSG_WAITALL : 0);
	struct gather *g = first->next ? gather_get(io) : NULL;
	struct io_uring_sqe *sqe = begin(io, op, is_quiet ? IO_KIND_QUIET : IO_KIND_SEND);
	op->scratch = g;
	if (g) {
		g->msg = (struct msghdr){.msg_iov = g->iov};
		g->msg.msg_iovlen = chain_peek(chain, g->iov, IO_IOV_MAX, SIZE_MAX, &len);
		io_uring_prep_sendmsg(sqe, fd, &g->msg, (unsigned)flags);
	} else {
		/* One piece, or no memory for the list: the first piece goes alone. */
		io_uring_prep_send(sqe, fd, chunk_bytes(first), first->len, flags);
	}
	if (is_quiet)
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	io_uring_sqe_set_data(sqe, op);
	return len;
}

size_t io_send(struct io *io, struct io_op *op, int fd, const struct chain *chain)
{
	return start_send(io, op, fd, chain, false);
}

size_t io_send_quiet(struct io *io, struct io_op *op, int fd, const struct chain *chain)
{
	size_t len = start_send(io, op, fd, chain, true);
	op->quiet_len = (uint32_t)len;
	op->quiet_next = io->quiets;
	io->quiets = op;
	/* What it sends is kept until the next turn: trimming makes sure that there is one. */
	io_touch(io);
	return len;
}

void io_expect(struct io *io, const struct io_op *op)
{
	if (op->in_flight && op->kind == IO_KIND_QUIET)
		io->is_expected = true;
}

void io_settle_quiets(struct io *io)
{
	/* Of these the kernel has told: they go the way of all completions. */
	for (size_t i = 0; i < io->reaped_cnt; i++) {
		struct io_op *op = io->reaped[i].op;
		if (op && op->kind == IO_KIND_QUIET)
			op->kind = IO_KIND_SEND;
	}
	/* Silence means success only of what was submitted, and while no completion is held back. Sends never
	 * wait (MSG_DONTWAIT), so that what was submitted is done. */
	bool is_sure = io_uring_sq_ready(&io->ring) == 0 && !io_uring_cq_has_overflow(&io->ring) &&
	               io_uring_cq_ready(&io->ring) == 0;
	struct io_op *op = io->quiets;
	io->quiets = NULL;
	while (op) {
		struct io_op *next = op->quiet_next;
		if (op->kind == IO_KIND_QUIET && is_sure) {
			io_dispatch(io, &(struct reaped){.op = op, .res = (int32_t)op->quiet_len});
		} else if (op->kind == IO_KIND_QUIET) {
			op->quiet_next = io->quiets;
			io->quiets = op;
			io->is_expected = true;
		}
		op = next;
	}
}

void io_writable(struct io *io, struct io_op *op, int fd)
{
	struct io_uring_sqe *sqe = begin(io, op, IO_KIND_WRITABLE);
	op->scratch = (void *)(intptr_t)fd;
	io_uring_prep_poll_add(sqe, fd, POLLOUT);
	io_uring_sqe_set_data(sqe, op);
}

void io_close(struct io *io, int fd)
{
	struct io_uring_sqe *sqe = io_sqe(io);
	io_uring_prep_close(sqe, fd);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	io_uring_sqe_set_data(sqe, NULL);
}

void io_cancel(struct io *io, struct io_op *op)
{
	if (!op->in_flight || op->is_cancelled)
		return;
	op->is_cancelled = true;
	if (op->kind == IO_KIND_QUIET) {
		io_expect(io, op);
		return;
	}
	if (op->kind == IO_KIND_PATIENT) {
		writable_cancel(io, op);
		return;
	}
	struct io_uring_sqe *sqe = io_sqe(io);
	io_uring_prep_cancel(sqe, op, 0);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	io_uring_sqe_set_data(sqe, NULL);
}

/* The chunk that came with a completion, if any. */
static struct chunk *take_chunk(struct io *io, struct io_op *op, const struct reaped *reaped)
{
	if (op->kind == IO_KIND_SMALL || op->kind == IO_KIND_BULK)
		return pbuf_take(&io->pbufs[op->kind == IO_KIND_SMALL ? PBUF_SMALL : PBUF_BULK],
		        reaped->flags, reaped->res);
	if (op->kind != IO_KIND_OWN)
		return NULL;
	struct chunk *c = op->scratch;
	op->scratch = NULL;
	if (reaped->res <= 0) {
		chunk_free(c);
		return NULL;
	}
	c->len = (uint32_t)reaped->res;
	return c;
}

/* Gives up what a finished operation held. */
static void end(struct io *io, struct io_op *op)
{
	op->in_flight = false;
	io->in_flight--;
	if (op->kind == IO_KIND_SMALL || op->kind == IO_KIND_BULK) {
		/* With the last one gone the buffers are given back if no other comes soon: on_trim(). */
		io->pbufs[op->kind == IO_KIND_SMALL ? PBUF_SMALL : PBUF_BULK].armed--;
	} else if (op->kind == IO_KIND_SEND || op->kind == IO_KIND_QUIET) {
		gather_put(io, op->scratch);
	}
	op->scratch = NULL;
}

void io_dispatch(struct io *io, const struct reaped *reaped)
{
	struct io_op *op = reaped->op;
	/* Closes and cancels have no owner: a failed one changes nothing. */
	if (!op)
		return;
	if (op == &io->epoll_op) {
		writable_dispatch(io);
		return;
	}
	if (op->kind == IO_KIND_WRITABLE && writable_wait_on(io, op, reaped->res))
		return;
	struct io_result result = {.res = reaped->res, .more = reaped->flags & IORING_CQE_F_MORE};
	result.chunk = take_chunk(io, op, reaped);
	if (!result.more)
		end(io, op);
	op->done(op, &result);
}
