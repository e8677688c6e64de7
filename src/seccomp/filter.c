/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hands a generated BPF program to the kernel. The only code of this folder
 * that ends up in a program; must not know which calls are on the lists.
 */
#include "seccomp/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker_filter.h"
#include "silo_filter.h"

#define PROGRAM(array)                                                                                       \
	{                                                                                                    \
		sizeof(array) / sizeof((array)[0]), (struct sock_filter *)(array)                            \
	}

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define STRICTEST FILTER_LOG
#else
#define STRICTEST FILTER_KILL
#endif

enum filter_mode filter_mode_parse(const char *text)
{
	if (text && strcmp(text, "log") == 0)
		return FILTER_LOG;
	if (text && strcmp(text, "off") == 0)
		return FILTER_OFF;
	return STRICTEST;
}

int filter_install(enum filter_who who, enum filter_mode mode)
{
	const struct sock_fprog programs[2][2] = {
	        [FILTER_SILO] =
	                {[FILTER_KILL] = PROGRAM(silo_filter), [FILTER_LOG] = PROGRAM(silo_filter_log)},
	        [FILTER_BROKER] =
	                {[FILTER_KILL] = PROGRAM(broker_filter), [FILTER_LOG] = PROGRAM(broker_filter_log)},
	};
	if (mode == FILTER_OFF)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &programs[who][mode]) < 0)
		return -errno;
	return 0;
}
