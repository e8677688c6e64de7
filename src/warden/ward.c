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
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "warden/ward_int.h"

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

void ward_signal(struct ward *ward, int number)
{
	if (ward->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, ward->pidfd, number, NULL, 0);
}

void ward_set_timer(struct ward *ward, uint64_t delay_ms)
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
	ward_signal(ward, SIGKILL);
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
	ward_signal(ward, SIGKILL);
}

static void update_interest(struct ward *ward)
{
	if (ward->chan_watch.fd >= 0)
		(void)loop_mod(ward->env->loop, &ward->chan_watch,
		        EPOLLIN | (chan_wants_write(&ward->chan) ? EPOLLOUT : 0));
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
		log_msg(ward->env->log, LOG_DEBUG, TARGET, "sending %s to silo %d failed: %s",
		        ipc_type_str(rec->type), (int)ward->pid, err_str(rc));
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
			log_msg(ward->env->log, LOG_WARN, TARGET,
			        "drain duration expired with pending connections, forcefully shutting down");
		break;
	default:
		break;
	}
}

/* The silo has closed its end. One that ends by itself does so a moment before it is gone, and its exit
 * status says more. */
static void on_hang_up(struct ward *ward)
{
	if (ward->state == WARD_GREETING) {
		end_greeting(ward, "silo has closed its channel");
		return;
	}
	drop_channel(ward);
	if (ward->state != WARD_ENDING) {
		ward->state = WARD_ENDING;
		ward_set_timer(ward, LINGER_MS);
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

/* Before Ready the child's text is the reason of a failure; later it is a last word or a sanitizer's report,
 * for the log. */
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

struct ward *ward_new(const struct ward_env *env, const struct ward_events *events, void *owner)
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

void ward_refuse(struct ward *ward, bool is_graceful, uint64_t deadline_ms)
{
	struct ipc_record rec = {
	        .type = IPC_DRAIN, .drain = {.graceful = is_graceful, .deadline_ms = deadline_ms}};
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
	struct ipc_record rec = {.type = IPC_DRAIN,
	        .drain = {.graceful = is_graceful, .deadline_ms = is_graceful ? deadline_ms : 0}};
	/* A silo that cannot be told any more is on its way out or killed by its timer. */
	(void)send_record(ward, &rec, -1);
	ward->state = WARD_ENDING;
	uint64_t limit = is_graceful ? deadline_ms : WARD_FAREWELL_MS;
	ward_set_timer(ward,
	        is_graceful && limit < UINT64_MAX - WARD_OVERTIME_MS ? limit + WARD_OVERTIME_MS : limit);
}
