/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting by label set; see metrics.h. */
#include "silo/metrics.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "conn/link.h"
#include "conn/pump.h"
#include "mesh/identity.h"
#include "pb/ipc.h"
#include "silo/access.h"
#include "silo/broker_link.h"
#include "silo/silo.h"

/* Memory of one answer: pointers to the rows and copies of their values. */
#define ANSWER_ARENA_MAX (4u << 20)
/* The label response_flags among those of TRAFFIC. */
#define FLAG_LABEL 21

struct metrics {
	struct silo *silo;
	struct metric_table table;
	struct list live; /* struct metrics_conn */
};

static struct metrics *metrics_of(struct silo *silo)
{
	if (silo->metrics)
		return silo->metrics;
	struct metrics *metrics = mem_zalloc(1, sizeof(*metrics));
	if (!metrics)
		return NULL;
	metrics->silo = silo;
	metric_table_init(&metrics->table, METRICS_ROWS_MAX, METRICS_BYTES_MAX);
	list_init(&metrics->live);
	silo->metrics = metrics;
	return metrics;
}

void metrics_done(struct silo *silo)
{
	struct metrics *metrics = silo->metrics;
	if (!metrics)
		return;
	metric_table_done(&metrics->table);
	mem_free(metrics);
	silo->metrics = NULL;
}

/* The silo's own row; NULL without memory. */
static struct metric_row *own_row(struct metrics *metrics)
{
	return metric_table_row(&metrics->table, METRIC_SET_POD, "", 0);
}

/* The row of a label set; beyond the ceiling the one that stands for the rest. `labels` may be changed. */
static struct metric_row *row_of(struct metrics *metrics, enum metric_set set, struct metric_labels *labels)
{
	struct metric_row *row = metric_table_find(&metrics->table, set, labels->bytes, labels->len);
	if (row)
		return row;
	if (map_cnt(&metrics->table.rows) < METRICS_SETS_MAX)
		row = metric_table_row(&metrics->table, set, labels->bytes, labels->len);
	if (row)
		return row;
	struct metric_row *own = own_row(metrics);
	if (own)
		metric_row_add(own, METRIC_COL_SILO_OVERFLOW, 1);
	metric_labels_overflow(labels, set);
	return metric_table_row(&metrics->table, set, labels->bytes, labels->len);
}

/* --- labels -------------------------------------------------------------- */

/* Workload, service, revision, namespace, principal, app, version, cluster: the order of both sides. */
static void add_peer(
        struct metric_labels *labels, const struct workload *workload, const char *principal, bool is_derived)
{
	static const struct workload nobody = {.workload_name = ""};
	const struct workload *w = workload ? workload : &nobody;
	metric_labels_add(labels, w->workload_name);
	metric_labels_add(labels, w->canonical_name);
	metric_labels_add(labels, w->canonical_revision);
	metric_labels_add(labels, w->ns);
	metric_labels_add(labels, principal);
	/* Baggage knows no app: upstream shows the workload's name instead (dataplane 15.2). */
	metric_labels_add(labels, is_derived ? w->workload_name : w->canonical_name);
	metric_labels_add(labels, w->canonical_revision);
	metric_labels_add(labels, w->cluster_id);
}

static void add_locality(struct metric_labels *labels, const struct workload *workload)
{
	metric_labels_add(labels, workload ? workload->locality.region : NULL);
	metric_labels_add(labels, workload ? workload->locality.zone : NULL);
}

/* The identity at the destination: what TLS has shown, else the record's, even over plaintext. */
static const char *destination_principal(const struct access *access, char buf[IDENTITY_STR_MAX])
{
	if (access->dst_identity && access->dst_identity[0])
		return access->dst_identity;
	if (!access->dst_workload)
		return NULL;
	struct identity identity = identity_of(access->dst_workload);
	return identity_format(&identity, buf, IDENTITY_STR_MAX) < 0 ? NULL : buf;
}

static const char *reporter(bool is_inbound)
{
	return is_inbound ? "destination" : "source";
}

