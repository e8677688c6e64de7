/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables as istioctl prints them (Go's text/tabwriter): each column as wide as
 * its widest cell and some blanks, counted in characters; the last one is not
 * filled up. Cells come from elsewhere: what a terminal could take for a
 * command is shown as a question mark.
 */
#ifndef CULVERT_CTL_TABLE_H
#define CULVERT_CTL_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Most columns. */
#define TABLE_COLUMNS_MAX 12

/* Most rows: more than a mesh may have records (mesh/store.h), so that a hostile dump has an end. */
#define TABLE_ROWS_MAX 4000000

/* Rows under construction; zero it, then table_init. */
struct table {
	size_t column_cnt;
	size_t gap;                       /* blanks between columns */
	char **cells;                     /* row by row, the heading first; owned */
	size_t cell_cnt, cell_cap;        /* used, allocated */
	size_t widths[TABLE_COLUMNS_MAX]; /* characters */
	int code;                         /* first failure: -ENOMEM, -E2BIG */
};

/* Begins a table with its headings. */
void table_init(struct table *table, size_t column_cnt, const char *const *headings, size_t gap);

/* Adds a row of column_cnt cells, which are copied; NULL is an empty one. Failures show at the end. */
void table_row(struct table *table, const char *const *cells);

/* Prints it. 0, or a negative code with text. */
int table_print(const struct table *table, FILE *out, struct err *err);

/* Frees it. */
void table_done(struct table *table);

/* Replaces control characters (those of ISO 6429 in UTF-8 too) and what is no UTF-8, in place. */
void table_make_printable(char *text);

#endif
