/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The silo locks itself up before it reads a stranger's byte: no core dumps,
 * no files (Landlock), no system calls beyond its list (seccomp). Capabilities
 * were reduced before it was executed; here that is only checked.
 */
#ifndef CULVERT_SILO_SANDBOX_H
#define CULVERT_SILO_SANDBOX_H

#include <stdbool.h>

#include "base/err.h"

/* What was put in force, for the log. */
struct sandbox_state {
	bool is_dumpable; /* must be false */
	int landlock_abi; /* 0 = not available here */
	bool has_seccomp; /* the filter is installed */
};

/* Locks up. 0, or a negative errno with the step that failed: the silo then must not serve. */
int sandbox_enter(struct sandbox_state *ret_state, struct err *err);

#endif
