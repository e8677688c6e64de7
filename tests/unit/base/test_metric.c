/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows, their labels, their ceilings and their text. */
#include "unit.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/metric.h"

static struct metric_labels labels_of(const char *const *values, size_t cnt)
{
	struct metric_labels labels;
	metric_labels_init(&labels);
	for (size_t i = 0; i < cnt; i++)
		metric_labels_add(&labels, values[i]);
	return labels;
}

static const char *text_of(enum metric_id id, const struct metric_row *row)
{
	static char text[4096];
	struct buf buf;
	buf_init(&buf, sizeof(text) - 1);
	metric_print_row(&buf, id, row);
	assert_int_equal(buf.err, 0);
	snprintf(text, sizeof(text), "%.*s", (int)buf.len, buf.data ? (const char *)buf.data : "");
	buf_done(&buf);
	return text;
}

/* Columns of a set must not overlap, and every metric must fit the mask. */
static void test_table(void **state)
{
	uint32_t used[METRIC_SET_CNT] = {0};
	(void)state;
	for (size_t i = 0; i < METRIC_CNT; i++) {
		const struct metric_info *info = metric_info((enum metric_id)i);
		unsigned cnt = info->type == METRIC_HISTOGRAM ? METRIC_HISTOGRAM_COLS : 1;
		assert_true(info->col + cnt <= METRIC_COLS_MAX);
		uint32_t mask = ((1u << cnt) - 1) << info->col;
		assert_int_equal(used[info->set] & mask, 0);
		used[info->set] |= mask;
		size_t len = strlen(info->name);
		size_t unit_len = strlen(info->unit);
		/* A unit is the end of the name (OpenMetrics 1.0, "Unit"). */
		assert_true(unit_len == 0 || strcmp(info->name + len - unit_len, info->unit) == 0);
	}
	assert_int_equal(metric_label_cnt(METRIC_SET_TRAFFIC), 27);
	assert_string_equal(metric_label_name(METRIC_SET_TRAFFIC, 21), "response_flags");
	assert_int_equal(metric_silo_cols(METRIC_SET_NODE), 0);
	assert_int_equal(metric_silo_cols(METRIC_SET_TRAFFIC), 0x1f);
	assert_int_equal(metric_silo_cols(METRIC_SET_POD), 0x3ff);
	assert_int_equal(metric_cols(METRIC_SET_POD), 14);
	assert_int_equal(metric_pod_label_cnt(METRIC_SET_HANDSHAKE), 2);
}

static void test_escapes(void **state)
{
	const char *values[] = {"a\"b\\c\nd", "\xff\xc3\xa9\xc3"};
	struct metric_labels labels = labels_of(values, 2);
	struct metric_table table;
	(void)state;
	metric_table_init(&table, 10, 10000);
	struct metric_row *row = metric_table_row(&table, METRIC_SET_BUILD, labels.bytes, labels.len);
	metric_row_add(row, METRIC_COL_BUILD, 1);
	assert_string_equal(text_of(METRIC_BUILD, row),
	        "istio_build{component=\"a\\\"b\\\\c\\nd\",tag=\"\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\"} 1\n");
	assert_string_equal(text_of(METRIC_XDS_ENDS, row), "");
	const char *unknown[] = {"unknown", NULL};
	labels = labels_of(unknown, 2);
	assert_int_equal(labels.len, 1);
	row = metric_table_row(&table, METRIC_SET_BUILD, labels.bytes, labels.len);
	assert_string_equal(text_of(METRIC_BUILD, row), "");
	metric_row_add(row, METRIC_COL_BUILD, 7);
	assert_string_equal(
	        text_of(METRIC_BUILD, row), "istio_build{component=\"unknown\",tag=\"unknown\"} 7\n");
	metric_table_done(&table);
}

