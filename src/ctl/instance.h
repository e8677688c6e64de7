/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the folder of a live culvertd among the instances of a run directory.
 * An instance is live as long as its first process holds the lock in its
 * folder (flock(2)). Changes nothing there and knows no HTTP.
 */
#ifndef CULVERT_CTL_INSTANCE_H
#define CULVERT_CTL_INSTANCE_H

#include <limits.h>

#include "base/err.h"

/* Longest name of an instance that is looked at; culvertd's have 16 hex digits. */
#define INSTANCE_NAME_MAX 64

/* A live instance. */
struct instance {
	char base[PATH_MAX];              /* run directory it was found in */
	char name[INSTANCE_NAME_MAX + 1]; /* its folder there */
	int fd;                           /* the folder, open; -1 = none */
	unsigned live_cnt;                /* live instances seen, this one included */
};

/*
 * Opens the instance of that name, or the youngest live one if name is NULL.
 * run_dir NULL: the usual folders are searched. -ENOENT when there is none,
 * -EACCES, other -errno, with text that names the folders; ret is then untouched.
 */
int instance_find(const char *run_dir, const char *name, struct instance *ret, struct err *err);

/* Closes the folder. */
void instance_done(struct instance *instance);

#endif
