/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A channel: packets in and out of a SEQPACKET socket, permits before
 * decoding, a bounded queue behind a socket that is full. Knows no handler and
 * no event loop.
 */
#include "ipc/chan.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"

/* Unknown records skipped in one chan_recv, so that a peer cannot hold us in it. */
#define SKIP_MAX 16

/* A packet in the queue. */
struct packet {
	struct list node;
	int fd; /* -1 or owned */
	size_t len;
	uint8_t bytes[];
};

void chan_init(struct chan *chan, int fd, enum ipc_role self, enum ipc_role peer, bool expects_setup,
        struct chan_scratch *scratch)
{
	*chan = (struct chan){.fd = fd, .scratch = scratch};
	guard_init(&chan->guard, self, peer, expects_setup);
	list_init(&chan->queue);
}

static void drop_first(struct chan *chan)
{
	struct packet *p = list_entry(list_pop(&chan->queue), struct packet, node);
	chan->queue_cnt--;
	chan->queue_bytes -= p->len;
	fd_close(&p->fd);
	mem_free(p);
}

void chan_done(struct chan *chan)
{
	while (chan->queue_cnt)
		drop_first(chan);
	fd_close(&chan->fd);
}

/* Takes over pass_fd on success only. */
static int enqueue(struct chan *chan, const uint8_t *bytes, size_t len, int pass_fd)
{
	if (chan->queue_cnt >= CHAN_QUEUE_MAX || chan->queue_bytes + len > CHAN_QUEUE_BYTES_MAX)
		return -ENOBUFS;
	struct packet *p = mem_alloc(sizeof(*p) + len);
	if (!p)
		return -ENOMEM;
	p->fd = pass_fd;
	p->len = len;
	memcpy(p->bytes, bytes, len);
	list_add_tail(&chan->queue, &p->node);
	chan->queue_cnt++;
	chan->queue_bytes += len;
	return 0;
}

/* Sends or queues what stands in the scratch memory. Takes over pass_fd. */
static int send_scratch(struct chan *chan, size_t len, int pass_fd, struct err *err)
{
	const uint8_t *bytes = chan->scratch->bytes;
	struct ipc_peek peek;
	int rc = ipc_peek(bytes, len, &peek, err);
	if (rc == 0)
		rc = guard_check_send(&chan->guard, &peek, pass_fd >= 0, err);
	if (rc == 0 && (peek.type == IPC_HELLO) == chan->hello_sent)
		rc = err_set(err, ERR_BAD_PHASE, "%s: a channel begins with one Hello",
		        ipc_type_str((enum ipc_type)peek.type));
	if (rc < 0) {
		fd_close(&pass_fd);
		return rc;
	}
	rc = chan->queue_cnt ? -EAGAIN : fd_send(chan->fd, bytes, len, pass_fd);
	if (rc == -EAGAIN) {
		rc = enqueue(chan, bytes, len, pass_fd);
		if (rc == 0)
			pass_fd = -1;
	}
	fd_close(&pass_fd);
	if (rc < 0)
		return err_sys(err, rc, "sending to the %s", ipc_role_str(chan->guard.peer));
	chan->hello_sent = true;
	return 0;
}

int chan_send(struct chan *chan, const struct ipc_record *rec, int pass_fd, struct err *err)
{
	size_t len;
	int rc = ipc_encode(rec, chan->scratch->bytes, sizeof(chan->scratch->bytes), &len, err);
	if (rc < 0) {
		fd_close(&pass_fd);
		return rc;
	}
	return send_scratch(chan, len, pass_fd, err);
}

int chan_send_pages(struct chan *chan, const struct ipc_record *whole, size_t *ret_skipped, struct err *err)
{
	struct ipc_pager pager = {0};
	size_t skipped = 0;
	while (!pager.done) {
		size_t before = pager.next;
		size_t len;
		int rc = ipc_encode_page(
		        whole, &pager, chan->scratch->bytes, sizeof(chan->scratch->bytes), &len, err);
		if (rc < 0 && pager.next != before) {
			skipped++;
			continue;
		}
		if (rc == 0)
			rc = send_scratch(chan, len, -1, err);
		if (rc < 0)
			return rc;
	}
	if (ret_skipped)
		*ret_skipped = skipped;
	return 0;
}

