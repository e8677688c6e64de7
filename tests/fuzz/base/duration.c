/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Durations: no input overflows, and a refused one leaves the output alone and says why. */
#include "base/check.h"
#include "base/param.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t ms = 4711;
	const char *why = NULL;
	if (duration_parse((const char *)data, len, &ms, &why) < 0)
		ASSERT(ms == 4711 && why);
	else
		ASSERT(!why);
	return 0;
}
