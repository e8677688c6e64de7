/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A server session fed with anything after a valid preface: no crash, no
 * leak, no promise beyond the budget, whatever its owner does meanwhile.
 */
#include "session_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
	struct fuzz fuzz;

	fuzz_open(&fuzz, true);
	h2_feed(fuzz.session, hello, sizeof(hello), 0);
	fuzz_feed(&fuzz, data, len);
	fuzz_close(&fuzz);
	return 0;
}
