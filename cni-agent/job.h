/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Work inside a pod's namespace, each piece in a forked child that enters it,
 * does the work and ends: the agent itself never leaves its own. At most
 * JOB_MAX at a time, the others wait their turn. Knows no ZDS.
 */
#ifndef CULVERT_CNI_AGENT_JOB_H
#define CULVERT_CNI_AGENT_JOB_H

#include <sys/types.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/list.h"
#include "base/loop.h"
#include "rules.h"

/* Children at once: more only wait for the same locks of the kernel. */
#define JOB_MAX 4
/* A child that takes longer than this, milliseconds, is killed. */
#define JOB_MS 10000

/* What to do. */
enum job_kind {
	JOB_APPLY, /* check that the namespace owns one of the addresses; rules; policy route */
	JOB_UNDO,  /* remove rules and policy route */
};

/* All jobs of the process. */
struct jobs {
	struct loop *loop;
	struct list waiting; /* struct job.node */
	struct list running; /* struct job.node */
	size_t running_cnt;
	struct timer
	        turn; /* starts waiting ones from the loop, so that done never comes from within job_start */
};

/* One job, embedded in its owner; reusable when done. */
struct job {
	struct list node; /* on waiting or running, else detached */
	struct jobs *jobs;
	enum job_kind kind;
	bool must_apply;      /* JOB_APPLY: false = check the address only */
	int netns_fd;         /* borrowed until done */
	const struct ip *ips; /* JOB_APPLY; borrowed until done */
	size_t ip_cnt;
	struct rules rules; /* JOB_APPLY; names borrowed until done */
	pid_t pid;          /* the child */
	int pid_fd;         /* its pidfd, -1 = not running */
	int text_fd;        /* what it has to say, -1 = not running */
	struct watch watch; /* of pid_fd */
	struct timer deadline;
	/* Called once; error is NULL or what went wrong (borrowed). The job may be started again. */
	void (*done)(struct job *job, const char *error);
};

/* No jobs. loop is borrowed. */
void jobs_init(struct jobs *jobs, struct loop *loop);

/* Forgets waiting jobs, kills and reaps running ones; done is not called. */
void jobs_done(struct jobs *jobs);

/* A job that does nothing yet. */
void job_init(struct job *job, struct jobs *jobs, void (*done)(struct job *job, const char *error));

/* Starts it as soon as there is room; its members are set by the caller. done may only come from the loop. */
void job_start(struct job *job);

/* Takes a job back; a running child is killed and reaped. Harmless when it is not started. */
void job_cancel(struct job *job);

#endif
