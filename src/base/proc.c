/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads /proc; must not keep anything. */
#include "base/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"

#define FIELD_START_TIME 22

int proc_start_time(pid_t pid, uint64_t *ret_ticks)
{
	char path[32];
	char line[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int rc = file_read_line(path, line, sizeof(line));
	if (rc < 0)
		return rc;
	/* The name in field 2 may hold anything, blanks and parentheses too: fields are counted behind its
	 * last parenthesis. */
	char *at = strrchr(line, ')');
	for (int field = 2; at && field < FIELD_START_TIME; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -EINVAL;
	return num_parse(at + 1, strspn(at + 1, "0123456789"), UINT64_MAX, ret_ticks);
}
