/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A SOCKS5 client's bytes, in pieces whose lengths the input chooses: same end however they are cut. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "silo/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static enum socks_step feed(struct socks *socks, const uint8_t *data, size_t len, size_t piece)
{
	enum socks_step step = SOCKS_MORE;
	size_t at = 0;
	memset(socks, 0, sizeof(*socks));
	while (at < len && (step == SOCKS_MORE || step == SOCKS_SAY)) {
		size_t taken;
		step = socks_feed(socks, data + at, len - at < piece ? len - at : piece, &taken);
		if (taken == 0)
			abort();
		at += taken;
	}
	return step;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct socks whole, cut;
	size_t piece = len ? 1u + data[len - 1] % 16u : 1;
	enum socks_step step = feed(&whole, data, len, SIZE_MAX);
	if (feed(&cut, data, len, piece) != step || memcmp(&whole, &cut, sizeof(whole)) != 0)
		abort();
	if (step == SOCKS_DONE && strlen(whole.host) >= SOCKS_HOST_MAX)
		abort();
	return 0;
}
