/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Growing delays between attempts: dialling the node agent, restarting a
 * process that died. Pure arithmetic; time and chance are the caller's.
 */
#ifndef CULVERT_WARDEN_BACKOFF_H
#define CULVERT_WARDEN_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* A process that lived this long, milliseconds, has shown that it can: its next restart is at once again. */
#define BACKOFF_HEALTHY_MS 10000

/* Delays min, 2 * min, 4 * min ... max; optionally a first one of 0. */
struct backoff {
	uint32_t min_ms;  /* first delay (after the one of 0) */
	uint32_t max_ms;  /* ceiling */
	bool at_once;     /* the first delay after a reset is 0 */
	uint32_t next_ms; /* what backoff_take gives next */
};

/* Delays of a restarted process (PLAN: 0, 100 ms ... 5 s). */
#define BACKOFF_RESTART                                                                                      \
	(struct backoff)                                                                                     \
	{                                                                                                    \
		.min_ms = 100, .max_ms = 5000, .at_once = true, .next_ms = 0                                 \
	}

/* Delays of a dial to the node agent (reference node-agent.md 1.8: 20 ms ... 15 s). */
#define BACKOFF_DIAL                                                                                         \
	(struct backoff)                                                                                     \
	{                                                                                                    \
		.min_ms = 20, .max_ms = 15000, .at_once = false, .next_ms = 20                               \
	}

/* Back to the first delay. */
void backoff_reset(struct backoff *backoff);

/* The delay before the next attempt, milliseconds; the one after it doubles. */
uint32_t backoff_take(struct backoff *backoff);

/* backoff_take for a process that died after alive_ms: a healthy life resets first. */
uint32_t backoff_after_life(struct backoff *backoff, uint64_t alive_ms);

#endif
