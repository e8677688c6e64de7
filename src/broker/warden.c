/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The channel to the warden and the pods it reports; see warden.h. */
#include "broker/warden.h"

#include <errno.h>
#include <string.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/silo_peer.h"
#include "conn/listen.h"
#include "ipc/ring_chan.h"

static const char TARGET[] = "culvert::broker::warden";

/* Wardens that wait to be accepted: there is one, and now and then its successor. */
#define BACKLOG 4

struct warden {
	struct broker *broker;
	struct listener *listener;
	struct ring_chan *chan; /* the newest warden, NULL = none */
};

/* --- pods ---------------------------------------------------------------- */

static void pod_free(struct broker *broker, struct pod *pod)
{
	list_del(&pod->node);
	broker->pod_cnt--;
	mem_free(pod->uid);
	mem_free(pod->name);
	mem_free(pod->ns);
	mem_free(pod->service_account);
	mem_free(pod->reason);
	mem_free(pod);
}

static struct pod *pod_find(struct broker *broker, const char *uid)
{
	list_for_each(it, &broker->pods)
	{
		struct pod *pod = list_entry(it, struct pod, node);
		if (strcmp(pod->uid, uid) == 0)
			return pod;
	}
	return NULL;
}

static int set_text(char **slot, const char *text)
{
	char *copy = mem_strdup(text);
	if (!copy)
		return -ENOMEM;
	mem_free(*slot);
	*slot = copy;
	return 0;
}

static struct pod *pod_get(struct broker *broker, const char *uid)
{
	struct pod *pod = pod_find(broker, uid);
	if (pod || broker->pod_cnt >= LIMIT_PODS)
		return pod;
	pod = mem_zalloc(1, sizeof(*pod));
	if (!pod)
		return NULL;
	list_init(&pod->node);
	list_add_tail(&broker->pods, &pod->node);
	broker->pod_cnt++;
	pod->is_self = strcmp(uid, IPC_SELF_UID) == 0;
	if (set_text(&pod->uid, uid) < 0) {
		pod_free(broker, pod);
		return NULL;
	}
	return pod;
}

void pods_done(struct broker *broker)
{
	while (!list_empty(&broker->pods))
		pod_free(broker, list_entry(broker->pods.next, struct pod, node));
}

static void on_silo_state(struct broker *broker, const struct ipc_silo_state *state)
{
	if (state->state == IPC_SILO_GONE) {
		struct pod *gone = pod_find(broker, state->uid);
		/* The silo may still drain: it is answered, and its lines are taken, until it closes its
		 * channel. */
		if (gone && gone->is_up && !gone->is_self)
			metrics_proxy(broker, false);
		if (gone)
			pod_free(broker, gone);
		return;
	}
	struct pod *pod = pod_get(broker, state->uid);
	if (!pod || set_text(&pod->name, state->info.name) < 0 || set_text(&pod->ns, state->info.ns) < 0 ||
	        set_text(&pod->service_account, state->info.service_account) < 0 ||
	        set_text(&pod->reason, state->reason) < 0) {
		log_msg(&broker->log, LOG_ERROR, TARGET, "no room for the state of pod %s", state->uid);
		if (pod)
			pod_free(broker, pod);
		return;
	}
	bool is_up = state->state == IPC_SILO_UP;
	if (is_up != pod->is_up && !pod->is_self)
		metrics_proxy(broker, is_up);
	pod->is_up = is_up;
	pod->restarts = state->restarts;
	pod->pid = state->pid;
	pod->netns_ino = state->netns_ino;
	broker_ready_note(broker);
}

/* --- channel ------------------------------------------------------------- */

static void on_silo_attach(struct broker *broker, struct chan_msg *msg)
{
	int fd = msg->fd;
	msg->fd = -1;
	if (silo_peer_attach(broker, msg->rec.silo_attach.uid, &msg->rec.silo_attach.info, fd) < 0)
		log_msg(&broker->log, LOG_ERROR, TARGET, "no memory for the channel of silo %s",
		        msg->rec.silo_attach.uid);
}

static int on_record(void *ctx, struct chan_msg *msg, struct err *err)
{
	struct warden *warden = ctx;
	struct broker *broker = warden->broker;
	(void)err;
	switch (msg->rec.type) {
	case IPC_SILO_ATTACH:
		on_silo_attach(broker, msg);
		break;
	case IPC_SILO_STATE:
		on_silo_state(broker, &msg->rec.silo_state);
		break;
	case IPC_NODE_STATE:
		broker->ready.node_connected = msg->rec.node_state.connected;
		broker->ready.node_snapshot = msg->rec.node_state.snapshot;
		broker->ready.node_pending = msg->rec.node_state.pending_cnt;
		broker->ready.node_settled |= msg->rec.node_state.settled;
		broker_ready_note(broker);
		break;
	case IPC_DRAIN:
		broker_drain(broker);
		break;
	default:
		break;
	}
	return 0;
}

