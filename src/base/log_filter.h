/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filter texts of the logger (RUST_LOG and the admin endpoint's clauses). For log.c and its tests. */
#ifndef CULVERT_BASE_LOG_FILTER_H
#define CULVERT_BASE_LOG_FILTER_H

#include "base/log.h"

/* Frees the directives; the filter is empty (nothing passes) afterwards. */
void log_filter_done(struct log_filter *filter);

/*
 * Adds a comma list in RUST_LOG syntax (reference control.md 13): an empty
 * clause means "error", a bare target means trace; the field part of
 * t[{a}]=l is checked and ignored. With strict the admin endpoint's rules
 * (11.6): no empty clauses, no bare targets, but target:level too. All or
 * nothing: -EINVAL with text, -ENOSPC, -ENOMEM.
 */
int log_filter_add(struct log_filter *filter, const char *text, bool strict, struct err *err);

/* Copies `from` into the empty filter `to`. -ENOMEM. */
int log_filter_copy(struct log_filter *to, const struct log_filter *from);

/* Whether a line of that level and target passes: the longest directive that is a prefix of target decides.
 */
bool log_filter_passes(const struct log_filter *filter, enum log_level level, const char *target);

#endif
