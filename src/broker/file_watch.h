/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells when a file may have changed: its folder is watched, so that the
 * symlink swap of a ConfigMap or Secret is seen, and the telling waits until
 * it has been quiet for a while. Reads no file.
 */
#ifndef CULVERT_BROKER_FILE_WATCH_H
#define CULVERT_BROKER_FILE_WATCH_H

#include <stdint.h>

#include "io/ring.h"

struct file_watch;

/* Watches the folder of `path`; `changed` comes `quiet_ms` after the last event there. 0, -errno, -ENOMEM. */
int file_watch_new(struct io *io, const char *path, uint32_t quiet_ms, void (*changed)(void *ctx), void *ctx,
        struct file_watch **ret_watch);

/* Ends it; `changed` does not come any more. NULL is fine. */
void file_watch_free(struct file_watch *watch);

#endif
