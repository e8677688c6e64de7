/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GET requests over the admin socket of an instance (libcurl). What comes
 * back is checked to be JSON, and is otherwise not looked at.
 */
#ifndef CULVERT_CTL_CLIENT_H
#define CULVERT_CTL_CLIENT_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/err.h"
#include "ctl/ctl.h"

/* What the daemon answered. */
struct answer {
	struct buf body; /* as it came */
	cJSON *json;     /* the same, parsed */
};

/*
 * Finds the instance that the call means (a note says which, if several are
 * live), asks it for path and parses the answer. 0; the caller frees with
 * answer_done. -errno, -ETIMEDOUT after 5 s without a byte, -EPROTO for what
 * is not 200 or no JSON, with text; ret is then untouched.
 */
int client_get(const struct ctl *ctl, const char *path, struct answer *ret, struct err *err);

/* Frees the answer. */
void answer_done(struct answer *answer);

#endif
