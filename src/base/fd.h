/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File descriptors: closing, flags, and passing at most one beside a packet on
 * a SOCK_SEQPACKET socket (unix(7), SCM_RIGHTS). A packet with more than one
 * descriptor is refused and all of them are closed.
 */
#ifndef CULVERT_BASE_FD_H
#define CULVERT_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Closes *fd when >= 0 and sets it to -1; errno is kept. */
void fd_close(int *fd);

int fd_set_cloexec(int fd, bool on);  /* 0 or -errno */
int fd_set_nonblock(int fd, bool on); /* 0 or -errno */

/* A connected SOCK_SEQPACKET pair, both close-on-exec and non-blocking. -errno. */
int fd_pair(int ret_fd[2]);

/* A listening SOCK_SEQPACKET or SOCK_STREAM unix socket at path (a stale one is replaced), close-on-exec,
 * non-blocking, file mode 0600. -errno, -ENAMETOOLONG. */
int fd_unix_listen(const char *path, int type, int backlog, int *ret_fd);

/* Connects to a unix socket, close-on-exec, non-blocking. -errno; -EAGAIN when the backlog is full (it never
 * waits), -ENAMETOOLONG. */
int fd_unix_connect(const char *path, int type, int *ret_fd);

/* Credentials of a unix peer at connect time (SO_PEERCRED); outputs may be NULL. -errno. */
int fd_peer(int fd, pid_t *ret_pid, uid_t *ret_uid);

/*
 * Sends one packet, with pass_fd beside it when >= 0 (stays the caller's).
 * Never raises SIGPIPE, never blocks. 0, -EAGAIN, other -errno; a short send
 * is -EMSGSIZE.
 */
int fd_send(int fd, const void *p, size_t len, int pass_fd);

/*
 * Receives one packet into dst without blocking. *ret_len = its bytes (0 =
 * peer has closed), *ret_fd = the descriptor beside it (close-on-exec, now the
 * caller's) or -1. -EAGAIN, other -errno; -EMSGSIZE when larger than cap;
 * -EPROTO when more than one descriptor or other ancillary data came. On
 * errors no descriptor is left open.
 */
int fd_recv(int fd, void *dst, size_t cap, size_t *ret_len, int *ret_fd);

/* pidfd of a process (close-on-exec). -errno. */
int fd_pidfd(pid_t pid, int *ret_fd);

/* Marks every descriptor >= lowest close-on-exec (for before exec). -errno. */
int fd_cloexec_from(int lowest);

#endif
