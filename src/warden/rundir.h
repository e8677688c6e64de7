/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run directory: one folder per instance of culvertd, held by a lock as
 * long as its first process lives; what dead instances left is taken over or
 * removed. Also file names of pods and unix sockets in the folder, reached
 * through its descriptor so that a long path does not matter (unix(7): 108
 * bytes). Knows no process and no protocol.
 */
#ifndef CULVERT_WARDEN_RUNDIR_H
#define CULVERT_WARDEN_RUNDIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/param.h"

/* Room for an instance's name with terminator: 16 hex digits. */
#define RUNDIR_INSTANCE_MAX 17

/* Most bytes of a uid that becomes a name as it is. */
#define RUNDIR_UID_MAX 64

/* Room for a pod's name with terminator: such a uid, or "_" and 32 hex digits. */
#define RUNDIR_NAME_MAX (RUNDIR_UID_MAX + 1)

/* Room for the file name of a silo's control socket with terminator: silo-<name>~<n>.sock. */
#define RUNDIR_SOCKET_MAX (RUNDIR_NAME_MAX + 24)

/* The folder of one instance. */
struct rundir {
	char base[PATH_MAX];                /* absolute path of the folder of all instances */
	char instance[RUNDIR_INSTANCE_MAX]; /* name of ours within */
	int fd;                             /* ours, open; -1 = none */
	int lock_fd;                        /* holds the lock; -1 in processes other than the first */
};

/*
 * First process: picks the base (CULVERT_RUN_DIR, else /var/run/ztunnel/culvert,
 * else /tmp/culvert), makes a new instance and takes over the control sockets
 * and the CA root of instances whose first process is dead; those folders are
 * removed. shared: the broker has an own uid, the group gets access to the
 * folder. -errno with text; run is then unset.
 */
int rundir_create(struct rundir *run, const struct settings *settings, bool shared, struct err *err);

/* Another process of the instance: opens the folder that settings->run_dir and ->instance name. -errno with
 * text. */
int rundir_open(struct rundir *run, const struct settings *settings, struct err *err);

/* Closes the descriptors, which frees the lock. */
void rundir_done(struct rundir *run);

/* First process, at the end: removes the folder and everything in it, unless silos are left behind in it. */
void rundir_remove(struct rundir *run);

/* Prints the file name of a ZDS uid into dst of RUNDIR_NAME_MAX bytes: the uid if it matches
 * [A-Za-z0-9-]{1,64}, else "_" and its hash. */
void rundir_pod_name(const char *uid, char *dst);

/* Prints the control socket's file name of a pod's name into dst of RUNDIR_SOCKET_MAX bytes. */
void rundir_socket_name(const char *pod_name, char *dst);

/* Whether a file name is that of a control socket. */
bool rundir_is_socket_name(const char *file);

/* Prints the admin socket's file name of the silo whose control socket is `file` into dst of
 * RUNDIR_SOCKET_MAX bytes. */
void rundir_admin_name(const char *file, char *dst);

/* A listening SOCK_STREAM socket of that name in the folder, mode 0600, an old one replaced. -errno. */
int rundir_listen_admin(int dir_fd, const char *file, int *ret_fd);

/* Removes a silo's control socket and its admin socket. */
void rundir_forget(int dir_fd, const char *file);

/* A listening SOCK_SEQPACKET socket in the folder, mode 0600, an old one of the name replaced. -errno. */
int rundir_listen(int dir_fd, const char *file, int *ret_fd);

/* Connects without blocking to a SOCK_SEQPACKET socket in the folder. -errno. */
int rundir_connect(int dir_fd, const char *file, int *ret_fd);

#endif
