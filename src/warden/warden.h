/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The warden: puts loop, pods, broker link, adoption and the node agent's
 * client together, and ends them in order. Parses no stranger's bytes but the
 * node agent's.
 */
#ifndef CULVERT_WARDEN_WARDEN_H
#define CULVERT_WARDEN_WARDEN_H

#include <sys/types.h>

#include "base/log.h"
#include "base/param.h"

/*
 * Runs the warden role of an instance whose first process is first_pid.
 * Returns its exit status: 0 after a drain or when the silos are to be left,
 * FIRST_EXIT_FATAL after a text on stderr, FIRST_EXIT_AGAIN when the first
 * process is gone or the loop failed.
 */
int warden_run(const struct settings *settings, struct log *log, pid_t first_pid);

#endif
