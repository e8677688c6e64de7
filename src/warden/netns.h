/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identity of network namespaces and the check of a descriptor that the node
 * agent hands over. Never enters one: that is spawn.c, in a child.
 */
#ifndef CULVERT_WARDEN_NETNS_H
#define CULVERT_WARDEN_NETNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Identity of a namespace: device and inode of its descriptor (reference node-agent.md 1.3). */
struct netns_id {
	uint64_t dev; /* st_dev */
	uint64_t ino; /* st_ino */
};

/* Namespaces that are never a pod's. */
struct netns_guard {
	struct netns_id own;  /* culvertd's */
	struct netns_id host; /* that of process 1, where it can be seen */
	bool has_host;        /* host is known */
};

/* Equality. */
bool netns_eq(const struct netns_id *a, const struct netns_id *b);

/* Identity of whatever fd is. -errno. */
int netns_id_of(int fd, struct netns_id *ret_id);

/* Opens the namespace of this process (close-on-exec). -errno. */
int netns_open_own(int *ret_fd);

/* Learns own and host namespace. -errno when /proc/self/ns/net cannot be read. */
int netns_guard_init(struct netns_guard *guard);

/*
 * Whether fd may be a pod's: a network namespace (ioctl_ns(2) NS_GET_NSTYPE),
 * not culvertd's own, not the host's. -EINVAL with a text.
 */
int netns_check(const struct netns_guard *guard, int fd, struct err *err);

#endif
