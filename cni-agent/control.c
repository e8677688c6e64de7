/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One request per connection. A client that goes away while it waits loses
 * the answer, nothing else: what it asked for goes on.
 */
#include "control.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "request.h"

#define TARGET "cni_agent::control"

enum control_phase { CONTROL_READING, CONTROL_WAITING, CONTROL_WRITING };

struct control_conn {
	struct list node; /* in control.conns */
	struct control *control;
	int fd; /* owned */
	enum control_phase phase;
	struct watch watch;
	struct timer deadline; /* of the phase */
	char *uid;             /* whom it waits for; owned */
	struct buf in;         /* the request so far */
	struct buf out;        /* what is left of the answer */
	struct pod_waiter waiter;
};

static void resume(struct control *control);

static void conn_free(struct control_conn *conn)
{
	struct control *control = conn->control;
	loop_del(control->loop, &conn->watch);
	loop_cancel(control->loop, &conn->deadline);
	list_del(&conn->waiter.node);
	list_del(&conn->node);
	fd_close(&conn->fd);
	buf_done(&conn->in);
	buf_done(&conn->out);
	mem_free(conn->uid);
	mem_free(conn);
	control->conn_cnt--;
	resume(control);
}

/* Writes what the socket takes; frees the connection when all is out or the client is gone. */
static void write_answer(struct control_conn *conn)
{
	while (conn->out.len > 0) {
		ssize_t n = send(conn->fd, conn->out.data, conn->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break;
		buf_consume(&conn->out, (size_t)n);
	}
	conn_free(conn);
}

/* The answer is in conn->out. The first write is at once, so that an agent that ends still answers. */
static void start_answer(struct control_conn *conn)
{
	conn->phase = CONTROL_WRITING;
	loop_after(conn->control->loop, &conn->deadline, CONTROL_DEADLINE_MS);
	(void)loop_mod(conn->control->loop, &conn->watch, EPOLLOUT);
	write_answer(conn);
}

static void on_outcome(struct pod_waiter *waiter, enum pod_outcome outcome, const char *error)
{
	struct control_conn *conn = list_entry(waiter, struct control_conn, waiter);
	answer_write(outcome, error, &conn->out);
	start_answer(conn);
}

static void list_pods(struct control_conn *conn)
{
	struct json json;
	json_init(&json, &conn->out, true);
	pods_write(conn->control->pods, &json);
	buf_add_str(&conn->out, "\n");
	if (conn->out.err) {
		int rc = conn->out.err;
		buf_clear(&conn->out);
		answer_write(POD_REFUSED, err_str(rc), &conn->out);
	}
	start_answer(conn);
}

static void serve(struct control_conn *conn)
{
	struct pods *pods = conn->control->pods;
	struct request req;
	struct err err = {0};
	conn->phase = CONTROL_WAITING;
	loop_after(conn->control->loop, &conn->deadline, CONTROL_WAIT_MS);
	/* A hang-up is reported unasked; the shut side of the client would be reported all the time. */
	(void)loop_mod(conn->control->loop, &conn->watch, 0);
	if (request_parse(conn->in.data ? (const char *)conn->in.data : "", conn->in.len, &req, &err) < 0) {
		on_outcome(&conn->waiter, POD_REFUSED, err.text);
		return;
	}
	conn->uid = mem_strdup(req.kind == REQUEST_ADD   ? req.spec->uid
	                       : req.kind == REQUEST_DEL ? req.uid
	                                                 : "");
	if (!conn->uid) {
		request_done(&req);
		on_outcome(&conn->waiter, POD_REFUSED, err_str(-ENOMEM));
		return;
	}
	switch (req.kind) {
	case REQUEST_ADD:
		pods_add(pods, req.spec, &conn->waiter);
		break;
	case REQUEST_DEL:
		pods_del(pods, req.uid, &conn->waiter);
		break;
	case REQUEST_LIST:
		list_pods(conn);
		break;
	}
	request_done(&req);
}

static void read_request(struct control_conn *conn)
{
	for (;;) {
		char bytes[4096];
		ssize_t n = recv(conn->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			conn_free(conn);
			return;
		}
		if (n == 0) {
			serve(conn);
			return;
		}
		if (buf_add(&conn->in, bytes, (size_t)n) < 0) {
			on_outcome(&conn->waiter, POD_REFUSED, "the request is too long");
			return;
		}
	}
}

static void on_ready(struct watch *watch, uint32_t events)
{
	struct control_conn *conn = list_entry(watch, struct control_conn, watch);
	switch (conn->phase) {
	case CONTROL_READING:
		read_request(conn);
		break;
	case CONTROL_WAITING:
		conn_free(conn);
		break;
	case CONTROL_WRITING:
		write_answer(conn);
		break;
	}
}

static void on_deadline(struct timer *timer, uint64_t now)
{
	struct control_conn *conn = list_entry(timer, struct control_conn, deadline);
	if (conn->phase != CONTROL_WAITING) {
		conn_free(conn);
		return;
	}
	list_del(&conn->waiter.node);
	on_outcome(&conn->waiter, POD_WAITS, pods_trouble(conn->control->pods, conn->uid));
}

static int conn_new(struct control *control, int fd)
{
	uid_t uid;
	int rc = fd_peer(fd, NULL, &uid);
	struct control_conn *conn = NULL;
	if (rc == 0 && uid != geteuid() && uid != 0)
		rc = -EPERM;
	if (rc == 0 && !(conn = mem_zalloc(1, sizeof(*conn))))
		rc = -ENOMEM;
	if (rc < 0) {
		fd_close(&fd);
		return rc;
	}
	*conn = (struct control_conn){.control = control,
	        .fd = fd,
	        .watch = {.fd = -1, .ready = on_ready},
	        .waiter = {.done = on_outcome}};
	list_init(&conn->node);
	list_init(&conn->waiter.node);
	timer_init(&conn->deadline, on_deadline);
	buf_init(&conn->in, REQUEST_MAX);
	buf_init(&conn->out, ANSWER_MAX);
	list_add_tail(&control->conns, &conn->node);
	control->conn_cnt++;
	rc = loop_add(control->loop, &conn->watch, fd, EPOLLIN);
	if (rc < 0)
		conn_free(conn);
	else
		loop_after(control->loop, &conn->deadline, CONTROL_DEADLINE_MS);
	return rc;
}

static void resume(struct control *control)
{
	if (!control->is_paused || control->conn_cnt >= CONTROL_CONN_MAX || timer_is_set(&control->pace))
		return;
	control->is_paused = loop_add(control->loop, &control->watch, control->socket.fd, EPOLLIN) < 0;
	if (control->is_paused)
		loop_after(control->loop, &control->pace, CONTROL_PACE_MS);
}

static void on_connection(struct watch *watch, uint32_t events)
{
	struct control *control = list_entry(watch, struct control, watch);
	int fd = -1;
	int rc = unix_socket_accept(&control->socket, &fd);
	if (rc == 0)
		rc = conn_new(control, fd);
	bool has_failed = rc < 0 && rc != -EAGAIN;
	if (has_failed) {
		log_msg(control->log, LOG_WARN, TARGET, "a client was not accepted: %s", err_str(rc));
		loop_after(control->loop, &control->pace, CONTROL_PACE_MS);
	}
	if (has_failed || control->conn_cnt >= CONTROL_CONN_MAX) {
		loop_del(control->loop, &control->watch);
		control->is_paused = true;
	}
}

static void on_pace(struct timer *timer, uint64_t now)
{
	resume(list_entry(timer, struct control, pace));
}

void control_init(struct control *control, struct loop *loop, struct log *log, struct pods *pods)
{
	*control = (struct control){.loop = loop,
	        .log = log,
	        .pods = pods,
	        .socket = {.fd = -1},
	        .watch = {.fd = -1, .ready = on_connection}};
	list_init(&control->conns);
	timer_init(&control->pace, on_pace);
}

int control_open(struct control *control, const char *path, struct err *err)
{
	int rc = unix_socket_open(&control->socket, path, SOCK_STREAM, err);
	if (rc < 0)
		return rc;
	rc = loop_add(control->loop, &control->watch, control->socket.fd, EPOLLIN);
	return rc < 0 ? err_sys(err, rc, "%s", path) : 0;
}

void control_done(struct control *control)
{
	loop_del(control->loop, &control->watch);
	loop_cancel(control->loop, &control->pace);
	control->is_paused = false;
	while (!list_empty(&control->conns))
		conn_free(list_entry(control->conns.next, struct control_conn, node));
	unix_socket_close(&control->socket);
}
