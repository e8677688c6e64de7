/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What this silo tells of itself for dumps: connections and certificate (reference node-agent.md 1.9,
 * control.md 11.5). */
#ifndef CULVERT_SILO_DUMP_H
#define CULVERT_SILO_DUMP_H

#include "base/arena.h"
#include "pb/ipc.h"

struct silo;

/* Memory of one dump: 100,000 connections of 100 bytes. What does not fit is left out. */
#define DUMP_ARENA_MAX (16u << 20)

/* Fills `ret_state` with what `what` (enum ipc_state_what) asks for; all of it lives in `arena`. */
void dump_state(struct silo *silo, uint32_t what, struct arena *arena, struct ipc_answer_state *ret_state);

#endif
