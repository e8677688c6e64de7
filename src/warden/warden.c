/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wiring: who is told what by whom, the gates before the node agent is
 * dialled, and the two ways out, drain and leave.
 */
#include "warden/warden.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "warden/adopt.h"
#include "warden/broker_link.h"
#include "warden/child.h"
#include "warden/drop.h"
#include "warden/first.h"
#include "warden/netns.h"
#include "warden/pods.h"
#include "warden/rundir.h"
#include "warden/ward.h"
#include "warden/zds_client.h"

#define TARGET "culvert::warden"

/* uid of the one workload of dedicated mode, where no agent gives one. */
#define DEDICATED_UID "dedicated"

/* The mark that the start-up probe tries (reference node-agent.md 2.4). */
#define PROBE_MARK 1337

#define KEPT_CAPS                                                                                            \
	(DROP_CAP(CAP_SYS_ADMIN) | DROP_CAP(CAP_NET_ADMIN) | DROP_CAP(CAP_NET_RAW) |                         \
	        DROP_CAP(CAP_DAC_OVERRIDE))

struct warden {
	const struct settings *settings;
	struct log *log;
	struct loop loop;
	struct rundir run;
	struct chan_scratch scratch;
	char program[PATH_MAX];
	char **silo_env;
	struct ward_env env;
	struct netns_guard guard;
	struct broker_link broker;
	struct pods pods;
	struct adopt adopt;
	struct zds_client zds;
	struct watch signals;
	struct watch first; /* pidfd of the first process */
	int signal_fd;
	int first_fd;
	bool was_settled; /* all pods of a snapshot were up at once; a broker may be younger than that */
	bool has_mesh;    /* the broker has said once that the mesh state is in */
	bool is_draining;
	int status; /* exit status */
};

extern char **environ;

/* --- the gates --- */

static void start_dedicated(struct warden *warden)
{
	const struct settings *settings = warden->settings;
	struct workload_info info = {.name = settings->workload_name,
	        .ns = settings->workload_ns,
	        .service_account = settings->workload_service_account};
	int fd = -1;
	if (pods_find(&warden->pods, DEDICATED_UID))
		return;
	int rc = netns_open_own(&fd);
	if (rc < 0)
		log_msg(warden->log, LOG_ERROR, TARGET, "own network namespace: %s", err_str(rc));
	else
		pods_start(&warden->pods, DEDICATED_UID, &info, fd, IPC_SILO_DEDICATED);
}

/* HBONE for the daemon's own pod: lets the mesh scrape us (dataplane.md 2.9). */
static void start_self(struct warden *warden)
{
	const struct settings *settings = warden->settings;
	const struct workload_info info = {.name = settings->pod_name,
	        .ns = settings->pod_namespace,
	        .service_account = settings->service_account};
	int fd = -1;
	if (!settings_has_self(settings))
		return;
	int rc = netns_open_own(&fd);
	if (rc < 0)
		log_msg(warden->log, LOG_ERROR, TARGET, "own network namespace: %s", err_str(rc));
	else
		pods_start_self(&warden->pods, &info, fd);
}

/* The agent is dialled only when no silo can be missed and none would work without the mesh. */
static void open_when_due(struct warden *warden)
{
	if (!warden->adopt.is_done || warden->is_draining)
		return;
	if (warden->settings->dedicated) {
		start_dedicated(warden);
	} else if (warden->has_mesh) {
		zds_client_open(&warden->zds);
		start_self(warden);
	}
}

/* --- the end --- */

static void on_all_ended(void *ctx)
{
	struct warden *warden = ctx;
	log_msg(warden->log, LOG_INFO, TARGET, "shutdown complete");
	loop_stop(&warden->loop);
}

/* Silos that a former warden left are adopted first, or nobody would drain them. */
static void end_pods(struct warden *warden)
{
	if (warden->adopt.is_done)
		pods_end_all(&warden->pods, warden->settings->drain_ms);
}

static void drain(struct warden *warden)
{
	if (warden->is_draining)
		return;
	warden->is_draining = true;
	zds_client_close(&warden->zds);
	if (warden->settings->leave_on_term) {
		log_msg(warden->log, LOG_INFO, TARGET, "leaving the silos to a successor");
		loop_stop(&warden->loop);
		return;
	}
	broker_link_drain(&warden->broker, true, warden->settings->drain_ms);
	end_pods(warden);
}

