/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timer wheel: O(1) add and delete, no ticking when idle, because wheel_next
 * says when to wake. Time is an argument in milliseconds of any monotonic
 * clock; nothing here reads one.
 */
#ifndef CULVERT_BASE_WHEEL_H
#define CULVERT_BASE_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64 slots on each of 5 levels of 1, 64, 4096 ... ms: 12 days ahead without re-sorting. */
#define WHEEL_LEVELS 5
#define WHEEL_SLOTS 64

/* wheel_next's answer when no timer is set. */
#define WHEEL_NONE UINT64_MAX

/* A timer, embedded in its owner. {0} or timer_init = not set. */
struct timer {
	struct timer *next;   /* private */
	struct timer **pprev; /* private; NULL = not set */
	uint64_t due;         /* ms; valid while set */
	uint16_t where;       /* private: level * WHEEL_SLOTS + slot */
	/* Called once when due; the timer is no longer set and may be added again or freed with its owner. */
	void (*fire)(struct timer *timer, uint64_t now);
};

/* The wheel. Private. */
struct wheel {
	uint64_t now;                /* time up to which timers have fired */
	uint64_t busy[WHEEL_LEVELS]; /* bit = slot has timers */
	struct timer *slots[WHEEL_LEVELS][WHEEL_SLOTS];
	struct timer *ready; /* due or overdue, fired by the next run */
};

/* An empty wheel that starts at now. */
void wheel_init(struct wheel *wheel, uint64_t now);

/* Prepares a timer that calls fire. */
void timer_init(struct timer *timer, void (*fire)(struct timer *timer, uint64_t now));

/* Whether the timer is set. */
static inline bool timer_is_set(const struct timer *timer)
{
	return timer->pprev != NULL;
}

/* Sets the timer to fire at due (moves it when set; the past fires at the next run). */
void wheel_add(struct wheel *wheel, struct timer *timer, uint64_t due);

/* Unsets the timer; harmless when it is not set. */
void wheel_del(struct wheel *wheel, struct timer *timer);

/*
 * When to call wheel_run next: never later than the earliest timer, exact
 * when that is less than 64 ms away, else possibly earlier (such a run sorts
 * and fires nothing; at most one per level and timer). WHEEL_NONE when no
 * timer is set.
 */
uint64_t wheel_next(const struct wheel *wheel);

/*
 * Fires all timers due at or before now: first those that were due already
 * when they were added, then the others, earlier ones first. Timers added
 * meanwhile that are already due wait for the next run. Returns how many fired. now may not be smaller than
 * before: it is then taken as the former one.
 */
size_t wheel_run(struct wheel *wheel, uint64_t now);

#endif
