/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A silo's channel and life. Its death is learnt from the pidfd alone: a lost
 * channel only leads to a kill, so that there is one end and one reason. Must
 * not know what a pod is.
 */
#include "warden/ward.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "warden/spawn.h"

#define TARGET "ztunnel::inpod::workloadmanager"

/* Records taken from one silo in a row: a chatty one must not starve the rest. */
#define RECORDS_PER_TURN 16

/* Time between a silo's last word and its exit, milliseconds. */
#define LINGER_MS 100

static void set_reason(struct ward *ward, const char *text)
{
	if (ward->reason[0] == '\0')
		snprintf(ward->reason, sizeof(ward->reason), "%s", text);
}

static void signal_process(struct ward *ward, int number)
{
	if (ward->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, ward->pidfd, number, NULL, 0);
}

static void set_timer(struct ward *ward, uint64_t delay_ms)
{
	loop_after(ward->env->loop, &ward->timer, delay_ms);
}

static void drop_channel(struct ward *ward)
{
	loop_del(ward->env->loop, &ward->chan_watch);
	chan_done(&ward->chan);
}

static void drop_error_pipe(struct ward *ward)
{
	loop_del(ward->env->loop, &ward->error_watch);
	fd_close(&ward->error_fd);
}

/* A silo that cannot be talked to must not go on taking connections beside its successor. */
static void end_greeting(struct ward *ward, const char *why)
{
	set_reason(ward, why);
	drop_channel(ward);
	signal_process(ward, SIGKILL);
	ward->state = WARD_DEAD;
	loop_cancel(ward->env->loop, &ward->timer);
	ward->events->ended(ward);
}

void ward_kill(struct ward *ward, const char *why)
{
	if (ward->state == WARD_DEAD)
		return;
	if (ward->state == WARD_GREETING) {
		end_greeting(ward, why);
		return;
	}
	set_reason(ward, why);
	ward->state = WARD_ENDING;
	drop_channel(ward);
	loop_cancel(ward->env->loop, &ward->timer);
	signal_process(ward, SIGKILL);
}

static void update_interest(struct ward *ward)
{
	if (ward->chan_watch.fd >= 0)
		(void)loop_mod(ward->env->loop, &ward->chan_watch, EPOLLIN | (chan_wants_write(&ward->chan) ? EPOLLOUT : 0));
}

/* Takes pass_fd over in every case. Returns false when the channel is of no use any more. */
static bool send_record(struct ward *ward, const struct ipc_record *rec, int pass_fd)
{
	struct err err = {0};
	if (ward->chan.fd < 0) {
		fd_close(&pass_fd);
		return false;
	}
	int rc = chan_send(&ward->chan, rec, pass_fd, &err);
	if (rc < 0)
		log_msg(ward->env->log, LOG_DEBUG, TARGET, "sending %s to silo %d failed: %s", ipc_type_str(rec->type), (int)ward->pid, err_str(rc));
	update_interest(ward);
	return rc == 0;
}

static void on_record(struct ward *ward, struct chan_msg *msg)
{
	switch (msg->rec.type) {
	case IPC_HELLO:
		if (ward->state == WARD_GREETING) {
			int netns_fd = msg->fd;
			msg->fd = -1;
			loop_cancel(ward->env->loop, &ward->timer);
			ward->events->greeted(ward, &msg->rec.hello, netns_fd);
		}
		break;
	case IPC_READY:
		if (ward->state == WARD_STARTING) {
			loop_cancel(ward->env->loop, &ward->timer);
			ward->state = WARD_UP;
			ward->up_ms = clock_ms();
			ward->events->ready(ward);
		}
		break;
	case IPC_START_FAILED:
		ward_kill(ward, msg->rec.start_failed.text);
		break;
	case IPC_DRAINED:
		if (msg->rec.drained.forced)
			log_msg(ward->env->log, LOG_WARN, TARGET, "drain duration expired with pending connections, forcefully shutting down");
		break;
	default:
		break;
	}
}

/* The silo has closed its end. One that ends by itself does so a moment before it is gone, and its exit status says more. */
static void on_hang_up(struct ward *ward)
{
	if (ward->state == WARD_GREETING) {
		end_greeting(ward, "silo has closed its channel");
		return;
	}
	drop_channel(ward);
	if (ward->state != WARD_ENDING) {
		ward->state = WARD_ENDING;
		set_timer(ward, LINGER_MS);
	}
}