int chan_send_hello(struct chan *chan, const struct ipc_hello *hello, int pass_fd, struct err *err)
{
	struct ipc_record rec = {.type = IPC_HELLO, .hello = *hello};
	rec.hello.release = CULVERT_VERSION;
	rec.hello.proto_min = IPC_PROTO_MIN;
	rec.hello.proto_max = IPC_PROTO_MAX;
	rec.hello.features = 0;
	rec.hello.role = chan->guard.self;
	return chan_send(chan, &rec, pass_fd, err);
}

int chan_flush(struct chan *chan)
{
	while (chan->queue_cnt) {
		struct packet *p = list_entry(chan->queue.next, struct packet, node);
		int rc = fd_send(chan->fd, p->bytes, p->len, p->fd);
		if (rc == -EAGAIN)
			return 0;
		if (rc < 0)
			return rc;
		drop_first(chan);
	}
	return 0;
}

/* One packet into the scratch memory. */
static int receive(struct chan *chan, size_t *ret_len, int *ret_fd, struct err *err)
{
	const char *peer = ipc_role_str(chan->guard.peer);
	int rc = fd_recv(chan->fd, chan->scratch->bytes, sizeof(chan->scratch->bytes), ret_len, ret_fd);
	if (rc == -EAGAIN)
		return rc;
	if (rc == -EMSGSIZE)
		return err_set(err, ERR_TOO_LARGE, "record of the %s is above %zu bytes", peer,
		        sizeof(chan->scratch->bytes));
	if (rc == -EPROTO)
		return err_set(err, ERR_BAD_FD, "record of the %s came with more than one descriptor", peer);
	if (rc == -ECONNRESET || (rc == 0 && *ret_len == 0)) {
		if (rc == 0)
			fd_close(ret_fd);
		return err_set(err, -EPIPE, "the %s has closed the channel", peer);
	}
	return rc < 0 ? err_sys(err, rc, "receiving from the %s", peer) : 0;
}

static int decode(struct chan *chan, size_t len, struct chan_msg *ret_msg, struct err *err)
{
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	if (!arena)
		return err_set(
		        err, -ENOMEM, "no memory for a record of the %s", ipc_role_str(chan->guard.peer));
	int rc = ipc_decode(chan->scratch->bytes, len, arena, &ret_msg->rec, err);
	if (rc == 0 && ret_msg->rec.type == IPC_HELLO) {
		rc = guard_greeted(&chan->guard, &ret_msg->rec.hello, &chan->proto, err);
		chan->features = ret_msg->rec.hello.features;
	}
	if (rc < 0)
		arena_unref(arena);
	else
		ret_msg->arena = arena;
	return rc;
}

/* An ask that we don't know gets its answer; anything else unknown is dropped. */
static int answer_unknown(struct chan *chan, const struct ipc_peek *peek, struct err *err)
{
	struct ipc_record rec = {.id = peek->id, .type = IPC_UNSUPPORTED, .unsupported.type = peek->type};
	return peek->id ? chan_send(chan, &rec, -1, err) : 0;
}

int chan_recv(struct chan *chan, struct chan_msg *ret_msg, struct err *err)
{
	for (int skipped = 0; skipped < SKIP_MAX; skipped++) {
		struct chan_msg msg = {.fd = -1};
		struct ipc_peek peek;
		size_t len;
		int rc = receive(chan, &len, &msg.fd, err);
		if (rc < 0)
			return rc;
		rc = ipc_peek(chan->scratch->bytes, len, &peek, err);
		if (rc == 0)
			rc = guard_check(&chan->guard, &peek, msg.fd >= 0, err);
		if (rc == ERR_UNSUPPORTED) {
			fd_close(&msg.fd);
			rc = answer_unknown(chan, &peek, err);
			if (rc < 0)
				return rc;
			continue;
		}
		if (rc == 0)
			rc = decode(chan, len, &msg, err);
		if (rc < 0) {
			fd_close(&msg.fd);
			return rc;
		}
		*ret_msg = msg;
		return 0;
	}
	return err_set(err, ERR_TOO_MANY, "the %s sends nothing but unknown records",
	        ipc_role_str(chan->guard.peer));
}

void chan_msg_done(struct chan_msg *msg)
{
	fd_close(&msg->fd);
	arena_unref(msg->arena);
	msg->arena = NULL;
}
