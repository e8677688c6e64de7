/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scrapes; see metrics.h. One is gathered at a time, whoever comes meanwhile
 * joins; then each reader walks over the sorted rows at its own speed.
 */
#include "broker/metrics.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/metric.h"
#include "broker/admin.h"
#include "broker/broker.h"
#include "broker/metrics_own.h"
#include "broker/metrics_sum.h"
#include "broker/silo_peer.h"
#include "conn/web.h"

/* What upstream answers with when it was asked for. */
#define OPENMETRICS "application/openmetrics-text"

/* What one scrape has found; shared by those who read it. */
struct scrape {
	struct metrics *metrics;
	uint64_t number;     /* counts from 1 */
	unsigned ref_cnt;    /* readers, and 1 while it is gathered */
	struct list readers; /* struct reader */
	struct metric_table table;
	struct metric_row **rows; /* sorted; NULL while it is gathered */
	size_t row_cnt;
	size_t awaited_cnt; /* silos whose answer is to come */
	size_t missing_cnt; /* silos that did not answer */
	struct timer timer; /* the deadline */
};

/* A client. */
struct reader {
	struct list node; /* in scrape.readers */
	struct scrape *scrape;
	struct web_wait wait;
	struct web_source source;
	bool wants_openmetrics;
	struct metric_printer printer; /* where its text stands */
};

struct metrics {
	struct broker *broker;
	struct web *web;
	struct scrape *gathering;  /* or NULL */
	uint64_t last_number;      /* of the scrapes */
	unsigned scrape_cnt;       /* in memory, <= METRICS_SCRAPES_MAX */
	struct metric_table ended; /* last words, to be scraped */
	struct metric_table late;  /* last words of silos whose answer the present scrape has already */
	struct metric_table xds;   /* rows of the control plane's connection */
	struct metrics_own own;
};

/* --- text ---------------------------------------------------------------- */

static void scrape_unref(struct scrape *scrape)
{
	if (--scrape->ref_cnt > 0)
		return;
	scrape->metrics->scrape_cnt--;
	metric_table_done(&scrape->table);
	mem_free(scrape->rows);
	mem_free(scrape);
}

static void reader_free(struct reader *reader)
{
	struct scrape *scrape = reader->scrape;
	list_del(&reader->node);
	mem_free(reader);
	scrape_unref(scrape);
}

static int next_piece(struct web_source *source, struct buf *out)
{
	struct reader *reader = list_entry(source, struct reader, source);
	bool has_more = true;
	while (has_more && out->len < WEB_PIECE_LEN)
		has_more = metric_printer_next(&reader->printer, out);
	return out->err ? out->err : has_more;
}

static void on_sent(struct web_source *source)
{
	reader_free(list_entry(source, struct reader, source));
}

static void start_reader(struct reader *reader)
{
	const struct http_header headers[] = {
	        {.name = "content-type",
	                .value = reader->wants_openmetrics ? OPENMETRICS ";charset=utf-8;version=1.0.0"
	                                                   : "text/plain; charset=utf-8"},
	        {.name = "vary", .value = "accept-encoding"},
	};
	reader->source = (struct web_source){.next = next_piece, .done = on_sent};
	metric_printer_init(&reader->printer, reader->scrape->rows, reader->scrape->row_cnt);
	web_stream(reader->wait.conn, 200, headers, 2, &reader->source);
}

/* --- gathering ----------------------------------------------------------- */

/* Whether last words need not be said again after this scrape: unless others count under the same labels. */
static bool is_told(const struct metric_row *row, void *ctx)
{
	const struct scrape *scrape = ctx;
	return !metric_table_find(&scrape->table, row->set, metric_row_labels(row), row->len);
}

/* Adds the last words, and forgets those that need not be said again. */
static void add_ended(struct scrape *scrape)
{
	struct metrics *metrics = scrape->metrics;
	struct metric_table all;
	metric_table_init(&all, METRICS_ENDED_ROWS_MAX, METRICS_ENDED_BYTES_MAX);
	metrics->own.dropped_cnt += metrics_sum_table(&all, &metrics->ended);
	if (!list_empty(&scrape->readers))
		metric_table_sweep(&metrics->ended, is_told, scrape);
	metrics->own.dropped_cnt += metrics_sum_table(&scrape->table, &all);
	metric_table_done(&all);
	metrics->own.dropped_cnt += metrics_sum_table(&metrics->ended, &metrics->late);
	metric_table_done(&metrics->late);
}

/* Answers one reader, which may be over before this returns. */
static void answer_reader(struct reader *reader, int r)
{
	struct web_conn *conn = reader->wait.conn;
	if (r == 0) {
		start_reader(reader);
		return;
	}
	reader_free(reader);
	web_reply_text(conn, 500, NULL, err_str(r));
}

