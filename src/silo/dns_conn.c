/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DNS over TCP (RFC 1035 4.2.2): one query after the other on a connection,
 * each with its length before it. A connection that says nothing, or does not
 * read, is closed after a while. Knows nothing of what is asked.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "silo/dns_int.h"

/* A length and the largest message. */
#define FRAME_MAX (2 + DNS_MESSAGE_MAX)

struct dns_conn {
	struct dns_watch watch;
	struct list node; /* in dns.conns */
	struct dns *dns;
	struct buf in;      /* length and query, as far as they are here */
	struct buf out;     /* length and answer that the client has not read */
	struct timer timer; /* idle, or slow */
	bool is_busy;       /* a query is being answered */
};

struct dns_conn *dns_conn_of(struct list *node)
{
	return list_entry(node, struct dns_conn, node);
}

static void conn_gone(struct dns_watch *watch)
{
	struct dns_conn *conn = list_entry(watch, struct dns_conn, watch);
	buf_done(&conn->in);
	buf_done(&conn->out);
	mem_free(conn);
}

void dns_conn_close(struct dns_conn *conn)
{
	struct dns *dns = conn->dns;
	list_for_each_safe(it, &dns->requests)
	{
		struct dns_request *request = list_entry(it, struct dns_request, node);
		if (request->conn == conn)
			dns_request_free(request);
	}
	io_timer_stop(dns->silo->io, &conn->timer);
	list_del(&conn->node);
	dns->conn_cnt--;
	dns_watch_close(&conn->watch);
}

static void on_timer(struct timer *timer, uint64_t now)
{
	(void)now;
	dns_conn_close(list_entry(timer, struct dns_conn, timer));
}

/* Bytes of the query that are still to come; 0 = complete. */
static size_t missing(const struct buf *in)
{
	if (in->len < 2)
		return 2 - in->len;
	return 2u + (size_t)(in->data[0] << 8 | in->data[1]) - in->len;
}

/* Waits for the next query, whose time begins now. */
static void listen_on(struct dns_conn *conn)
{
	buf_done(&conn->in);
	buf_done(&conn->out);
	conn->is_busy = false;
	io_timer_start(conn->dns->silo->io, &conn->timer, DNS_CONN_IDLE_MS);
	dns_watch_wait(&conn->watch, POLLIN);
}

static void readable(struct dns_conn *conn)
{
	size_t want;
	while ((want = missing(&conn->in)) > 0) {
		if (buf_reserve(&conn->in, want) < 0) {
			dns_conn_close(conn);
			return;
		}
		ssize_t n = recv(conn->watch.fd, conn->in.data + conn->in.len, want, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			dns_watch_wait(&conn->watch, POLLIN);
			return;
		}
		if (n <= 0) {
			dns_conn_close(conn);
			return;
		}
		buf_commit(&conn->in, (size_t)n);
	}
	io_timer_stop(conn->dns->silo->io, &conn->timer);
	conn->is_busy = true;
	dns_request_take(conn->dns, conn->in.data + 2, conn->in.len - 2, NULL, NULL, conn);
}

static void writable(struct dns_conn *conn)
{
	while (conn->out.len > 0) {
		ssize_t n = send(conn->watch.fd, conn->out.data, conn->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			dns_watch_wait(&conn->watch, POLLOUT);
			return;
		}
		if (n < 0) {
			dns_conn_close(conn);
			return;
		}
		buf_consume(&conn->out, (size_t)n);
	}
	listen_on(conn);
}

static void conn_ready(struct dns_watch *watch)
{
	struct dns_conn *conn = list_entry(watch, struct dns_conn, watch);
	if (conn->is_busy)
		writable(conn);
	else
		readable(conn);
}

void dns_conn_answer(struct dns_conn *conn, const struct buf *out)
{
	if (out->len > 0) {
		buf_add_be16(&conn->out, (uint16_t)out->len);
		if (buf_add(&conn->out, out->data, out->len) < 0) {
			dns_conn_close(conn);
			return;
		}
	}
	/* One limit for the whole answer: a reader that takes a byte now and then is cut as well. */
	io_timer_start(conn->dns->silo->io, &conn->timer, DNS_CONN_IDLE_MS);
	writable(conn);
}

void dns_conn_accept(struct dns *dns, int fd)
{
	struct dns_conn *conn = dns->conn_cnt < DNS_CONNS_MAX ? mem_zalloc(1, sizeof(*conn)) : NULL;
	if (!conn) {
		fd_close(&fd);
		return;
	}
	conn->dns = dns;
	buf_init(&conn->in, FRAME_MAX);
	buf_init(&conn->out, FRAME_MAX);
	timer_init(&conn->timer, on_timer);
	list_init(&conn->node);
	list_add_tail(&dns->conns, &conn->node);
	dns->conn_cnt++;
	dns_watch_init(&conn->watch, dns->silo->io, fd, conn_ready, conn_gone);
	listen_on(conn);
}
