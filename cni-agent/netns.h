/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Network namespaces as descriptors: open one, check what it is, tell one from
 * another. Nothing here enters a namespace: that is job.c, in a child.
 */
#ifndef CULVERT_CNI_AGENT_NETNS_H
#define CULVERT_CNI_AGENT_NETNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Identity of a namespace (reference node-agent.md 1.3). */
struct netns_id {
	uint64_t dev; /* st_dev */
	uint64_t ino; /* st_ino */
};

/* Equality. */
bool netns_eq(const struct netns_id *a, const struct netns_id *b);

/*
 * Opens the namespace at path, or of the process pid when path is NULL.
 * Refused: what is no network namespace (ioctl_ns(2) NS_GET_NSTYPE), the
 * agent's own, that of process 1. The descriptor is close-on-exec and the
 * caller's. -ENOENT and other -errno when it cannot be opened, -EINVAL when
 * refused, with text.
 */
int netns_open(const char *path, pid_t pid, int *ret_fd, struct netns_id *ret_id, struct err *err);

#endif
