/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading and watching the mesh file; see mesh_file.h. The folder is watched, so that a ConfigMap's symlink
 * swap is seen. */
#include "broker/mesh_file.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/local_file.h"

static const char TARGET[] = "ztunnel::xds";

/* Quiet time after the last event before the file is read, ms: writers are let finish. */
#define DEBOUNCE_MS 200
/* What may change a file's content or what its name means. */
#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ATTRIB)

struct mesh_file {
	struct broker *broker;
	char *path;   /* owned; NULL = inline text, never loaded again */
	int watch_fd; /* inotify, -1 = none */
	struct io_op in;
	struct timer quiet;
};

/* Checks the whole file, then makes it the state; on failure nothing has changed. */
static int load(struct mesh_file *file, struct err *err)
{
	struct broker *broker = file->broker;
	const char *text = broker->settings.local_xds;
	struct local_file *parsed;
	int r = file->path ? local_file_load(file->path, &parsed, err)
	                   : local_file_parse("LOCAL_XDS", text, strlen(text), &parsed, err);
	if (r < 0)
		return r;
	r = local_file_apply(parsed, broker->store, err);
	local_file_free(parsed);
	/* The text alone is as large as what is kept of it. */
	mem_trim();
	if (r < 0)
		return r;
	struct store_counts counts = store_counts(broker->store);
	struct log_line line;
	if (log_begin(&line, &broker->log, LOG_INFO, TARGET, "local config initialized")) {
		log_u64(&line, "num_workloads", counts.workloads);
		log_u64(&line, "num_policies", counts.policies);
		log_end(&line);
	}
	return 0;
}

static void quiet(struct timer *timer, uint64_t now)
{
	struct mesh_file *file = list_entry(timer, struct mesh_file, quiet);
	struct err err = {0};
	(void)now;
	if (load(file, &err) < 0)
		log_msg(&file->broker->log, LOG_ERROR, TARGET,
		        "mesh file is not used, the running state stays: %s", err.text);
}

static void on_event(struct io_op *op, const struct io_result *result)
{
	struct mesh_file *file = list_entry(op, struct mesh_file, in);
	char events[4096];
	if (!file->broker) {
		if (!result->more)
			mem_free(file);
		return;
	}
	/* What happened does not matter: the file is compared as a whole. */
	while (read(file->watch_fd, events, sizeof(events)) > 0)
		;
	io_timer_start(file->broker->io, &file->quiet, DEBOUNCE_MS);
	if (!result->more && result->res >= 0)
		io_poll(file->broker->io, op, file->watch_fd, POLLIN, true);
}

static int watch(struct mesh_file *file)
{
	char folder[PATH_MAX];
	if (snprintf(folder, sizeof(folder), "%s", file->path) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	file->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (file->watch_fd < 0 || inotify_add_watch(file->watch_fd, dirname(folder), EVENTS) < 0)
		return -errno;
	io_poll(file->broker->io, &file->in, file->watch_fd, POLLIN, true);
	return 0;
}

int mesh_file_new(struct broker *broker, struct mesh_file **ret_file, struct err *err)
{
	const struct settings *settings = &broker->settings;
	*ret_file = NULL;
	if (!settings->local_xds_path && !settings->local_xds)
		return 0;
	struct mesh_file *file = mem_zalloc(1, sizeof(*file));
	if (!file || (settings->local_xds_path && !(file->path = mem_strdup(settings->local_xds_path)))) {
		mem_free(file);
		return err_set(err, -ENOMEM, "out of memory");
	}
	file->broker = broker;
	file->watch_fd = -1;
	timer_init(&file->quiet, quiet);
	io_op_init(&file->in, on_event);
	int r = load(file, err);
	if (r < 0) {
		mem_free(file->path);
		mem_free(file);
		return r;
	}
	r = file->path ? watch(file) : 0;
	if (r < 0)
		log_msg(&broker->log, LOG_WARN, TARGET,
		        "mesh file is not watched, changes need a restart: %s", err_str(r));
	*ret_file = file;
	return 0;
}

void mesh_file_free(struct mesh_file *file)
{
	if (!file)
		return;
	struct io *io = file->broker->io;
	io_timer_stop(io, &file->quiet);
	mem_free(file->path);
	fd_close(&file->watch_fd);
	file->broker = NULL;
	if (file->in.in_flight)
		io_cancel(io, &file->in);
	else
		mem_free(file);
}
