/* SPDX-License-Identifier: GPL-2.0-only */
/* inotify(7) on a folder, debounced. Must not look into files. */
#include "podwatch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "pod.h"

/* What may change a file's content or what its name means. */
#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ONLYDIR)

static void on_quiet(struct timer *timer, uint64_t now)
{
	struct podwatch *podwatch = list_entry(timer, struct podwatch, quiet);
	podwatch->changed(podwatch);
}

static void on_events(struct watch *watch, uint32_t events)
{
	struct podwatch *podwatch = list_entry(watch, struct podwatch, watch);
	char bytes[4096];
	/* What happened does not matter: everything is read and compared anew. */
	while (read(podwatch->fd, bytes, sizeof(bytes)) > 0)
		;
	loop_after(podwatch->loop, &podwatch->quiet, PODWATCH_QUIET_MS);
}

/* The folder to watch for path: itself or the one it lies in. */
static int folder_of(const char *path, char dst[POD_PATH_MAX + 1])
{
	struct stat st;
	if (strlen(path) > POD_PATH_MAX)
		return -ENAMETOOLONG;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		snprintf(dst, POD_PATH_MAX + 1, "%s", path);
		return 0;
	}
	const char *slash = strrchr(path, '/');
	if (!slash)
		snprintf(dst, POD_PATH_MAX + 1, ".");
	else
		snprintf(dst, POD_PATH_MAX + 1, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return 0;
}

int podwatch_open(struct podwatch *podwatch, struct loop *loop, const char *path,
        void (*changed)(struct podwatch *podwatch), struct err *err)
{
	char folder[POD_PATH_MAX + 1];
	*podwatch = (struct podwatch){.loop = loop,
	        .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
	        .watch = {.fd = -1, .ready = on_events},
	        .changed = changed};
	timer_init(&podwatch->quiet, on_quiet);
	int rc = podwatch->fd < 0 ? -errno : folder_of(path, folder);
	if (rc == 0 && inotify_add_watch(podwatch->fd, folder, EVENTS) < 0)
		rc = -errno;
	if (rc == 0)
		rc = loop_add(loop, &podwatch->watch, podwatch->fd, EPOLLIN);
	if (rc < 0) {
		fd_close(&podwatch->fd);
		return err_sys(err, rc, "cannot watch %s", path);
	}
	return 0;
}

void podwatch_close(struct podwatch *podwatch)
{
	if (podwatch->fd < 0)
		return;
	loop_del(podwatch->loop, &podwatch->watch);
	loop_cancel(podwatch->loop, &podwatch->quiet);
	fd_close(&podwatch->fd);
}
