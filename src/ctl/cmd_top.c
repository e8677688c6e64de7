/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `culvertctl top`: the pods of the node with their rates, from two looks at
 * the metrics of the node. On a terminal the screen is drawn anew each time
 * and is as it was when we end; elsewhere tables follow each other.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/listing.h"
#include "ctl/pods.h"
#include "ctl/samples.h"
#include "ctl/table.h"

/* Pods of one look; a node has some hundred. */
#define PODS_MAX 10000
/* Size of a terminal that does not tell its own. */
#define ROWS_USUAL 24
#define COLUMNS_USUAL 80
/* Lines above the table's first row, and one free below. */
#define LINES_AROUND 4

/* The metrics that are shown. */
enum number { CPU_S, RSS, CONNECTIONS, OPENED, RECEIVED, SENT, NUMBER_CNT };

static const char *const METRICS[NUMBER_CNT] = {
        [CPU_S] = "culvert_silo_cpu_seconds_total",
        [RSS] = "culvert_silo_resident_memory_bytes",
        [CONNECTIONS] = "culvert_silo_connections",
        [OPENED] = "culvert_silo_connections_opened_total",
        [RECEIVED] = "culvert_silo_received_bytes_total",
        [SENT] = "culvert_silo_sent_bytes_total",
};

/* A pod at one look. */
struct row {
	char name[PODS_NAME_MAX];
	char ns[PODS_NAME_MAX];
	double now[NUMBER_CNT];
	bool has[NUMBER_CNT];
	double rate[NUMBER_CNT]; /* a second; valid if has_rate */
	bool has_rate[NUMBER_CNT];
	char key[]; /* namespace/name */
};

/* All pods at one look. */
struct look {
	struct map rows;
	uint64_t at_us; /* clock_us() */
};

static struct map_key key_of(const void *item)
{
	return map_key_str(((const struct row *)item)->key);
}

static void look_done(struct look *look)
{
	for (struct row *row = map_pop(&look->rows); row; row = map_pop(&look->rows))
		mem_free(row);
	map_done(&look->rows);
}

/* The pod's row, made if new; NULL without memory or room. */
static struct row *row_of(struct look *look, const char *ns, const char *name)
{
	char key[2 * PODS_NAME_MAX];
	size_t len = (size_t)snprintf(key, sizeof(key), "%s/%s", ns, name);
	struct row *row = map_get_str(&look->rows, key);
	if (row)
		return row;
	row = mem_zalloc(1, sizeof(*row) + len + 1);
	if (!row)
		return NULL;
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->ns, sizeof(row->ns), "%s", ns);
	memcpy(row->key, key, len + 1);
	if (map_put(&look->rows, row, NULL) < 0) {
		mem_free(row);
		return NULL;
	}
	return row;
}

static int number_of(const struct sample *sample)
{
	for (int i = 0; i < NUMBER_CNT; i++)
		if (samples_is(sample, METRICS[i]))
			return i;
	return -1;
}

static void read_samples(const struct ctl *ctl, const char *text, struct look *look)
{
	const char *wanted = ctl->options[CTL_OPT_POD];
	struct sample sample;
	char ns[PODS_NAME_MAX], name[PODS_NAME_MAX];
	for (const char *at = text; samples_next(&at, &sample);) {
		int number = number_of(&sample);
		if (number < 0 || !samples_label(&sample, "pod_namespace", ns, sizeof(ns)) ||
		        !samples_label(&sample, "pod_name", name, sizeof(name)) ||
		        (wanted && !listing_is_pod(wanted, name, ns)))
			continue;
		struct row *row = row_of(look, ns, name);
		if (row) {
			row->now[number] = sample.value;
			row->has[number] = true;
		}
	}
}

static int look(const struct ctl *ctl, const struct client *client, struct look *ret_look, struct err *err)
{
	struct buf body;
	buf_init(&body, CLIENT_BODY_MAX);
	int r = client_ask(client, CLIENT_ADMIN, "/culvert/metrics", false, &body, err);
	const char *text = r == 0 ? buf_cstr(&body) : NULL;
	if (r == 0 && !text)
		r = err_sys(err, -ENOMEM, "the metrics");
	if (r == 0) {
		*ret_look = (struct look){.at_us = clock_us()};
		map_init(&ret_look->rows, PODS_MAX, key_of);
		read_samples(ctl, text, ret_look);
	}
	buf_done(&body);
	return r;
}

