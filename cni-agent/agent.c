/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wires loop, log, pods, ZDS server and control socket. Both sockets listen
 * before any pod is touched; ZDS accepts once every known pod has been looked
 * at, so that the first snapshot is whole (reference node-agent.md 1.1).
 */
#include "agent.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "control.h"
#include "podwatch.h"
#include "state.h"

#define TARGET "cni_agent"

struct agent {
	const struct options *options;
	struct loop loop;
	struct log log;
	struct watch signals;
	int signal_fd;
	struct zds_server zds;
	struct pods pods;
	struct control control;
	struct podwatch podwatch;
};

static void on_signal(struct watch *watch, uint32_t events)
{
	struct agent *agent = list_entry(watch, struct agent, signals);
	pid_t sender;
	int number = loop_signal_next(agent->signal_fd, &sender);
	if (number <= 0)
		return;
	log_msg(&agent->log, LOG_INFO, TARGET, "ending on signal %d of process %d", number, (int)sender);
	loop_stop(&agent->loop);
}

static int watch_signals(struct agent *agent)
{
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	int rc = loop_signal_fd(&ends, &agent->signal_fd);
	return rc < 0 ? rc : loop_add(&agent->loop, &agent->signals, agent->signal_fd, EPOLLIN);
}

/* One descriptor a pod: the usual soft limit of 1,024 is too low for LIMIT_PODS. */
static void raise_descriptors(struct agent *agent)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_msg(&agent->log, LOG_WARN, TARGET, "the limit of descriptors stays: %s", err_str(-errno));
}

static int load_pods(struct agent *agent, struct err *err)
{
	struct list entries = LIST_INIT(entries);
	int rc = pod_list_load(agent->options->pods, &entries, err);
	if (rc == 0)
		pods_sync(&agent->pods, &entries);
	pod_list_done(&entries);
	return rc;
}

static void on_pods_changed(struct podwatch *podwatch)
{
	struct agent *agent = list_entry(podwatch, struct agent, podwatch);
	struct err err = {0};
	if (load_pods(agent, &err) < 0)
		log_msg(&agent->log, LOG_ERROR, TARGET, "pods are not read, the running state stays: %s",
		        err.text);
	else
		log_msg(&agent->log, LOG_INFO, TARGET, "pods read from %s", agent->options->pods);
}

static int restore(struct agent *agent, const char *dir, struct err *err)
{
	struct list entries = LIST_INIT(entries);
	int rc = state_open(dir, err);
	if (rc == 0)
		rc = state_load(dir, &agent->log, &entries, err);
	if (rc == 0)
		pods_restore(&agent->pods, &entries);
	pod_list_done(&entries);
	return rc;
}

/* Pods that the agent knows of its own. The file comes last: it wins over what was kept. */
static int find_pods(struct agent *agent, struct err *err)
{
	const struct options *options = agent->options;
	int rc = options->config.state_dir ? restore(agent, options->config.state_dir, err) : 0;
	if (rc < 0 || !options->pods)
		return rc;
	/* Watched before it is read: no change falls in between. */
	rc = podwatch_open(&agent->podwatch, &agent->loop, options->pods, on_pods_changed, err);
	return rc < 0 ? rc : load_pods(agent, err);
}

static void on_settled(void *ctx)
{
	struct agent *agent = ctx;
	int rc = zds_server_accept(&agent->zds);
	if (rc < 0) {
		log_msg(&agent->log, LOG_ERROR, TARGET, "cannot accept ZDS connections: %s", err_str(rc));
		loop_stop(&agent->loop);
		return;
	}
	log_msg(&agent->log, LOG_INFO, TARGET, "serving ZDS at %s", agent->options->zds_socket);
}

static int start(struct agent *agent, struct err *err)
{
	const struct options *options = agent->options;
	int rc = watch_signals(agent);
	if (rc < 0)
		return err_sys(err, rc, "signals");
	raise_descriptors(agent);
	rc = zds_server_listen(&agent->zds, options->zds_socket, err);
	if (rc == 0)
		rc = control_open(&agent->control, options->socket, err);
	if (rc == 0)
		rc = find_pods(agent, err);
	if (rc == 0)
		pods_when_settled(&agent->pods, on_settled, agent);
	return rc;
}

static void stop(struct agent *agent)
{
	podwatch_close(&agent->podwatch);
	zds_server_done(&agent->zds);
	/* Waiting clients are answered here. */
	pods_done(&agent->pods);
	control_done(&agent->control);
	loop_del(&agent->loop, &agent->signals);
	fd_close(&agent->signal_fd);
}

int agent_run(const struct options *options, struct err *err)
{
	struct agent agent = {.options = options,
	        .signal_fd = -1,
	        .signals = {.fd = -1, .ready = on_signal},
	        .podwatch = {.fd = -1}};
	int rc = log_init(&agent.log, options->log_level, options->log_json, log_write_fd,
	        (void *)(intptr_t)STDOUT_FILENO, err);
	if (rc < 0)
		return rc;
	rc = loop_init(&agent.loop);
	if (rc < 0) {
		log_done(&agent.log);
		return err_sys(err, rc, "event loop");
	}
	pods_init(&agent.pods, &agent.loop, &agent.log, &options->config, &agent.zds);
	zds_server_init(&agent.zds, &agent.loop, &agent.log, pods_source(&agent.pods));
	control_init(&agent.control, &agent.loop, &agent.log, &agent.pods);
	rc = start(&agent, err);
	if (rc == 0) {
		rc = loop_run(&agent.loop);
		if (rc < 0)
			err_sys(err, rc, "event loop");
	}
	stop(&agent);
	loop_done(&agent.loop);
	log_done(&agent.log);
	return rc;
}
