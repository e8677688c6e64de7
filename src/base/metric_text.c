/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows as OpenMetrics text (the exposition format 1.0); see metric.h. */
#include <inttypes.h>
#include <string.h>

#include "base/metric.h"

static const char *const TYPES[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};

void metric_print_head(struct buf *buf, enum metric_id id)
{
	const struct metric_info *info = metric_info(id);
	buf_printf(
	        buf, "# HELP %s %s\n# TYPE %s %s\n", info->name, info->help, info->name, TYPES[info->type]);
	if (info->unit[0])
		buf_printf(buf, "# UNIT %s %s\n", info->name, info->unit);
}

/* A value with the three escapes of the format. */
static void put_escaped(struct buf *buf, const char *p, size_t len)
{
	size_t from = 0;
	for (size_t i = 0; i < len; i++) {
		const char *escape = p[i] == '\\'   ? "\\\\"
		                     : p[i] == '"'  ? "\\\""
		                     : p[i] == '\n' ? "\\n"
		                                    : NULL;
		if (!escape)
			continue;
		buf_add(buf, p + from, i - from);
		buf_add_str(buf, escape);
		from = i + 1;
	}
	buf_add(buf, p + from, len - from);
}

/* The labels between braces, then a bucket's bound if there is one. */
static void put_labels(struct buf *buf, const struct metric_row *row, const char *bound)
{
	const char *p = metric_row_labels(row);
	const char *end = p + row->len;
	size_t cnt = metric_label_cnt(row->set);
	if (cnt == 0 && !bound)
		return;
	buf_add_str(buf, "{");
	/* Labels at the end may be absent: what there is decides. */
	for (size_t i = 0; i < cnt && p <= end; i++) {
		const char *zero = memchr(p, 0, (size_t)(end - p));
		size_t len = (size_t)((zero ? zero : end) - p);
		buf_printf(buf, "%s%s=\"", i > 0 ? "," : "", metric_label_name(row->set, i));
		if (len > 0)
			put_escaped(buf, p, len);
		else
			buf_add_str(buf, "unknown");
		buf_add_str(buf, "\"");
		p = (zero ? zero : end) + 1;
	}
	if (bound)
		buf_printf(buf, "%sle=\"%s\"", cnt > 0 ? "," : "", bound);
	buf_add_str(buf, "}");
}

static void put_line(struct buf *buf, const struct metric_info *info, const char *suffix,
        const struct metric_row *row, const char *bound, uint64_t value, bool is_us)
{
	buf_add_str(buf, info->name);
	buf_add_str(buf, suffix);
	put_labels(buf, row, bound);
	if (is_us)
		buf_printf(buf, " %" PRIu64 ".%06u\n", value / 1000000, (unsigned)(value % 1000000));
	else
		buf_printf(buf, " %" PRIu64 "\n", value);
}

static void put_histogram(struct buf *buf, const struct metric_info *info, const struct metric_row *row)
{
	static const char *const bounds[METRIC_BUCKETS + 1] = {
	        "0.0005", "0.001", "0.01", "0.1", "1.0", "5.0", "+Inf"};
	const uint64_t *values = &row->values[info->col];
	uint64_t cnt = 0;
	for (unsigned i = 0; i <= METRIC_BUCKETS; i++)
		cnt += values[i];
	put_line(buf, info, "_sum", row, NULL, values[METRIC_BUCKETS + 1], true);
	put_line(buf, info, "_count", row, NULL, cnt, false);
	cnt = 0;
	for (unsigned i = 0; i <= METRIC_BUCKETS; i++) {
		cnt += values[i];
		put_line(buf, info, "_bucket", row, bounds[i], cnt, false);
	}
}

void metric_print_row(struct buf *buf, enum metric_id id, const struct metric_row *row)
{
	const struct metric_info *info = metric_info(id);
	if (row->set != info->set || !(row->present >> info->col & 1))
		return;
	if (info->type == METRIC_HISTOGRAM)
		put_histogram(buf, info, row);
	else
		put_line(buf, info, info->type == METRIC_COUNTER ? "_total" : "", row, NULL,
		        row->values[info->col], strcmp(info->unit, "seconds") == 0);
}

/* --- everything ---------------------------------------------------------- */

void metric_printer_init(struct metric_printer *printer, struct metric_row *const *rows, size_t cnt)
{
	size_t at = 0;
	*printer = (struct metric_printer){.rows = rows};
	for (size_t set = 0; set <= METRIC_SET_CNT; set++) {
		while (at < cnt && rows[at]->set < set)
			at++;
		printer->first[set] = at;
	}
}

/* Whether any row has the metric that comes next. */
static bool is_shown(const struct metric_printer *printer, const struct metric_info *info)
{
	for (size_t i = printer->first[info->set]; i < printer->first[info->set + 1]; i++)
		if (printer->rows[i]->present >> info->col & 1)
			return true;
	return false;
}

bool metric_printer_next(struct metric_printer *printer, struct buf *buf)
{
	if (printer->metric == METRIC_CNT) {
		buf_add_str(buf, "# EOF\n");
		return false;
	}
	enum metric_id id = (enum metric_id)printer->metric;
	const struct metric_info *info = metric_info(id);
	size_t at = printer->first[info->set] + printer->row;
	if (printer->row == 0 && is_shown(printer, info))
		metric_print_head(buf, id);
	if (at < printer->first[info->set + 1]) {
		metric_print_row(buf, id, printer->rows[at]);
		printer->row++;
	} else {
		printer->metric++;
		printer->row = 0;
	}
	return true;
}
