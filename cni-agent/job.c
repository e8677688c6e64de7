/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The child gets two descriptors, the namespace and a pipe for the text of an
 * error, and closes all others: it must not hold a ZDS connection open. Its
 * exit status says whether the work was done.
 */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "nft.h"
#include "route.h"

/* Descriptors of a child. */
enum { CHILD_NETNS = 3, CHILD_TEXT = 4 };

/* --- in the child --------------------------------------------------------- */

static int run_text(struct buf *text, struct err *err)
{
	const char *commands = buf_cstr(text);
	int rc = commands ? nft_run(commands, err) : err_sys(err, text->err ? text->err : -ENOMEM, "rules");
	buf_done(text);
	return rc;
}

static int apply(const struct job *job, struct err *err)
{
	bool owns = false;
	int rc = route_owns_any(job->ips, job->ip_cnt, &owns, err);
	if (rc < 0)
		return rc;
	if (!owns)
		return err_set(err, -EADDRNOTAVAIL,
		        "no interface of the network namespace carries an address of the pod");
	if (!job->must_apply)
		return 0;
	struct buf text;
	buf_init(&text, RULES_TEXT_MAX);
	rules_apply_text(&job->rules, &text);
	rc = run_text(&text, err);
	return rc < 0 ? rc : route_apply(job->rules.ipv6, err);
}

static int undo(struct err *err)
{
	struct buf text;
	buf_init(&text, RULES_TEXT_MAX);
	rules_undo_text(&text);
	int rc = run_text(&text, err);
	int rc_route = route_undo(rc == 0 ? err : NULL);
	return rc < 0 ? rc : rc_route;
}

/* Nothing of the parent but the two descriptors, both moved out of the way of each other first. */
static int keep_only(int netns_fd, int text_fd)
{
	int netns = fcntl(netns_fd, F_DUPFD, CHILD_TEXT + 1);
	int text = fcntl(text_fd, F_DUPFD, CHILD_TEXT + 1);
	if (netns < 0 || text < 0 || dup2(netns, CHILD_NETNS) < 0 || dup2(text, CHILD_TEXT) < 0)
		return -errno;
	return syscall(SYS_close_range, CHILD_TEXT + 1, ~0u, 0) < 0 ? -errno : 0;
}

static int work(const struct job *job, struct err *err)
{
	if (setns(CHILD_NETNS, CLONE_NEWNET) < 0)
		return err_sys(err, -errno, "cannot enter the network namespace");
	return job->kind == JOB_APPLY ? apply(job, err) : undo(err);
}

static _Noreturn void child(const struct job *job, int text_fd)
{
	struct err err = {0};
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Without the pipe in its place there is only the exit status to tell. */
	if (keep_only(job->netns_fd, text_fd) < 0)
		_exit(1);
	int rc = work(job, &err);
	ssize_t n = rc < 0 ? write(CHILD_TEXT, err.text, strlen(err.text)) : 0;
	_exit(rc < 0 || n < 0 ? 1 : 0);
}

/* --- in the parent -------------------------------------------------------- */

static void start_waiting(struct jobs *jobs);

static void reap(struct job *job, int *ret_status)
{
	int status = -1;
	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	loop_del(job->jobs->loop, &job->watch);
	loop_cancel(job->jobs->loop, &job->deadline);
	fd_close(&job->pid_fd);
	list_del(&job->node);
	job->jobs->running_cnt--;
	*ret_status = status;
}

static void finish(struct job *job, const char *error)
{
	struct jobs *jobs = job->jobs;
	fd_close(&job->text_fd);
	job->done(job, error);
	start_waiting(jobs);
}

static void on_exit_of_child(struct watch *watch, uint32_t events)
{
	struct job *job = list_entry(watch, struct job, watch);
	char text[ERR_TEXT_MAX];
	int status;
	reap(job, &status);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		finish(job, NULL);
		return;
	}
	ssize_t n = read(job->text_fd, text, sizeof(text) - 1);
	if (n > 0)
		text[n] = 0;
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		snprintf(text, sizeof(text),
		        "work in the network namespace was killed or took longer than %d s", JOB_MS / 1000);
	else
		snprintf(text, sizeof(text), "work in the network namespace failed, wait status %d", status);
	finish(job, text);
}

static void on_deadline(struct timer *timer, uint64_t now)
{
	/* The end of the child then arrives as any other. */
	kill(list_entry(timer, struct job, deadline)->pid, SIGKILL);
}

static int launch(struct job *job)
{
	int text[2];
	if (pipe2(text, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		child(job, text[1]);
	int rc = pid < 0 ? -errno : fd_pidfd(pid, &job->pid_fd);
	fd_close(&text[1]);
	if (rc == 0)
		rc = loop_add(job->jobs->loop, &job->watch, job->pid_fd, EPOLLIN);
	if (rc < 0) {
		fd_close(&text[0]);
		fd_close(&job->pid_fd);
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		return rc;
	}
	job->pid = pid;
	job->text_fd = text[0];
	return 0;
}

static void start_one(struct job *job)
{
	struct jobs *jobs = job->jobs;
	int rc = launch(job);
	list_del(&job->node);
	if (rc < 0) {
		char text[ERR_TEXT_MAX];
		snprintf(text, sizeof(text), "cannot start a child: %s", err_str(rc));
		job->done(job, text);
		return;
	}
	list_add_tail(&jobs->running, &job->node);
	jobs->running_cnt++;
	loop_after(jobs->loop, &job->deadline, JOB_MS);
}

static void start_waiting(struct jobs *jobs)
{
	while (jobs->running_cnt < JOB_MAX && !list_empty(&jobs->waiting))
		start_one(list_entry(jobs->waiting.next, struct job, node));
}

static void on_turn(struct timer *timer, uint64_t now)
{
	start_waiting(list_entry(timer, struct jobs, turn));
}

void jobs_init(struct jobs *jobs, struct loop *loop)
{
	*jobs = (struct jobs){.loop = loop};
	list_init(&jobs->waiting);
	list_init(&jobs->running);
	timer_init(&jobs->turn, on_turn);
}

void jobs_done(struct jobs *jobs)
{
	loop_cancel(jobs->loop, &jobs->turn);
	while (!list_empty(&jobs->waiting))
		job_cancel(list_entry(jobs->waiting.next, struct job, node));
	while (!list_empty(&jobs->running))
		job_cancel(list_entry(jobs->running.next, struct job, node));
}

void job_init(struct job *job, struct jobs *jobs, void (*done)(struct job *job, const char *error))
{
	*job = (struct job){.jobs = jobs,
	        .netns_fd = -1,
	        .pid_fd = -1,
	        .text_fd = -1,
	        .done = done,
	        .watch = {.fd = -1, .ready = on_exit_of_child}};
	list_init(&job->node);
	timer_init(&job->deadline, on_deadline);
}

void job_start(struct job *job)
{
	list_add_tail(&job->jobs->waiting, &job->node);
	loop_after(job->jobs->loop, &job->jobs->turn, 0);
}

void job_cancel(struct job *job)
{
	int status;
	if (list_empty(&job->node))
		return;
	if (job->pid_fd < 0) {
		list_del(&job->node);
		return;
	}
	kill(job->pid, SIGKILL);
	reap(job, &status);
	fd_close(&job->text_fd);
}
