/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Included by scripts/analyze before every file: tells the analyser what it
 * cannot see, that err_set and its kin return the code they were given, and
 * that it is negative, as -errno after a failure is. Never part of a build.
 */
#ifndef CULVERT_ANALYZE_ERRORS_H
#define CULVERT_ANALYZE_ERRORS_H

#include <errno.h>

#include "base/err.h"

/* Functions that fail set errno to something above 0 (errno(3)); `return -errno` is negative. */
static inline int *analyze_errno(void)
{
	int *at = __errno_location();
	if (*at <= 0)
		__builtin_unreachable();
	return at;
}
#undef errno
#define errno (*analyze_errno())

#define ANALYZE_FAILED(call, code)                                                                           \
	({                                                                                                   \
		int analyze_code_ = (code);                                                                  \
		(void)(call);                                                                                \
		if (analyze_code_ >= 0)                                                                      \
			__builtin_unreachable();                                                             \
		analyze_code_;                                                                               \
	})
#define err_set(err, code, ...) ANALYZE_FAILED((err_set)(err, code, __VA_ARGS__), code)
#define err_sys(err, code, ...) ANALYZE_FAILED((err_sys)(err, code, __VA_ARGS__), code)

#endif
