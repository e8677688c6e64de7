/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the text of metrics (OpenMetrics 1.0, the part that culvert writes). Pure; the text is hostile. */
#ifndef CULVERT_CTL_SAMPLES_H
#define CULVERT_CTL_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

/* A line; points into the text. */
struct sample {
	const char *line; /* begins here */
	size_t len;       /* bytes without the newline */
	bool is_comment;  /* HELP, TYPE, UNIT, EOF: nothing below is set */
	size_t name_len;  /* the name is at the line's beginning */
	double value;
};

/*
 * Reads the line at *at and moves on to the next one. False at the end. A malformed line comes as a comment.
 */
bool samples_next(const char **at, struct sample *ret_sample);

/* Whether the sample has that name. */
bool samples_is(const struct sample *sample, const char *name);

/* Value of a label, unescaped, into dst; false when it is absent or does not fit. */
bool samples_label(const struct sample *sample, const char *label, char *dst, size_t cap);

#endif
