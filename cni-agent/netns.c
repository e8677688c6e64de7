/* SPDX-License-Identifier: GPL-2.0-only */
/* What a namespace descriptor is, asked of the kernel. Must not call setns. */
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

bool netns_eq(const struct netns_id *a, const struct netns_id *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* Whether path is the namespace id; one that cannot be seen is not. */
static bool is_that_of(const char *path, const struct netns_id *id)
{
	struct stat st;
	return stat(path, &st) == 0 && id->dev == st.st_dev && id->ino == st.st_ino;
}

static int check(int fd, const char *name, struct netns_id *ret_id, struct err *err)
{
	struct stat st;
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return err_set(err, -EINVAL, "%s is not a network namespace", name);
	if (fstat(fd, &st) < 0)
		return err_sys(err, -errno, "%s", name);
	struct netns_id id = {.dev = st.st_dev, .ino = st.st_ino};
	if (is_that_of("/proc/self/ns/net", &id))
		return err_set(err, -EINVAL, "%s is the network namespace of the agent itself", name);
	if (is_that_of("/proc/1/ns/net", &id))
		return err_set(err, -EINVAL, "%s is the network namespace of the host", name);
	*ret_id = id;
	return 0;
}

int netns_open(const char *path, pid_t pid, int *ret_fd, struct netns_id *ret_id, struct err *err)
{
	char of_process[64];
	snprintf(of_process, sizeof(of_process), "/proc/%d/ns/net", (int)pid);
	const char *name = path ? path : of_process;
	/* Somebody's pipe or terminal must neither hold us up nor become ours. */
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, -errno, "%s", name);
	int rc = check(fd, name, ret_id, err);
	if (rc < 0)
		fd_close(&fd);
	else
		*ret_fd = fd;
	return rc;
}
