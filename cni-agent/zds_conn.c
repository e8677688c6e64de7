/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state machine of a ZDS connection. Everything received is looked at
 * before anything is sent, so that an answer can never be taken for that of
 * the next request. Must not know what an offer is for.
 */
#include "zds_conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/mem.h"

#define TARGET "cni_agent::zds"

static const char *item_uid(const struct zds_item *item)
{
	return item->offer ? item->offer->spec->uid : "";
}

static void item_free(struct zds_item *item)
{
	offer_unref(item->offer);
	mem_free(item);
}

/* Tells whoever waits for the item, and frees it. */
static void item_end(struct zds_server *server, struct zds_item *item, const char *error)
{
	if (item->call)
		zds_call_answered(item->call, error);
	else if (item->type == ZDS_ADD)
		server->source.answered(server->source.ctx, item->offer, error);
	item_free(item);
}

void zds_call_answered(struct zds_call *call, const char *error)
{
	if (error && call->error[0] == 0)
		snprintf(call->error, sizeof(call->error), "%s", error);
	if (--call->open > 0)
		return;
	/* The owner may start the next call with the same struct. */
	char text[sizeof(call->error)];
	snprintf(text, sizeof(text), "%s", call->error);
	call->done(call, text[0] ? text : NULL);
}

static void end_all(struct zds_server *server, struct list *items, const char *why)
{
	for (struct list *it = list_pop(items); it; it = list_pop(items)) {
		struct zds_item *item = list_entry(it, struct zds_item, node);
		/* An unsent part of a snapshot says nothing about its pod: the next connection gets it anew.
		 */
		if (why && item->call)
			item_end(server, item, why);
		else
			item_free(item);
	}
}

void zds_conn_close(struct zds_conn *conn, const char *why)
{
	struct zds_server *server = conn->server;
	struct list items = LIST_INIT(items);
	loop_del(server->loop, &conn->watch);
	loop_cancel(server->loop, &conn->deadline);
	loop_cancel(server->loop, &conn->kick);
	fd_close(&conn->fd);
	list_del(&conn->node);
	server->conn_cnt--;
	if (why)
		log_msg(server->log, LOG_INFO, TARGET, "connection %u ended: %s", conn->number, why);
	if (conn->current)
		list_add_tail(&items, &conn->current->node);
	list_move_all(&items, &conn->snapshot);
	list_move_all(&items, &conn->updates);
	mem_free(conn);
	/* Last, because whoever waited may at once use the next connection. */
	end_all(server, &items, why ? "connection closed before the request was acknowledged" : NULL);
}

/* --- sending -------------------------------------------------------------- */