/* What has changed since the look before; a number that fell is that of a new silo. */
static void make_rates(struct look *now, const struct look *before)
{
	double seconds = (double)(now->at_us - before->at_us) / 1e6;
	size_t cursor = 0;
	for (struct row *row; (row = map_next(&now->rows, &cursor));) {
		const struct row *old = map_get_str(&before->rows, row->key);
		for (int i = 0; old && seconds > 0 && i < NUMBER_CNT; i++) {
			row->has_rate[i] = row->has[i] && old->has[i] && row->now[i] >= old->now[i];
			row->rate[i] = row->has_rate[i] ? (row->now[i] - old->now[i]) / seconds : 0;
		}
	}
}

/* --- text ---------------------------------------------------------------- */

/* Room for a number as text. */
#define NUMBER_TEXT_MAX 32

static const char *bytes_text(char *dst, bool is_known, double bytes)
{
	static const char units[] = "BKMGTP";
	size_t unit = 0;
	while (bytes >= 10000 && unit + 2 < sizeof(units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(dst, NUMBER_TEXT_MAX, is_known ? "%.0f%c" : "-", bytes, units[unit]);
	return dst;
}

static const char *number_text(char *dst, bool is_known, double number, int digits)
{
	snprintf(dst, NUMBER_TEXT_MAX, is_known ? "%.*f" : "-", digits, number);
	return dst;
}

static int by_load(const void *a, const void *b)
{
	const struct row *one = *(const struct row *const *)a;
	const struct row *two = *(const struct row *const *)b;
	double more = two->rate[CPU_S] - one->rate[CPU_S];
	return more > 0 ? 1 : more < 0 ? -1 : strcmp(one->key, two->key);
}

static void add_row(struct table *table, const struct row *row)
{
	char cpu[NUMBER_TEXT_MAX], rss[NUMBER_TEXT_MAX], conns[NUMBER_TEXT_MAX], opened[NUMBER_TEXT_MAX];
	char in[NUMBER_TEXT_MAX], out[NUMBER_TEXT_MAX];
	const char *const cells[] = {row->ns, row->name,
	        number_text(cpu, row->has_rate[CPU_S], row->rate[CPU_S] * 100, 1),
	        bytes_text(rss, row->has[RSS], row->now[RSS]),
	        number_text(conns, row->has[CONNECTIONS], row->now[CONNECTIONS], 0),
	        number_text(opened, row->has_rate[OPENED], row->rate[OPENED], 1),
	        bytes_text(in, row->has_rate[RECEIVED], row->rate[RECEIVED]),
	        bytes_text(out, row->has_rate[SENT], row->rate[SENT])};
	table_row(table, cells);
}

/* The table, busiest pods first, at most row_max of them. */
static int print_rows(FILE *out, const struct look *now, size_t row_max, struct err *err)
{
	static const char *const headings[] = {
	        "NAMESPACE", "POD", "CPU%", "MEMORY", "CONNS", "NEW/S", "IN/S", "OUT/S"};
	struct table table;
	size_t cnt = 0;
	size_t cursor = 0;
	struct row **all = mem_alloc((map_cnt(&now->rows) + 1) * sizeof(struct row *));
	if (!all)
		return err_sys(err, -ENOMEM, "the table");
	for (struct row *row; (row = map_next(&now->rows, &cursor));)
		all[cnt++] = row;
	qsort(all, cnt, sizeof(*all), by_load);
	table_init(&table, sizeof(headings) / sizeof(headings[0]), headings, 2);
	for (size_t i = 0; i < cnt && i < row_max; i++)
		add_row(&table, all[i]);
	int r = table_print(&table, out, err);
	if (r == 0 && cnt > row_max)
		fprintf(out, "and %zu more\n", cnt - row_max);
	table_done(&table);
	mem_free(all);
	return r;
}

/* --- screen -------------------------------------------------------------- */

static void screen_begin(FILE *out)
{
	/* xterm(1): the other screen, no cursor. */
	fputs("\033[?1049h\033[?25l", out);
}

static void screen_end(FILE *out)
{
	fputs("\033[?25h\033[?1049l", out);
	fflush(out);
}

/* Writes text line by line, cut at the edge of the screen; our own text has no wide characters. */
static void screen_put(FILE *out, const char *text, size_t columns)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		size_t shown = 0;
		for (size_t at = 0; at < len; at++) {
			shown += ((unsigned char)text[at] & 0xc0) != 0x80;
			if (shown <= columns)
				fputc(text[at], out);
		}
		fputs("\033[K\r\n", out);
		text += len + (text[len] == '\n');
	}
	fputs("\033[J", out);
}

