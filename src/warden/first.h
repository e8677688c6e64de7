/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first process of a node (process 1 of the container): starts warden and
 * broker, restarts them, forwards signals, reaps what is left to it. Has no
 * socket and parses nothing but its environment, so that it has no reason to
 * die: silos keep a living parent whatever happens to the warden.
 */
#ifndef CULVERT_WARDEN_FIRST_H
#define CULVERT_WARDEN_FIRST_H

#include "base/err.h"
#include "base/log.h"
#include "base/param.h"

/* Exit status of warden and broker: fatal before serving (configuration, conflicting port). Becomes
 * culvertd's. */
#define FIRST_EXIT_FATAL 1
/* Exit status of warden and broker: could not go on, a restart may help. */
#define FIRST_EXIT_AGAIN 75

/*
 * Runs until the warden ends on purpose (or a second SIGINT). Returns
 * culvertd's exit status (reference control.md 16): 0 after a drain. args:
 * culvertd's own argv[1...], handed to warden and broker for display.
 */
int first_run(const struct settings *settings, struct log *log, char *const *args);

#endif