/*
 * Takes one record. Returns whether to go on with the next one: not when there
 * is none, and not when an event was told, because the owner may have freed
 * the ward.
 */
static bool take_record(struct ward *ward)
{
	struct err err = {0};
	struct chan_msg msg = {.fd = -1};
	if (ward->chan.fd < 0)
		return false;
	int rc = chan_recv(&ward->chan, &msg, &err);
	if (rc == -EAGAIN)
		return false;
	if (rc == -EPIPE || rc == -ECONNRESET) {
		on_hang_up(ward);
		return false;
	}
	if (rc < 0) {
		char why[ERR_TEXT_MAX + 32];
		snprintf(why, sizeof(why), "channel to the silo: %s", err.text[0] ? err.text : err_str(rc));
		ward_kill(ward, why);
		return false;
	}
	bool is_event = msg.rec.type == IPC_HELLO || msg.rec.type == IPC_READY;
	on_record(ward, &msg);
	chan_msg_done(&msg);
	return !is_event;
}

static void on_channel(struct watch *watch, uint32_t events)
{
	struct ward *ward = list_entry(watch, struct ward, chan_watch);
	if ((events & EPOLLOUT) && chan_flush(&ward->chan) < 0) {
		on_hang_up(ward);
		return;
	}
	update_interest(ward);
	if (!(events & ~(uint32_t)EPOLLOUT))
		return;
	for (int i = 0; i < RECORDS_PER_TURN; i++)
		if (!take_record(ward))
			break;
}

/* Before Ready the child's text is the reason of a failure; later it is a last word or a sanitizer's report, for the log. */
static void read_error_pipe(struct ward *ward)
{
	char text[ERR_TEXT_MAX];
	ssize_t n = read(ward->error_fd, text, sizeof(text) - 1);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		drop_error_pipe(ward);
		return;
	}
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	if (ward->up_ms == 0 && ward->error_text[0] == '\0')
		snprintf(ward->error_text, sizeof(ward->error_text), "%s", text);
	else
		log_msg(ward->env->log, LOG_WARN, TARGET, "silo %d says: %s", (int)ward->pid, text);
}

static void on_error_pipe(struct watch *watch, uint32_t events)
{
	read_error_pipe(list_entry(watch, struct ward, error_watch));
}

