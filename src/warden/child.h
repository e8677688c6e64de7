/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Executing warden and broker from the first process: what each keeps of the
 * privileges, its signals, session and arguments. Does not wait for anything.
 */
#ifndef CULVERT_WARDEN_CHILD_H
#define CULVERT_WARDEN_CHILD_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/param.h"
#include "warden/rundir.h"

/* argv[0] by which culvertd knows that it is the warden; not for people. */
#define CHILD_WARDEN_NAME "culvert-warden"

/* Whom to start. */
enum child_role { CHILD_WARDEN, CHILD_BROKER };

/* What the children get; made once. */
struct child_plan {
	char warden_path[PATH_MAX]; /* our own binary */
	char broker_path[PATH_MAX];
	uint64_t caps;       /* effective capabilities of the first process */
	uint32_t broker_uid; /* 0 = the same uid as ours */
	char *const *args;   /* culvertd's arguments behind argv[0], NULL-terminated, borrowed */
};

/*
 * Path of one of our programs: in CULVERT_LIBEXEC_DIR, else in the folder of
 * the running binary. dst has PATH_MAX bytes. -errno, -ENAMETOOLONG.
 */
int child_program_path(const struct settings *settings, const char *program, char *dst);

/* Finds the programs and decides on the broker's uid. -errno with text when a program is missing. */
int child_plan_init(
        struct child_plan *plan, const struct settings *settings, char *const *args, struct err *err);

/* Gives the own uid of the broker up when it could not reach the instance's folder or its program under it.
 */
void child_plan_check_dir(struct child_plan *plan, const struct rundir *run);

/* Forks and executes; its pid, or -errno. A failure after the fork ends the child with FIRST_EXIT_FATAL and a
 * text on stderr. */
pid_t child_start(const struct child_plan *plan, enum child_role role);

#endif
