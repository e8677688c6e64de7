/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names nearest to one that is not there, for the words of an error. */
#ifndef CULVERT_CTL_NEAR_H
#define CULVERT_CTL_NEAR_H

#include "base/err.h"

/* Names that are offered. */
#define NEAR_MAX 3

/* Room for name.namespace with terminator; longer ones are not offered. */
#define NEAR_NAME_MAX 320

/* A search; embed it. */
struct near {
	const char *wanted;                  /* borrowed */
	char names[NEAR_MAX][NEAR_NAME_MAX]; /* the nearest first; "" = none */
	unsigned away[NEAR_MAX];
};

/* Begins a search for what was typed: name, name.namespace or namespace/name. */
void near_init(struct near *near, const char *wanted);

/* Considers a name. */
void near_offer(struct near *near, const char *name, const char *ns);

/* Sets "there is no <kind> <wanted>; did you mean ...?" and returns -ESRCH. */
int near_fail(const struct near *near, const char *kind, struct err *err);

#endif
