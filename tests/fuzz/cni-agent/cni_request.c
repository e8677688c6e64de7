/* SPDX-License-Identifier: GPL-2.0-only */
/* Any text as a request on the control socket. */
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct request req;
	struct err err = {0};
	if (request_parse((const char *)data, len, &req, &err) < 0) {
		ASSERT(err.text[0] != 0);
		return 0;
	}
	ASSERT((req.kind == REQUEST_ADD) == (req.spec != NULL));
	ASSERT((req.kind == REQUEST_DEL) == (req.uid != NULL));
	ASSERT(!req.spec || (req.spec->uid[0] != 0 && req.spec->ip_cnt > 0));
	request_done(&req);
	return 0;
}
