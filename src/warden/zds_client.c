/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * I/O of ZDS. While an Add waits for its silo nothing is read, so that each
 * request meets its answer; the end of the connection is still seen. Must not
 * interpret requests: that is the session's.
 */
#include "warden/zds_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/rand.h"
#include "pb/zds.h"

#define TARGET "ztunnel::inpod::workloadmanager"

/* Spread of the dial's delays, percent, so that the daemons of a node do not dial in step. */
#define DIAL_JITTER 20

static void dial_later(struct zds_client *client, uint64_t delay_ms)
{
	if (client->is_open)
		loop_after(client->env->loop, &client->dial, delay_ms);
}

static void drop(struct zds_client *client)
{
	if (client->fd < 0)
		return;
	loop_del(client->env->loop, &client->watch);
	fd_close(&client->fd);
	loop_cancel(client->env->loop, &client->answer);
	client->must_hang_up = false;
	zds_session_lost(&client->session);
	client->changed(client);
}

/* At once after a connection that was of use; otherwise with the growing delay, against an agent that only
 * ever hangs up. */
static void drop_and_redial(struct zds_client *client, const char *why)
{
	log_msg(client->env->log, LOG_WARN, TARGET, "connection to the node agent ended: %s", why);
	bool was_productive = client->is_productive;
	drop(client);
	if (was_productive)
		backoff_reset(&client->backoff);
	dial_later(client, was_productive ? 0 : rand_jitter(backoff_take(&client->backoff), DIAL_JITTER));
}

static void send_packet(struct zds_client *client, const uint8_t *bytes, size_t len)
{
	int rc = zds_send(client->fd, bytes, len, -1);
	/* A dead peer and one that does not read its answers are the same to us. */
	if (rc < 0)
		client->must_hang_up = true;
}

static void reply(void *ctx, const char *error)
{
	struct zds_client *client = ctx;
	uint8_t packet[ZDS_PACKET_MAX];
	size_t len = 0;
	loop_cancel(client->env->loop, &client->answer);
	if (error)
		log_msg(client->env->log, LOG_WARN, TARGET, "refusing a request of the node agent: %s",
		        error);
	else
		client->is_productive = true;
	if (zds_encode_response(error, packet, sizeof(packet), &len) == 0)
		send_packet(client, packet, len);
	else
		client->must_hang_up = true;
}

static void hang_up(void *ctx)
{
	struct zds_client *client = ctx;
	client->must_hang_up = true;
}

static enum zds_presence find(void *ctx, const char *uid, int netns_fd)
{
	struct zds_client *client = ctx;
	return pods_is_up_in(client->pods, uid, netns_fd) ? ZDS_RUNNING : ZDS_ABSENT;
}

static void start(void *ctx, const char *uid, const struct workload_info *info, int netns_fd)
{
	struct zds_client *client = ctx;
	loop_after(client->env->loop, &client->answer, ZDS_ANSWER_MS);
	pods_start(client->pods, uid, info, netns_fd, IPC_SILO_POD);
}

static void stop(void *ctx, const char *uid)
{
	struct zds_client *client = ctx;
	pods_stop(client->pods, uid);
}

static void forget_pending(void *ctx, const char *uid)
{
	struct zds_client *client = ctx;
	pods_forget_pending(client->pods, uid);
}

static void forget_all_pending(void *ctx)
{
	struct zds_client *client = ctx;
	pods_forget_all_pending(client->pods);
}

/* Joins the two halves of a question: the session's names and the pods' walk. */
struct keeper {
	bool (*is_kept)(const struct zds_session *session, const char *uid);
	const struct zds_session *session;
};

static bool ask_keeper(void *ctx, const char *uid)
{
	const struct keeper *keeper = ctx;
	return keeper->is_kept(keeper->session, uid);
}

static void reconcile(void *ctx, bool (*is_kept)(const struct zds_session *session, const char *uid),
        const struct zds_session *session)
{
	struct zds_client *client = ctx;
	struct keeper keeper = {.is_kept = is_kept, .session = session};
	pods_sweep(client->pods, ask_keeper, &keeper);
}

static void retry_pending(void *ctx)
{
	struct zds_client *client = ctx;
	pods_retry(client->pods);
}

static size_t pending_cnt(void *ctx)
{
	struct zds_client *client = ctx;
	return pods_failed_cnt(client->pods);
}

static void arm_retry(void *ctx)
{
	struct zds_client *client = ctx;
	if (!timer_is_set(&client->retry))
		loop_after(client->env->loop, &client->retry, ZDS_RETRY_MS);
}

static void disarm_retry(void *ctx)
{
	struct zds_client *client = ctx;
	loop_cancel(client->env->loop, &client->retry);
}

static const struct zds_ops ops = {
        .reply = reply,
        .hang_up = hang_up,
        .find = find,
        .start = start,
        .stop = stop,
        .forget_pending = forget_pending,
        .forget_all_pending = forget_all_pending,
        .reconcile = reconcile,
        .retry_pending = retry_pending,
        .pending_cnt = pending_cnt,
        .arm_retry = arm_retry,
        .disarm_retry = disarm_retry,
};

