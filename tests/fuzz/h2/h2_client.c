/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client session with a few requests under way, fed with anything after the
 * peer's SETTINGS.
 */
#include "session_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t settings[] = "\0\0\0\4\0\0\0\0";
	struct fuzz fuzz;

	fuzz_open(&fuzz, false);
	h2_feed(fuzz.session, settings, sizeof(settings), 0);
	for (unsigned i = 0; i < 5; i++) {
		struct h2_stream *stream;

		if (h2_connect(fuzz.session, "10.0.0.1:80", NULL, 0, &fuzz_stream_ops, &fuzz, &stream) != 0)
			abort();
		fuzz.streams[fuzz.stream_cnt++] = stream;
	}
	fuzz_pull(&fuzz, SIZE_MAX);
	fuzz_feed(&fuzz, data, len);
	fuzz_close(&fuzz);
	return 0;
}