static void set_phase(struct zds_conn *conn, enum zds_phase phase)
{
	conn->phase = phase;
	if (phase == ZDS_PHASE_IDLE)
		loop_cancel(conn->server->loop, &conn->deadline);
	else
		loop_after(conn->server->loop, &conn->deadline, ZDS_DEADLINE_MS);
	(void)loop_mod(
	        conn->server->loop, &conn->watch, phase == ZDS_PHASE_WRITE ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int encode(const struct zds_item *item, uint8_t *packet, size_t *ret_len, struct err *err)
{
	struct zds_request req = {.type = item->type, .uid = item_uid(item)};
	if (item->type == ZDS_ADD) {
		req.has_info = true;
		req.info = item->offer->spec->info;
	}
	return zds_encode_request(&req, packet, ZDS_PACKET_MAX, ret_len, err);
}

/* Sends the current item. Returns whether the connection is still there. */
static bool send_current(struct zds_conn *conn)
{
	uint8_t packet[ZDS_PACKET_MAX];
	struct err err = {0};
	size_t len = 0;
	int rc = encode(conn->current, packet, &len, &err);
	if (rc == 0)
		rc = zds_send(conn->fd, packet, len,
		        conn->current->type == ZDS_ADD ? conn->current->offer->netns_fd : -1);
	if (rc == -EAGAIN) {
		if (conn->phase != ZDS_PHASE_WRITE)
			set_phase(conn, ZDS_PHASE_WRITE);
		return true;
	}
	if (rc < 0) {
		zds_conn_close(conn, err.text[0] ? err.text : err_str(rc));
		return false;
	}
	set_phase(conn, ZDS_PHASE_ANSWER);
	return true;
}

/* Sends what waits, if nothing is on its way. */
static void send_next(struct zds_conn *conn)
{
	if (conn->phase != ZDS_PHASE_IDLE)
		return;
	struct list *it = list_pop(&conn->snapshot);
	if (!it) {
		it = list_pop(&conn->updates);
		if (!it)
			return;
		conn->update_cnt--;
	}
	conn->current = list_entry(it, struct zds_item, node);
	(void)send_current(conn);
}

static void on_kick(struct timer *timer, uint64_t now)
{
	send_next(list_entry(timer, struct zds_conn, kick));
}

static struct zds_item *item_new(enum zds_request_type type, struct offer *offer, struct zds_call *call)
{
	struct zds_item *item = mem_zalloc(1, sizeof(*item));
	if (item)
		*item = (struct zds_item){
		        .type = type, .offer = offer ? offer_ref(offer) : NULL, .call = call};
	return item;
}

int zds_conn_push(
        struct zds_conn *conn, enum zds_request_type type, struct offer *offer, struct zds_call *call)
{
	if (conn->update_cnt >= ZDS_QUEUE_MAX)
		return -ENOBUFS;
	struct zds_item *item = item_new(type, offer, call);
	if (!item)
		return -ENOMEM;
	list_add_tail(&conn->updates, &item->node);
	conn->update_cnt++;
	loop_after(conn->server->loop, &conn->kick, 0);
	return 0;
}

/* --- receiving ------------------------------------------------------------ */

static int queue_snapshot(struct zds_conn *conn, struct offer **offers, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		struct zds_item *item =
		        item_new(offers[i]->netns_fd >= 0 ? ZDS_ADD : ZDS_KEEP, offers[i], NULL);
		if (!item)
			return -ENOMEM;
		list_add_tail(&conn->snapshot, &item->node);
	}
	struct zds_item *sent = item_new(ZDS_SNAPSHOT_SENT, NULL, NULL);
	if (!sent)
		return -ENOMEM;
	list_add_tail(&conn->snapshot, &sent->node);
	return 0;
}

/* The connection has introduced itself: it is told of every pod. */
static const char *take_hello(struct zds_conn *conn, const uint8_t *packet, size_t len)
{
	struct zds_server *server = conn->server;
	enum zds_version version;
	if (zds_decode_hello(packet, len, &version, NULL) < 0)
		return "the first packet is not a hello";
	struct offer **offers = NULL;
	size_t cnt = 0;
	int rc = server->source.snapshot(server->source.ctx, &offers, &cnt);
	if (rc == 0)
		rc = queue_snapshot(conn, offers, cnt);
	for (size_t i = 0; i < cnt; i++)
		offer_unref(offers[i]);
	mem_free(offers);
	if (rc < 0)
		return "out of memory for a snapshot";
	log_msg(server->log, LOG_INFO, TARGET,
	        "connection %u: hello of version %d, sending a snapshot of %zu pods", conn->number,
	        (int)version, cnt);
	set_phase(conn, ZDS_PHASE_IDLE);
	return NULL;
}

static void log_answer(const struct zds_conn *conn, const struct zds_item *item, const char *error)
{
	static const char *const names[] = {[ZDS_ADD] = "add",
	        [ZDS_DEL] = "del",
	        [ZDS_SNAPSHOT_SENT] = "snapshot sent",
	        [ZDS_KEEP] = "keep"};
	struct log_line line;
	if (!log_begin(&line, conn->server->log, error ? LOG_WARN : LOG_DEBUG, TARGET,
	            error ? "refused" : "acknowledged"))
		return;
	log_u64(&line, "connection", conn->number);
	log_str(&line, "request", names[item->type]);
	log_str(&line, "uid", item_uid(item));
	log_str(&line, "error", error);
	log_end(&line);
}

static const char *take_answer(struct zds_conn *conn, const uint8_t *packet, size_t len)
{
	char text[sizeof(((struct zds_call *)NULL)->error)];
	const char *ack = NULL;
	struct err err = {0};
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	int rc = arena ? zds_decode_response(packet, len, arena, &ack, &err) : -ENOMEM;
	if (rc < 0) {
		arena_unref(arena);
		return "the answer is not understood";
	}
	struct zds_item *item = conn->current;
	const char *error = ack[0] ? ack : NULL;
	log_answer(conn, item, error);
	/* What is refused to be deleted is gone all the same (1.7). */
	if (error && item->type == ZDS_DEL)
		error = NULL;
	if (error) {
		snprintf(text, sizeof(text), "got ack error: %s", error);
		error = text;
	}
	if (item->call)
		item->call->is_refused = error != NULL;
	conn->current = NULL;
	set_phase(conn, ZDS_PHASE_IDLE);
	item_end(conn->server, item, error);
	arena_unref(arena);
	return NULL;
}

/* Takes one packet; returns why the connection has to end, or NULL. */
static const char *take_packet(struct zds_conn *conn, const uint8_t *packet, size_t len, int pass_fd)
{
	if (pass_fd >= 0) {
		fd_close(&pass_fd);
		return "a descriptor came with a packet";
	}
	if (len == 0)
		return "closed by the peer";
	switch (conn->phase) {
	case ZDS_PHASE_HELLO:
		return take_hello(conn, packet, len);
	case ZDS_PHASE_ANSWER:
		return take_answer(conn, packet, len);
	default:
		return "a packet came that was not asked for";
	}
}

static void on_ready(struct watch *watch, uint32_t events)
{
	struct zds_conn *conn = list_entry(watch, struct zds_conn, watch);
	for (;;) {
		uint8_t packet[ZDS_PACKET_MAX];
		struct err err = {0};
		size_t len = 0;
		int pass_fd = -1;
		int rc = zds_recv(conn->fd, packet, &len, &pass_fd, &err);
		if (rc == -EAGAIN)
			break;
		const char *why = rc < 0 ? err.text : take_packet(conn, packet, len, pass_fd);
		if (why) {
			zds_conn_close(conn, why);
			return;
		}
	}
	if (conn->phase == ZDS_PHASE_WRITE && !send_current(conn))
		return;
	send_next(conn);
}

static void on_deadline(struct timer *timer, uint64_t now)
{
	struct zds_conn *conn = list_entry(timer, struct zds_conn, deadline);
	static const char *const why[] = {
	        [ZDS_PHASE_HELLO] = "no hello came in time",
	        [ZDS_PHASE_IDLE] = "",
	        [ZDS_PHASE_WRITE] = "a request could not be written in time",
	        [ZDS_PHASE_ANSWER] = "no acknowledgement came in time",
	};
	zds_conn_close(conn, why[conn->phase]);
}

int zds_conn_new(struct zds_server *server, int fd, struct zds_conn **ret_conn)
{
	struct zds_conn *conn = mem_zalloc(1, sizeof(*conn));
	if (!conn) {
		fd_close(&fd);
		return -ENOMEM;
	}
	*conn = (struct zds_conn){.server = server,
	        .fd = fd,
	        .number = (unsigned)fd,
	        .phase = ZDS_PHASE_HELLO,
	        .watch = {.fd = -1, .ready = on_ready}};
	list_init(&conn->node);
	list_init(&conn->snapshot);
	list_init(&conn->updates);
	timer_init(&conn->deadline, on_deadline);
	timer_init(&conn->kick, on_kick);
	int rc = loop_add(server->loop, &conn->watch, fd, EPOLLIN);
	if (rc < 0) {
		fd_close(&conn->fd);
		mem_free(conn);
		return rc;
	}
	loop_after(server->loop, &conn->deadline, ZDS_DEADLINE_MS);
	*ret_conn = conn;
	return 0;
}
