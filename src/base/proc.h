/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What /proc says of a process. Linux only, as everything here. */
#ifndef CULVERT_BASE_PROC_H
#define CULVERT_BASE_PROC_H

#include <stdint.h>
#include <sys/types.h>

/*
 * When a process started, in clock ticks since boot (proc(5), stat field 22):
 * with the pid it names a process for good, as pids are used again. -errno,
 * -EINVAL when the file is not as expected. Files are opened: not from within
 * a sandbox.
 */
int proc_start_time(pid_t pid, uint64_t *ret_ticks);

#endif