/* What follows from the session's last step: the end of the connection, or whether to read on. */
static void settle(struct zds_client *client)
{
	if (client->fd < 0)
		return;
	if (client->must_hang_up) {
		drop_and_redial(client, "given up by us");
		return;
	}
	(void)loop_mod(
	        client->env->loop, &client->watch, zds_session_is_busy(&client->session) ? 0 : EPOLLIN);
	client->changed(client);
}

static void refuse_packet(struct zds_client *client, const char *why)
{
	char text[ERR_TEXT_MAX + 64];
	snprintf(text, sizeof(text), "failure to read message : %s", why);
	reply(client, text);
	drop_and_redial(client, why);
}

/* Takes one request. Returns whether to go on with the next one. */
static bool take_request(struct zds_client *client)
{
	struct err err = {0};
	struct zds_request req;
	int netns_fd = -1;
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	int rc = arena ? zds_recv_request(client->fd, arena, &req, &netns_fd, &err) : -ENOMEM;
	if (rc == 0) {
		zds_session_request(&client->session, &req, netns_fd);
		settle(client);
	} else if (rc == -EPIPE || rc == -ECONNRESET) {
		drop_and_redial(client, "closed by the agent");
	} else if (rc != -EAGAIN) {
		refuse_packet(client, err.text[0] ? err.text : err_str(rc));
	}
	arena_unref(arena);
	return rc == 0 && client->fd >= 0 && !zds_session_is_busy(&client->session);
}

static void on_socket(struct watch *watch, uint32_t events)
{
	/* Requests come one at a time; more than these in a row is an agent that does not wait for answers.
	 */
	enum { REQUESTS_PER_TURN = 8 };
	struct zds_client *client = list_entry(watch, struct zds_client, watch);
	if (zds_session_is_busy(&client->session)) {
		if (events & (EPOLLHUP | EPOLLERR))
			drop_and_redial(client, "closed by the agent during a start");
		return;
	}
	for (int i = 0; i < REQUESTS_PER_TURN; i++)
		if (!take_request(client))
			break;
}

static int greet(struct zds_client *client, struct err *err)
{
	uint8_t hello[8];
	size_t len = 0;
	int rc = zds_encode_hello(ZDS_V1, hello, sizeof(hello), &len);
	if (rc == 0)
		rc = zds_send(client->fd, hello, len, -1);
	if (rc == 0)
		rc = loop_add(client->env->loop, &client->watch, client->fd, EPOLLIN);
	return rc < 0 ? err_sys(err, rc, "hello") : 0;
}

static void dial(struct timer *timer, uint64_t now)
{
	struct zds_client *client = list_entry(timer, struct zds_client, dial);
	const char *path = client->env->settings->inpod_uds;
	struct err err = {0};
	int rc = fd_unix_connect(path, SOCK_SEQPACKET, &client->fd);
	if (rc < 0)
		err_sys(&err, rc, "%s", path);
	else
		rc = greet(client, &err);
	if (rc < 0) {
		fd_close(&client->fd);
		uint64_t delay = backoff_take(&client->backoff);
		log_msg(client->env->log, LOG_WARN, TARGET,
		        "connecting to the node agent failed, trying again in %" PRIu64 " ms: %s", delay,
		        err.text);
		dial_later(client, delay);
		return;
	}
	client->is_productive = false;
	log_msg(client->env->log, LOG_INFO, TARGET, "connected to the node agent");
	zds_session_connected(&client->session);
	client->changed(client);
}

static void on_retry(struct timer *timer, uint64_t now)
{
	struct zds_client *client = list_entry(timer, struct zds_client, retry);
	zds_session_tick(&client->session);
	settle(client);
}

static void on_answer_overdue(struct timer *timer, uint64_t now)
{
	drop_and_redial(list_entry(timer, struct zds_client, answer), "a start took too long");
}

void zds_client_init(struct zds_client *client, const struct ward_env *env, struct pods *pods,
        void (*changed)(struct zds_client *client))
{
	*client = (struct zds_client){.env = env,
	        .pods = pods,
	        .changed = changed,
	        .fd = -1,
	        .backoff = BACKOFF_DIAL,
	        .watch = {.fd = -1, .ready = on_socket}};
	timer_init(&client->dial, dial);
	timer_init(&client->retry, on_retry);
	timer_init(&client->answer, on_answer_overdue);
	zds_session_init(&client->session, &ops, client);
}

void zds_client_open(struct zds_client *client)
{
	if (client->is_open)
		return;
	client->is_open = true;
	dial_later(client, 0);
}

void zds_client_close(struct zds_client *client)
{
	client->is_open = false;
	loop_cancel(client->env->loop, &client->dial);
	drop(client);
}

void zds_client_done(struct zds_client *client)
{
	zds_client_close(client);
	zds_session_done(&client->session);
}

void zds_client_started(struct zds_client *client, const char *uid, const char *error)
{
	bool was_busy = zds_session_is_busy(&client->session);
	zds_session_started(&client->session, uid, error);
	/* Within a request the caller settles; later there is nobody else. */
	if (was_busy && !zds_session_is_busy(&client->session))
		settle(client);
}

struct ipc_node_state zds_client_node_state(const struct zds_client *client)
{
	return (struct ipc_node_state){.connected = client->session.is_connected,
	        .snapshot = client->session.has_snapshot,
	        .pending_cnt = (uint32_t)pods_failed_cnt(client->pods)};
}
