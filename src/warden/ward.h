/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One silo process as the warden sees it: its channel, its pidfd, its start
 * and its end. Born here or adopted over its control socket. Knows nothing of
 * pods, of restarts or of the node agent: the owner decides, told by events.
 */
#ifndef CULVERT_WARDEN_WARD_H
#define CULVERT_WARDEN_WARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/param.h"
#include "ipc/chan.h"
#include "warden/netns.h"
#include "warden/rundir.h"

/* Time from the fork until Ready (design section 3); the agent waits 5 s for its Ack. */
#define WARD_START_MS 2000

/* Time that a silo gets for GOAWAY and close_notify when its pod is deleted. */
#define WARD_FAREWELL_MS 1000

/* Time beyond a drain's deadline until the silo is killed. */
#define WARD_OVERTIME_MS 1000

/* Time that a silo gets to answer on its control socket; nothing is started meanwhile. */
#define WARD_GREETING_MS 2000

/* What all wards share. Borrowed by each of them; outlives them. */
struct ward_env {
	struct loop *loop;
	struct log *log;
	const struct settings *settings;
	const struct rundir *run;
	struct chan_scratch *scratch;
	const char *program;   /* path of culvert-silo */
	char *const *silo_env; /* environment of silos */
};

/* Life of a ward. */
enum ward_state {
	WARD_GREETING, /* adoption: Hello has not come yet */
	WARD_STARTING, /* process exists, Ready has not come yet */
	WARD_UP,       /* listeners accept */
	WARD_ENDING,   /* told to end, or killed */
	WARD_DEAD,     /* process gone; only freeing is left */
};

struct ward;

/* Events for the owner. Each may free the ward as its last act. */
struct ward_events {
	/* Adoption: Hello came. netns_fd (-1 = none) is the owner's. The owner calls ward_keep or frees the
	 * ward. */
	void (*greeted)(struct ward *ward, const struct ipc_hello *hello, int netns_fd);
	/* The silo serves. */
	void (*ready)(struct ward *ward);
	/* The process is gone (or a greeting failed and it has been killed); ward->reason says why. Comes
	 * once. */
	void (*ended)(struct ward *ward);
};

/* A silo process. Fields above the line may be read by the owner. */
struct ward {
	enum ward_state state;
	pid_t pid;       /* its process; while WARD_GREETING the one that listens on the control socket */
	uint64_t up_ms;  /* clock_ms() when it became WARD_UP */
	bool has_broker; /* it was given a channel to the present broker */
	char reason[ERR_TEXT_MAX]; /* why it ended or failed; "" before */
	void *owner;               /* the owner's, for its events */
	struct list node;          /* the owner's */
	/* private */
	const struct ward_env *env;
	const struct ward_events *events;
	struct chan chan;
	int pidfd;
	int error_fd;                  /* reading end of the child's stderr */
	char error_text[ERR_TEXT_MAX]; /* what came from there before Ready */
	struct watch chan_watch;
	struct watch pid_watch;
	struct watch error_watch;
	struct timer timer; /* greeting, start or end deadline */
};

/* What a silo is started for. Borrowed during the call. */
struct ward_birth {
	const char *uid;
	const struct workload_info *info;
	const char *run_name; /* rundir_pod_name of uid */
	const char *socket;   /* file name of the control socket */
	int netns_fd;
	bool is_first; /* no silo has served this pod before */
	enum ipc_silo_mode mode;
	int broker_fd; /* silo's end of a channel to the broker, -1 = none; stays the caller's */
};

/* Starts a silo; on success exactly one of ready and ended follows first. -errno with text, nothing is left
 * behind then. */
int ward_start(const struct ward_env *env, const struct ward_birth *birth, const struct ward_events *events,
        void *owner, struct ward **ret_ward, struct err *err);

/* Connects to a control socket in the instance folder; greeted or ended follows. -errno with text: nobody
 * listens there. */
int ward_call(const struct ward_env *env, const char *socket, const struct ward_events *events, void *owner,
        struct ward **ret_ward, struct err *err);

/*
 * Takes a greeting ward over as the silo of a pod: WARD_UP if it said so, else
 * WARD_STARTING. Checks that the process is who it says: the pid that listens
 * on the socket, and its start time (proc(5), stat field 22). -errno with
 * text: the caller refuses the ward.
 */
int ward_keep(struct ward *ward, const struct ipc_hello *hello, struct err *err);

/* Sends a greeting ward away instead: Drain, and nobody watches it any more. Frees the ward. */
void ward_refuse(struct ward *ward, bool is_graceful, uint64_t deadline_ms);

/* Gives the silo a channel to the broker; fd is taken over. */
void ward_attach_broker(struct ward *ward, int fd);

/* Ends the silo: Drain, and SIGKILL when it outlives deadline_ms + WARD_OVERTIME_MS (graceful) or
 * WARD_FAREWELL_MS. A second call replaces the first. */
void ward_end(struct ward *ward, bool is_graceful, uint64_t deadline_ms);

/* Kills the silo; ended follows. why becomes the reason unless one is known. */
void ward_kill(struct ward *ward, const char *why);

/* Forgets the silo: its process, if any, goes on unwatched. NULL is fine. */
void ward_free(struct ward *ward);

#endif
