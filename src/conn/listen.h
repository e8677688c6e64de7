/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accepting on an inherited listening socket: multishot accept, options of the
 * accepted sockets, back-off when descriptors run out. Knows nothing of what
 * happens to the connections.
 */
#ifndef CULVERT_CONN_LISTEN_H
#define CULVERT_CONN_LISTEN_H

#include "conn/sock.h"
#include "io/ring.h"

/* Pause after an accept error that would repeat at once (EMFILE, ENFILE, ENOBUFS, ENOMEM), ms: first and
 * longest. */
#define LISTEN_PAUSE_MIN_MS 10
#define LISTEN_PAUSE_MAX_MS 1000

struct listener;

/* Options of accepted sockets (dataplane 2.3), which have them from the listening one (tcp(7)). */
struct listen_opts {
	/* Set TCP_NODELAY; a failure rejects the connection. */
	bool nodelay;
	/* Keepalive and user timeout; failures are ignored. */
	struct sock_keepalive keepalive;
	/* true: who connects is on this machine: sock_set_unpaced(). */
	bool is_local;
};

/* What a listener tells its owner. */
struct listen_events {
	/* A connection; the owner owns `fd` from here on. */
	void (*on_accept)(void *ctx, int fd);
	/* Accept failed and is tried again by itself; `code` negative errno. For the log; may be NULL. */
	void (*on_error)(void *ctx, int code);
};

/* Starts to accept on `fd`, which becomes the listener's on success only. `events` is borrowed. Returns 0 or
 * -ENOMEM. */
int listen_start(struct io *io, int fd, const struct listen_opts *opts, const struct listen_events *events,
        void *ctx, struct listener **ret_listener);

/* The listening socket, for its address. Borrowed. */
int listen_fd(const struct listener *listener);

/* Stops: no event comes after, the listening socket is closed at once, memory is freed when the kernel is
 * done. NULL is fine. */
void listen_stop(struct listener *listener);

#endif
