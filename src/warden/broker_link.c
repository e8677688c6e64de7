/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dial, greet, tell, listen. A broker that breaks the conversation is dropped
 * and dialled again: it is the first process that restarts it.
 */
#include "warden/broker_link.h"

#include <errno.h>
#include <unistd.h>

#include "base/proc.h"

#define TARGET "culvert::warden"
#define BROKER_SOCKET "broker.sock"

/* A broker at start needs tens of milliseconds; later ones have crashed and come back. */
#define DIAL_MIN_MS 10
#define DIAL_MAX_MS 500

/* Time that the broker gets for its Hello. */
#define HELLO_MS 5000

/* Records in the queue that still leave room for what cannot wait; the queue's ceiling is CHAN_QUEUE_MAX. */
#define QUEUE_ROOM (CHAN_QUEUE_MAX / 2)

/* Records taken in a row. */
#define RECORDS_PER_TURN 16

static void dial_later(struct broker_link *link)
{
	loop_after(link->env->loop, &link->timer, backoff_take(&link->backoff));
}

/* Drops the channel, if there is one, and dials again. */
static void drop(struct broker_link *link, const char *why)
{
	bool was_open = link->is_open;
	log_msg(link->env->log, was_open ? LOG_WARN : LOG_DEBUG, TARGET, "no channel to the broker: %s", why);
	loop_del(link->env->loop, &link->watch);
	chan_done(&link->chan);
	link->is_open = false;
	link->has_node = false;
	dial_later(link);
	if (was_open)
		link->events->lost(link);
}

static void update_interest(struct broker_link *link)
{
	if (link->watch.fd >= 0)
		(void)loop_mod(link->env->loop, &link->watch,
		        EPOLLIN | (chan_wants_write(&link->chan) ? EPOLLOUT : 0));
}

/* Takes pass_fd over in every case. A failure shows as an event of the descriptor, so callers need not care.
 */
static void send_record(struct broker_link *link, const struct ipc_record *rec, int pass_fd)
{
	struct err err = {0};
	int rc = chan_send(&link->chan, rec, pass_fd, &err);
	if (rc == -ENOBUFS)
		drop(link, "it does not read");
	else if (rc < 0)
		log_msg(link->env->log, LOG_WARN, TARGET, "telling the broker %s failed: %s",
		        ipc_type_str(rec->type), err.text[0] ? err.text : err_str(rc));
	update_interest(link);
}

/* The levels that somebody has set at run time. */
static void set_log(struct log *log, const char *filter)
{
	struct err err = {0};
	if (log_set(log, filter, &err) < 0)
		log_msg(log, LOG_WARN, TARGET, "log filter from the broker: %s", err.text);
}

static void on_record(struct broker_link *link, const struct ipc_record *rec)
{
	switch (rec->type) {
	case IPC_HELLO:
		loop_cancel(link->env->loop, &link->timer);
		backoff_reset(&link->backoff);
		link->is_open = true;
		log_msg(link->env->log, LOG_DEBUG, TARGET, "channel to the broker (pid %d) is open",
		        (int)rec->hello.pid);
		link->events->opened(link);
		break;
	case IPC_MESH_STATE:
		link->events->mesh_state(link, rec->mesh_state.complete);
		break;
	case IPC_SET_LOG:
		set_log(link->env->log, rec->set_log.filter);
		break;
	case IPC_STOP_REQUEST:
		link->events->stop_requested(link);
		break;
	default:
		break;
	}
}

static void on_channel(struct watch *watch, uint32_t events)
{
	struct broker_link *link = list_entry(watch, struct broker_link, watch);
	if ((events & EPOLLOUT) && chan_flush(&link->chan) < 0) {
		drop(link, "it is gone");
		return;
	}
	update_interest(link);
	if ((events & EPOLLOUT) && broker_link_has_room(link))
		link->events->writable(link);
	for (int i = 0; i < RECORDS_PER_TURN && link->chan.fd >= 0; i++) {
		struct err err = {0};
		struct chan_msg msg = {.fd = -1};
		int rc = chan_recv(&link->chan, &msg, &err);
		if (rc == -EAGAIN)
			return;
		if (rc < 0) {
			drop(link, err.text[0] ? err.text : err_str(rc));
			return;
		}
		on_record(link, &msg.rec);
		chan_msg_done(&msg);
	}
}

