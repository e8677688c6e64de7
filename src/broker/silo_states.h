/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the silos tell of themselves for one dump: asked all at once, kept
 * until it is written. A silo that does not answer in time costs its own rows
 * only.
 */
#ifndef CULVERT_BROKER_SILO_STATES_H
#define CULVERT_BROKER_SILO_STATES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"

struct broker;
struct silo_states;

/* Memory for what all silos tell: half a million connections. What is beyond it is left out. */
#define SILO_STATES_MAX (64u << 20)

/*
 * Asks every silo of the node for connections and certificate. done(ctx) comes once, never from within, when
 * all have told or their time is up; not at all when silo_states_is_complete() says so right after. -ENOMEM.
 */
int silo_states_new(
        struct broker *broker, void (*done)(void *ctx), void *ctx, struct silo_states **ret_states);

/* Frees it; open questions are taken back. NULL is fine. */
void silo_states_free(struct silo_states *states);

/* Whether nothing is awaited any more. */
bool silo_states_is_complete(const struct silo_states *states);

/* How many pods there are. */
size_t silo_states_cnt(const struct silo_states *states);

/* Certificate i in order of identity, then uid, as an entry of `certificates` (reference control.md 11.5);
 * nothing when the silo told none. */
void silo_states_put_certificate(struct json *json, const struct silo_states *states, size_t i);

/* Where the writing of one pod's state stands; {0} = before its first byte. */
struct silo_states_cursor {
	unsigned phase;   /* private */
	const void *page; /* private */
};

/* Writes a part of pod i's member of `workloadState`, in order of uid: its key, a page of connections, its
 * end. Returns whether more follows. */
bool silo_states_put_pod(
        struct json *json, const struct silo_states *states, size_t i, struct silo_states_cursor *cursor);

#endif
