/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Token bucket for flood protection. Knows no clock and no protocol.
 */
#include "h2/bucket.h"

void h2_bucket_init(struct h2_bucket *bucket, uint32_t burst, uint32_t rate, uint64_t now_ms)
{
	bucket->burst = burst;
	bucket->rate = rate;
	bucket->level_m = (uint64_t)burst * 1000;
	bucket->last_ms = now_ms;
}

static void bucket_refill(struct h2_bucket *bucket, uint64_t now_ms)
{
	uint64_t full = (uint64_t)bucket->burst * 1000;
	uint64_t passed = now_ms > bucket->last_ms ? now_ms - bucket->last_ms : 0;

	bucket->last_ms = now_ms;
	if (bucket->rate && passed >= full / bucket->rate)
		bucket->level_m = full;
	else
		bucket->level_m += passed * bucket->rate;
	if (bucket->level_m > full)
		bucket->level_m = full;
}

bool h2_bucket_take(struct h2_bucket *bucket, uint64_t now_ms)
{
	if (now_ms != bucket->last_ms)
		bucket_refill(bucket, now_ms);
	if (bucket->level_m < 1000)
		return false;
	bucket->level_m -= 1000;
	return true;
}
