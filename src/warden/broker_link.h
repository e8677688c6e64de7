/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The warden's channel to the broker: dialled again whenever it is lost,
 * carries the state of silos and of the node agent's connection one way, the
 * gate for ZDS and the wish to stop the other. Knows neither pods nor ZDS.
 */
#ifndef CULVERT_WARDEN_BROKER_LINK_H
#define CULVERT_WARDEN_BROKER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/loop.h"
#include "ipc/chan.h"
#include "warden/backoff.h"
#include "warden/ward.h"

struct broker_link;

/* Events for the owner. */
struct broker_events {
	/* The broker can be told things: everything is to be told now. */
	void (*opened)(struct broker_link *link);
	/* The broker is gone or has been dropped; dialling goes on. */
	void (*lost)(struct broker_link *link);
	/* There is room again after broker_link_has_room said no. */
	void (*writable)(struct broker_link *link);
	/* Whether the first complete state of the mesh is in. */
	void (*mesh_state)(struct broker_link *link, bool is_complete);
	/* Somebody asked the broker to end the daemon. */
	void (*stop_requested)(struct broker_link *link);
};

/* The link. Private but for is_open. */
struct broker_link {
	bool is_open; /* both Hellos are through */
	const struct ward_env *env;
	const struct broker_events *events;
	struct chan chan;
	struct watch watch;
	struct timer timer; /* next dial, or the Hello's deadline */
	struct backoff backoff;
	struct ipc_node_state node; /* last one sent */
	bool has_node;              /* node has been sent on this channel */
};

/* Prepares the link and dials for the first time from the loop. env and events are borrowed. */
void broker_link_init(
        struct broker_link *link, const struct ward_env *env, const struct broker_events *events);

/* Closes the link for good. */
void broker_link_done(struct broker_link *link);

/* Whether the broker keeps up: what may wait is kept back until writable. False while the link is not open.
 */
bool broker_link_has_room(const struct broker_link *link);

/*
 * A new channel between a silo and the broker: both ends are the caller's; the
 * broker's goes to broker_link_attach. -ENOTCONN while the link is not open,
 * other -errno.
 */
int broker_link_pair(struct broker_link *link, int *ret_silo_fd, int *ret_broker_fd);

/* Hands the broker its end of a channel to a silo; fd is taken over. Without effect while the link is not
 * open. */
void broker_link_attach(
        struct broker_link *link, const char *uid, const struct workload_info *info, pid_t pid, int fd);

/* Tells the state of a silo. Without effect while the link is not open. */
void broker_link_silo_state(struct broker_link *link, const struct ipc_silo_state *state);

/* Tells the state of the node agent's connection, when it has changed. */
void broker_link_node_state(struct broker_link *link, const struct ipc_node_state *node);

/* Tells that the daemon ends. */
void broker_link_drain(struct broker_link *link, bool is_graceful, uint64_t deadline_ms);

#endif