static void on_signal(struct watch *watch, uint32_t events)
{
	struct warden *warden = list_entry(watch, struct warden, signals);
	for (int number = loop_signal_next(warden->signal_fd, NULL); number > 0;
	        number = loop_signal_next(warden->signal_fd, NULL)) {
		drain(warden);
		if (number == SIGINT && !warden->settings->leave_on_term)
			pods_kill_all(&warden->pods);
	}
}

/* Without the first process nobody would restart what dies; silos go on and wait for a successor. */
static void on_first_gone(struct watch *watch, uint32_t events)
{
	struct warden *warden = list_entry(watch, struct warden, first);
	log_msg(warden->log, LOG_ERROR, TARGET, "the first process is gone");
	if (warden->is_draining)
		pods_kill_all(&warden->pods);
	warden->status = FIRST_EXIT_AGAIN;
	loop_stop(&warden->loop);
}

/* --- events of the parts --- */

static void tell_node_state(struct warden *warden)
{
	struct ipc_node_state node = zds_client_node_state(&warden->zds);
	warden->was_settled |= node.snapshot && node.pending_cnt == 0;
	node.settled = warden->was_settled;
	broker_link_node_state(&warden->broker, &node);
}

static void on_zds_changed(struct zds_client *zds)
{
	tell_node_state(list_entry(zds, struct warden, zds));
}

static void on_pods_changed(void *ctx)
{
	tell_node_state(ctx);
}

static void on_pod_started(void *ctx, const char *uid, const char *error)
{
	struct warden *warden = ctx;
	if (!warden->settings->dedicated) {
		zds_client_started(&warden->zds, uid, error);
		return;
	}
	if (!error)
		return;
	fprintf(stderr, "Error: %s\n", error);
	warden->status = FIRST_EXIT_FATAL;
	loop_stop(&warden->loop);
}

static const struct pods_events pods_events = {
        .started = on_pod_started, .changed = on_pods_changed, .all_ended = on_all_ended};

static void on_broker_opened(struct broker_link *link)
{
	struct warden *warden = list_entry(link, struct warden, broker);
	tell_node_state(warden);
	pods_broker_opened(&warden->pods);
	if (warden->is_draining)
		broker_link_drain(link, true, warden->settings->drain_ms);
}

static void on_broker_lost(struct broker_link *link)
{
	pods_broker_lost(&list_entry(link, struct warden, broker)->pods);
}

static void on_broker_writable(struct broker_link *link)
{
	pods_tell_broker(&list_entry(link, struct warden, broker)->pods);
}

static void on_mesh_state(struct broker_link *link, bool is_complete)
{
	struct warden *warden = list_entry(link, struct warden, broker);
	warden->has_mesh |= is_complete;
	open_when_due(warden);
}

static void on_stop_requested(struct broker_link *link)
{
	struct warden *warden = list_entry(link, struct warden, broker);
	log_msg(warden->log, LOG_INFO, TARGET, "shutdown requested");
	drain(warden);
}

static const struct broker_events broker_events = {
        .opened = on_broker_opened,
        .lost = on_broker_lost,
        .writable = on_broker_writable,
        .mesh_state = on_mesh_state,
        .stop_requested = on_stop_requested,
};

static void on_adopted(struct adopt *adopt)
{
	struct warden *warden = list_entry(adopt, struct warden, adopt);
	if (warden->is_draining)
		end_pods(warden);
	else
		open_when_due(warden);
}

/* --- the start --- */

/* As upstream, shared mode does not start without the rights that every pod needs. */
static int probe_rights(struct err *err)
{
	int own = -1;
	int mark = PROBE_MARK;
	int rc = netns_open_own(&own);
	if (rc == 0 && setns(own, CLONE_NEWNET) < 0)
		rc = -errno;
	fd_close(&own);
	if (rc < 0)
		return err_sys(err, rc, "entering network namespaces is not permitted (CAP_SYS_ADMIN)");
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
		rc = -errno;
	fd_close(&fd);
	return rc < 0 ? err_sys(err, rc, "marking sockets is not permitted (CAP_NET_ADMIN or CAP_NET_RAW)")
	              : 0;
}

