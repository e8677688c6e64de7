/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dialling: a socket with its options, the preserved source, the connect and
 * its deadline. Every end is told from the loop, never from dial_start().
 */
#include "conn/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"

/* linux/in6.h; the C library has them only in newer releases. */
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

/* How many ports of ours are tried: an application may listen on one, hardly on the next one as well. */
#define BIND_TRIES 3

struct dial {
	struct io *io;
	struct dial_opts opts;
	int fd;
	bool has_own_port;                /* fd is bound to one of opts.ports */
	int code;                         /* how it ended, once `end` is queued or the connect is cancelled */
	const struct dial_events *events; /* NULL = cancelled by the owner */
	void *ctx;
	struct io_op connect;
	struct io_task end;
	struct timer deadline;
	struct sockaddr_storage dst;
};

void dial_ports_init(struct dial_ports *ports)
{
	ports->next = (uint16_t)rand_below(DIAL_PORT_CNT);
	ports->step = (uint16_t)(rand_below(DIAL_PORT_CNT) | 1);
}

static bool has_source(const struct dial_opts *opts)
{
	return opts->src.family && !ip_eq(&opts->src, &opts->dst.ip);
}

static void warn(struct dial *d, const char *step)
{
	if (d->events->on_warning)
		d->events->on_warning(d->ctx, step, -errno);
}

static int bind_source(struct dial *d, uint16_t port)
{
	struct sockaddr_storage sa;
	struct addr addr = {.ip = d->opts.src, .port = port};
	socklen_t len = addr_to_sockaddr(&addr, &sa);
	return bind(d->fd, (struct sockaddr *)&sa, len);
}

static bool bind_own_port(struct dial *d)
{
	struct dial_ports *ports = d->opts.ports;
	int on = 1;
	/* Connections to elsewhere, and those just closed, may have the same port: only the whole tuple must
	 * be ours alone, and that is the connect's to find out. */
	(void)setsockopt(d->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	for (int i = 0; i < BIND_TRIES; i++) {
		uint16_t port = (uint16_t)(DIAL_PORT_MIN + ports->next % DIAL_PORT_CNT);
		ports->next = (uint16_t)(ports->next + ports->step);
		if (bind_source(d, port) == 0)
			return true;
		if (errno != EADDRINUSE)
			break;
	}
	return false;
}

static int bind_any_port(struct dial *d)
{
	int on = 1;
	/* The connect chooses the port then, when the destination is known: a bind would look for one that
	 * nobody uses at all, milliseconds long where many connections have just been closed. */
	(void)setsockopt(d->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	return bind_source(d, 0);
}

/* Takes the source's place (ip(7)); a failure is only told, the connect goes ahead (dataplane 2.7). */
static void preserve_source(struct dial *d)
{
	bool is_v4 = d->opts.src.family == 4;
	int level = is_v4 ? IPPROTO_IP : IPPROTO_IPV6;
	int on = 1;
	if (setsockopt(d->fd, level, is_v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT, &on, sizeof(on)) < 0)
		warn(d, "set transparent");
	else if (setsockopt(d->fd, level, is_v4 ? IP_FREEBIND : IPV6_FREEBIND, &on, sizeof(on)) < 0)
		warn(d, "set freebind");
	else if (d->opts.ports && bind_own_port(d))
		d->has_own_port = true;
	else if (bind_any_port(d) < 0)
		warn(d, "bind source");
}

static int open_socket(struct dial *d)
{
	const struct dial_opts *opts = &d->opts;
	uint8_t family = has_source(opts) ? opts->src.family : opts->dst.ip.family;
	d->fd = socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		return -errno;
	if (opts->mark && setsockopt(d->fd, SOL_SOCKET, SO_MARK, &opts->mark, sizeof(opts->mark)) < 0)
		return -errno;
	int r = sock_set_nodelay(d->fd);
	if (r < 0)
		return r;
	(void)sock_set_keepalive(d->fd, &opts->keepalive);
	(void)sock_set_oob_inline(d->fd);
	if (opts->is_local)
		sock_set_unpaced(d->fd);
	if (has_source(opts))
		preserve_source(d);
	return 0;
}

static int start_connect(struct dial *d)
{
	int r = open_socket(d);
	if (r < 0)
		return r;
	socklen_t len = addr_to_sockaddr(&d->opts.dst, &d->dst);
	io_connect(d->io, &d->connect, d->fd, (struct sockaddr *)&d->dst, len);
	return 0;
}

/* The once more of a dial whose port has a connection to this destination already (one in TIME_WAIT does not
 * count where there are timestamps): a bound socket keeps its port, so another socket, with a port that the
 * kernel knows to be free. */
static int connect_from_any_port(struct dial *d)
{
	io_close(d->io, d->fd);
	d->fd = -1;
	d->has_own_port = false;
	d->opts.ports = NULL;
	return start_connect(d);
}

static void destroy(struct dial *d)
{
	io_timer_stop(d->io, &d->deadline);
	io_undefer(&d->end);
	if (d->fd >= 0)
		io_close(d->io, d->fd);
	mem_free(d);
}

static void on_end(struct io_task *task)
{
	struct dial *d = list_entry(task, struct dial, end);
	const struct dial_events *events = d->events;
	void *ctx = d->ctx;
	int code = d->code;
	struct stream *stream = NULL;
	if (d->connect.in_flight)
		return;
	if (events && code == 0) {
		code = sock_new(d->io, d->fd, &stream);
		if (code == 0)
			d->fd = -1;
	}
	destroy(d);
	if (events)
		events->on_done(ctx, code, stream);
}

static void end(struct dial *d, int code)
{
	d->code = code;
	io_defer(d->io, &d->end, IO_PHASE_WORK);
}

static void on_connect(struct io_op *op, const struct io_result *result)
{
	struct dial *d = list_entry(op, struct dial, connect);
	if (result->res == -EADDRNOTAVAIL && d->has_own_port && !d->code) {
		int r = connect_from_any_port(d);
		if (r < 0)
			end(d, r);
		return;
	}
	/* A connection that came just before its cancellation is too late. */
	end(d, d->code ? d->code : result->res < 0 ? result->res : 0);
}

static void on_deadline(struct timer *timer, uint64_t now)
{
	(void)now;
	struct dial *d = list_entry(timer, struct dial, deadline);
	d->code = -ETIMEDOUT;
	io_cancel(d->io, &d->connect);
}

int dial_start(struct io *io, const struct dial_opts *opts, const struct dial_events *events, void *ctx,
        struct dial **ret_dial)
{
	struct dial *d = mem_zalloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	*d = (struct dial){.io = io, .opts = *opts, .fd = -1, .events = events, .ctx = ctx};
	io_op_init(&d->connect, on_connect);
	io_task_init(&d->end, on_end);
	timer_init(&d->deadline, on_deadline);
	*ret_dial = d;
	int r = start_connect(d);
	if (r < 0) {
		end(d, r);
		return 0;
	}
	io_timer_start(io, &d->deadline, opts->timeout_ms ? opts->timeout_ms : DIAL_TIMEOUT_MS);
	return 0;
}

void dial_cancel(struct dial *dial)
{
	if (!dial)
		return;
	dial->events = NULL;
	dial->code = -ECANCELED;
	io_timer_stop(dial->io, &dial->deadline);
	io_cancel(dial->io, &dial->connect);
	io_defer(dial->io, &dial->end, IO_PHASE_WORK);
}
