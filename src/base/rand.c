/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers from getrandom(2), which needs no descriptor and no state of ours. */
#include "base/rand.h"

#include <errno.h>
#include <sys/random.h>

#include "base/check.h"

void rand_bytes(void *dst, size_t len)
{
	uint8_t *p = dst;
	while (len) {
		ssize_t n = getrandom(p, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		ASSERT(n > 0);
		p += n;
		len -= (size_t)n;
	}
}

uint64_t rand_u64(void)
{
	uint64_t v;
	rand_bytes(&v, sizeof(v));
	return v;
}

uint64_t rand_below(uint64_t bound)
{
	if (bound == 0)
		return 0;
	/* Values below 2^64 mod bound would make small results likelier: draw again. */
	uint64_t skip = -bound % bound;
	uint64_t v = rand_u64();
	while (v < skip)
		v = rand_u64();
	return v % bound;
}

uint64_t rand_jitter(uint64_t value, unsigned percent)
{
	uint64_t span = value / 100 * percent + value % 100 * percent / 100;
	return span > value || span >= UINT64_MAX / 2 - 1 ? value : value - span + rand_below(2 * span + 1);
}
