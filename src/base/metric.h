/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics as rows: one label set with a number for each metric of its set
 * (culvert/metrics.tbl.h), tables of rows with a ceiling, and their text in the
 * OpenMetrics format 1.0. Silos count in such tables, the broker sums them up.
 * Knows neither processes nor HTTP.
 *
 * Labels are kept as the values in order of emission, joined by zero bytes: key
 * of a table and wire form at once. Unknown values are empty there and
 * "unknown" in the text.
 */
#ifndef CULVERT_BASE_METRIC_H
#define CULVERT_BASE_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"

/* Upper bounds of a histogram without +Inf: upstream's of DNS, 0.5 ms to 5 s. */
#define METRIC_BUCKETS 6
/* Columns of a histogram: buckets (each for itself, not cumulated), +Inf, sum in microseconds. */
#define METRIC_HISTOGRAM_COLS (METRIC_BUCKETS + 2)
/* Most columns of a set; the bits of metric_row.present. */
#define METRIC_COLS_MAX 16
/* Bytes of one label set: all names of a traffic row at their ceilings (proto/ipc.options). */
#define METRIC_LABELS_MAX 9216

/* What shares its labels. */
enum metric_set {
#define METRIC_SET(set) METRIC_SET_##set,
#include "culvert/metrics.tbl.h"
	METRIC_SET_CNT
};

/* Every metric. */
enum metric_id {
#define METRIC(id, set, column, name, type, unit, origin, help) METRIC_##id,
#include "culvert/metrics.tbl.h"
	METRIC_CNT
};

/* The column of each in its set: METRIC_COL_<id>. */
enum metric_col {
#define METRIC(id, set, column, name, type, unit, origin, help) METRIC_COL_##id = (column),
#include "culvert/metrics.tbl.h"
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/* A metric as the table has it. */
struct metric_info {
	const char *name; /* of the family: without _total */
	const char *unit; /* "" = none */
	const char *help;
	enum metric_set set;
	enum metric_type type;
	uint8_t col;  /* first column */
	bool by_silo; /* a silo may say it */
};

/* A row. */
struct metric_row {
	uint8_t set;       /* enum metric_set */
	uint16_t len;      /* bytes of the labels */
	uint32_t present;  /* bit (1 << column) of those that were ever counted; others are not shown */
	uint64_t values[]; /* by column; labels behind them, metric_row_labels() */
};

/* Rows by set and labels. */
struct metric_table {
	struct map rows;  /* struct metric_row, owned */
	size_t bytes;     /* of all rows */
	size_t bytes_max; /* ceiling of it */
};

/* A label set under construction. */
struct metric_labels {
	size_t len; /* of bytes */
	size_t cnt; /* values so far */
	char bytes[METRIC_LABELS_MAX];
};

/* The table's entry of a metric. */
const struct metric_info *metric_info(enum metric_id id);

/* Number of labels of a set and the name of the n-th. */
size_t metric_label_cnt(enum metric_set set);
const char *metric_label_name(enum metric_set set, size_t n);

/* How many labels of a set the broker puts in front of what a silo says. */
size_t metric_pod_label_cnt(enum metric_set set);

/* Columns of a set, and those that a silo may fill, as bits. */
unsigned metric_cols(enum metric_set set);
uint32_t metric_silo_cols(enum metric_set set);

/* Begins an empty label set. */
void metric_labels_init(struct metric_labels *labels);

/* Adds the next value; NULL, "" and "unknown" are the same. Malformed UTF-8 becomes U+FFFD; what does not fit
 * is cut. */
void metric_labels_add(struct metric_labels *labels, const char *value);

/* Adds values that are labels already; false (and nothing added) without room. */
bool metric_labels_append(struct metric_labels *labels, const char *bytes, size_t len);

/* Turns every value that the mesh chooses into "overflow"; what the proxy chooses stays. Without TAIL labels.
 */
void metric_labels_overflow(struct metric_labels *labels, enum metric_set set);

/* The labels of a row with another n-th value. */
void metric_labels_replace(
        struct metric_labels *labels, const struct metric_row *row, size_t n, const char *value);

/*
 * Whether len bytes are labels of a set as metric_labels_add makes them (well-formed UTF-8, the right
 * number of values), with the POD ones or, for what a silo says, without.
 */
bool metric_labels_valid(enum metric_set set, const char *bytes, size_t len, bool has_pod);

/* An empty table of at most max rows and bytes_max bytes; allocates nothing. */
void metric_table_init(struct metric_table *table, size_t max, size_t bytes_max);

/* Frees all rows; usable afterwards. */
void metric_table_done(struct metric_table *table);

/* The row of these labels, made with nothing present if new; NULL at a ceiling or without memory. */
struct metric_row *metric_table_row(
        struct metric_table *table, enum metric_set set, const char *labels, size_t len);

/* The same, but NULL when there is none. */
struct metric_row *metric_table_find(
        const struct metric_table *table, enum metric_set set, const char *labels, size_t len);

/* Frees every row for which drop says so; drop must not touch the table. */
void metric_table_sweep(
        struct metric_table *table, bool (*drop)(const struct metric_row *row, void *ctx), void *ctx);

/* All rows ordered by set and labels; array of metric rows, caller frees with mem_free. 0 or -ENOMEM. */
int metric_table_sorted(const struct metric_table *table, struct metric_row ***ret_rows, size_t *ret_cnt);

/* Labels of a row, row->len bytes. */
const char *metric_row_labels(const struct metric_row *row);

/* Adds to a column, which is present from then on; stays at the maximum instead of wrapping. */
void metric_row_add(struct metric_row *row, unsigned col, uint64_t n);

/* Counts one duration in the histogram that begins at col. */
void metric_row_observe(struct metric_row *row, unsigned col, uint64_t us);

/* HELP, TYPE and UNIT lines of a family. */
void metric_print_head(struct buf *buf, enum metric_id id);

/* Where the text of sorted rows stands. Private. */
struct metric_printer {
	struct metric_row *const *rows;
	size_t first[METRIC_SET_CNT + 1]; /* where each set begins in rows */
	unsigned metric;
	size_t row; /* within the metric's set */
};

/* Starts on rows ordered by set (metric_table_sorted), which are borrowed until the end. */
void metric_printer_init(struct metric_printer *printer, struct metric_row *const *rows, size_t cnt);

/* Adds some lines. Returns false when those were the last, "# EOF". Families without samples are left out. */
bool metric_printer_next(struct metric_printer *printer, struct buf *buf);

/* The lines of one metric of a row, nothing if it isn't present. */
void metric_print_row(struct buf *buf, enum metric_id id, const struct metric_row *row);

#endif
