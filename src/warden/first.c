/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Start, wait, start again. Everything is a signal or a timeout of one
 * sigtimedwait; no descriptors are watched. Must not know pods, records or
 * the mesh.
 */
#include "warden/first.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "warden/backoff.h"
#include "warden/child.h"
#include "warden/drop.h"
#include "warden/rundir.h"

#define TARGET "culvert::first"

/* How long the broker may take to end by itself once the warden is done. */
#define BROKER_GRACE_MS 2000

/* One of the two processes that are kept running. */
struct kept {
	const char *name; /* for the log */
	enum child_role role;
	pid_t pid;           /* 0 = not running */
	uint64_t started_ms; /* of the present life */
	uint64_t due_ms;     /* when to start it, while not running */
	unsigned lives;      /* starts so far */
	struct backoff backoff;
};

struct first {
	struct log *log;
	struct child_plan plan;
	struct kept warden;
	struct kept broker;
	sigset_t signals; /* what is waited for */
	int stop_signal;  /* the first one received; 0 = none */
	bool is_stopping; /* the warden has been told to drain */
	bool is_done;
	int status; /* culvertd's exit status */
};

static void start(struct first *first, struct kept *kept)
{
	kept->started_ms = clock_ms();
	kept->pid = child_start(&first->plan, kept->role);
	if (kept->pid < 0) {
		log_msg(first->log, LOG_ERROR, TARGET, "starting the %s failed: %s", kept->name,
		        err_str(kept->pid));
		kept->pid = 0;
		kept->due_ms = kept->started_ms + backoff_take(&kept->backoff);
		return;
	}
	kept->lives++;
	/* Its SIGTERM is blocked until it looks, so this one waits for it. */
	if (first->is_stopping && kept == &first->warden)
		kill(kept->pid, SIGTERM);
}

static void stop(struct first *first, int status)
{
	if (first->is_stopping)
		return;
	first->is_stopping = true;
	first->status = status;
	if (first->warden.pid > 0)
		kill(first->warden.pid, SIGTERM);
}

static void on_signal(struct first *first, int number)
{
	if (first->stop_signal == 0) {
		first->stop_signal = number;
		log_msg(first->log, LOG_INFO, "ztunnel::signal", "received signal %s, starting shutdown",
		        number == SIGINT ? "SIGINT" : "SIGTERM");
		stop(first, 0);
		return;
	}
	if (number != SIGINT || first->stop_signal != SIGINT)
		return;
	/* The second SIGINT: out at once, and nothing is left behind. */
	if (first->warden.pid > 0)
		kill(first->warden.pid, SIGINT);
	if (first->broker.pid > 0)
		kill(first->broker.pid, SIGKILL);
	_exit(0);
}

/* Whether the process ended by its own decision and not for a reason that a restart may cure. */
static bool is_final(int wait_status)
{
	return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != FIRST_EXIT_AGAIN;
}

static void log_death(struct first *first, const struct kept *kept, int wait_status, uint64_t delay_ms)
{
	bool killed = WIFSIGNALED(wait_status);
	log_msg(first->log, LOG_WARN, TARGET, "%s ended (%s %d), restarting in %" PRIu64 " ms", kept->name,
	        killed ? "signal" : "exit status", killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
	        delay_ms);
}

static void restart_later(struct first *first, struct kept *kept, int wait_status)
{
	uint64_t now = clock_ms();
	uint32_t delay = backoff_after_life(&kept->backoff, now - kept->started_ms);
	kept->pid = 0;
	kept->due_ms = now + delay;
	log_death(first, kept, wait_status, delay);
}

static void on_warden_end(struct first *first, int wait_status)
{
	if (!is_final(wait_status)) {
		restart_later(first, &first->warden, wait_status);
		return;
	}
	first->warden.pid = 0;
	first->is_done = true;
	if (first->status == 0)
		first->status = WEXITSTATUS(wait_status);
}

static void on_broker_end(struct first *first, int wait_status)
{
	bool is_fatal = is_final(wait_status) && WEXITSTATUS(wait_status) != 0 && first->broker.lives == 1;
	if (first->is_stopping || is_fatal) {
		first->broker.pid = 0;
		first->broker.due_ms = UINT64_MAX;
		if (is_fatal)
			stop(first, WEXITSTATUS(wait_status));
		return;
	}
	restart_later(first, &first->broker, wait_status);
}

static void reap(struct first *first)
{
	int status = 0;
	for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
		if (pid == first->warden.pid)
			on_warden_end(first, status);
		else if (pid == first->broker.pid)
			on_broker_end(first, status);
	}
}

