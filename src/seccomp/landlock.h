/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gives up the file system for good (landlock(7)); where the kernel has no Landlock, says so and does
 * nothing. */
#ifndef CULVERT_SECCOMP_LANDLOCK_H
#define CULVERT_SECCOMP_LANDLOCK_H

#include <stdbool.h>

/*
 * No file can be opened, made, changed or removed from here on; with
 * `may_read` files and folders can still be read. no_new_privs must be set.
 * *ret_abi = version of Landlock, 0 = not available here. 0 or -errno.
 */
int landlock_enter(bool may_read, int *ret_abi);

#endif
