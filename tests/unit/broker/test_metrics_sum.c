/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the broker takes from silos: only what is theirs to say, and no more than their share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"
#include "broker/metrics_sum.h"

static const struct workload_info INFO = {.name = "pod-1", .ns = "demo", .service_account = "sa"};

static int say(struct metric_table *table, struct metrics_quota *quota, uint32_t set, const char *labels,
        size_t len, uint32_t present)
{
	static const uint64_t values[32] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	const struct ipc_metric metric = {.set = set,
	        .labels = (const uint8_t *)labels,
	        .labels_len = len,
	        .present = present,
	        .values = values,
	        .value_cnt = (size_t)__builtin_popcount(present)};
	return metrics_sum_metric(table, quota, &INFO, &metric);
}

static void test_same_labels_are_summed(void **state)
{
	struct metric_table table;
	struct metrics_quota quota = {0};
	(void)state;
	metric_table_init(&table, 10, 10000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(say(&table, &quota, METRIC_SET_SOCKETS, "source", 6, 5), 0);
	assert_int_equal(map_cnt(&table.rows), 1);
	const struct metric_row *row = metric_table_find(&table, METRIC_SET_SOCKETS, "source", 6);
	assert_int_equal(row->present, 5);
	assert_int_equal(row->values[0], 15);
	assert_int_equal(row->values[1], 0);
	assert_int_equal(row->values[2], 18);
	struct metric_table all;
	metric_table_init(&all, 10, 10000);
	assert_int_equal(metrics_sum_table(&all, &table), 0);
	assert_int_equal(metrics_sum_table(&all, &table), 0);
	assert_int_equal(metric_table_find(&all, METRIC_SET_SOCKETS, "source", 6)->values[2], 36);
	metric_table_done(&all);
	metric_table_done(&table);
}

static void test_who_it_is_comes_from_the_broker(void **state)
{
	struct metric_table table;
	struct metrics_quota quota = {0};
	(void)state;
	metric_table_init(&table, 10, 10000);
	assert_int_equal(say(&table, &quota, METRIC_SET_POD, "", 0, 1), 0);
	assert_non_null(metric_table_find(&table, METRIC_SET_POD, "demo\0pod-1", 10));
	assert_int_equal(say(&table, &quota, METRIC_SET_HANDSHAKE, "client\0TLSv1.3\0P-256", 20, 1), 0);
	assert_non_null(
	        metric_table_find(&table, METRIC_SET_HANDSHAKE, "demo\0pod-1\0client\0TLSv1.3\0P-256", 31));
	metric_table_done(&table);
}

static void test_refused(void **state)
{
	struct metric_table table;
	struct metrics_quota quota = {0};
	(void)state;
	metric_table_init(&table, 10, 10000);
	/* Unknown sets, what only the broker knows, columns that are not a silo's, labels of the wrong shape.
	 */
	assert_int_equal(say(&table, &quota, METRIC_SET_CNT, "", 0, 1), ERR_PROTOCOL);
	assert_int_equal(say(&table, &quota, UINT32_MAX, "", 0, 1), ERR_PROTOCOL);
	assert_int_equal(say(&table, &quota, METRIC_SET_NODE, "", 0, 1), ERR_PROTOCOL);
	assert_int_equal(say(&table, &quota, METRIC_SET_POD, "", 0, 1u << METRIC_COL_SILO_CPU), ERR_PROTOCOL);
	assert_int_equal(say(&table, &quota, METRIC_SET_POD, "demo\0pod-2", 10, 1), ERR_PROTOCOL);
	assert_int_equal(say(&table, &quota, METRIC_SET_SOCKETS, "source", 6, 8), ERR_PROTOCOL);
	assert_int_equal(say(&table, &quota, METRIC_SET_SOCKETS, "unknown", 7, 1), ERR_PROTOCOL);
	assert_int_equal(say(&table, &quota, METRIC_SET_TRAFFIC, "source", 6, 1), ERR_PROTOCOL);
	assert_int_equal(say(&table, &quota, METRIC_SET_SOCKETS, "\xc3", 1, 1), ERR_PROTOCOL);
	assert_int_equal(map_cnt(&table.rows), 0);
	metric_table_done(&table);
}

static void test_quota(void **state)
{
	struct metric_table table;
	struct metrics_quota quota = {0};
	size_t cnt = 0;
	(void)state;
	metric_table_init(&table, 100000, 100u << 20);
	for (int i = 0; i < 5000; i++) {
		char label[16];
		snprintf(label, sizeof(label), "r%d", i);
		int r = say(&table, &quota, METRIC_SET_SOCKETS, label, strlen(label), 1);
		assert_true(r == 0 || r == -ENOSPC);
		cnt += r == 0;
	}
	assert_int_equal(cnt, METRICS_SUM_ROWS_MAX);
	/* Another silo still has its share; a full table says so. */
	quota = (struct metrics_quota){0};
	assert_int_equal(say(&table, &quota, METRIC_SET_SOCKETS, "other", 5, 1), 0);
	struct metric_table small;
	metric_table_init(&small, 1, 10000);
	assert_int_equal(metrics_sum_table(&small, &table), METRICS_SUM_ROWS_MAX);
	metric_table_done(&small);
	metric_table_done(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_same_labels_are_summed),
	        cmocka_unit_test(test_who_it_is_comes_from_the_broker),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_quota),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
