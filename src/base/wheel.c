/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hierarchical timing wheel (Varghese, Lauck 1987). A timer sits on the level
 * of the highest 6-bit digit in which its due time differs from now, so lower
 * levels are always earlier, and a bitmap per level finds the next slot.
 */
#include "base/wheel.h"

#include <string.h>

/* `where` of a timer that is on the ready list or about to fire. */
#define WHERE_READY UINT16_MAX

#define LEVEL_BITS 6

void wheel_init(struct wheel *wheel, uint64_t now)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->now = now;
}

void timer_init(struct timer *timer, void (*fire)(struct timer *timer, uint64_t now))
{
	*timer = (struct timer){.fire = fire};
}

static void link_at(struct timer **head, struct timer *t)
{
	t->next = *head;
	t->pprev = head;
	if (t->next)
		t->next->pprev = &t->next;
	*head = t;
}

static void unlink_timer(struct timer *t)
{
	*t->pprev = t->next;
	if (t->next)
		t->next->pprev = t->pprev;
	t->pprev = NULL;
	t->next = NULL;
}

static void place(struct wheel *w, struct timer *t)
{
	if (t->due <= w->now) {
		t->where = WHERE_READY;
		link_at(&w->ready, t);
		return;
	}
	unsigned level = (63u - (unsigned)__builtin_clzll(t->due ^ w->now)) / LEVEL_BITS;
	unsigned slot;
	if (level < WHEEL_LEVELS) {
		slot = t->due >> (LEVEL_BITS * level) & (WHEEL_SLOTS - 1);
	} else {
		/* Too far ahead: the last slot of the top level that is still ahead; sorted again from there.
		 */
		level = WHEEL_LEVELS - 1;
		slot = ((w->now >> (LEVEL_BITS * level)) + WHEEL_SLOTS - 1) & (WHEEL_SLOTS - 1);
		uint64_t direct = (t->due >> (LEVEL_BITS * level)) - (w->now >> (LEVEL_BITS * level));
		if (direct < WHEEL_SLOTS)
			slot = t->due >> (LEVEL_BITS * level) & (WHEEL_SLOTS - 1);
	}
	t->where = (uint16_t)(level * WHEEL_SLOTS + slot);
	w->busy[level] |= 1ull << slot;
	link_at(&w->slots[level][slot], t);
}

void wheel_add(struct wheel *wheel, struct timer *timer, uint64_t due)
{
	wheel_del(wheel, timer);
	timer->due = due;
	place(wheel, timer);
}

void wheel_del(struct wheel *wheel, struct timer *timer)
{
	if (!timer_is_set(timer))
		return;
	unlink_timer(timer);
	if (timer->where == WHERE_READY)
		return;
	unsigned level = timer->where / WHEEL_SLOTS;
	unsigned slot = timer->where % WHEEL_SLOTS;
	if (!wheel->slots[level][slot])
		wheel->busy[level] &= ~(1ull << slot);
}

/* Start of the first busy slot after now, on the lowest busy level; WHEEL_NONE when all are empty. */
static uint64_t next_slot(const struct wheel *w, unsigned *ret_level, unsigned *ret_slot)
{
	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		if (!w->busy[level])
			continue;
		uint64_t digit = w->now >> (LEVEL_BITS * level);
		unsigned cur = digit & (WHEEL_SLOTS - 1);
		uint64_t turned =
		        cur ? w->busy[level] >> cur | w->busy[level] << (WHEEL_SLOTS - cur) : w->busy[level];
		unsigned ahead = (unsigned)__builtin_ctzll(turned);
		*ret_level = level;
		*ret_slot = (cur + ahead) & (WHEEL_SLOTS - 1);
		return (digit + ahead) << (LEVEL_BITS * level);
	}
	return WHEEL_NONE;
}

uint64_t wheel_next(const struct wheel *wheel)
{
	unsigned level, slot;
	return wheel->ready ? wheel->now : next_slot(wheel, &level, &slot);
}

/* Moves every timer of a slot whose time has come to *tail or to a lower level; returns the new tail. */
static struct timer **collect(struct wheel *w, unsigned level, unsigned slot, struct timer **tail)
{
	struct timer *t = w->slots[level][slot];
	w->slots[level][slot] = NULL;
	w->busy[level] &= ~(1ull << slot);
	while (t) {
		struct timer *next = t->next;
		if (t->due > w->now) {
			place(w, t);
		} else {
			t->where = WHERE_READY;
			t->next = NULL;
			t->pprev = tail;
			*tail = t;
			tail = &t->next;
		}
		t = next;
	}
	return tail;
}

size_t wheel_run(struct wheel *wheel, uint64_t now)
{
	/* All due timers go to a list of their own first: what callbacks add or delete cannot disturb the
	 * walk. */
	struct timer *due = wheel->ready;
	struct timer **tail = &due;
	wheel->ready = NULL;
	if (due)
		due->pprev = &due;
	while (*tail)
		tail = &(*tail)->next;
	unsigned level, slot;
	for (uint64_t at = next_slot(wheel, &level, &slot); at != WHEEL_NONE && at <= now;
	        at = next_slot(wheel, &level, &slot)) {
		wheel->now = at;
		tail = collect(wheel, level, slot, tail);
	}
	if (now > wheel->now)
		wheel->now = now;
	size_t cnt = 0;
	for (struct timer *t = due; t; t = due) {
		unlink_timer(t); /* also moves `due` on, through pprev */
		t->fire(t, wheel->now);
		cnt++;
	}
	return cnt;
}
