/* SPDX-License-Identifier: GPL-2.0-only */
/* Who is connected and who is told. Must not know packets: that is zds_conn.c. */
#include "zds_server.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "zds_conn.h"

#define TARGET "cni_agent::zds"

int zds_server_adopt(struct zds_server *server, int fd)
{
	struct zds_conn *conn;
	if (server->conn_cnt >= ZDS_CONN_MAX) {
		fd_close(&fd);
		return -EMFILE;
	}
	int rc = zds_conn_new(server, fd, &conn);
	if (rc < 0)
		return rc;
	/* The newest from now on, before its hello (reference node-agent.md 1.4). */
	list_add_tail(&server->conns, &conn->node);
	server->conn_cnt++;
	log_msg(server->log, LOG_DEBUG, TARGET, "connection %u accepted", conn->number);
	return 0;
}

static void on_connection(struct watch *watch, uint32_t events)
{
	struct zds_server *server = list_entry(watch, struct zds_server, watch);
	int fd = -1;
	int rc = unix_socket_accept(&server->socket, &fd);
	if (rc == 0)
		rc = zds_server_adopt(server, fd);
	if (rc == -EAGAIN)
		return;
	if (rc < 0)
		log_msg(server->log, LOG_WARN, TARGET, "a connection was not accepted: %s", err_str(rc));
	loop_del(server->loop, &server->watch);
	loop_after(server->loop, &server->pace, ZDS_ACCEPT_MS);
}

static void on_pace(struct timer *timer, uint64_t now)
{
	struct zds_server *server = list_entry(timer, struct zds_server, pace);
	/* Out of memory in the kernel may pass. */
	if (loop_add(server->loop, &server->watch, server->socket.fd, EPOLLIN) < 0)
		loop_after(server->loop, &server->pace, ZDS_ACCEPT_MS);
}

void zds_server_init(struct zds_server *server, struct loop *loop, struct log *log, struct zds_source source)
{
	*server = (struct zds_server){.loop = loop,
	        .log = log,
	        .source = source,
	        .socket = {.fd = -1},
	        .watch = {.fd = -1, .ready = on_connection}};
	list_init(&server->conns);
	timer_init(&server->pace, on_pace);
}

int zds_server_listen(struct zds_server *server, const char *path, struct err *err)
{
	return unix_socket_open(&server->socket, path, SOCK_SEQPACKET, err);
}

int zds_server_accept(struct zds_server *server)
{
	return loop_add(server->loop, &server->watch, server->socket.fd, EPOLLIN);
}

void zds_server_done(struct zds_server *server)
{
	loop_del(server->loop, &server->watch);
	loop_cancel(server->loop, &server->pace);
	unix_socket_close(&server->socket);
	while (!list_empty(&server->conns))
		zds_conn_close(list_entry(server->conns.next, struct zds_conn, node), NULL);
}

int zds_server_add(struct zds_server *server, struct zds_call *call, struct offer *offer)
{
	if (list_empty(&server->conns))
		return -ENOTCONN;
	int rc = zds_conn_push(list_entry(server->conns.prev, struct zds_conn, node), ZDS_ADD, offer, call);
	if (rc == 0)
		*call = (struct zds_call){.open = 1, .done = call->done};
	return rc;
}

int zds_server_del(struct zds_server *server, struct zds_call *call, struct offer *offer)
{
	int failed = 0;
	*call = (struct zds_call){.done = call->done};
	/* Nothing is answered before the loop turns, so the count may grow while we walk. */
	list_for_each(it, &server->conns)
	{
		int rc = zds_conn_push(list_entry(it, struct zds_conn, node), ZDS_DEL, offer, call);
		if (rc == 0)
			call->open++;
		else
			failed = rc;
	}
	if (call->open == 0)
		return failed;
	if (failed < 0) {
		call->open++;
		zds_call_answered(call, err_str(failed));
	}
	return 1;
}