/* The socket may only be the broker's: under our uid, or under its own. */
static int connect_checked(const struct broker_link *link, int *ret_fd)
{
	int fd = -1;
	uid_t uid = 0;
	int rc = rundir_connect(link->env->run->fd, BROKER_SOCKET, &fd);
	if (rc == 0)
		rc = fd_peer(fd, NULL, &uid);
	if (rc == 0 && uid != geteuid() && uid != link->env->settings->broker_uid)
		rc = -EPERM;
	if (rc < 0)
		fd_close(&fd);
	else
		*ret_fd = fd;
	return rc;
}

static void dial(struct broker_link *link)
{
	int fd = -1;
	struct err err = {0};
	int rc = connect_checked(link, &fd);
	if (rc < 0) {
		log_msg(link->env->log, LOG_DEBUG, TARGET, "dialling the broker failed: %s", err_str(rc));
		dial_later(link);
		return;
	}
	chan_init(&link->chan, fd, IPC_ROLE_WARDEN, IPC_ROLE_BROKER, false, link->env->scratch);
	struct ipc_hello hello = {.pid = (int32_t)getpid()};
	rc = proc_start_time(getpid(), &hello.start_time);
	if (rc == 0)
		rc = chan_send_hello(&link->chan, &hello, -1, &err);
	if (rc == 0)
		rc = loop_add(link->env->loop, &link->watch, fd, EPOLLIN);
	if (rc < 0)
		drop(link, err_str(rc));
	else
		loop_after(link->env->loop, &link->timer, HELLO_MS);
}

/* One timer for two waits: there is either a channel without Hello or none at all. */
static void on_timer(struct timer *timer, uint64_t now)
{
	struct broker_link *link = list_entry(timer, struct broker_link, timer);
	if (link->chan.fd >= 0)
		drop(link, "it does not say Hello");
	else
		dial(link);
}

void broker_link_init(
        struct broker_link *link, const struct ward_env *env, const struct broker_events *events)
{
	*link = (struct broker_link){.env = env,
	        .events = events,
	        .watch = {.fd = -1, .ready = on_channel},
	        .backoff = {.min_ms = DIAL_MIN_MS, .max_ms = DIAL_MAX_MS, .at_once = true}};
	link->chan.fd = -1;
	list_init(&link->chan.queue);
	timer_init(&link->timer, on_timer);
	dial_later(link);
}

void broker_link_done(struct broker_link *link)
{
	loop_cancel(link->env->loop, &link->timer);
	loop_del(link->env->loop, &link->watch);
	if (link->chan.fd >= 0)
		chan_done(&link->chan);
	link->is_open = false;
}

bool broker_link_has_room(const struct broker_link *link)
{
	return link->is_open && link->chan.queue_cnt < QUEUE_ROOM;
}

int broker_link_pair(struct broker_link *link, int *ret_silo_fd, int *ret_broker_fd)
{
	int pair[2];
	if (!link->is_open)
		return -ENOTCONN;
	int rc = fd_pair(pair);
	if (rc < 0)
		return rc;
	*ret_silo_fd = pair[0];
	*ret_broker_fd = pair[1];
	return 0;
}

void broker_link_attach(
        struct broker_link *link, const char *uid, const struct workload_info *info, pid_t pid, int fd)
{
	struct ipc_record rec = {
	        .type = IPC_SILO_ATTACH, .silo_attach = {.uid = uid, .info = *info, .pid = (int32_t)pid}};
	if (link->is_open)
		send_record(link, &rec, fd);
	else
		fd_close(&fd);
}

void broker_link_silo_state(struct broker_link *link, const struct ipc_silo_state *state)
{
	struct ipc_record rec = {.type = IPC_SILO_STATE, .silo_state = *state};
	if (link->is_open)
		send_record(link, &rec, -1);
}

static bool is_same_node(const struct ipc_node_state *a, const struct ipc_node_state *b)
{
	return a->connected == b->connected && a->snapshot == b->snapshot &&
	       a->pending_cnt == b->pending_cnt && a->settled == b->settled;
}

void broker_link_node_state(struct broker_link *link, const struct ipc_node_state *node)
{
	struct ipc_record rec = {.type = IPC_NODE_STATE, .node_state = *node};
	if (!link->is_open || (link->has_node && is_same_node(&link->node, node)))
		return;
	link->node = *node;
	link->has_node = true;
	send_record(link, &rec, -1);
}

void broker_link_drain(struct broker_link *link, bool is_graceful, uint64_t deadline_ms)
{
	struct ipc_record rec = {
	        .type = IPC_DRAIN, .drain = {.graceful = is_graceful, .deadline_ms = deadline_ms}};
	if (link->is_open)
		send_record(link, &rec, -1);
}
