/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two clocks, and timestamps as text. Pure modules get the time as an argument instead. */
#ifndef CULVERT_BASE_CLOCK_H
#define CULVERT_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Room for a printed timestamp with terminator. */
#define CLOCK_STR_MAX 32

uint64_t clock_ms(void); /* CLOCK_MONOTONIC, milliseconds, rounded down */
uint64_t clock_us(void); /* CLOCK_MONOTONIC, microseconds */
uint64_t clock_ns(void); /* CLOCK_MONOTONIC, nanoseconds */

/* CLOCK_REALTIME in microseconds since 1970-01-01 UTC. */
uint64_t clock_wall_us(void);

/*
 * Prints wall_us as RFC 3339 in UTC with `digits` (0, 3 or 6) fractional
 * digits and "Z" into dst, which has CLOCK_STR_MAX bytes. Years beyond 9999
 * print as 9999. Returns the length.
 */
size_t clock_format(uint64_t wall_us, unsigned digits, char *dst);

#endif
