/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters as a silo out of its mind may send them: what is taken must be one well-formed line a sample. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "broker/metrics_sum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Set, columns, length of the labels: the head of each row in the input. */
#define HEAD_LEN 6

static void take_rows(struct metric_table *table, const uint8_t *data, size_t len)
{
	static const uint64_t values[32] = {UINT64_MAX, 1, 0, 999999, 1000000};
	static const struct workload_info info = {.name = "pod", .ns = "ns", .service_account = "sa"};
	struct metrics_quota quota = {0};
	while (len >= HEAD_LEN) {
		uint32_t present;
		memcpy(&present, data + 1, sizeof(present));
		size_t labels_len = data[5];
		if (labels_len > len - HEAD_LEN)
			labels_len = len - HEAD_LEN;
		const struct ipc_metric metric = {.set = data[0],
		        .labels = data + HEAD_LEN,
		        .labels_len = labels_len,
		        .present = present,
		        .values = values,
		        .value_cnt = (size_t)__builtin_popcount(present)};
		metrics_sum_metric(table, &quota, &info, &metric);
		data += HEAD_LEN + labels_len;
		len -= HEAD_LEN + labels_len;
	}
}

/* Every line must be a sample of the metric: a label that broke out would begin one of its own. */
static void check_lines(const struct buf *text, const char *name)
{
	const char *p = (const char *)text->data;
	const char *end = p + text->len;
	if (!utf8_valid(p, text->len))
		abort();
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		if (!newline || (size_t)(newline - p) < strlen(name) || strncmp(p, name, strlen(name)) != 0)
			abort();
		p = newline + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct metric_table table;
	struct metric_row **rows;
	size_t cnt;
	metric_table_init(&table, 64, 1u << 16);
	take_rows(&table, data, len);
	if (metric_table_sorted(&table, &rows, &cnt) == 0) {
		for (size_t i = 0; i < cnt * METRIC_CNT; i++) {
			struct buf text;
			enum metric_id id = (enum metric_id)(i % METRIC_CNT);
			buf_init(&text, 1u << 20);
			metric_print_row(&text, id, rows[i / METRIC_CNT]);
			if (text.len > 0)
				check_lines(&text, metric_info(id)->name);
			buf_done(&text);
		}
		mem_free(rows);
	}
	metric_table_done(&table);
	return 0;
}
