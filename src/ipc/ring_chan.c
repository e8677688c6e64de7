/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Channels on the ring; see ring_chan.h. Freed only when neither poll is in flight any more. */
#include "ipc/ring_chan.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"

struct ring_chan {
	struct chan chan;
	struct io *io;
	const struct ring_chan_events *events; /* NULL once the owner has let go */
	void *ctx;
	struct io_op in;       /* multishot poll for records */
	struct io_op out;      /* single poll for room */
	struct io_task read;   /* reads until the socket is empty */
	struct io_task report; /* tells on_closed */
	int closed_code;       /* != 0: reported or about to be */
	char closed_text[ERR_TEXT_MAX];
};

/* Frees when nothing of it is in the kernel's hands. */
static void free_if_idle(struct ring_chan *rc)
{
	if (!rc->events && !rc->in.in_flight && !rc->out.in_flight)
		mem_free(rc);
}

static void close_with(struct ring_chan *rc, int code, const char *text)
{
	if (rc->closed_code)
		return;
	rc->closed_code = code;
	snprintf(rc->closed_text, sizeof(rc->closed_text), "%s", text && text[0] ? text : err_str(code));
	io_undefer(&rc->read);
	io_cancel(rc->io, &rc->in);
	io_cancel(rc->io, &rc->out);
	io_defer(rc->io, &rc->report, IO_PHASE_WORK);
}

static void report_closed(struct io_task *task)
{
	struct ring_chan *rc = list_entry(task, struct ring_chan, report);
	rc->events->on_closed(rc->ctx, rc->closed_code, rc->closed_text);
}

static void start_poll_in(struct ring_chan *rc)
{
	io_poll(rc->io, &rc->in, rc->chan.fd, POLLIN, true);
}

static void on_in(struct io_op *op, const struct io_result *result)
{
	struct ring_chan *rc = list_entry(op, struct ring_chan, in);
	if (!rc->events) {
		free_if_idle(rc);
		return;
	}
	if (rc->closed_code)
		return;
	if (result->res < 0 && result->res != -ECANCELED) {
		close_with(rc, result->res, NULL);
		return;
	}
	if (!result->more)
		start_poll_in(rc);
	io_defer(rc->io, &rc->read, IO_PHASE_WORK);
}

/* Takes records until the socket is empty or the turn's share is used. */
static void read_records(struct io_task *task)
{
	struct ring_chan *rc = list_entry(task, struct ring_chan, read);
	for (unsigned i = 0; i < RING_CHAN_TURN_MAX; i++) {
		struct chan_msg msg;
		struct err err = {0};
		int r = chan_recv(&rc->chan, &msg, &err);
		if (r == -EAGAIN)
			return;
		if (r == 0) {
			r = rc->events->on_record(rc->ctx, &msg, &err);
			chan_msg_done(&msg);
			/* The owner may have freed us from within. */
			if (!rc->events || rc->closed_code)
				return;
		}
		if (r < 0) {
			close_with(rc, r, err.text);
			return;
		}
	}
	io_defer(rc->io, &rc->read, IO_PHASE_WORK);
}

static void watch_room(struct ring_chan *rc)
{
	if (chan_wants_write(&rc->chan) && !rc->out.in_flight)
		io_poll(rc->io, &rc->out, rc->chan.fd, POLLOUT, false);
}

static void on_out(struct io_op *op, const struct io_result *result)
{
	struct ring_chan *rc = list_entry(op, struct ring_chan, out);
	if (!rc->events) {
		free_if_idle(rc);
		return;
	}
	if (rc->closed_code)
		return;
	int r = result->res < 0 ? result->res : chan_flush(&rc->chan);
	if (r < 0)
		close_with(rc, r, NULL);
	else
		watch_room(rc);
}

int ring_chan_new(struct io *io, int fd, enum ipc_role self, enum ipc_role peer, bool expects_setup,
        struct chan_scratch *scratch, const struct ring_chan_events *events, void *ctx,
        struct ring_chan **ret_rc)
{
	struct ring_chan *rc = mem_zalloc(1, sizeof(*rc));
	if (!rc)
		return -ENOMEM;
	chan_init(&rc->chan, fd, self, peer, expects_setup, scratch);
	rc->io = io;
	rc->events = events;
	rc->ctx = ctx;
	io_task_init(&rc->read, read_records);
	io_task_init(&rc->report, report_closed);
	io_op_init(&rc->in, on_in);
	io_op_init(&rc->out, on_out);
	start_poll_in(rc);
	/* What came before the poll was armed raises no edge. */
	io_defer(io, &rc->read, IO_PHASE_WORK);
	*ret_rc = rc;
	return 0;
}

void ring_chan_free(struct ring_chan *rc)
{
	if (!rc)
		return;
	ASSERT(rc->events);
	rc->events = NULL;
	io_undefer(&rc->read);
	io_undefer(&rc->report);
	io_cancel(rc->io, &rc->in);
	io_cancel(rc->io, &rc->out);
	chan_done(&rc->chan);
	free_if_idle(rc);
}

/* What a failed send means for the channel: a dead peer ends it, our own mistake does not. */
static int sent(struct ring_chan *rc, int r)
{
	if (r == -ENOBUFS || r == -EPIPE || r == -ECONNRESET)
		close_with(rc, r, NULL);
	else
		watch_room(rc);
	return r;
}

int ring_chan_send(struct ring_chan *rc, const struct ipc_record *rec, int pass_fd, struct err *err)
{
	return sent(rc, chan_send(&rc->chan, rec, pass_fd, err));
}

int ring_chan_send_pages(struct ring_chan *rc, const struct ipc_record *whole, struct err *err)
{
	return sent(rc, chan_send_pages(&rc->chan, whole, NULL, err));
}

int ring_chan_send_hello(struct ring_chan *rc, const struct ipc_hello *hello, int pass_fd, struct err *err)
{
	return sent(rc, chan_send_hello(&rc->chan, hello, pass_fd, err));
}

int ring_chan_fd(const struct ring_chan *rc)
{
	return rc->chan.fd;
}

size_t ring_chan_queued(const struct ring_chan *rc)
{
	return rc->chan.queue_cnt;
}