static int watch_first(struct warden *warden, pid_t first_pid, struct err *err)
{
	int rc = fd_pidfd(first_pid, &warden->first_fd);
	/* Looked at after the pidfd is open: were it another's by now, it would not be our parent. */
	if (rc == 0 && getppid() != first_pid)
		rc = -ESRCH;
	if (rc == 0)
		rc = loop_add(&warden->loop, &warden->first, warden->first_fd, EPOLLIN);
	return rc < 0 ? err_sys(err, rc, "first process") : 0;
}

static int watch_signals(struct warden *warden, struct err *err)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	int rc = loop_signal_fd(&signals, &warden->signal_fd);
	if (rc == 0)
		rc = loop_add(&warden->loop, &warden->signals, warden->signal_fd, EPOLLIN);
	return rc < 0 ? err_sys(err, rc, "signals") : 0;
}

static int find_silo(struct warden *warden, struct err *err)
{
	int rc = child_program_path(warden->settings, "culvert-silo", warden->program);
	if (rc == 0 && access(warden->program, X_OK) < 0)
		rc = -errno;
	if (rc == 0)
		rc = settings_silo_env(environ, &warden->silo_env);
	return rc < 0 ? err_sys(err, rc, "program %s", warden->program) : 0;
}

static int prepare(struct warden *warden, pid_t first_pid, struct err *err)
{
	const struct settings *settings = warden->settings;
	int rc = loop_init(&warden->loop);
	if (rc < 0)
		return err_sys(err, rc, "event loop");
	rc = watch_signals(warden, err);
	if (rc == 0)
		rc = watch_first(warden, first_pid, err);
	if (rc == 0)
		rc = drop_caps(KEPT_CAPS, DROP_CAP(CAP_NET_RAW), err);
	if (rc == 0)
		rc = rundir_open(&warden->run, settings, err);
	if (rc == 0)
		rc = find_silo(warden, err);
	if (rc == 0 && !settings->dedicated)
		rc = probe_rights(err);
	if (rc < 0)
		return rc;
	rc = netns_guard_init(&warden->guard);
	return rc < 0 ? err_sys(err, rc, "own network namespace") : 0;
}

static void wire(struct warden *warden)
{
	warden->env = (struct ward_env){.loop = &warden->loop,
	        .log = warden->log,
	        .settings = warden->settings,
	        .run = &warden->run,
	        .scratch = &warden->scratch,
	        .program = warden->program,
	        .silo_env = warden->silo_env};
	broker_link_init(&warden->broker, &warden->env, &broker_events);
	pods_init(&warden->pods, &warden->env, &warden->broker, &warden->guard, &pods_events, warden);
	zds_client_init(&warden->zds, &warden->env, &warden->pods, on_zds_changed);
	adopt_init(&warden->adopt, &warden->env, &warden->guard, &warden->pods, on_adopted);
}

static void unwire(struct warden *warden)
{
	adopt_done(&warden->adopt);
	zds_client_done(&warden->zds);
	pods_done(&warden->pods);
	broker_link_done(&warden->broker);
}

int warden_run(const struct settings *settings, struct log *log, pid_t first_pid)
{
	struct err err = {0};
	struct warden *warden = mem_zalloc(1, sizeof(*warden));
	if (!warden)
		return FIRST_EXIT_AGAIN;
	warden->settings = settings;
	warden->log = log;
	warden->run.fd = warden->run.lock_fd = warden->signal_fd = warden->first_fd = warden->loop.epoll_fd =
	        -1;
	warden->signals = (struct watch){.fd = -1, .ready = on_signal};
	warden->first = (struct watch){.fd = -1, .ready = on_first_gone};
	if (prepare(warden, first_pid, &err) < 0) {
		fprintf(stderr, "Error: %s\n", err.text);
		warden->status = FIRST_EXIT_FATAL;
	} else {
		wire(warden);
		int rc = loop_run(&warden->loop);
		if (rc < 0) {
			log_msg(log, LOG_ERROR, TARGET, "event loop: %s", err_str(rc));
			warden->status = FIRST_EXIT_AGAIN;
		}
		unwire(warden);
	}
	int status = warden->status;
	mem_free(warden->silo_env);
	rundir_done(&warden->run);
	fd_close(&warden->signal_fd);
	fd_close(&warden->first_fd);
	loop_done(&warden->loop);
	mem_free(warden);
	return status;
}
