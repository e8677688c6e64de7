/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Token bucket: how many of something a peer may do at once and per second.
 * Time is an argument.
 */
#ifndef CULVERT_H2_BUCKET_H
#define CULVERT_H2_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Embedded; set up by h2_bucket_init(). */
struct h2_bucket {
	uint64_t level_m; /* thousandths of a token left */
	uint64_t last_ms; /* when it was refilled last */
	uint32_t burst;   /* tokens when full */
	uint32_t rate;    /* tokens added a second */
};

/* A full bucket. */
void h2_bucket_init(struct h2_bucket *bucket, uint32_t burst, uint32_t rate, uint64_t now_ms);

/* Take one token; false when none is left. */
bool h2_bucket_take(struct h2_bucket *bucket, uint64_t now_ms);

#endif
