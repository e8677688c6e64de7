/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a silo counts, as it goes to the broker: labels, flags, ceilings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pb/ipc.h"
#include "silo/access.h"
#include "silo/metrics.h"
#include "silo/silo.h"

#define SRC "src\0src-svc\0v1\0default\0"
#define NOBODY "\0\0\0\0"

static const struct workload CLIENT = {.name = "src-1",
        .ns = "default",
        .trust_domain = "td",
        .service_account = "sa",
        .workload_name = "src",
        .canonical_name = "src-svc",
        .canonical_revision = "v1",
        .cluster_id = "c1",
        .locality = {"r1", "z1", "s"}};
static const struct workload SERVER = {.name = "dst-1",
        .ns = "prod",
        .trust_domain = "td",
        .service_account = "web",
        .workload_name = "dst",
        .canonical_name = "dst-svc",
        .canonical_revision = "unknown",
        .cluster_id = "c2",
        .locality = {"", "", ""}};
static const struct service SERVICE = {.name = "web", .ns = "prod", .hostname = "web.prod"};

/* A silo that has only what metrics look at. */
static struct silo *new_silo(void)
{
	static struct silo silo;
	memset(&silo, 0, sizeof(silo));
	list_init(&silo.outbounds);
	return &silo;
}

static struct ipc_answer_metrics collect(struct silo *silo, struct arena **arena)
{
	struct ipc_answer_metrics answer;
	*arena = arena_new(8u << 20);
	metrics_collect(silo, *arena, &answer);
	for (size_t i = 0; i < answer.metric_cnt; i++) {
		const struct ipc_metric *m = &answer.metrics[i];
		assert_int_equal((size_t)__builtin_popcount(m->present), m->value_cnt);
		assert_true(metric_labels_valid(m->set, (const char *)m->labels, m->labels_len, false));
		assert_int_equal(m->present & ~metric_silo_cols(m->set), 0);
	}
	return answer;
}

/* The row with these labels; NULL = none. */
static const struct ipc_metric *find(
        const struct ipc_answer_metrics *answer, enum metric_set set, const char *labels, size_t len)
{
	for (size_t i = 0; i < answer->metric_cnt; i++) {
		const struct ipc_metric *m = &answer->metrics[i];
		if (m->set == set && m->labels_len == len && memcmp(m->labels, labels, len) == 0)
			return m;
	}
	return NULL;
}

static const struct ipc_metric *only(const struct ipc_answer_metrics *answer, enum metric_set set)
{
	const struct ipc_metric *found = NULL;
	for (size_t i = 0; i < answer->metric_cnt; i++) {
		if (answer->metrics[i].set != set)
			continue;
		assert_null(found);
		found = &answer->metrics[i];
	}
	assert_non_null(found);
	return found;
}

static void check_labels(const struct access *access, const char *labels, size_t len)
{
	struct silo *silo = new_silo();
	struct metrics_conn conn = {0};
	struct pump *pump = NULL;
	struct arena *arena;
	metrics_open(silo, &conn, access, &pump);
	struct ipc_answer_metrics answer = collect(silo, &arena);
	const struct ipc_metric *row = only(&answer, METRIC_SET_TRAFFIC);
	assert_int_equal(row->labels_len, len);
	assert_memory_equal(row->labels, labels, len);
	metrics_close(&conn, NULL);
	arena_unref(arena);
	metrics_done(silo);
}

#define CHECK(access, labels) check_labels(access, labels, sizeof(labels) - 1)

static void test_labels(void **state)
{
	(void)state;
	struct access access = {.src_workload = &CLIENT,
	        .dst_workload = &SERVER,
	        .src_identity = "spiffe://td/ns/default/sa/sa",
	        .dst_identity = "spiffe://td/ns/prod/sa/real",
	        .hbone_addr = "10.0.0.1:80",
	        .service = &SERVICE};
	CHECK(&access, "source\0" SRC "spiffe://td/ns/default/sa/sa\0src-svc\0v1\0c1\0"
	               "web.prod\0prod\0web\0"
	               "dst\0dst-svc\0\0prod\0spiffe://td/ns/prod/sa/real\0dst-svc\0\0c2\0"
	               "tcp\0-\0mutual_tls\0r1\0z1\0\0");
	/* Plaintext: no source principal, the destination's is the record's. */
	access.hbone_addr = NULL;
	access.dst_identity = NULL;
	access.service = NULL;
	access.is_inbound = true;
	CHECK(&access, "destination\0" SRC "\0src-svc\0v1\0c1\0"
	               "\0\0\0"
	               "dst\0dst-svc\0\0prod\0spiffe://td/ns/prod/sa/web\0dst-svc\0\0c2\0"
	               "tcp\0-\0\0r1\0z1\0\0");
	/* By baggage the app is the workload's name. */
	access.is_src_derived = true;
	access.dst_workload = NULL;
	CHECK(&access, "destination\0" SRC "\0src\0v1\0c1\0"
	               "\0\0\0" NOBODY "\0\0\0\0"
	               "tcp\0-\0\0r1\0z1\0\0");
	/* Nobody known: no locality labels at all. */
	access = (struct access){.is_inbound = false};
	CHECK(&access, "source\0" NOBODY NOBODY "\0\0\0" NOBODY NOBODY "tcp\0-\0");
}