/* Only children can be waited for: of an adopted silo the status is not known. */
static void describe_exit(const struct ward *ward, char *dst, size_t cap)
{
	siginfo_t info = {0};
	if (waitid(P_PIDFD, (id_t)ward->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		snprintf(dst, cap, "silo is gone");
	else if (info.si_code == CLD_EXITED)
		snprintf(dst, cap, "silo exited with status %d", info.si_status);
	else
		snprintf(dst, cap, "silo was killed by signal %d", info.si_status);
}

/* The process is gone: whatever it said last is read before its end is told. */
static void on_exit_seen(struct watch *watch, uint32_t events)
{
	struct ward *ward = list_entry(watch, struct ward, pid_watch);
	char text[64];
	bool was_starting = ward->up_ms == 0;
	describe_exit(ward, text, sizeof(text));
	if (ward->error_fd >= 0)
		read_error_pipe(ward);
	/* In this state no record is told as an event any more: a dead process is not ready. */
	ward->state = WARD_ENDING;
	for (int i = 0; i < RECORDS_PER_TURN && take_record(ward); i++)
		continue;
	if (was_starting && ward->error_text[0])
		snprintf(ward->reason, sizeof(ward->reason), "%s", ward->error_text);
	set_reason(ward, text);
	loop_cancel(ward->env->loop, &ward->timer);
	loop_del(ward->env->loop, &ward->pid_watch);
	drop_channel(ward);
	drop_error_pipe(ward);
	ward->state = WARD_DEAD;
	ward->events->ended(ward);
}

static void on_timer(struct timer *timer, uint64_t now)
{
	struct ward *ward = list_entry(timer, struct ward, timer);
	switch (ward->state) {
	case WARD_GREETING:
		end_greeting(ward, "silo does not answer");
		break;
	case WARD_STARTING:
		ward_kill(ward, "silo was not ready in time");
		break;
	case WARD_UP:
	case WARD_ENDING:
		ward_kill(ward, "silo did not end in time");
		break;
	case WARD_DEAD:
		break;
	}
}

static struct ward *ward_new(const struct ward_env *env, const struct ward_events *events, void *owner)
{
	struct ward *ward = mem_zalloc(1, sizeof(*ward));
	if (!ward)
		return NULL;
	ward->env = env;
	ward->events = events;
	ward->owner = owner;
	ward->pidfd = -1;
	ward->error_fd = -1;
	ward->chan.fd = -1;
	list_init(&ward->node);
	ward->chan_watch = (struct watch){.fd = -1, .ready = on_channel};
	ward->pid_watch = (struct watch){.fd = -1, .ready = on_exit_seen};
	ward->error_watch = (struct watch){.fd = -1, .ready = on_error_pipe};
	timer_init(&ward->timer, on_timer);
	return ward;
}

void ward_free(struct ward *ward)
{
	if (!ward)
		return;
	list_del(&ward->node);
	loop_cancel(ward->env->loop, &ward->timer);
	loop_del(ward->env->loop, &ward->pid_watch);
	if (ward->chan.fd >= 0)
		drop_channel(ward);
	drop_error_pipe(ward);
	fd_close(&ward->pidfd);
	mem_free(ward);
}

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

static int send_heritage(struct ward *ward, const struct ward_birth *birth, const struct spawn *spawn, struct err *err)
{
	struct ipc_inherited fds[SPAWN_HERITAGE_MAX];
	struct ipc_record rec = {.type = IPC_HERITAGE, .heritage = {
		.uid = birth->uid, .info = *birth->info, .fds = fds, .fd_cnt = spawn_heritage(spawn, fds),
		.run_name = birth->run_name, .first = birth->is_first, .mode = birth->mode}};
	return chan_send(&ward->chan, &rec, -1, err);
}

static int give_birth(struct ward *ward, const struct ward_birth *birth, int pair[2], struct err *err)
{
	char title[256];
	snprintf(title, sizeof(title), "%s/%s", birth->info->ns, birth->info->name);
	struct spawn spawn = {
		.settings = ward->env->settings, .program = ward->env->program, .env = ward->env->silo_env, .title = title,
		.dir_fd = ward->env->run->fd, .socket = birth->socket, .netns_fd = birth->netns_fd,
		.is_own_netns = birth->mode != IPC_SILO_POD, .warden_fd = pair[1], .broker_fd = birth->broker_fd};
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
		signal_process(ward, SIGKILL);
		(void)waitid(P_PIDFD, (id_t)ward->pidfd, NULL, WEXITED);
	}
	return rc;
}

int ward_start(const struct ward_env *env, const struct ward_birth *birth, const struct ward_events *events, void *owner, struct ward **ret_ward,
	struct err *err)
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
	set_timer(ward, WARD_START_MS);
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

int ward_call(const struct ward_env *env, const char *socket, const struct ward_events *events, void *owner, struct ward **ret_ward,
	struct err *err)
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
	set_timer(ward, WARD_GREETING_MS);
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
		set_timer(ward, WARD_START_MS);
	return 0;
}

void ward_refuse(struct ward *ward, bool is_graceful, uint64_t deadline_ms)
{
	struct ipc_record rec = {.type = IPC_DRAIN, .drain = {.graceful = is_graceful, .deadline_ms = deadline_ms}};
	(void)send_record(ward, &rec, -1);
	ward_free(ward);
}

void ward_attach_broker(struct ward *ward, int fd)
{
	struct ipc_record rec = {.type = IPC_ATTACH_BROKER};
	ward->has_broker = send_record(ward, &rec, fd);
}

void ward_end(struct ward *ward, bool is_graceful, uint64_t deadline_ms)
{
	if (ward->state == WARD_GREETING || ward->state == WARD_STARTING) {
		ward_kill(ward, "silo is not wanted any more");
		return;
	}
	if (ward->state == WARD_DEAD || ward->chan.fd < 0)
		return;
	struct ipc_record rec = {.type = IPC_DRAIN, .drain = {.graceful = is_graceful, .deadline_ms = is_graceful ? deadline_ms : 0}};
	/* A silo that cannot be told any more is on its way out or killed by its timer. */
	(void)send_record(ward, &rec, -1);
	ward->state = WARD_ENDING;
	uint64_t limit = is_graceful ? deadline_ms : WARD_FAREWELL_MS;
	set_timer(ward, is_graceful && limit < UINT64_MAX - WARD_OVERTIME_MS ? limit + WARD_OVERTIME_MS : limit);
}
