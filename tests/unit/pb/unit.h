/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmocka with the headers that it needs first, and checks of errors with their texts. */
#ifndef CULVERT_TESTS_UNIT_PB_UNIT_H
#define CULVERT_TESTS_UNIT_PB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

#define CNT(a) (sizeof(a) / sizeof((a)[0]))

/* That expr gives `code` and `err` (a struct err it fills) has `part` in its text. */
#define assert_err(expr, code_wanted, part)                                                                  \
	do {                                                                                                 \
		memset(&err, 0, sizeof(err));                                                                \
		assert_int_equal(expr, code_wanted);                                                         \
		if (!strstr(err.text, part))                                                                 \
			fail_msg("\"%s\" is not in \"%s\"", part, err.text);                                 \
	} while (0)

/* That expr gives 0; shows the error's text otherwise. */
#define assert_ok(expr)                                                                                      \
	do {                                                                                                 \
		memset(&err, 0, sizeof(err));                                                                \
		if ((expr) != 0)                                                                             \
			fail_msg("%s: %s", #expr, err.text);                                                 \
	} while (0)

#endif
