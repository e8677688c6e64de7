/* SPDX-License-Identifier: GPL-2.0-only */
/* The control socket: takes requests, waits for their pods, answers. Only processes of the agent's own user
 * are heard. */
#ifndef CULVERT_CNI_AGENT_CONTROL_H
#define CULVERT_CNI_AGENT_CONTROL_H

#include "base/list.h"
#include "base/log.h"
#include "base/loop.h"
#include "pods.h"
#include "unix_socket.h"

/* Clients at once; more wait in the socket's queue. */
#define CONTROL_CONN_MAX 64
/* Deadline of a request's bytes, and of taking the answer, milliseconds. */
#define CONTROL_DEADLINE_MS 5000
/* Pause after an accept that failed, milliseconds: a lack of descriptors does not pass by asking again at
 * once. */
#define CONTROL_PACE_MS 200
/* Longest wait for a pod, milliseconds: time for a data plane that is just starting. The pod stays as it is
 * then. */
#define CONTROL_WAIT_MS 15000

/* The server. Private. */
struct control {
	struct loop *loop; /* borrowed */
	struct log *log;   /* borrowed */
	struct pods *pods; /* borrowed */
	struct unix_socket socket;
	struct watch watch;
	struct list conns;
	size_t conn_cnt;
	struct timer pace; /* accepts again when it fires */
	bool is_paused;    /* the listener is not watched: too many clients, or a failure that may pass */
};

/* Nothing is open yet. */
void control_init(struct control *control, struct loop *loop, struct log *log, struct pods *pods);

/* Listens at path (borrowed) and serves. -errno with text. */
int control_open(struct control *control, const char *path, struct err *err);

/* Closes all; the socket's file goes if it is still ours. No client may be waiting for a pod any more. */
void control_done(struct control *control);

#endif
