/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two ways to a ward: birth, and a call over the control socket of a silo
 * that a former warden has left. Must not handle what follows.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"
#include "warden/spawn.h"
#include "warden/ward.h"
#include "warden/ward_int.h"

/* Takes fd over and says Hello. */
static int open_channel(struct ward *ward, int fd, struct err *err)
{
	chan_init(&ward->chan, fd, IPC_ROLE_WARDEN, IPC_ROLE_SILO, false, ward->env->scratch);
	struct ipc_hello hello = {.pid = (int32_t)getpid()};
	int rc = proc_start_time(getpid(), &hello.start_time);
	if (rc == 0)
		rc = chan_send_hello(&ward->chan, &hello, -1, err);
	if (rc == 0)
		rc = loop_add(ward->env->loop, &ward->chan_watch, fd, EPOLLIN);
	return rc < 0 ? err_sys(err, rc, "channel to the silo") : 0;
}

static int send_heritage(
        struct ward *ward, const struct ward_birth *birth, const struct spawn *spawn, struct err *err)
{
	struct ipc_inherited fds[SPAWN_HERITAGE_MAX];
	struct ipc_record rec = {.type = IPC_HERITAGE,
	        .heritage = {.uid = birth->uid,
	                .info = *birth->info,
	                .fds = fds,
	                .fd_cnt = spawn_heritage(spawn, fds),
	                .run_name = birth->run_name,
	                .first = birth->is_first,
	                .mode = birth->mode}};
	return chan_send(&ward->chan, &rec, -1, err);
}

static int give_birth(struct ward *ward, const struct ward_birth *birth, int pair[2], struct err *err)
{
	char title[256];
	snprintf(title, sizeof(title), "%s/%s", birth->info->ns, birth->info->name);
	struct spawn spawn = {.settings = ward->env->settings,
	        .program = ward->env->program,
	        .env = ward->env->silo_env,
	        .title = title,
	        .dir_fd = ward->env->run->fd,
	        .socket = birth->socket,
	        .netns_fd = birth->netns_fd,
	        .is_own_netns = birth->mode != IPC_SILO_POD,
	        .is_self = birth->mode == IPC_SILO_SELF,
	        .warden_fd = pair[1],
	        .broker_fd = birth->broker_fd};
	int rc = spawn_silo(&spawn, &ward->pid, &ward->pidfd, &ward->error_fd, err);
	if (rc < 0)
		return rc;
	int fd = pair[0];
	pair[0] = -1;
	rc = open_channel(ward, fd, err);
	if (rc == 0)
		rc = send_heritage(ward, birth, &spawn, err);
	if (rc == 0)
		rc = loop_add(ward->env->loop, &ward->pid_watch, ward->pidfd, EPOLLIN);
	if (rc == 0)
		rc = loop_add(ward->env->loop, &ward->error_watch, ward->error_fd, EPOLLIN);
	if (rc < 0) {
		ward_signal(ward, SIGKILL);
		(void)waitid(P_PIDFD, (id_t)ward->pidfd, NULL, WEXITED);
	}
	return rc;
}

int ward_start(const struct ward_env *env, const struct ward_birth *birth, const struct ward_events *events,
        void *owner, struct ward **ret_ward, struct err *err)
{
	struct ward *ward = ward_new(env, events, owner);
	int pair[2] = {-1, -1};
	int rc = ward ? fd_pair(pair) : -ENOMEM;
	if (rc < 0)
		rc = err_sys(err, rc, "channel to the silo");
	else
		rc = give_birth(ward, birth, pair, err);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	if (rc < 0) {
		ward_free(ward);
		return rc;
	}
	ward->state = WARD_STARTING;
	ward->has_broker = birth->broker_fd >= 0;
	ward_set_timer(ward, WARD_START_MS);
	*ret_ward = ward;
	return 0;
}

/* Connects and learns who listens there: alive as the socket is, so that the pid is his. */
static int call(struct ward *ward, const char *socket, int *ret_fd)
{
	int fd = -1;
	uid_t uid = 0;
	int rc = rundir_connect(ward->env->run->fd, socket, &fd);
	if (rc == 0)
		rc = fd_peer(fd, &ward->pid, &uid);
	if (rc == 0 && uid != geteuid())
		rc = -EPERM;
	if (rc == 0)
		rc = fd_pidfd(ward->pid, &ward->pidfd);
	if (rc < 0)
		fd_close(&fd);
	else
		*ret_fd = fd;
	return rc;
}

int ward_call(const struct ward_env *env, const char *socket, const struct ward_events *events, void *owner,
        struct ward **ret_ward, struct err *err)
{
	int fd = -1;
	struct ward *ward = ward_new(env, events, owner);
	int rc = ward ? call(ward, socket, &fd) : -ENOMEM;
	if (rc < 0)
		rc = err_sys(err, rc, "control socket %s", socket);
	else
		rc = open_channel(ward, fd, err);
	if (rc < 0) {
		ward_free(ward);
		return rc;
	}
	ward->state = WARD_GREETING;
	ward_set_timer(ward, WARD_GREETING_MS);
	*ret_ward = ward;
	return 0;
}

int ward_keep(struct ward *ward, const struct ipc_hello *hello, struct err *err)
{
	uint64_t ticks = 0;
	int rc = hello->pid == ward->pid ? proc_start_time(ward->pid, &ticks) : -ESRCH;
	if (rc == 0 && ticks != hello->start_time)
		rc = -ESRCH;
	if (rc == 0)
		rc = loop_add(ward->env->loop, &ward->pid_watch, ward->pidfd, EPOLLIN);
	if (rc < 0)
		return err_sys(err, rc, "process %d", (int)hello->pid);
	ward->has_broker = hello->broker_attached;
	ward->state = hello->is_ready ? WARD_UP : WARD_STARTING;
	ward->up_ms = clock_ms();
	if (ward->state == WARD_STARTING)
		ward_set_timer(ward, WARD_START_MS);
	return 0;
}
