/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a namespace descriptor is, asked of the kernel. Must not call setns. */
#include "warden/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

bool netns_eq(const struct netns_id *a, const struct netns_id *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

int netns_id_of(int fd, struct netns_id *ret_id)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_id = (struct netns_id){.dev = st.st_dev, .ino = st.st_ino};
	return 0;
}

int netns_open_own(int *ret_fd)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int netns_guard_init(struct netns_guard *guard)
{
	int fd = -1;
	int rc = netns_open_own(&fd);
	if (rc < 0)
		return rc;
	*guard = (struct netns_guard){.has_host = false};
	rc = netns_id_of(fd, &guard->own);
	fd_close(&fd);
	/* In a PID namespace of its own, process 1 is culvertd itself; reading another's needs more than the
	 * chart grants. */
	fd = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && netns_id_of(fd, &guard->host) == 0)
		guard->has_host = true;
	fd_close(&fd);
	return rc;
}

int netns_check(const struct netns_guard *guard, int fd, struct err *err)
{
	int type = ioctl(fd, NS_GET_NSTYPE);
	if (type != CLONE_NEWNET)
		return err_set(err, -EINVAL, "descriptor is not a network namespace");
	struct netns_id id;
	int rc = netns_id_of(fd, &id);
	if (rc < 0)
		return err_sys(err, rc, "network namespace");
	if (netns_eq(&id, &guard->own))
		return err_set(err, -EINVAL, "network namespace is that of culvertd itself");
	if (guard->has_host && netns_eq(&id, &guard->host))
		return err_set(err, -EINVAL, "network namespace is that of the host");
	return 0;
}
