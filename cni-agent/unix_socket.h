/* SPDX-License-Identifier: GPL-2.0-only */
/* A listening unix socket whose file is removed at the end only if it is still ours. */
#ifndef CULVERT_CNI_AGENT_UNIX_SOCKET_H
#define CULVERT_CNI_AGENT_UNIX_SOCKET_H

#include <sys/types.h>

#include "base/err.h"

/* The socket; fd may be read. */
struct unix_socket {
	int fd;           /* listening, non-blocking; -1 = closed */
	const char *path; /* borrowed */
	dev_t dev;        /* of the file as it was made */
	ino_t ino;
};

/* Listens at path (borrowed), mode 0600, replacing a socket that is there; anything else there is refused.
 * -errno with text. */
int unix_socket_open(struct unix_socket *sock, const char *path, int type, struct err *err);

/* Closes it. The file goes unless another agent has put its own there meanwhile (reference
 * node-agent.md 1.1). */
void unix_socket_close(struct unix_socket *sock);

/* Accepts one connection, close-on-exec and non-blocking. -EAGAIN, other -errno. */
int unix_socket_accept(struct unix_socket *sock, int *ret_fd);

#endif
