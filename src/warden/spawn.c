/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What happens between fork and exec. The child is single-threaded, as the
 * warden is, so it may use everything. Must not decide whether a namespace is
 * a pod's: netns_check has.
 */
#include "warden/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "warden/drop.h"
#include "warden/rundir.h"

/* Above every number in the silo's table: where descriptors wait until their place is free. */
#define FD_PARK 64

/* Descriptors of the silo by their number less SPAWN_FD_WARDEN. */
#define FD_TABLE_MAX (SPAWN_FD_LISTEN - SPAWN_FD_WARDEN + LISTEN_MAX)

static size_t listeners(const struct spawn *spawn, struct listen_spec specs[LISTEN_MAX])
{
	return spawn->is_self ? listen_table_self(spawn->settings, specs)
	                      : listen_table(spawn->settings, specs);
}

size_t spawn_heritage(const struct spawn *spawn, struct ipc_inherited fds[SPAWN_HERITAGE_MAX])
{
	size_t cnt = 0;
	struct listen_spec specs[LISTEN_MAX];
	size_t spec_cnt = listeners(spawn, specs);
	if (spawn->broker_fd >= 0)
		fds[cnt++] = (struct ipc_inherited){.kind = IPC_FD_BROKER, .fd = SPAWN_FD_BROKER};
	fds[cnt++] = (struct ipc_inherited){.kind = IPC_FD_CONTROL, .fd = SPAWN_FD_CONTROL};
	fds[cnt++] = (struct ipc_inherited){.kind = IPC_FD_NETNS, .fd = SPAWN_FD_NETNS};
	fds[cnt++] = (struct ipc_inherited){.kind = IPC_FD_ADMIN, .fd = SPAWN_FD_ADMIN};
	for (size_t i = 0; i < spec_cnt; i++)
		fds[cnt++] = (struct ipc_inherited){.kind = specs[i].kind, .fd = SPAWN_FD_LISTEN + (int)i};
	return cnt;
}

/* Makes everything that needs the pod's namespace or the warden's rights. Descriptors are freed by the
 * child's end. */
static int make_table(const struct spawn *spawn, int fds[FD_TABLE_MAX], size_t *ret_cnt, struct err *err)
{
	struct listen_spec specs[LISTEN_MAX];
	size_t cnt = listeners(spawn, specs);
	for (size_t i = 0; i < cnt; i++) {
		int rc = listen_open(
		        spawn->settings, &specs[i], &fds[SPAWN_FD_LISTEN - SPAWN_FD_WARDEN + i], err);
		if (rc < 0)
			return rc;
	}
	int rc = rundir_listen(spawn->dir_fd, spawn->socket, &fds[SPAWN_FD_CONTROL - SPAWN_FD_WARDEN]);
	if (rc < 0)
		return err_sys(err, rc, "control socket %s", spawn->socket);
	rc = rundir_listen_admin(spawn->dir_fd, spawn->socket, &fds[SPAWN_FD_ADMIN - SPAWN_FD_WARDEN]);
	if (rc < 0)
		return err_sys(err, rc, "admin socket of %s", spawn->socket);
	fds[SPAWN_FD_WARDEN - SPAWN_FD_WARDEN] = spawn->warden_fd;
	fds[SPAWN_FD_BROKER - SPAWN_FD_WARDEN] = spawn->broker_fd;
	fds[SPAWN_FD_NETNS - SPAWN_FD_WARDEN] = spawn->netns_fd;
	*ret_cnt = SPAWN_FD_LISTEN - SPAWN_FD_WARDEN + cnt;
	return 0;
}

/* Two passes, because a descriptor may sit on the number that another must have. */
static int arrange(int fds[FD_TABLE_MAX], size_t cnt, int *error_fd, struct err *err)
{
	int parked = fcntl(*error_fd, F_DUPFD_CLOEXEC, FD_PARK);
	if (parked < 0)
		return err_sys(err, -errno, "arranging descriptors");
	*error_fd = parked;
	for (size_t i = 0; i < cnt; i++) {
		if (fds[i] < 0)
			continue;
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_PARK);
		if (fds[i] < 0)
			return err_sys(err, -errno, "arranging descriptors");
	}
	for (size_t i = 0; i < cnt; i++) {
		int number = SPAWN_FD_WARDEN + (int)i;
		if (fds[i] < 0)
			close(number);
		else if (dup2(fds[i], number) < 0)
			return err_sys(err, -errno, "arranging descriptors");
	}
	/* What the silo says on stderr (a failed start, a failed assertion) is for the warden as well. */
	if (dup2(*error_fd, STDERR_FILENO) < 0)
		return err_sys(err, -errno, "arranging descriptors");
	int rc = fd_cloexec_from(SPAWN_FD_WARDEN + (int)cnt);
	return rc < 0 ? err_sys(err, rc, "closing descriptors") : 0;
}

/* no_new_privs comes first: with it an exec as uid 0 gives nothing back (prctl(2), capabilities(7)). */
static int shed(struct err *err)
{
	const struct rlimit none = {0, 0};
	sigset_t empty;
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, -errno, "core limit");
	int rc = drop_no_new_privs(err);
	return rc < 0 ? rc : drop_caps(DROP_CAP(CAP_NET_RAW), DROP_CAP(CAP_NET_RAW), err);
}

static int become_silo(const struct spawn *spawn, int *error_fd, struct err *err)
{
	int fds[FD_TABLE_MAX];
	size_t cnt = 0;
	if (!spawn->is_own_netns && setns(spawn->netns_fd, CLONE_NEWNET) < 0)
		return err_sys(err, -errno, "entering the network namespace");
	int rc = make_table(spawn, fds, &cnt, err);
	if (rc == 0)
		rc = arrange(fds, cnt, error_fd, err);
	if (rc == 0)
		rc = shed(err);
	if (rc < 0)
		return rc;
	char *const argv[] = {(char *)"culvert-silo", (char *)(uintptr_t)spawn->title, NULL};
	execve(spawn->program, argv, spawn->env);
	return err_sys(err, -errno, "executing %s", spawn->program);
}

int spawn_silo(const struct spawn *spawn, pid_t *ret_pid, int *ret_pidfd, int *ret_error_fd, struct err *err)
{
	int error_pipe[2];
	int pidfd = -1;
	if (pipe2(error_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(err, -errno, "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		struct err why = {0};
		become_silo(spawn, &error_pipe[1], &why);
		/* An empty pipe takes the whole text; were it lost, the exit status would still tell of the
		 * failure. */
		ssize_t written = write(error_pipe[1], why.text, strlen(why.text));
		_exit(written < 0 ? 2 : 1);
	}
	int rc = pid < 0 ? -errno : fd_pidfd(pid, &pidfd);
	fd_close(&error_pipe[1]);
	if (rc < 0) {
		fd_close(&error_pipe[0]);
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		return err_sys(err, rc, "starting a process");
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	*ret_error_fd = error_pipe[0];
	return 0;
}
