/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * culvert-broker: started by the first process without a capability. Wires the
 * parts together, locks itself up, runs the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "broker/admin.h"
#include "broker/broker.h"
#include "broker/certs.h"
#include "broker/config.h"
#include "broker/dump_config.h"
#include "broker/crl.h"
#include "broker/mesh_file.h"
#include "broker/metrics.h"
#include "broker/silo_peer.h"
#include "broker/warden.h"
#include "broker/xds.h"
#include "h2/session.h"
#include "seccomp/filter.h"
#include "seccomp/landlock.h"

/* Exit status: fatal before serving; a restart would not help (culvertd ends with it). */
#define EXIT_FATAL 1
/* Exit status: could not go on; a restart may help. */
#define EXIT_AGAIN 75

extern char **environ;

/* What ends the loop from outside. */
struct ends {
	struct broker *broker;
	struct io_op parent;  /* pidfd of the first process */
	struct io_op signals; /* signalfd */
	int parent_fd;
	int signal_fd;
};

void broker_set_mesh_complete(struct broker *broker, bool is_complete)
{
	if (broker->ready.mesh_complete == is_complete)
		return;
	broker->ready.mesh_complete = is_complete;
	/* Loading has left holes: they go back before the node settles down. */
	if (is_complete)
		mem_trim();
	silo_peers_flush(broker);
	broker_ready_note(broker);
	warden_tell_mesh(broker->warden, is_complete);
}

void broker_drain(struct broker *broker)
{
	if (broker->is_draining)
		return;
	broker->is_draining = true;
	/* Readiness goes first, as upstream does: probes are refused from here on (reference control.md 16).
	 */
	admin_drain(broker);
	metrics_drain(broker);
}

/* --- ends ---------------------------------------------------------------- */

static void on_parent(struct io_op *op, const struct io_result *result)
{
	struct ends *ends = list_entry(op, struct ends, parent);
	(void)result;
	/* Without the first process nobody would restart or end us; silos live on and a successor finds them.
	 */
	io_stop(ends->broker->io);
}

static void on_signal(struct io_op *op, const struct io_result *result)
{
	struct ends *ends = list_entry(op, struct ends, signals);
	(void)result;
	io_stop(ends->broker->io);
}

static int watch_ends(struct ends *ends, struct err *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	/* A terminal sends SIGINT to the whole group: what it means is for the first process to say. */
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigdelset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	ends->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ends->signal_fd < 0)
		return err_sys(err, -errno, "signalfd");
	int r = fd_pidfd(getppid(), &ends->parent_fd);
	if (r < 0)
		return err_sys(err, r, "cannot watch the first process");
	io_op_init(&ends->parent, on_parent);
	io_op_init(&ends->signals, on_signal);
	io_poll(ends->broker->io, &ends->parent, ends->parent_fd, POLLIN, false);
	io_poll(ends->broker->io, &ends->signals, ends->signal_fd, POLLIN, false);
	return 0;
}

/* --- making -------------------------------------------------------------- */

static int open_run_dir(struct broker *broker, struct err *err)
{
	const struct settings *settings = &broker->settings;
	char path[4096];
	if (!settings->run_dir || !settings->instance)
		return err_set(err, -EINVAL,
		        "CULVERT_RUN_DIR and CULVERT_INSTANCE are not set: culvert-broker is started by culvertd");
	int len = snprintf(path, sizeof(path), "%s/%s", settings->run_dir, settings->instance);
	if (len < 0 || (size_t)len >= sizeof(path))
		return err_set(err, -ENAMETOOLONG, "the run directory's path is too long");
	broker->run_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return broker->run_fd < 0 ? err_sys(err, -errno, "%s", path) : 0;
}

static int make_loop(struct broker *broker, struct err *err)
{
	const struct settings *settings = &broker->settings;
	const struct io_opts opts = {
	        .baseline61 = settings->io_baseline != 0 && settings->io_baseline <= 6001};
	int r = io_new(&opts, &broker->io, err);
	if (r < 0)
		return r;
	logs_init(&broker->logs, broker->io, &broker->log);
	return log_init(&broker->log, settings->rust_log, settings->log_json, logs_write, &broker->logs, err);
}