/* All silos have answered, or their time is up. */
static void finish(struct scrape *scrape)
{
	struct metrics *metrics = scrape->metrics;
	struct list readers;
	metrics->gathering = NULL;
	io_timer_stop(metrics->broker->io, &scrape->timer);
	add_ended(scrape);
	metrics->own.dropped_cnt += metrics_sum_table(&scrape->table, &metrics->xds);
	metrics_own_fill(metrics->broker, &metrics->own, scrape->missing_cnt, &scrape->table);
	int r = metric_table_sorted(&scrape->table, &scrape->rows, &scrape->row_cnt);
	list_init(&readers);
	list_move_all(&readers, &scrape->readers);
	while (!list_empty(&readers)) {
		struct reader *reader = list_entry(readers.next, struct reader, node);
		list_del(&reader->node);
		list_add_tail(&scrape->readers, &reader->node);
		answer_reader(reader, r);
	}
	scrape_unref(scrape);
}

static void time_is_up(struct timer *timer, uint64_t now)
{
	(void)now;
	struct scrape *scrape = list_entry(timer, struct scrape, timer);
	scrape->missing_cnt += scrape->awaited_cnt;
	silo_peers_forget_metrics(scrape->metrics->broker);
	finish(scrape);
}

/* One silo less is awaited. */
static void arrived(struct metrics *metrics, struct metrics_peer *peer, bool is_missing)
{
	struct scrape *scrape = metrics->gathering;
	if (!peer->is_awaited || !scrape)
		return;
	peer->is_awaited = false;
	scrape->missing_cnt += is_missing;
	if (--scrape->awaited_cnt == 0)
		finish(scrape);
}

/* Adds one label set; what finds no room is counted, what is malformed is not worth that. */
static void add_metric(struct metrics *metrics, struct metric_table *to, struct metrics_quota *quota,
        const struct workload_info *info, const struct ipc_metric *metric)
{
	metrics->own.dropped_cnt += metrics_sum_metric(to, quota, info, metric) == -ENOSPC;
}

/* A page of the answer to an ask; one that began before this scrape is not whole. */
static void on_page(struct metrics *metrics, struct metrics_peer *peer, const struct workload_info *info,
        const struct ipc_answer_metrics *answer)
{
	struct scrape *scrape = metrics->gathering;
	uint64_t number = scrape ? scrape->number : 0;
	if (answer->page == 0)
		peer->began_in = number;
	bool is_whole = scrape && peer->is_awaited && peer->began_in == number;
	for (size_t i = 0; is_whole && i < answer->metric_cnt; i++)
		add_metric(metrics, &scrape->table, &peer->quota, info, &answer->metrics[i]);
	if (!answer->last)
		return;
	peer->is_asked = false;
	if (is_whole)
		peer->told_in = number;
	arrived(metrics, peer, !is_whole);
}

/* A page of what a silo says before it ends. */
static void on_last_word(struct metrics *metrics, struct metrics_peer *peer, const struct workload_info *info,
        const struct ipc_answer_metrics *answer)
{
	struct scrape *scrape = metrics->gathering;
	bool is_told = scrape && peer->told_in == scrape->number;
	if (peer->has_ended)
		return;
	for (size_t i = 0; i < answer->metric_cnt; i++)
		add_metric(metrics, is_told ? &metrics->late : &metrics->ended, &peer->ended, info,
		        &answer->metrics[i]);
	peer->has_ended = answer->last;
	if (answer->last)
		arrived(metrics, peer, false);
}

void metrics_on_answer(struct broker *broker, struct metrics_peer *peer, const struct workload_info *info,
        uint32_t id, const struct ipc_answer_metrics *answer)
{
	if (id == 0)
		on_last_word(broker->metrics, peer, info, answer);
	else if (peer->is_asked && id == peer->last_id)
		on_page(broker->metrics, peer, info, answer);
}

void metrics_peer_gone(struct broker *broker, struct metrics_peer *peer)
{
	arrived(broker->metrics, peer, true);
}

static struct scrape *scrape_start(struct metrics *metrics)
{
	struct scrape *scrape =
	        metrics->scrape_cnt < METRICS_SCRAPES_MAX ? mem_zalloc(1, sizeof(*scrape)) : NULL;
	if (!scrape)
		return NULL;
	scrape->metrics = metrics;
	scrape->number = ++metrics->last_number;
	scrape->ref_cnt = 1;
	metrics->scrape_cnt++;
	list_init(&scrape->readers);
	metric_table_init(&scrape->table, METRICS_ROWS_MAX, METRICS_BYTES_MAX);
	timer_init(&scrape->timer, time_is_up);
	/* Even when nobody is asked: a reader is never served from within. */
	scrape->awaited_cnt = silo_peers_ask_metrics(metrics->broker);
	io_timer_start(metrics->broker->io, &scrape->timer, scrape->awaited_cnt > 0 ? METRICS_GATHER_MS : 0);
	metrics->gathering = scrape;
	return scrape;
}

/* --- HTTP ---------------------------------------------------------------- */

/* Whether any element of any Accept header begins with the type: cut at "," and ";", without trimming, as
 * upstream does (control 11.3). */
