/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adding up rows of metrics: of tables, and of what silos say, which is checked first. Knows no channel and
 * no clock. */
#ifndef CULVERT_BROKER_METRICS_SUM_H
#define CULVERT_BROKER_METRICS_SUM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/metric.h"
#include "culvert/records.h"
#include "pb/ipc.h"

/* Rows and bytes of labels that one silo may say at a time, above what an honest one has (silo/metrics.h):
 * one out of its mind takes no room from others. */
#define METRICS_SUM_ROWS_MAX 2500
#define METRICS_SUM_BYTES_MAX (4u << 20)

/* What a silo has said so far; zero it with each ask. */
struct metrics_quota {
	size_t row_cnt;
	size_t bytes;
};

/* Adds a table to another. Returns how many rows found no room. */
size_t metrics_sum_table(struct metric_table *to, const struct metric_table *from);

/*
 * Adds what the silo of workload `info` says of one label set. 0; ERR_PROTOCOL: malformed, or not for a silo
 * to say; -ENOSPC: above its quota, or no room in the table.
 */
int metrics_sum_metric(struct metric_table *to, struct metrics_quota *quota, const struct workload_info *info,
        const struct ipc_metric *metric);

#endif