static void test_histogram(void **state)
{
	const char *values[] = {"aaaa", "udp", "client", ""};
	struct metric_labels labels = labels_of(values, 4);
	struct metric_table table;
	(void)state;
	metric_table_init(&table, 10, 10000);
	struct metric_row *row = metric_table_row(&table, METRIC_SET_DNS, labels.bytes, labels.len);
	/* Bounds belong to the bucket below them. */
	for (const uint64_t *us = (const uint64_t[]){500, 501, 9999, 4000000, 5000001, 0}; *us; us++)
		metric_row_observe(row, METRIC_COL_DNS_DURATION, *us);
#define L                                                                                                    \
	"request_query_type=\"aaaa\",request_protocol=\"udp\",source_canonical_service=\"client\",source_canonical_revision=\"unknown\""
#define N "istio_dns_upstream_request_duration_seconds"
	assert_string_equal(text_of(METRIC_DNS_DURATION, row),
	        N "_sum{" L "} 9.011001\n" N "_count{" L "} 5\n" N "_bucket{" L ",le=\"0.0005\"} 1\n" N
	          "_bucket{" L ",le=\"0.001\"} 2\n" N "_bucket{" L ",le=\"0.01\"} 3\n" N "_bucket{" L
	          ",le=\"0.1\"} 3\n" N "_bucket{" L ",le=\"1.0\"} 3\n" N "_bucket{" L ",le=\"5.0\"} 4\n" N
	          "_bucket{" L ",le=\"+Inf\"} 5\n");
	assert_string_equal(text_of(METRIC_DNS_REQUESTS, row), "");
	metric_table_done(&table);
}

static void test_head(void **state)
{
	struct buf buf;
	(void)state;
	buf_init(&buf, 1000);
	metric_print_head(&buf, METRIC_XDS_BYTES);
	assert_string_equal(buf_cstr(&buf),
	        "# HELP istio_xds_message_bytes Total number of bytes received (unstable).\n"
	        "# TYPE istio_xds_message_bytes counter\n"
	        "# UNIT istio_xds_message_bytes bytes\n");
	buf_done(&buf);
}

/* Traffic labels with values v0, v1, ... */
static struct metric_labels traffic(size_t cnt)
{
	struct metric_labels labels;
	metric_labels_init(&labels);
	for (size_t i = 0; i < cnt; i++) {
		char value[8];
		snprintf(value, sizeof(value), "v%u", (unsigned)(i % 1000));
		metric_labels_add(&labels, value);
	}
	return labels;
}

static void test_overflow_and_replace(void **state)
{
	struct metric_table table;
	(void)state;
	metric_table_init(&table, 10, 10000);
	struct metric_labels labels = traffic(27);
	struct metric_row *row = metric_table_row(&table, METRIC_SET_TRAFFIC, labels.bytes, labels.len);
	metric_labels_replace(&labels, row, 21, "DENY");
	assert_true(metric_labels_valid(METRIC_SET_TRAFFIC, labels.bytes, labels.len, false));
	assert_non_null(memmem(labels.bytes, labels.len, "v20\0DENY\0v22", 12));
	metric_labels_overflow(&labels, METRIC_SET_TRAFFIC);
	assert_true(metric_labels_valid(METRIC_SET_TRAFFIC, labels.bytes, labels.len, false));
	assert_int_equal(labels.cnt, 23);
	assert_memory_equal(labels.bytes, "v0\0overflow\0overflow", 20);
	assert_memory_equal(labels.bytes + labels.len - 12, "v20\0DENY\0v22", 12);
	struct metric_labels again = labels;
	metric_labels_overflow(&again, METRIC_SET_TRAFFIC);
	assert_int_equal(again.len, labels.len);
	assert_memory_equal(again.bytes, labels.bytes, labels.len);
	metric_table_done(&table);
}

/* What a silo may send: the right number of values, text, and no second spelling of "unknown". */
static void test_valid(void **state)
{
	struct metric_labels labels = traffic(23);
	(void)state;
	assert_true(metric_labels_valid(METRIC_SET_TRAFFIC, labels.bytes, labels.len, false));
	for (size_t cnt = 1; cnt < 30; cnt++) {
		labels = traffic(cnt);
		assert_int_equal(metric_labels_valid(METRIC_SET_TRAFFIC, labels.bytes, labels.len, false),
		        cnt == 23 || cnt == 27);
	}
	assert_false(metric_labels_valid(METRIC_SET_SOCKETS, "\xff", 1, false));
	assert_false(metric_labels_valid(METRIC_SET_SOCKETS, "unknown", 7, false));
	assert_true(metric_labels_valid(METRIC_SET_SOCKETS, "", 0, false));
	assert_false(metric_labels_valid(METRIC_SET_SOCKETS, "a\0b", 3, false));
	assert_true(metric_labels_valid(METRIC_SET_POD, "", 0, false));
	assert_false(metric_labels_valid(METRIC_SET_POD, "a", 1, false));
	assert_true(metric_labels_valid(METRIC_SET_POD, "a\0b", 3, true));
	static char large[METRIC_LABELS_MAX + 1];
	memset(large, 'x', sizeof(large));
	assert_false(metric_labels_valid(METRIC_SET_SOCKETS, large, sizeof(large), false));
}

