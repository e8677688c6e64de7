/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a process whose own invariant broke. Uses nothing that may be broken too. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void check_failed(const char *file, int line, const char *what)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "culvert: assertion failed: %s:%d: %s\n", file, line, what);
	if (n > (int)sizeof(text) - 1)
		n = (int)sizeof(text) - 1;
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(134);
	abort();
}