static void traffic_labels(struct metric_labels *labels, const struct access *access)
{
	char principal[IDENTITY_STR_MAX];
	const struct service *service = access->service;
	bool is_mtls = access->hbone_addr && access->hbone_addr[0];
	metric_labels_init(labels);
	metric_labels_add(labels, reporter(access->is_inbound));
	add_peer(labels, access->src_workload, is_mtls ? access->src_identity : NULL, access->is_src_derived);
	metric_labels_add(labels, service ? service->hostname : NULL);
	metric_labels_add(labels, service ? service->ns : NULL);
	metric_labels_add(labels, service ? service->name : NULL);
	add_peer(labels, access->dst_workload, destination_principal(access, principal), false);
	metric_labels_add(labels, "tcp");
	metric_labels_add(labels, response_flag_str(RESPONSE_FLAG_NONE));
	metric_labels_add(labels, is_mtls ? "mutual_tls" : NULL);
	if (!access->src_workload && !access->dst_workload)
		return;
	add_locality(labels, access->src_workload);
	add_locality(labels, access->dst_workload);
}

/* --- connections --------------------------------------------------------- */

/* The sums over all that the workload does; NULL without memory. */
static struct metric_row *workload_row(struct metrics *metrics)
{
	return metric_table_row(&metrics->table, METRIC_SET_WORKLOAD, "", 0);
}

/* Received and sent are the connection's, by who opened it; a workload's own view depends on its side. */
static void count_workload(struct metrics_conn *conn, uint64_t received, uint64_t sent)
{
	struct metric_row *row = workload_row(conn->metrics);
	if (!row)
		return;
	metric_row_add(row, METRIC_COL_SILO_RECEIVED, conn->is_inbound ? received : sent);
	metric_row_add(row, METRIC_COL_SILO_SENT, conn->is_inbound ? sent : received);
}

void metrics_open(
        struct silo *silo, struct metrics_conn *conn, const struct access *access, struct pump *const *pump)
{
	struct metrics *metrics = metrics_of(silo);
	struct metric_labels labels;
	if (!metrics || conn->metrics)
		return;
	traffic_labels(&labels, access);
	struct metric_row *row = row_of(metrics, METRIC_SET_TRAFFIC, &labels);
	if (!row)
		return;
	metric_row_add(row, METRIC_COL_OPENED, 1);
	metric_row_add(row, METRIC_COL_RECEIVED, 0);
	metric_row_add(row, METRIC_COL_SENT, 0);
	*conn = (struct metrics_conn){
	        .metrics = metrics, .row = row, .pump = pump, .is_inbound = access->is_inbound};
	row = workload_row(metrics);
	if (row)
		metric_row_add(row, METRIC_COL_SILO_OPENED, 1);
	count_workload(conn, 0, 0);
	list_init(&conn->node);
	list_add_tail(&metrics->live, &conn->node);
}

/* Adds the bytes that have moved since the last time. */
static void count_bytes(struct metrics_conn *conn)
{
	if (!*conn->pump)
		return;
	uint64_t received = pump_received(*conn->pump);
	uint64_t sent = pump_sent(*conn->pump);
	metric_row_add(conn->row, METRIC_COL_RECEIVED, received - conn->received);
	metric_row_add(conn->row, METRIC_COL_SENT, sent - conn->sent);
	count_workload(conn, received - conn->received, sent - conn->sent);
	conn->received = received;
	conn->sent = sent;
}

void metrics_close(struct metrics_conn *conn, const char *error)
{
	struct metrics *metrics = conn->metrics;
	struct metric_row *row = conn->row;
	if (!metrics)
		return;
	count_bytes(conn);
	list_del(&conn->node);
	conn->metrics = NULL;
	enum response_flag flag = err_text_flag(error);
	if (flag != RESPONSE_FLAG_NONE) {
		struct metric_labels labels;
		metric_labels_replace(&labels, row, FLAG_LABEL, response_flag_str(flag));
		row = row_of(metrics, METRIC_SET_TRAFFIC, &labels);
		if (row)
			metric_row_add(row, METRIC_COL_FAILED, 1);
	}
	if (row)
		metric_row_add(row, METRIC_COL_CLOSED, 1);
}

/* --- single events ------------------------------------------------------- */

/* Counts one in a column of a label set. */
static void count(struct silo *silo, enum metric_set set, struct metric_labels *labels, unsigned col)
{
	struct metrics *metrics = metrics_of(silo);
	struct metric_row *row = metrics ? row_of(metrics, set, labels) : NULL;
	if (row)
		metric_row_add(row, col, 1);
}

