/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums of rows; see metrics_sum.h. */
#include "broker/metrics_sum.h"

#include <errno.h>

#include "base/err.h"

/* Adds a row of another table; false without room. */
static bool add_row(struct metric_table *to, const struct metric_row *from)
{
	struct metric_row *row = metric_table_row(to, from->set, metric_row_labels(from), from->len);
	if (!row)
		return false;
	for (unsigned col = 0; from->present >> col; col++)
		if (from->present >> col & 1)
			metric_row_add(row, col, from->values[col]);
	return true;
}

size_t metrics_sum_table(struct metric_table *to, const struct metric_table *from)
{
	size_t cursor = 0;
	size_t lost_cnt = 0;
	const struct metric_row *row;
	while ((row = map_next(&from->rows, &cursor)))
		lost_cnt += !add_row(to, row);
	return lost_cnt;
}

/* The row that a silo means: who it is comes from the broker. */
static struct metric_row *row_of(
        struct metric_table *to, const struct workload_info *info, const struct ipc_metric *metric)
{
	const char *bytes = (const char *)metric->labels;
	size_t pod_cnt = metric_pod_label_cnt(metric->set);
	struct metric_labels labels;
	if (pod_cnt == 0)
		return metric_table_row(to, metric->set, bytes, metric->labels_len);
	metric_labels_init(&labels);
	metric_labels_add(&labels, info->ns);
	metric_labels_add(&labels, info->name);
	if (pod_cnt < metric_label_cnt(metric->set) &&
	        !metric_labels_append(&labels, bytes, metric->labels_len))
		return NULL;
	return metric_table_row(to, metric->set, labels.bytes, labels.len);
}

int metrics_sum_metric(struct metric_table *to, struct metrics_quota *quota, const struct workload_info *info,
        const struct ipc_metric *metric)
{
	if (metric->set >= METRIC_SET_CNT || metric->present & ~metric_silo_cols(metric->set) ||
	        !metric_labels_valid(metric->set, (const char *)metric->labels, metric->labels_len, false))
		return ERR_PROTOCOL;
	quota->row_cnt++;
	quota->bytes += metric->labels_len;
	if (quota->row_cnt > METRICS_SUM_ROWS_MAX || quota->bytes > METRICS_SUM_BYTES_MAX)
		return -ENOSPC;
	struct metric_row *row = row_of(to, info, metric);
	if (!row)
		return -ENOSPC;
	const uint64_t *value = metric->values;
	for (unsigned col = 0; metric->present >> col; col++)
		if (metric->present >> col & 1)
			metric_row_add(row, col, *value++);
	return 0;
}
