/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Labels and rows; see metric.h. Their text is in metric_text.c. */
#include "base/metric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* U+FFFD, what stands for bytes that are no text. */
static const char REPLACEMENT[] = "\xef\xbf\xbd";

enum role { ROLE_POD, ROLE_BOUNDED, ROLE_OPEN, ROLE_TAIL };

enum origin { ORIGIN_BROKER, ORIGIN_SILO };

struct label {
	enum metric_set set;
	enum role role;
	const char *name;
};

static const struct label LABELS[] = {
#define METRIC_LABEL(set_, label_, role_) {.set = METRIC_SET_##set_, .role = ROLE_##role_, .name = (label_)},
#include "culvert/metrics.tbl.h"
};

static const struct metric_info INFOS[METRIC_CNT] = {
#define METRIC(id_, set_, col_, name_, type_, unit_, origin_, help_)                                         \
	[METRIC_##id_] = {.name = (name_),                                                                   \
	        .unit = (unit_),                                                                             \
	        .help = (help_),                                                                             \
	        .set = METRIC_SET_##set_,                                                                    \
	        .type = METRIC_##type_,                                                                      \
	        .col = (col_),                                                                               \
	        .by_silo = ORIGIN_##origin_ == ORIGIN_SILO},
#include "culvert/metrics.tbl.h"
};

const struct metric_info *metric_info(enum metric_id id)
{
	return &INFOS[id];
}

/* The first label of a set; the others follow it. NULL for a set without labels. */
static const struct label *first_label(enum metric_set set)
{
	for (size_t i = 0; i < sizeof(LABELS) / sizeof(LABELS[0]); i++)
		if (LABELS[i].set == set)
			return &LABELS[i];
	return NULL;
}

static size_t count_role(enum metric_set set, enum role role)
{
	size_t cnt = 0;
	for (size_t i = 0; i < sizeof(LABELS) / sizeof(LABELS[0]); i++)
		cnt += LABELS[i].set == set && LABELS[i].role == role;
	return cnt;
}

size_t metric_label_cnt(enum metric_set set)
{
	size_t cnt = 0;
	for (size_t i = 0; i < sizeof(LABELS) / sizeof(LABELS[0]); i++)
		cnt += LABELS[i].set == set;
	return cnt;
}

const char *metric_label_name(enum metric_set set, size_t n)
{
	return first_label(set)[n].name;
}

size_t metric_pod_label_cnt(enum metric_set set)
{
	return count_role(set, ROLE_POD);
}

static unsigned cols_of(const struct metric_info *info)
{
	return info->type == METRIC_HISTOGRAM ? METRIC_HISTOGRAM_COLS : 1;
}

unsigned metric_cols(enum metric_set set)
{
	unsigned cnt = 0;
	for (size_t i = 0; i < METRIC_CNT; i++)
		if (INFOS[i].set == set && INFOS[i].col + cols_of(&INFOS[i]) > cnt)
			cnt = INFOS[i].col + cols_of(&INFOS[i]);
	return cnt;
}

uint32_t metric_silo_cols(enum metric_set set)
{
	uint32_t mask = 0;
	for (size_t i = 0; i < METRIC_CNT; i++)
		if (INFOS[i].set == set && INFOS[i].by_silo)
			mask |= ((1u << cols_of(&INFOS[i])) - 1) << INFOS[i].col;
	return mask;
}

/* --- labels -------------------------------------------------------------- */

void metric_labels_init(struct metric_labels *labels)
{
	labels->len = 0;
	labels->cnt = 0;
}

/* Appends a piece whole or not at all. */
static bool put(struct metric_labels *labels, const char *p, size_t len)
{
	if (len > sizeof(labels->bytes) - labels->len)
		return false;
	memcpy(labels->bytes + labels->len, p, len);
	labels->len += len;
	return true;
}

void metric_labels_add(struct metric_labels *labels, const char *value)
{
	if (labels->cnt++ > 0)
		put(labels, "", 1);
	if (!value || strcmp(value, "unknown") == 0)
		return;
	for (size_t left = strlen(value); left > 0;) {
		size_t n = utf8_char_len(value, left);
		bool fits = n > 0 ? put(labels, value, n) : put(labels, REPLACEMENT, sizeof(REPLACEMENT) - 1);
		if (!fits)
			return;
		value += n > 0 ? n : 1;
		left -= n > 0 ? n : 1;
	}
}

bool metric_labels_append(struct metric_labels *labels, const char *bytes, size_t len)
{
	if (len + 1 > sizeof(labels->bytes) - labels->len)
		return false;
	if (labels->cnt++ > 0)
		put(labels, "", 1);
	return put(labels, bytes, len);
}

/* The n-th value; the last one ends with the labels. */
static const char *value_at(const char *bytes, size_t len, size_t n, size_t *ret_len)
{
	const char *end = bytes + len;
	for (; n > 0; n--) {
		const char *zero = memchr(bytes, 0, (size_t)(end - bytes));
		bytes = zero ? zero + 1 : end;
	}
	const char *zero = memchr(bytes, 0, (size_t)(end - bytes));
	*ret_len = (size_t)((zero ? zero : end) - bytes);
	return bytes;
}

void metric_labels_overflow(struct metric_labels *labels, enum metric_set set)
{
	const struct label *label = first_label(set);
	size_t cnt = metric_label_cnt(set) - count_role(set, ROLE_TAIL);
	size_t pod = metric_pod_label_cnt(set);
	struct metric_labels old = *labels;
	metric_labels_init(labels);
	for (size_t i = pod; i < cnt; i++) {
		char kept[64];
		size_t len;
		const char *value = value_at(old.bytes, old.len, i - pod, &len);
		if (len >= sizeof(kept))
			len = 0;
		memcpy(kept, value, len);
		kept[len] = '\0';
		metric_labels_add(labels, label[i].role == ROLE_BOUNDED ? kept : "overflow");
	}
}

bool metric_labels_valid(enum metric_set set, const char *bytes, size_t len, bool has_pod)
{
	size_t max = metric_label_cnt(set) - (has_pod ? 0 : metric_pod_label_cnt(set));
	size_t min = max - count_role(set, ROLE_TAIL);
	if (len > METRIC_LABELS_MAX || !utf8_valid(bytes, len))
		return false;
	if (max == 0)
		return len == 0;
	size_t cnt = 1;
	for (size_t i = 0; i < len; i++)
		cnt += bytes[i] == '\0';
	if (cnt != min && cnt != max)
		return false;
	/* The empty value is shown as this word: both would be one series twice. */
	for (size_t i = 0; i < cnt; i++) {
		size_t value_len;
		const char *value = value_at(bytes, len, i, &value_len);
		if (value_len == 7 && memcmp(value, "unknown", 7) == 0)
			return false;
	}
	return true;
}

void metric_labels_replace(
        struct metric_labels *labels, const struct metric_row *row, size_t n, const char *value)
{
	const char *bytes = metric_row_labels(row);
	size_t old_len;
	const char *old = value_at(bytes, row->len, n, &old_len);
	metric_labels_init(labels);
	put(labels, bytes, (size_t)(old - bytes));
	metric_labels_add(labels, value);
	put(labels, old + old_len, row->len - (size_t)(old - bytes) - old_len);
	labels->cnt = metric_label_cnt(row->set);
}

/* --- rows ---------------------------------------------------------------- */

/* Set and labels as one key; the set is the byte in front of the labels. */
static char *key_of_row(const struct metric_row *row)
{
	return (char *)&row->values[metric_cols(row->set)];
}

static struct map_key row_key(const void *item)
{
	const struct metric_row *row = item;
	return (struct map_key){.p = key_of_row(row), .len = 1u + row->len};
}

const char *metric_row_labels(const struct metric_row *row)
{
	return key_of_row(row) + 1;
}

void metric_table_init(struct metric_table *table, size_t max, size_t bytes_max)
{
	*table = (struct metric_table){.bytes_max = bytes_max};
	map_init(&table->rows, max, row_key);
}

void metric_table_done(struct metric_table *table)
{
	struct metric_row *row;
	while ((row = map_pop(&table->rows)))
		mem_free(row);
	map_done(&table->rows);
	table->bytes = 0;
}

static size_t row_size(enum metric_set set, size_t len)
{
	return sizeof(struct metric_row) + metric_cols(set) * sizeof(uint64_t) + 1 + len;
}

static struct metric_row *find(const struct metric_table *table, enum metric_set set, const char *labels,
        size_t len, char key[1 + METRIC_LABELS_MAX])
{
	if (len > METRIC_LABELS_MAX)
		return NULL;
	key[0] = (char)set;
	if (len > 0)
		memcpy(key + 1, labels, len);
	return map_get(&table->rows, key, 1 + len);
}

struct metric_row *metric_table_find(
        const struct metric_table *table, enum metric_set set, const char *labels, size_t len)
{
	char key[1 + METRIC_LABELS_MAX];
	return find(table, set, labels, len, key);
}

struct metric_row *metric_table_row(
        struct metric_table *table, enum metric_set set, const char *labels, size_t len)
{
	char key[1 + METRIC_LABELS_MAX];
	struct metric_row *row = find(table, set, labels, len, key);
	size_t size = row_size(set, len);
	if (row || len > METRIC_LABELS_MAX || table->bytes + size > table->bytes_max)
		return row;
	row = mem_zalloc(1, size);
	if (!row)
		return NULL;
	row->set = (uint8_t)set;
	row->len = (uint16_t)len;
	memcpy(key_of_row(row), key, 1 + len);
	if (map_put(&table->rows, row, NULL) < 0) {
		mem_free(row);
		return NULL;
	}
	table->bytes += size;
	return row;
}

/* What metric_table_sweep hands through the map. */
struct sweep {
	struct metric_table *table;
	bool (*drop)(const struct metric_row *row, void *ctx);
	void *ctx;
};

static bool sweep_row(void *item, void *ctx)
{
	const struct sweep *sweep = ctx;
	struct metric_row *row = item;
	if (!sweep->drop(row, sweep->ctx))
		return false;
	sweep->table->bytes -= row_size(row->set, row->len);
	mem_free(row);
	return true;
}

void metric_table_sweep(
        struct metric_table *table, bool (*drop)(const struct metric_row *row, void *ctx), void *ctx)
{
	struct sweep sweep = {.table = table, .drop = drop, .ctx = ctx};
	map_sweep(&table->rows, sweep_row, &sweep);
}

static int compare(const void *a, const void *b)
{
	const struct map_key x = row_key(*(const struct metric_row *const *)a);
	const struct map_key y = row_key(*(const struct metric_row *const *)b);
	int r = memcmp(x.p, y.p, x.len < y.len ? x.len : y.len);
	return r != 0 ? r : (x.len > y.len) - (x.len < y.len);
}

int metric_table_sorted(const struct metric_table *table, struct metric_row ***ret_rows, size_t *ret_cnt)
{
	size_t cursor = 0;
	size_t cnt = 0;
	struct metric_row *row;
	struct metric_row **rows = mem_zalloc(map_cnt(&table->rows) + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	while ((row = map_next(&table->rows, &cursor)))
		rows[cnt++] = row;
	qsort(rows, cnt, sizeof(*rows), compare);
	*ret_rows = rows;
	*ret_cnt = cnt;
	return 0;
}

void metric_row_add(struct metric_row *row, unsigned col, uint64_t n)
{
	uint64_t *value = &row->values[col];
	row->present |= 1u << col;
	if (__builtin_add_overflow(*value, n, value))
		*value = UINT64_MAX;
}

void metric_row_observe(struct metric_row *row, unsigned col, uint64_t us)
{
	static const uint64_t bounds[METRIC_BUCKETS] = {500, 1000, 10000, 100000, 1000000, 5000000};
	unsigned bucket = 0;
	while (bucket < METRIC_BUCKETS && us > bounds[bucket])
		bucket++;
	metric_row_add(row, col + bucket, 1);
	metric_row_add(row, col + METRIC_BUCKETS + 1, us);
	/* A histogram is shown whole. */
	row->present |= ((1u << METRIC_HISTOGRAM_COLS) - 1) << col;
}
