/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output of lists: tables whose columns are as wide as they need to be, and
 * JSON as it came. Names come from elsewhere: what a terminal could take for a
 * command is shown as a question mark.
 */
#ifndef CULVERT_CTL_PRINT_H
#define CULVERT_CTL_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/err.h"

/* Most columns of a table. */
#define PRINT_COLUMNS_MAX 16

/* A column: heading, and the key of each row's object that fills it. */
struct column {
	const char *heading;
	const char *key;
	bool hides_zero; /* 0 means "none" and is shown as "-" */
};

/*
 * Prints an array of objects as a table, with a "-" for what is missing or
 * empty. -EPROTO with text when the value is no array of objects; -errno when
 * out fails.
 */
int print_table(
        FILE *out, const cJSON *rows, const struct column *columns, size_t column_cnt, struct err *err);

/* Prints JSON as it came, with a newline at its end. -errno with text. */
int print_json(FILE *out, const struct buf *body, struct err *err);

#endif