static void test_flags(void **state)
{
	struct silo *silo = new_silo();
	const struct access access = {.src_workload = &CLIENT};
	struct metrics_conn conns[3] = {0};
	struct pump *pump = NULL;
	struct arena *arena;
	(void)state;
	for (size_t i = 0; i < 3; i++)
		metrics_open(silo, &conns[i], &access, &pump);
	metrics_close(&conns[0], NULL);
	metrics_close(&conns[1], "connection closed due to policy change");
	/* Twice is once. */
	metrics_close(&conns[1], "connection failed: x");
	metrics_close(&conns[2], "connection closed due to connection drain");
	struct ipc_answer_metrics answer = collect(silo, &arena);
	assert_int_equal(only(&answer, METRIC_SET_WORKLOAD)->values[0], 3);
	size_t rows = 0;
	for (size_t i = 0; i < answer.metric_cnt; i++) {
		const struct ipc_metric *m = &answer.metrics[i];
		if (m->set != METRIC_SET_TRAFFIC)
			continue;
		rows++;
		if (memmem(m->labels, m->labels_len, "tcp\0DENY", 8)) {
			/* Closed and failed. */
			assert_int_equal(m->present, 1u << METRIC_COL_CLOSED | 1u << METRIC_COL_FAILED);
			assert_int_equal(m->values[0], 1);
			assert_int_equal(m->values[1], 1);
		} else {
			/* Opened, closed, and bytes from the beginning. */
			assert_int_equal(m->present, 0xf);
			assert_int_equal(m->values[METRIC_COL_OPENED], 3);
			assert_int_equal(m->values[METRIC_COL_CLOSED], 2);
			assert_int_equal(m->values[METRIC_COL_SENT], 0);
		}
	}
	assert_int_equal(rows, 2);
	arena_unref(arena);
	metrics_done(silo);
}

/* Beyond the ceiling everything is still counted, in few rows. */
static void test_ceiling(void **state)
{
	struct silo *silo = new_silo();
	struct pump *pump = NULL;
	struct arena *arena;
	uint64_t opened = 0, closed = 0;
	(void)state;
	for (int i = 0; i < 3 * METRICS_SETS_MAX; i++) {
		char name[32];
		struct workload peer = SERVER;
		struct metrics_conn conn = {0};
		const struct access access = {
		        .src_workload = &CLIENT, .dst_workload = &peer, .is_inbound = i % 2};
		snprintf(name, sizeof(name), "peer-%d", i);
		peer.workload_name = name;
		metrics_open(silo, &conn, &access, &pump);
		metrics_close(&conn, i % 3 == 0 ? "connection failed: x" : NULL);
	}
	struct ipc_answer_metrics answer = collect(silo, &arena);
	assert_true(answer.metric_cnt <= METRICS_SETS_MAX + 20);
	for (size_t i = 0; i < answer.metric_cnt; i++) {
		const struct ipc_metric *m = &answer.metrics[i];
		const uint64_t *value = m->values;
		if (m->set != METRIC_SET_TRAFFIC)
			continue;
		if (m->present >> METRIC_COL_OPENED & 1)
			opened += *value++;
		if (m->present >> METRIC_COL_CLOSED & 1)
			closed += *value;
	}
	assert_int_equal(opened, 3 * METRICS_SETS_MAX);
	assert_int_equal(closed, 3 * METRICS_SETS_MAX);
	const struct ipc_metric *own = only(&answer, METRIC_SET_POD);
	assert_true(own->present >> METRIC_COL_SILO_OVERFLOW & 1);
	assert_true(own->values[1] > METRICS_SETS_MAX);
	arena_unref(arena);
	metrics_done(silo);
}

static void test_events(void **state)
{
	struct silo *silo = new_silo();
	struct arena *arena;
	(void)state;
	silo->conn_cnt = 3;
	metrics_crl_rejected(silo, true);
	metrics_crl_untracked(silo, false);
	metrics_waited(silo, 3);
	metrics_waited(silo, 7000);
	struct ipc_answer_metrics answer = collect(silo, &arena);
	const struct ipc_metric *in = find(&answer, METRIC_SET_SOCKETS, "destination", 11);
	const struct ipc_metric *out = find(&answer, METRIC_SET_SOCKETS, "source", 6);
	assert_int_equal(in->present, 3);
	assert_int_equal(in->values[0], 3);
	assert_int_equal(in->values[1], 1);
	assert_int_equal(out->present, 5);
	assert_int_equal(out->values[0], 0);
	assert_int_equal(out->values[1], 1);
	/* Connections, overflow, histogram: 3 ms up to 10 ms, 7 s beyond all bounds, sum. */
	const struct ipc_metric *own = only(&answer, METRIC_SET_POD);
	const uint64_t want[] = {3, 0, 0, 0, 1, 0, 0, 0, 1, 7003000};
	assert_int_equal(own->value_cnt, 10);
	assert_memory_equal(own->values, want, sizeof(want));
	arena_unref(arena);
	metrics_done(silo);
	/* A second look at a silo that has counted nothing: its gauges only. */
	silo = new_silo();
	answer = collect(silo, &arena);
	assert_int_equal(answer.metric_cnt, 4);
	assert_int_equal(only(&answer, METRIC_SET_WORKLOAD)->value_cnt, 3);
	arena_unref(arena);
	metrics_done(silo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_labels),
	        cmocka_unit_test(test_flags),
	        cmocka_unit_test(test_ceiling),
	        cmocka_unit_test(test_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
