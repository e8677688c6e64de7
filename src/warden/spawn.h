/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Birth of a silo: fork, enter the pod's namespace, make its sockets, give
 * everything up but CAP_NET_RAW, execute. Descriptor numbers are fixed, so
 * that the warden can write the Heritage without hearing from the child. The
 * only place that calls setns.
 */
#ifndef CULVERT_WARDEN_SPAWN_H
#define CULVERT_WARDEN_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/param.h"
#include "pb/ipc.h"
#include "warden/listen.h"

/* Descriptor numbers in the silo; traffic listeners follow from SPAWN_FD_LISTEN in the order of listen_table.
 */
#define SPAWN_FD_WARDEN 3
#define SPAWN_FD_BROKER 4
#define SPAWN_FD_CONTROL 5
#define SPAWN_FD_NETNS 6
#define SPAWN_FD_ADMIN 7
#define SPAWN_FD_LISTEN 8

/* Most descriptors that a Heritage names: all but the warden's channel. */
#define SPAWN_HERITAGE_MAX (LISTEN_MAX + 4)

/* What a silo is born with. All borrowed; descriptors stay the caller's, the child has copies. */
struct spawn {
	const struct settings *settings;
	const char *program; /* path of culvert-silo */
	char *const *env;    /* its whole environment */
	const char *title;   /* argv[1], for people who look at process lists */
	int dir_fd;          /* instance folder */
	const char *socket;  /* file name of its control socket; that of the admin socket follows from it */
	int netns_fd;        /* the pod's namespace */
	bool is_own_netns;   /* it is that of this process: do not enter */
	bool is_self;        /* the daemon's own silo: other listeners */
	int warden_fd;       /* its end of the channel to the warden */
	int broker_fd;       /* its end of the channel to the broker; -1 = none */
};

/* Fills fds with what the silo finds under which number; returns how many. */
size_t spawn_heritage(const struct spawn *spawn, struct ipc_inherited fds[SPAWN_HERITAGE_MAX]);

/*
 * Forks the child. *ret_pid, *ret_pidfd and *ret_error_fd are the caller's:
 * the last is a non-blocking pipe that brings the text of what failed, and is
 * the silo's stderr once the program runs. -errno with text when there is no
 * child.
 */
int spawn_silo(const struct spawn *spawn, pid_t *ret_pid, int *ret_pidfd, int *ret_error_fd, struct err *err);

#endif