static int draw_screen(const struct ctl *ctl, const struct look *now, struct err *err)
{
	struct winsize size = {0};
	char *text = NULL;
	size_t len = 0;
	char time_text[CLOCK_STR_MAX];
	if (ioctl(fileno(ctl->out), TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){.ws_row = ROWS_USUAL, .ws_col = COLUMNS_USUAL};
	FILE *memory = open_memstream(&text, &len);
	if (!memory)
		return err_sys(err, -errno, "the screen");
	clock_format(clock_wall_us(), 0, time_text);
	fprintf(memory, "culvert %s  %zu pods, every %.1f s\n\n", time_text, map_cnt(&now->rows),
	        ctl->interval_ms / 1000.0);
	size_t row_max = size.ws_row > LINES_AROUND + 1 ? size.ws_row - LINES_AROUND - 1 : 1;
	int r = print_rows(memory, now, row_max, err);
	if (fclose(memory) != 0 && r == 0)
		r = err_sys(err, -ENOMEM, "the screen");
	if (r == 0) {
		fputs("\033[H", ctl->out);
		screen_put(ctl->out, text, size.ws_col);
	}
	free(text);
	return r;
}

static int show(
        const struct ctl *ctl, const struct look *now, bool has_screen, bool is_first, struct err *err)
{
	int r = 0;
	if (has_screen) {
		r = draw_screen(ctl, now, err);
	} else {
		if (!is_first)
			fputc('\n', ctl->out);
		r = print_rows(ctl->out, now, PODS_MAX, err);
	}
	if (r == 0 && fflush(ctl->out) != 0)
		r = err_sys(err, -errno, "writing the output");
	return r;
}

/* --- loop ---------------------------------------------------------------- */

/* Waits for the next look; false when a signal ends it all. A new size of the terminal ends the wait. */
static bool wait_for_next(const struct ctl *ctl, const sigset_t *signals)
{
	const struct timespec interval = {
	        .tv_sec = ctl->interval_ms / 1000, .tv_nsec = (long)(ctl->interval_ms % 1000) * 1000000};
	int sig = sigtimedwait(signals, NULL, &interval);
	return sig < 0 || sig == SIGWINCH;
}

static int loop(const struct ctl *ctl, const struct client *client, const sigset_t *signals, bool has_screen,
        struct err *err)
{
	struct look before, now;
	unsigned shown = 0;
	int r = look(ctl, client, &before, err);
	if (r < 0)
		return r;
	/* A single table is of use only with its rates. */
	bool goes_on = ctl->iterations != 1 || wait_for_next(ctl, signals);
	if (ctl->iterations != 1)
		r = show(ctl, &before, has_screen, shown++ == 0, err);
	while (r == 0 && goes_on && (ctl->iterations == 0 || shown < ctl->iterations)) {
		if (shown > 0 && !wait_for_next(ctl, signals))
			break;
		r = look(ctl, client, &now, err);
		if (r < 0)
			break;
		make_rates(&now, &before);
		r = show(ctl, &now, has_screen, shown++ == 0, err);
		look_done(&before);
		before = now;
	}
	look_done(&before);
	return r;
}

int cmd_top(const struct ctl *ctl, struct err *err)
{
	struct client client;
	struct pod_ref pod;
	sigset_t signals;
	bool has_screen = isatty(fileno(ctl->out)) && ctl->iterations != 1;
	int r = client_open(ctl, &client, err);
	if (r < 0)
		return r;
	/* A pod that is there and has no metrics yet makes an empty table. */
	if (ctl->options[CTL_OPT_POD])
		r = pods_find(&client, ctl->options[CTL_OPT_POD], &pod, err);
	/* A signal ends the wait, so that the screen is put back in one place only. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	if (has_screen)
		sigaddset(&signals, SIGWINCH);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (r == 0 && has_screen)
		screen_begin(ctl->out);
	if (r == 0) {
		r = loop(ctl, &client, &signals, has_screen, err);
		if (has_screen)
			screen_end(ctl->out);
	}
	client_done(&client);
	return r;
}
