/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multishot accept. Options are set once, on the listening socket, from which
 * accepted ones have them (tcp(7)). An accept that fails for want of descriptors or memory
 * would fail again at once, because the connection stays in the backlog: the
 * listener pauses instead of spinning. Knows nothing of the connections.
 */
#include "conn/listen.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"

struct listener {
	struct io *io;
	int fd;
	const struct listen_events *events; /* NULL = stopped */
	void *ctx;
	struct io_op accept;
	struct io_task reap; /* frees a stopped listener outside of its own callbacks */
	struct timer pause;  /* armed while not accepting */
	uint32_t pause_ms;   /* length of the next pause */
	int code;            /* why connections are dropped, 0 = they are not */
};

static bool is_lasting(int code)
{
	return code == -EMFILE || code == -ENFILE || code == -ENOBUFS || code == -ENOMEM;
}

/* A connection that is dropped for its options still was an accept: no pause. */
static void take(struct listener *l, int fd)
{
	l->pause_ms = LISTEN_PAUSE_MIN_MS;
	if (l->code < 0) {
		io_close(l->io, fd);
		if (l->events->on_error)
			l->events->on_error(l->ctx, l->code);
		return;
	}
	l->events->on_accept(l->ctx, fd);
}

static void fail(struct listener *l, int code)
{
	if (is_lasting(code)) {
		io_timer_start(l->io, &l->pause, l->pause_ms);
		l->pause_ms = l->pause_ms * 2 > LISTEN_PAUSE_MAX_MS ? LISTEN_PAUSE_MAX_MS : l->pause_ms * 2;
		io_cancel(l->io, &l->accept);
	}
	/* The peer gave up before we came (accept(2)): nothing of ours went wrong. */
	if (code != -ECONNABORTED && code != -EINTR && code != -EAGAIN && code != -ECANCELED &&
	        l->events->on_error)
		l->events->on_error(l->ctx, code);
}

static void on_accept(struct io_op *op, const struct io_result *result)
{
	struct listener *l = list_entry(op, struct listener, accept);
	if (!l->events) {
		if (result->res >= 0)
			io_close(l->io, result->res);
	} else if (result->res >= 0) {
		take(l, result->res);
	} else {
		fail(l, result->res);
	}
	if (result->more)
		return;
	if (!l->events)
		io_defer(l->io, &l->reap, IO_PHASE_SOCK);
	else if (!timer_is_set(&l->pause))
		io_accept(l->io, &l->accept, l->fd);
}

static void on_pause(struct timer *timer, uint64_t now)
{
	(void)now;
	struct listener *l = list_entry(timer, struct listener, pause);
	if (!l->accept.in_flight)
		io_accept(l->io, &l->accept, l->fd);
}

static void on_reap(struct io_task *task)
{
	struct listener *l = list_entry(task, struct listener, reap);
	if (!l->accept.in_flight)
		mem_free(l);
}

int listen_start(struct io *io, int fd, const struct listen_opts *opts, const struct listen_events *events,
        void *ctx, struct listener **ret_listener)
{
	struct listener *l = mem_zalloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct listener){.io = io, .fd = fd, .events = events, .ctx = ctx};
	l->pause_ms = LISTEN_PAUSE_MIN_MS;
	l->code = opts->nodelay ? sock_set_nodelay(fd) : 0;
	(void)sock_set_keepalive(fd, &opts->keepalive);
	(void)sock_set_oob_inline(fd);
	if (opts->is_local)
		sock_set_unpaced(fd);
	io_op_init(&l->accept, on_accept);
	io_task_init(&l->reap, on_reap);
	timer_init(&l->pause, on_pause);
	io_accept(io, &l->accept, fd);
	*ret_listener = l;
	return 0;
}

int listen_fd(const struct listener *listener)
{
	return listener->fd;
}

void listen_stop(struct listener *listener)
{
	if (!listener)
		return;
	struct listener *l = listener;
	l->events = NULL;
	io_timer_stop(l->io, &l->pause);
	io_cancel(l->io, &l->accept);
	/* The accept in flight holds the socket open until it is cancelled; shutdown refuses connections from
	 * now on. */
	(void)shutdown(l->fd, SHUT_RDWR);
	io_close(l->io, l->fd);
	l->fd = -1;
	io_defer(l->io, &l->reap, IO_PHASE_SOCK);
}
