/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One silo as the broker sees it: one answer_x for each ask_x, and what it has
 * asked about, so that it is told of exactly those changes (design 2). The
 * broker never waits for a silo: changes are a coalesced set of dirty keys.
 */
#ifndef CULVERT_BROKER_SILO_PEER_H
#define CULVERT_BROKER_SILO_PEER_H

#include "base/list.h"
#include "base/wheel.h"
#include "mesh/store.h"
#include "pb/ipc.h"

struct arena;
struct broker;
struct silo_peer;

/* Keys that one silo may have open: four times what its cache holds. A silo beyond that is out of its mind.
 */
#define SILO_PEER_KEYS_MAX LIMIT_IPC_DIRTY

/* What a dump of one silo's state ends with; pages come before it. */
struct silo_state_ask {
	/* One page of the answer (last = nothing follows), or NULL when the silo is gone or did not answer in
	 * time. */
	void (*page)(struct silo_state_ask *ask, const struct ipc_answer_state *state);
	uint32_t id;            /* private */
	struct list node;       /* private */
	struct timer timer;     /* private: the deadline */
	struct silo_peer *peer; /* private */
};

/* Takes channel `fd` of the silo with this uid over; a former channel of it is dropped. 0 or -ENOMEM. */
int silo_peer_attach(struct broker *broker, const char *uid, const struct workload_info *info, int fd);

/* Frees all peers. */
void silo_peers_done(struct broker *broker);

/* The store changed: marks what it concerns and sends it in this turn. For store_watch. */
void silo_peers_changed(void *ctx, const struct store_change *change);

/* Sends the log filter in force to all silos; later ones get it when they attach, while
 * broker.has_log_filter.
 */
void silo_peers_set_log(struct broker *broker);

/* The CRL file changed: all silos get it; later ones do when they attach. */
void silo_peers_set_crl(struct broker *broker);

/* The mesh state is complete: what silos asked before is answered now. */
void silo_peers_flush(struct broker *broker);

/* The control plane has answered demands (xds_must_wait): asks that waited for it are looked at again. */
void silo_peers_recheck(struct broker *broker);

/* Asks the silo of `uid` for its state. 0, or -ENOENT (no such silo: no page comes). */
int silo_peer_ask_state(struct broker *broker, const char *uid, uint32_t what, struct silo_state_ask *ask);

/* Asks every silo for its counters, unless it still owes an answer. Returns how many answers are awaited. */
size_t silo_peers_ask_metrics(struct broker *broker);

/* The answers are awaited no longer. */
void silo_peers_forget_metrics(struct broker *broker);

/* Takes an ask back; fine when it is over. */
void silo_peer_cancel_state(struct silo_state_ask *ask);

#endif