static void test_long_values_are_cut(void **state)
{
	struct metric_labels labels;
	static char large[METRIC_LABELS_MAX * 2];
	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	metric_labels_init(&labels);
	metric_labels_add(&labels, large);
	assert_int_equal(labels.len, METRIC_LABELS_MAX);
	metric_labels_add(&labels, "more");
	assert_int_equal(labels.len, METRIC_LABELS_MAX);
	assert_false(metric_labels_append(&labels, "a", 1));
}

static void test_ceilings_and_order(void **state)
{
	struct metric_table table;
	struct metric_row **rows;
	size_t cnt;
	(void)state;
	metric_table_init(&table, 3, 100000);
	static const char *const names[] = {"b", "a", "ab"};
	for (size_t i = 0; i < 3; i++)
		assert_non_null(metric_table_row(&table, METRIC_SET_SOCKETS, names[i], strlen(names[i])));
	assert_null(metric_table_row(&table, METRIC_SET_SOCKETS, "c", 1));
	assert_ptr_equal(metric_table_row(&table, METRIC_SET_SOCKETS, "a", 1),
	        metric_table_find(&table, METRIC_SET_SOCKETS, "a", 1));
	assert_null(metric_table_find(&table, METRIC_SET_XDS_URL, "a", 1));
	assert_int_equal(metric_table_sorted(&table, &rows, &cnt), 0);
	assert_int_equal(cnt, 3);
	assert_memory_equal(metric_row_labels(rows[0]), "a", 1);
	assert_memory_equal(metric_row_labels(rows[1]), "ab", 2);
	assert_memory_equal(metric_row_labels(rows[2]), "b", 1);
	mem_free(rows);
	metric_table_done(&table);
	metric_table_init(&table, 1000, 200);
	cnt = 0;
	for (char c = 'a'; c <= 'z'; c++)
		cnt += metric_table_row(&table, METRIC_SET_SOCKETS, &c, 1) != NULL;
	assert_true(cnt > 0 && cnt < 10);
	metric_table_done(&table);
}

static bool is_a(const struct metric_row *row, void *ctx)
{
	(void)ctx;
	return *metric_row_labels(row) == 'a';
}

static void test_sweep_gives_room_back(void **state)
{
	struct metric_table table;
	(void)state;
	metric_table_init(&table, 10, 100000);
	metric_table_row(&table, METRIC_SET_SOCKETS, "b", 1);
	size_t before = table.bytes;
	metric_table_row(&table, METRIC_SET_SOCKETS, "a", 1);
	metric_table_sweep(&table, is_a, NULL);
	assert_int_equal(table.bytes, before);
	assert_null(metric_table_find(&table, METRIC_SET_SOCKETS, "a", 1));
	assert_non_null(metric_table_find(&table, METRIC_SET_SOCKETS, "b", 1));
	metric_table_done(&table);
}

static void test_sums_do_not_wrap(void **state)
{
	struct metric_table table;
	(void)state;
	metric_table_init(&table, 1, 1000);
	struct metric_row *row = metric_table_row(&table, METRIC_SET_NODE, "", 0);
	metric_row_add(row, METRIC_COL_STARTED, UINT64_MAX - 1);
	metric_row_add(row, METRIC_COL_STARTED, 5);
	assert_string_equal(text_of(METRIC_STARTED, row),
	        "workload_manager_proxies_started_total 18446744073709551615\n");
	metric_table_done(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_table),
	        cmocka_unit_test(test_escapes),
	        cmocka_unit_test(test_histogram),
	        cmocka_unit_test(test_head),
	        cmocka_unit_test(test_overflow_and_replace),
	        cmocka_unit_test(test_valid),
	        cmocka_unit_test(test_long_values_are_cut),
	        cmocka_unit_test(test_ceilings_and_order),
	        cmocka_unit_test(test_sweep_gives_room_back),
	        cmocka_unit_test(test_sums_do_not_wrap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