static void on_closed(void *ctx, int code, const char *text)
{
	struct warden *warden = ctx;
	struct broker *broker = warden->broker;
	ring_chan_free(warden->chan);
	warden->chan = NULL;
	broker->ready.warden_up = false;
	broker->ready.node_connected = false;
	broker->ready.node_snapshot = false;
	broker_ready_note(broker);
	if (code != -EPIPE && code != -ECONNRESET)
		log_msg(&broker->log, LOG_WARN, TARGET, "channel to the warden closed: %s", text);
}

static const struct ring_chan_events EVENTS = {.on_record = on_record, .on_closed = on_closed};

static void on_accept(void *ctx, int fd)
{
	struct warden *warden = ctx;
	struct broker *broker = warden->broker;
	const struct ipc_hello hello = {.uid = "", .pid = getpid()};
	struct ring_chan *chan;
	uid_t uid;
	/* The warden is root; with an own uid of the broker it still is. */
	if (fd_peer(fd, NULL, &uid) < 0 || (uid != 0 && uid != geteuid()) || fd_set_nonblock(fd, true) < 0 ||
	        ring_chan_new(broker->io, fd, IPC_ROLE_BROKER, IPC_ROLE_WARDEN, false, &broker->scratch,
	                &EVENTS, warden, &chan) < 0) {
		log_msg(&broker->log, LOG_WARN, TARGET, "connection to %s refused", WARDEN_SOCKET);
		fd_close(&fd);
		return;
	}
	ring_chan_free(warden->chan);
	warden->chan = chan;
	broker->ready.warden_up = true;
	broker_ready_note(broker);
	/* A new warden reports all it has; what it does not name is gone. */
	pods_done(broker);
	ring_chan_send_hello(chan, &hello, -1, NULL);
	warden_tell_mesh(warden, broker->ready.mesh_complete);
	if (broker->has_log_filter)
		warden_set_log(warden);
}

static const struct listen_events LISTEN_EVENTS = {.on_accept = on_accept};

int warden_new(struct broker *broker, struct warden **ret_warden, struct err *err)
{
	const struct listen_opts opts = {0};
	char path[64];
	int fd;
	struct warden *warden = mem_zalloc(1, sizeof(*warden));
	if (!warden)
		return err_set(err, -ENOMEM, "out of memory");
	warden->broker = broker;
	/* Through the descriptor: a long run directory would not fit a socket address (unix(7)). */
	snprintf(path, sizeof(path), "/proc/self/fd/%d/" WARDEN_SOCKET, broker->run_fd);
	int r = fd_unix_listen(path, SOCK_SEQPACKET, BACKLOG, &fd);
	if (r == 0)
		r = listen_start(broker->io, fd, &opts, &LISTEN_EVENTS, warden, &warden->listener);
	if (r < 0) {
		mem_free(warden);
		return err_sys(err, r, "cannot listen on " WARDEN_SOCKET);
	}
	*ret_warden = warden;
	return 0;
}

void warden_free(struct warden *warden)
{
	if (!warden)
		return;
	listen_stop(warden->listener);
	ring_chan_free(warden->chan);
	mem_free(warden);
}

void warden_tell_mesh(struct warden *warden, bool is_complete)
{
	const struct ipc_record rec = {.type = IPC_MESH_STATE, .mesh_state = {.complete = is_complete}};
	if (warden && warden->chan)
		ring_chan_send(warden->chan, &rec, -1, NULL);
}

void warden_set_log(struct warden *warden)
{
	struct buf text;
	buf_init(&text, LIMIT_IPC_RECORD);
	log_filter_text(&warden->broker->log, &text);
	const struct ipc_record rec = {.type = IPC_SET_LOG, .set_log = {.filter = buf_cstr(&text)}};
	if (warden->chan && rec.set_log.filter)
		ring_chan_send(warden->chan, &rec, -1, NULL);
	buf_done(&text);
}

void warden_ask_stop(struct warden *warden)
{
	const struct ipc_record rec = {.type = IPC_STOP_REQUEST};
	if (warden->chan)
		ring_chan_send(warden->chan, &rec, -1, NULL);
}
