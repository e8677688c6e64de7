/* SPDX-License-Identifier: GPL-2.0-only */
/* Listening sockets of the agent. Knows no protocol. */
#include "unix_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/* Connections that may wait: they do while the agent starts. */
#define BACKLOG 64

int unix_socket_open(struct unix_socket *sock, const char *path, int type, struct err *err)
{
	struct stat st;
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return err_set(err, -EEXIST, "%s: there is something that is not a socket", path);
	int rc = fd_unix_listen(path, type, BACKLOG, &sock->fd);
	if (rc < 0)
		return err_sys(err, rc, "%s", path);
	if (lstat(path, &st) < 0) {
		rc = err_sys(err, -errno, "%s", path);
		fd_close(&sock->fd);
		return rc;
	}
	sock->path = path;
	sock->dev = st.st_dev;
	sock->ino = st.st_ino;
	return 0;
}

void unix_socket_close(struct unix_socket *sock)
{
	struct stat st;
	if (sock->fd < 0)
		return;
	fd_close(&sock->fd);
	if (lstat(sock->path, &st) == 0 && st.st_dev == sock->dev && st.st_ino == sock->ino)
		unlink(sock->path);
}

int unix_socket_accept(struct unix_socket *sock, int *ret_fd)
{
	int fd = accept4(sock->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}
