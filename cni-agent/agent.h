/* SPDX-License-Identifier: GPL-2.0-only */
/* The serving agent: parts, their order of birth and death. */
#ifndef CULVERT_CNI_AGENT_AGENT_H
#define CULVERT_CNI_AGENT_AGENT_H

#include "base/err.h"
#include "options.h"

/* Serves until SIGTERM or SIGINT. Blocks these signals. 0, or -errno with text when it could not start or go
 * on. */
int agent_run(const struct options *options, struct err *err);

#endif