void metrics_handshake(struct silo *silo, const struct link *link, bool is_server)
{
	struct metric_labels labels;
	metric_labels_init(&labels);
	metric_labels_add(&labels, is_server ? "server" : "client");
	metric_labels_add(&labels, link_tls_version(link));
	metric_labels_add(&labels, link_tls_group(link));
	count(silo, METRIC_SET_HANDSHAKE, &labels, METRIC_COL_HANDSHAKES);
}

void metrics_on_demand_dns(struct silo *silo, const char *hostname)
{
	const struct own_workload *own = context_workload(silo);
	struct metric_labels labels;
	metric_labels_init(&labels);
	add_peer(&labels, own ? own->workload : NULL, own ? own->spiffe : NULL, false);
	metric_labels_add(&labels, hostname);
	count(silo, METRIC_SET_ON_DEMAND, &labels, METRIC_COL_ON_DEMAND);
}

static void count_crl(struct silo *silo, bool is_inbound, unsigned col)
{
	struct metric_labels labels;
	metric_labels_init(&labels);
	metric_labels_add(&labels, reporter(is_inbound));
	count(silo, METRIC_SET_SOCKETS, &labels, col);
}

void metrics_crl_rejected(struct silo *silo, bool is_inbound)
{
	count_crl(silo, is_inbound, METRIC_COL_CRL_REJECTED);
}

void metrics_crl_untracked(struct silo *silo, bool is_inbound)
{
	count_crl(silo, is_inbound, METRIC_COL_CRL_UNTRACKED);
}

static void dns_labels(struct silo *silo, const char *type, bool is_tcp, struct metric_labels *ret_labels)
{
	const struct own_workload *own = context_workload(silo);
	metric_labels_init(ret_labels);
	metric_labels_add(ret_labels, type);
	metric_labels_add(ret_labels, is_tcp ? "tcp" : "udp");
	metric_labels_add(ret_labels, own ? own->workload->canonical_name : NULL);
	metric_labels_add(ret_labels, own ? own->workload->canonical_revision : NULL);
}

void metrics_dns_request(struct silo *silo, const char *type, bool is_tcp)
{
	struct metric_labels labels;
	dns_labels(silo, type, is_tcp, &labels);
	count(silo, METRIC_SET_DNS, &labels, METRIC_COL_DNS_REQUESTS);
}

void metrics_dns_forwarded(struct silo *silo, const char *type, bool is_tcp, uint64_t us, bool is_failure)
{
	struct metrics *metrics = metrics_of(silo);
	struct metric_labels labels;
	dns_labels(silo, type, is_tcp, &labels);
	struct metric_row *row = metrics ? row_of(metrics, METRIC_SET_DNS, &labels) : NULL;
	if (!row)
		return;
	metric_row_add(row, METRIC_COL_DNS_FORWARDED, 1);
	metric_row_observe(row, METRIC_COL_DNS_DURATION, us);
	if (is_failure)
		metric_row_add(row, METRIC_COL_DNS_FAILURES, 1);
}

void metrics_waited(struct silo *silo, uint64_t ms)
{
	struct metrics *metrics = metrics_of(silo);
	struct metric_row *own = metrics ? own_row(metrics) : NULL;
	if (own)
		metric_row_observe(own, METRIC_COL_FETCH_WAIT, ms * 1000);
}

/* --- answers ------------------------------------------------------------- */

static size_t list_len(const struct list *head)
{
	size_t cnt = 0;
	list_for_each(it, head) cnt++;
	return cnt;
}

