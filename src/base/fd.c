/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptor helpers. Ancillary data of a stranger is unpacked here and nowhere else. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Descriptors a packet may carry before the kernel cuts the list; only one is ever accepted. */
#define FD_RECV_ROOM 4

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4u
#endif

void fd_close(int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	close(*fd);
	errno = saved;
	*fd = -1;
}

static int set_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);
	if (flags < 0)
		return -errno;
	return fcntl(fd, set, on ? flags | flag : flags & ~flag) < 0 ? -errno : 0;
}

int fd_set_cloexec(int fd, bool on)
{
	return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

int fd_set_nonblock(int fd, bool on)
{
	return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_pair(int ret_fd[2])
{
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	ret_fd[0] = fds[0];
	ret_fd[1] = fds[1];
	return 0;
}

static int unix_addr(const char *path, struct sockaddr_un *ret_sun)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	if (len == 0 || len >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	memcpy(sun.sun_path, path, len + 1);
	*ret_sun = sun;
	return 0;
}

int fd_unix_listen(const char *path, int type, int backlog, int *ret_fd)
{
	struct sockaddr_un sun;
	int rc = unix_addr(path, &sun);
	if (rc < 0)
		return rc;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	/* The mode of the socket's own inode before bind is the mode of the file: no moment with a wider one.
	 */
	if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	        listen(fd, backlog) < 0) {
		rc = -errno;
		fd_close(&fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int fd_unix_connect(const char *path, int type, int *ret_fd)
{
	struct sockaddr_un sun;
	int rc = unix_addr(path, &sun);
	if (rc < 0)
		return rc;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		rc = -errno;
		fd_close(&fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int fd_peer(int fd, pid_t *ret_pid, uid_t *ret_uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (ret_pid)
		*ret_pid = cred.pid;
	if (ret_uid)
		*ret_uid = cred.uid;
	return 0;
}

int fd_send(int fd, const void *p, size_t len, int pass_fd)
{
	/* sendmsg only reads the bytes; struct iovec has no const. */
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	if (pass_fd >= 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass_fd, sizeof(int));
	}
	ssize_t n;
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EMSGSIZE;
}

/* Collects the descriptors beside a packet into fds; -EPROTO when anything else lies there. */
static int take_fds(struct msghdr *msg, int fds[FD_RECV_ROOM], size_t *ret_cnt)
{
	size_t cnt = 0;
	int rc = msg->msg_flags & MSG_CTRUNC ? -EPROTO : 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			rc = -EPROTO;
			continue;
		}
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n && cnt < FD_RECV_ROOM; i++)
			memcpy(&fds[cnt++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	*ret_cnt = cnt;
	return cnt > 1 ? -EPROTO : rc;
}

int fd_recv(int fd, void *dst, size_t cap, size_t *ret_len, int *ret_fd)
{
	struct iovec iov = {.iov_base = dst, .iov_len = cap};
	union {
		char bytes[CMSG_SPACE(FD_RECV_ROOM * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = {.msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = control.bytes,
	        .msg_controllen = sizeof(control.bytes)};
	ssize_t n;
	do {
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	int fds[FD_RECV_ROOM];
	size_t cnt;
	int rc = take_fds(&msg, fds, &cnt);
	if (rc == 0 && (msg.msg_flags & MSG_TRUNC))
		rc = -EMSGSIZE;
	if (rc < 0) {
		for (size_t i = 0; i < cnt; i++)
			fd_close(&fds[i]);
		return rc;
	}
	*ret_len = (size_t)n;
	*ret_fd = cnt ? fds[0] : -1;
	return 0;
}

int fd_pidfd(pid_t pid, int *ret_fd)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = (int)fd;
	return 0;
}

int fd_cloexec_from(int lowest)
{
	return syscall(SYS_close_range, (unsigned)lowest, ~0u, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}