static void start_if_due(struct first *first, struct kept *kept, uint64_t now, uint64_t *next_ms)
{
	if (kept->pid == 0 && kept->due_ms <= now)
		start(first, kept);
	if (kept->pid == 0 && kept->due_ms < *next_ms)
		*next_ms = kept->due_ms;
}

/* Waits for a signal until a time on the monotonic clock (UINT64_MAX = for ever); 0 = none came. */
static int wait_signal(struct first *first, uint64_t until_ms)
{
	uint64_t now = clock_ms();
	uint64_t ms = until_ms > now ? until_ms - now : 0;
	struct timespec wait = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	int number = sigtimedwait(&first->signals, NULL, until_ms == UINT64_MAX ? NULL : &wait);
	return number > 0 ? number : 0;
}

static void run_until_done(struct first *first)
{
	while (!first->is_done) {
		uint64_t now = clock_ms();
		uint64_t next_ms = UINT64_MAX;
		start_if_due(first, &first->broker, now, &next_ms);
		start_if_due(first, &first->warden, now, &next_ms);
		int number = wait_signal(first, next_ms);
		if (number == SIGCHLD)
			reap(first);
		else if (number > 0)
			on_signal(first, number);
	}
}

static void end_broker(struct first *first)
{
	uint64_t until = clock_ms() + BROKER_GRACE_MS;
	first->is_stopping = true;
	if (first->broker.pid > 0)
		kill(first->broker.pid, SIGTERM);
	while (first->broker.pid > 0 && clock_ms() < until) {
		int number = wait_signal(first, until);
		if (number == SIGCHLD)
			reap(first);
		else if (number > 0)
			on_signal(first, number);
	}
	if (first->broker.pid > 0) {
		kill(first->broker.pid, SIGKILL);
		waitpid(first->broker.pid, NULL, 0);
	}
}

/* The privileges at hand and the steps that they allow, once at start. */
static void log_hardening(struct first *first)
{
	struct log_line line;
	struct buf caps;
	buf_init(&caps, 1024);
	drop_caps_text(first->plan.caps, &caps);
	const char *text = buf_cstr(&caps);
	log_begin(&line, first->log, LOG_INFO, TARGET, "hardening");
	log_str(&line, "capabilities", text ? text : "");
	log_bool(&line, "bounding_set", first->plan.caps & DROP_CAP(CAP_SETPCAP));
	log_u64(&line, "broker_uid", first->plan.broker_uid);
	log_u64(&line, "landlock_abi", (uint64_t)drop_landlock_abi());
	log_bool(&line, "cgroup", access("/sys/fs/cgroup/cgroup.procs", W_OK) == 0);
	log_end(&line);
	buf_done(&caps);
}

static int prepare(struct first *first, const struct settings *settings, struct rundir *run,
        char *const *args, struct err *err)
{
	sigemptyset(&first->signals);
	sigaddset(&first->signals, SIGCHLD);
	sigaddset(&first->signals, SIGTERM);
	sigaddset(&first->signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &first->signals, NULL) < 0)
		return err_sys(err, -errno, "blocking signals");
	/* Process 1 reaps strangers anyway. */
	if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_sys(err, -errno, "becoming a subreaper");
	int rc = drop_raise_limits();
	if (rc < 0)
		log_msg(first->log, LOG_WARN, TARGET, "resource limits stay as they are: %s", err_str(rc));
	rc = child_plan_init(&first->plan, settings, args, err);
	if (rc < 0)
		return rc;
	rc = rundir_create(run, settings, first->plan.broker_uid != 0, err);
	if (rc < 0)
		return rc;
	child_plan_check_dir(&first->plan, run);
	if (setenv("CULVERT_RUN_DIR", run->base, 1) < 0 || setenv("CULVERT_INSTANCE", run->instance, 1) < 0)
		return err_sys(err, -errno, "environment");
	rc = drop_no_new_privs(err);
	if (rc == 0)
		log_hardening(first);
	return rc;
}

int first_run(const struct settings *settings, struct log *log, char *const *args)
{
	struct first first = {
	        .log = log,
	        .warden = {.name = "warden", .role = CHILD_WARDEN, .backoff = BACKOFF_RESTART},
	        .broker = {.name = "broker", .role = CHILD_BROKER, .backoff = BACKOFF_RESTART},
	};
	struct rundir run = {.fd = -1, .lock_fd = -1};
	struct err err = {0};
	first.status = 0;
	if (prepare(&first, settings, &run, args, &err) < 0) {
		fprintf(stderr, "Error: %s\n", err.text);
		first.status = FIRST_EXIT_FATAL;
	} else {
		run_until_done(&first);
		end_broker(&first);
	}
	if (run.fd >= 0)
		rundir_remove(&run);
	rundir_done(&run);
	return first.status;
}
