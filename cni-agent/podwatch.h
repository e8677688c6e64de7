/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Watches a pods file, or a directory of them, and says when they may have
 * changed: once, after a quiet moment. The folder is what is watched, so that
 * a rename over the file and a ConfigMap's switch of links are seen. Reads
 * nothing itself.
 */
#ifndef CULVERT_CNI_AGENT_PODWATCH_H
#define CULVERT_CNI_AGENT_PODWATCH_H

#include "base/err.h"
#include "base/loop.h"

/* Quiet time before a change is reported, milliseconds: writers are let finish. */
#define PODWATCH_QUIET_MS 100

/* The watcher. Private. */
struct podwatch {
	struct loop *loop; /* borrowed */
	int fd;            /* inotify; -1 = closed */
	struct watch watch;
	struct timer quiet;
	void (*changed)(struct podwatch *podwatch);
};

/* Starts watching path. -errno with text. */
int podwatch_open(struct podwatch *podwatch, struct loop *loop, const char *path,
        void (*changed)(struct podwatch *podwatch), struct err *err);

/* Stops. Harmless when fd is -1. */
void podwatch_close(struct podwatch *podwatch);

#endif