/* What is a state and not a count: looked up now. */
static void fill_gauges(struct metrics *metrics)
{
	struct silo *silo = metrics->silo;
	const size_t cnts[2] = {list_len(&silo->outbounds), silo->conn_cnt - list_len(&silo->outbounds)};
	struct metric_row *row = own_row(metrics);
	struct metric_labels labels;
	if (row) {
		metric_row_add(row, METRIC_COL_SILO_CONNS, 0);
		row->values[METRIC_COL_SILO_CONNS] = silo->conn_cnt;
		metric_row_add(row, METRIC_COL_SILO_OVERFLOW, 0);
	}
	row = workload_row(metrics);
	for (unsigned col = 0; row && col < metric_cols(METRIC_SET_WORKLOAD); col++)
		metric_row_add(row, col, 0);
	for (int i = 0; i < 2; i++) {
		metric_labels_init(&labels);
		metric_labels_add(&labels, reporter(i == 1));
		row = metric_table_row(&metrics->table, METRIC_SET_SOCKETS, labels.bytes, labels.len);
		if (!row)
			continue;
		metric_row_add(row, METRIC_COL_SOCKETS, 0);
		row->values[METRIC_COL_SOCKETS] = cnts[i];
	}
}

/* A row in its wire form, without the columns that nothing was counted in. */
static bool put_row(const struct metric_row *row, struct arena *arena, struct ipc_metric *ret_metric)
{
	uint64_t *values = arena_zalloc(arena, METRIC_COLS_MAX, sizeof(*values));
	size_t cnt = 0;
	if (!values)
		return false;
	for (unsigned col = 0; col < metric_cols(row->set); col++)
		if (row->present >> col & 1)
			values[cnt++] = row->values[col];
	*ret_metric = (struct ipc_metric){.set = row->set,
	        .labels = (const uint8_t *)metric_row_labels(row),
	        .labels_len = row->len,
	        .present = row->present,
	        .values = values,
	        .value_cnt = cnt};
	return true;
}

static size_t put_rows(const struct metrics *metrics, struct arena *arena, struct ipc_metric *all)
{
	size_t cursor = 0;
	size_t cnt = 0;
	const struct metric_row *row;
	while ((row = map_next(&metrics->table.rows, &cursor)) && put_row(row, arena, &all[cnt]))
		cnt++;
	return cnt;
}

static void bring_up_to_date(struct metrics *metrics)
{
	list_for_each(it, &metrics->live) count_bytes(list_entry(it, struct metrics_conn, node));
	fill_gauges(metrics);
}

/* Copies a row, with the labels that the broker would put in front. */
static bool copy_row(const struct silo *silo, const struct metric_row *row, struct metric_table *table)
{
	struct metric_labels labels;
	size_t pod_cnt = metric_pod_label_cnt(row->set);
	metric_labels_init(&labels);
	if (pod_cnt > 0) {
		metric_labels_add(&labels, silo->info.ns);
		metric_labels_add(&labels, silo->info.name);
	}
	if (pod_cnt < metric_label_cnt(row->set) &&
	        !metric_labels_append(&labels, metric_row_labels(row), row->len))
		return true;
	struct metric_row *copy = metric_table_row(table, row->set, labels.bytes, labels.len);
	for (unsigned col = 0; copy && col < metric_cols(row->set); col++)
		if (row->present >> col & 1)
			metric_row_add(copy, col, row->values[col]);
	return copy != NULL;
}

int metrics_snapshot(struct silo *silo, struct metric_table *table)
{
	struct metrics *metrics = metrics_of(silo);
	size_t cursor = 0;
	const struct metric_row *row;
	if (!metrics)
		return -ENOMEM;
	bring_up_to_date(metrics);
	while ((row = map_next(&metrics->table.rows, &cursor)))
		if (!copy_row(silo, row, table))
			return -ENOMEM;
	return 0;
}

void metrics_collect(struct silo *silo, struct arena *arena, struct ipc_answer_metrics *ret_answer)
{
	struct metrics *metrics = metrics_of(silo);
	*ret_answer = (struct ipc_answer_metrics){0};
	if (!metrics)
		return;
	bring_up_to_date(metrics);
	struct ipc_metric *all = arena_zalloc(arena, map_cnt(&metrics->table.rows) + 1, sizeof(*all));
	ret_answer->metrics = all;
	ret_answer->metric_cnt = all ? put_rows(metrics, arena, all) : 0;
}

void metrics_answer(struct silo *silo, uint32_t id)
{
	struct arena *arena = arena_new(ANSWER_ARENA_MAX);
	struct ipc_record rec = {.id = id, .type = IPC_ANSWER_METRICS};
	if (arena)
		metrics_collect(silo, arena, &rec.answer_metrics);
	broker_link_send_pages(silo->broker, &rec);
	arena_unref(arena);
}
