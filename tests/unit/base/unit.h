/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmocka with the headers that it needs first, and a switch for failing allocations. */
#ifndef CULVERT_TESTS_UNIT_BASE_UNIT_H
#define CULVERT_TESTS_UNIT_BASE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

#define CNT(a) (sizeof(a) / sizeof((a)[0]))

/* Allocations that still succeed before all fail; negative = all succeed. */
static long allocations_left = -1;

bool mem_should_fail(size_t len)
{
	(void)len;
	if (allocations_left > 0)
		allocations_left--;
	else if (allocations_left == 0)
		return true;
	return false;
}

#endif
