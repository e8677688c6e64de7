/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How large a receive window should be: starts small, doubles while its owner
 * empties it quickly, halves when it is hardly used. Pure arithmetic; whoever
 * asks carries the decision out and keeps the budget.
 */
#ifndef CULVERT_H2_WINDOW_H
#define CULVERT_H2_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A window that is emptied twice within this time may be what limits its sender: grow. Serves round trips up
 * to half of it. */
#define WINDOW_GROW_MS 500u
/* A window that is not emptied twice within this time is larger than needed: shrink. */
#define WINDOW_SHRINK_MS 10000u

/* What h2_window_used() advises. */
enum h2_window_advice { H2_WINDOW_KEEP, H2_WINDOW_GROW, H2_WINDOW_SHRINK };

/* Embedded. */
struct h2_window {
	uint32_t size;     /* bytes promised to the peer in steady state */
	uint32_t floor;    /* bytes; it starts with this and never shrinks below */
	uint32_t ceiling;  /* bytes; it never grows above */
	uint32_t excess;   /* bytes still promised above size after shrinking; falls as bytes are consumed */
	uint64_t used;     /* bytes consumed since `since_ms` */
	uint64_t since_ms; /* start of the measurement */
};

/* Start with `floor` bytes. */
void h2_window_init(struct h2_window *window, uint32_t floor, uint32_t ceiling, uint64_t now_ms);

/* Count consumed bytes; says whether the window should change. GROW and SHRINK restart the measurement. */
enum h2_window_advice h2_window_used(struct h2_window *window, size_t len, uint64_t now_ms);

/* The size after doubling, at most the ceiling and `limit`; `size` itself when there is no room. */
uint32_t h2_window_grown(const struct h2_window *window, uint32_t limit);

/* The size after halving, at least the floor. */
uint32_t h2_window_shrunk(const struct h2_window *window);

#endif