static bool wants_openmetrics(const struct http_request *request)
{
	size_t cursor = 0;
	const char *value;
	while ((value = http_header_next(request, "accept", &cursor))) {
		while (*value) {
			size_t len = strcspn(value, ",");
			size_t type_len = strcspn(value, ",;");
			if (type_len == sizeof(OPENMETRICS) - 1 &&
			        strncasecmp(value, OPENMETRICS, type_len) == 0)
				return true;
			value += len + (value[len] == ',');
		}
	}
	return false;
}

static void on_gone(struct web_wait *wait)
{
	reader_free(list_entry(wait, struct reader, wait));
}

void metrics_serve(struct broker *broker, struct web_conn *conn, const struct http_request *request)
{
	struct metrics *metrics = broker->metrics;
	struct reader *reader = mem_zalloc(1, sizeof(*reader));
	struct scrape *scrape = metrics->gathering ? metrics->gathering : scrape_start(metrics);
	if (!reader || !scrape) {
		mem_free(reader);
		web_reply_text(conn, 503, "text/plain", "too many scrapes at a time\n");
		return;
	}
	reader->scrape = scrape;
	scrape->ref_cnt++;
	reader->wants_openmetrics = wants_openmetrics(request);
	list_init(&reader->node);
	list_add_tail(&scrape->readers, &reader->node);
	reader->wait.gone = on_gone;
	web_conn_wait(conn, &reader->wait);
}

static void serve(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	metrics_serve(ctx, conn, request);
}

static const struct web_route ROUTES[] = {
        {"/metrics", 0, serve},
        {"/stats/prometheus", 0, serve},
};

/* --- life ---------------------------------------------------------------- */

int metrics_new(struct broker *broker)
{
	struct metrics *metrics = mem_zalloc(1, sizeof(*metrics));
	struct rlimit limit;
	if (!metrics)
		return -ENOMEM;
	metrics->broker = broker;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics->own.fd_max = limit.rlim_cur;
	metric_table_init(&metrics->ended, METRICS_ENDED_ROWS_MAX, METRICS_ENDED_BYTES_MAX);
	metric_table_init(&metrics->late, METRICS_ENDED_ROWS_MAX, METRICS_ENDED_BYTES_MAX);
	/* Types and reasons are few. */
	metric_table_init(&metrics->xds, 256, 65536);
	broker->metrics = metrics;
	return 0;
}

int metrics_start(struct broker *broker, struct err *err)
{
	struct metrics *metrics = broker->metrics;
	int fd;
	int r = admin_listen(broker->settings.stats_port, broker->settings.ipv6_enabled, &fd);
	if (r < 0)
		return err_sys(err, r, "stats server starts");
	r = admin_serve(broker, fd, "stats", ROUTES, sizeof(ROUTES) / sizeof(ROUTES[0]), &metrics->web);
	return r < 0 ? err_sys(err, r, "stats server") : 0;
}

void metrics_drain(struct broker *broker)
{
	admin_end(broker, broker->metrics->web, "stats");
}

static void stop(struct broker *broker)
{
	web_free(broker->metrics->web);
	broker->metrics->web = NULL;
}

void metrics_free(struct broker *broker)
{
	struct metrics *metrics = broker->metrics;
	if (!metrics)
		return;
	stop(broker);
	if (metrics->gathering) {
		io_timer_stop(broker->io, &metrics->gathering->timer);
		scrape_unref(metrics->gathering);
	}
	metric_table_done(&metrics->ended);
	metric_table_done(&metrics->late);
	metric_table_done(&metrics->xds);
	mem_free(metrics);
	broker->metrics = NULL;
}

/* --- counting ------------------------------------------------------------ */

void metrics_proxy(struct broker *broker, bool is_up)
{
	if (is_up)
		broker->metrics->own.started_cnt++;
	else
		broker->metrics->own.stopped_cnt++;
}

static struct metric_row *xds_row(struct broker *broker, enum metric_set set, const char *label)
{
	struct metrics *metrics = broker->metrics;
	struct metric_labels labels;
	metric_labels_init(&labels);
	metric_labels_add(&labels, label);
	struct metric_row *row = metric_table_row(&metrics->xds, set, labels.bytes, labels.len);
	metrics->own.dropped_cnt += !row;
	return row;
}

void metrics_xds_message(struct broker *broker, const char *url, uint64_t bytes)
{
	struct metric_row *row = xds_row(broker, METRIC_SET_XDS_URL, url);
	if (!row)
		return;
	metric_row_add(row, METRIC_COL_XDS_MESSAGES, 1);
	metric_row_add(row, METRIC_COL_XDS_BYTES, bytes);
}

void metrics_xds_end(struct broker *broker, const char *reason)
{
	struct metric_row *row = xds_row(broker, METRIC_SET_XDS_REASON, reason);
	if (row)
		metric_row_add(row, METRIC_COL_XDS_ENDS, 1);
}
