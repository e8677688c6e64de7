/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Installs the system call allow-list of this process (seccomp(2)). The
 * programs are made at build time by generate.c; nothing but the kernel is
 * needed here. Knows no settings: the caller says which mode.
 */
#ifndef CULVERT_SECCOMP_FILTER_H
#define CULVERT_SECCOMP_FILTER_H

/* Whose list. */
enum filter_who { FILTER_SILO, FILTER_BROKER };

/* What happens at a call that is not on the list. */
enum filter_mode {
	FILTER_KILL, /* SECCOMP_RET_KILL_PROCESS: the default */
	FILTER_LOG,  /* SECCOMP_RET_LOG: allowed, and named in the kernel's audit log; for debugging */
	FILTER_OFF,  /* nothing is installed */
};

/*
 * Mode for the value of CULVERT_SECCOMP: NULL or "kill", "log", "off".
 * Anything else is FILTER_KILL. Builds with a sanitizer make system calls of
 * their own, so there FILTER_KILL becomes FILTER_LOG.
 */
enum filter_mode filter_mode_parse(const char *text);

/*
 * Installs the filter for this process and all its future. Sets no_new_privs
 * first (prctl(2)), which an unprivileged process must. 0 or -errno: -EINVAL
 * or -ENOSYS when the kernel has no seccomp filters.
 */
int filter_install(enum filter_who who, enum filter_mode mode);

#endif
