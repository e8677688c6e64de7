/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A folder under inotify(7); see file_watch.h. What happened does not matter, only that something did. */
#include "broker/file_watch.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

/* What may change a file's content or what its name means. */
#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB)

struct file_watch {
	struct io *io;
	int fd; /* inotify */
	uint32_t quiet_ms;
	struct io_op in;
	struct timer quiet;
	void (*changed)(void *ctx); /* NULL = freed, waits for the ring */
	void *ctx;
};

static void on_quiet(struct timer *timer, uint64_t now)
{
	struct file_watch *watch = list_entry(timer, struct file_watch, quiet);
	(void)now;
	watch->changed(watch->ctx);
}

static void on_event(struct io_op *op, const struct io_result *result)
{
	struct file_watch *watch = list_entry(op, struct file_watch, in);
	char events[4096];
	if (!watch->changed) {
		if (!result->more)
			mem_free(watch);
		return;
	}
	while (read(watch->fd, events, sizeof(events)) > 0)
		;
	io_timer_start(watch->io, &watch->quiet, watch->quiet_ms);
	if (!result->more && result->res >= 0)
		io_poll(watch->io, op, watch->fd, POLLIN, true);
}

int file_watch_new(struct io *io, const char *path, uint32_t quiet_ms, void (*changed)(void *ctx), void *ctx,
        struct file_watch **ret_watch)
{
	char folder[PATH_MAX];
	if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	struct file_watch *watch = mem_zalloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	*watch = (struct file_watch){.io = io, .quiet_ms = quiet_ms, .changed = changed, .ctx = ctx};
	watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->fd < 0 || inotify_add_watch(watch->fd, dirname(folder), EVENTS) < 0) {
		int r = -errno;
		fd_close(&watch->fd);
		mem_free(watch);
		return r;
	}
	timer_init(&watch->quiet, on_quiet);
	io_op_init(&watch->in, on_event);
	io_poll(io, &watch->in, watch->fd, POLLIN, true);
	*ret_watch = watch;
	return 0;
}

void file_watch_free(struct file_watch *watch)
{
	if (!watch)
		return;
	io_timer_stop(watch->io, &watch->quiet);
	fd_close(&watch->fd);
	watch->changed = NULL;
	if (watch->in.in_flight)
		io_cancel(watch->io, &watch->in);
	else
		mem_free(watch);
}
