/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Doubling delays with a ceiling. Must not know a clock. */
#include "warden/backoff.h"

void backoff_reset(struct backoff *backoff)
{
	backoff->next_ms = backoff->at_once ? 0 : backoff->min_ms;
}

uint32_t backoff_take(struct backoff *backoff)
{
	uint32_t delay = backoff->next_ms;
	if (delay == 0)
		backoff->next_ms = backoff->min_ms;
	else
		backoff->next_ms = delay >= backoff->max_ms / 2 ? backoff->max_ms : delay * 2;
	return delay;
}

uint32_t backoff_after_life(struct backoff *backoff, uint64_t alive_ms)
{
	if (alive_ms >= BACKOFF_HEALTHY_MS)
		backoff_reset(backoff);
	return backoff_take(backoff);
}