static int make_parts(struct broker *broker, struct err *err)
{
	const struct store_watcher watcher = {.ctx = broker, .changed = silo_peers_changed};
	const struct settings *settings = &broker->settings;
	if (metrics_new(broker) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	broker->store = store_new(settings->node_name ? settings->node_name : "");
	if (!broker->store)
		return err_set(err, -ENOMEM, "out of memory");
	int r = mesh_file_new(broker, &broker->mesh_file, err);
	if (r < 0)
		return r;
	store_watch(broker->store, &watcher);
	r = certs_new(broker, &broker->certs, err);
	if (r < 0)
		return r;
	r = crl_new(broker, &broker->crl);
	if (r < 0)
		return err_set(err, r, "%s", err_str(r));
	r = admin_start(broker, err);
	if (r < 0)
		return r;
	r = metrics_start(broker, err);
	if (r < 0)
		return r;
	r = warden_new(broker, &broker->warden, err);
	if (r < 0)
		return r;
	r = xds_new(broker, &broker->xds, err);
	if (r < 0)
		return r;
	/* With both, the mesh is complete when the control plane's part is in. */
	if (broker->mesh_file && !broker->xds)
		broker_set_mesh_complete(broker, true);
	else if (!broker->xds)
		log_msg(&broker->log, LOG_WARN, "ztunnel::xds::client",
		        "neither a control plane (XDS_ADDRESS) nor local mesh state (LOCAL_XDS_PATH) is set: the mesh stays unknown");
	return 0;
}

/* Reads the mesh file again and again, writes nothing any more. */
static int lock_up(struct broker *broker, struct err *err)
{
	int abi;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, -errno, "prctl");
	int r = landlock_enter(true, &abi);
	if (r < 0)
		return err_sys(err, r, "landlock");
	r = filter_install(FILTER_BROKER, filter_mode_parse(getenv("CULVERT_SECCOMP")));
	if (r < 0)
		return err_sys(err, r, "seccomp");
	log_msg(&broker->log, LOG_DEBUG, "culvert::broker", "sandboxed: landlock %d", abi);
	return 0;
}

static void dispose(struct broker *broker)
{
	admin_stop(broker);
	silo_peers_done(broker);
	metrics_free(broker);
	interest_done(&broker->interest);
	warden_free(broker->warden);
	pods_done(broker);
	xds_free(broker->xds);
	mesh_file_free(broker->mesh_file);
	crl_free(broker->crl);
	certs_free(broker->certs);
	store_free(broker->store);
	logs_done(&broker->logs);
	log_done(&broker->log);
	/* Closes that are still under way end here. */
	for (int i = 0; i < 8 && io_in_flight(broker->io) > 0; i++)
		io_turn(broker->io, false);
	/* What the last of them put off. */
	io_turn(broker->io, false);
	h2_env_free(broker->h2_env);
	io_free(broker->io);
	settings_done(&broker->settings);
	close(broker->run_fd);
}

/* What we run with, as the config dump has it, in one record (reference control.md 1.2). */
static void tell_config(struct broker *broker)
{
	struct buf text;
	struct json json;
	buf_init(&text, CONFIG_TEXT_MAX);
	json_init(&json, &text, false);
	json_obj(&json);
	if (dump_config(&json, &broker->settings) == 0) {
		json_obj_end(&json);
		log_msg(&broker->log, LOG_INFO, "ztunnel", "running with config: %s", buf_cstr(&text));
	}
	buf_done(&text);
}

/* Everything up to the loop. */
static int start(struct broker *broker, struct ends *ends, struct err *err)
{
	list_init(&broker->silos);
	interest_init(&broker->interest);
	list_init(&broker->pods);
	int r = settings_load(&broker->settings, environ, PARAM_B, err);
	if (r == 0)
		r = open_run_dir(broker, err);
	if (r == 0)
		r = make_loop(broker, err);
	if (r == 0) {
		tell_config(broker);
		broker_ready_note(broker);
	}
	if (r == 0)
		r = make_parts(broker, err);
	if (r == 0)
		r = watch_ends(ends, err);
	if (r == 0)
		r = lock_up(broker, err);
	return r;
}

/* The first process asks for this before it starts anybody. */
static int print_config(void)
{
	struct err err = {0};
	struct buf out;
	buf_init(&out, CONFIG_TEXT_MAX);
	int r = config_print(CONFIG_MESH_PATH, getenv("PROXY_CONFIG"), &out, &err);
	if (r == 0 && out.len && fwrite(out.data, 1, out.len, stdout) != out.len)
		r = err_set(&err, -EIO, "cannot print the configuration");
	if (r == 0 && fflush(stdout) != 0)
		r = err_set(&err, -EIO, "cannot print the configuration");
	if (r < 0)
		fprintf(stderr, "Error: %s\n", err.text);
	buf_done(&out);
	return r < 0 ? EXIT_FATAL : 0;
}

int main(int argc, char **argv)
{
	struct err err = {0};
	if (argc == 2 && strcmp(argv[1], CONFIG_ARGUMENT) == 0)
		return print_config();
	struct broker *broker = mem_zalloc(1, sizeof(*broker));
	struct ends ends = {.broker = broker, .parent_fd = -1, .signal_fd = -1};
	if (!broker) {
		fprintf(stderr, "Error: out of memory\n");
		return EXIT_AGAIN;
	}
	int r = start(broker, &ends, &err);
	if (r < 0) {
		fprintf(stderr, "Error: %s\n", err.text);
		return r == -ENOTRECOVERABLE ? SETTINGS_EXIT_PANIC : EXIT_FATAL;
	}
	r = io_run(broker->io);
	io_cancel(broker->io, &ends.parent);
	io_cancel(broker->io, &ends.signals);
	dispose(broker);
	mem_free(broker);
	fd_close(&ends.parent_fd);
	fd_close(&ends.signal_fd);
	return r < 0 ? EXIT_AGAIN : 0;
}
