/* SPDX-License-Identifier: GPL-2.0-only */
/* The client's end of the control socket. */
#ifndef CULVERT_CNI_AGENT_CLIENT_H
#define CULVERT_CNI_AGENT_CLIENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* Sends the request to the agent at path and appends its answer. Waits as long as the agent lives. -errno
 * with text. */
int client_ask(const char *path, const struct buf *request, struct buf *answer, struct err *err);

/* Reads the answer to add or del: 0, or -ECANCELED with the agent's reason. */
int client_outcome(const struct buf *answer, struct err *err);

/* Appends the answer to list as a table. -EINVAL with text. */
int client_table(const struct buf *answer, struct buf *out, struct err *err);

#endif
