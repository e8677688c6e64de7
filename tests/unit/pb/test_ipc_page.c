/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Long answers in pages: nothing lost, nothing twice, nothing above a record; items that fit none. */
#include <errno.h>

#include "unit.h"

#include "samples.h"

static struct err err;

/* What came back out of all pages. */
struct tally {
	size_t workload_cnt, service_cnt, item_cnt;
	uint32_t page_cnt;
	size_t skipped;
	char text[ERR_TEXT_MAX]; /* of the last skipped item */
};

static size_t count_items(const struct ipc_record *rec, size_t first)
{
	char name[32];
	switch (rec->type) {
	case IPC_ANSWER_VIEW:
		for (size_t i = 0; i < rec->answer_view.endpoint_cnt; i++) {
			snprintf(name, sizeof(name), "w%zu", first + i);
			assert_string_equal(rec->answer_view.endpoints[i].workload->uid, name);
		}
		return rec->answer_view.endpoint_cnt;
	case IPC_ANSWER_POLICIES:
		return rec->answer_policies.policy_cnt;
	case IPC_ANSWER_METRICS:
		for (size_t i = 0; i < rec->answer_metrics.metric_cnt; i++)
			assert_int_equal(rec->answer_metrics.metrics[i].values[0], first + i);
		return rec->answer_metrics.metric_cnt;
	default:
		return rec->answer_state.connection_cnt + rec->answer_state.certificate_cnt;
	}
}

static struct tally send_all(const struct ipc_record *whole, size_t cap)
{
	static uint8_t bytes[IPC_RECORD_MAX];
	struct tally t = {0};
	struct ipc_pager pager = {0};
	while (!pager.done) {
		size_t len, before = pager.next;
		int rc = ipc_encode_page(whole, &pager, bytes, cap, &len, &err);
		if (rc < 0) {
			assert_int_equal(pager.next, before + 1);
			assert_true(t.skipped++ < 1000);
			snprintf(t.text, sizeof(t.text), "%s", err.text);
			continue;
		}
		assert_true(len <= cap);
		struct arena *arena = arena_new(IPC_ARENA_MAX);
		struct ipc_record rec;
		assert_ok(ipc_decode(bytes, len, arena, &rec, &err));
		assert_int_equal(rec.id, whole->id);
		assert_int_equal(ipc_is_last(&rec), pager.done);
		if (rec.type == IPC_ANSWER_VIEW) {
			assert_int_equal(rec.answer_view.page, t.page_cnt);
			assert_int_equal(rec.answer_view.generation, whole->answer_view.generation);
			t.workload_cnt += rec.answer_view.workload != NULL;
			t.service_cnt += rec.answer_view.service != NULL;
		}
		t.item_cnt += count_items(&rec, t.item_cnt);
		t.page_cnt++;
		arena_unref(arena);
	}
	return t;
}

static struct workload workloads[128];
static struct endpoint endpoints[128];
static char names[128][8];

static struct ipc_record big_view(void)
{
	for (size_t i = 0; i < CNT(workloads); i++) {
		snprintf(names[i], sizeof(names[i]), "w%zu", i);
		workloads[i] = sample_workload;
		workloads[i].uid = names[i];
		endpoints[i] = (struct endpoint){.workload = &workloads[i]};
	}
	return (struct ipc_record){.id = 7,
	        .type = IPC_ANSWER_VIEW,
	        .answer_view = {.key = {.is_host = true, .host = "h"},
	                .known = true,
	                .generation = 12,
	                .workload = &sample_workload,
	                .service = &sample_service,
	                .endpoints = endpoints,
	                .endpoint_cnt = CNT(endpoints)}};
}

static void test_view(void **state)
{
	struct ipc_record whole = big_view();
	struct tally t = send_all(&whole, IPC_RECORD_MAX);
	assert_int_equal(t.item_cnt, 128);
	assert_int_equal(t.workload_cnt, 1);
	assert_int_equal(t.service_cnt, 1);
	assert_true(t.page_cnt >= 2 && t.page_cnt <= 4);
	/* Every room from the smallest useful one on: limits of varints are met on the way. */
	for (size_t cap = 800; cap < 2600; cap += 7) {
		t = send_all(&whole, cap);
		assert_int_equal(t.item_cnt, 128);
		assert_int_equal(t.skipped, 0);
	}
}

static void test_small_answers_are_one_page(void **state)
{
	struct ipc_record none = {
	        .type = IPC_ANSWER_VIEW, .answer_view = {.key = {.is_host = true, .host = "h"}}};
	assert_int_equal(send_all(&none, IPC_RECORD_MAX).page_cnt, 1);
	struct ipc_record no_policies = {.id = 1, .type = IPC_ANSWER_POLICIES};
	assert_int_equal(send_all(&no_policies, IPC_RECORD_MAX).page_cnt, 1);
	struct ipc_record other = {.id = 1, .type = IPC_ASK_POLICIES};
	assert_int_equal(send_all(&other, IPC_RECORD_MAX).page_cnt, 1);
}

static void test_state(void **state)
{
	static struct ipc_connection connections[5000];
	struct ipc_certificate certificate = {.identity = "i"};
	struct ipc_record whole = {.id = 1,
	        .type = IPC_ANSWER_STATE,
	        .answer_state = {.connections = connections,
	                .connection_cnt = CNT(connections),
	                .certificates = &certificate,
	                .certificate_cnt = 1}};
	struct tally t = send_all(&whole, IPC_RECORD_MAX);
	assert_int_equal(t.item_cnt, 5001);
	assert_int_equal(t.skipped, 0);
}

static void test_metrics(void **state)
{
	static struct ipc_metric metrics[2000];
	static uint64_t values[CNT(metrics)];
	static uint8_t labels[9216];
	memset(labels, 'x', sizeof(labels));
	for (size_t i = 0; i < CNT(metrics); i++) {
		values[i] = i;
		metrics[i] = (struct ipc_metric){.set = 4,
		        .labels = labels,
		        .labels_len = i % 100 == 0 ? sizeof(labels) : 300,
		        .present = 2,
		        .values = &values[i],
		        .value_cnt = 1};
	}
	struct ipc_record whole = {.type = IPC_ANSWER_METRICS,
	        .answer_metrics = {.metrics = metrics, .metric_cnt = CNT(metrics)}};
	struct tally t = send_all(&whole, IPC_RECORD_MAX);
	assert_int_equal(t.item_cnt, CNT(metrics));
	assert_int_equal(t.skipped, 0);
	assert_true(t.page_cnt < 60);
}

/* A policy that fits no record is left out by name; the others arrive, and the last page says so. */
static void test_too_large(void **state)
{
	static char value[1025];
	struct string_match strings[40];
	memset(value, 'x', sizeof(value) - 1);
	for (size_t i = 0; i < CNT(strings); i++)
		strings[i] = (struct string_match){MATCH_EXACT, value};
	struct policy_match match = {.namespaces = strings, .namespace_cnt = CNT(strings)};
	struct policy_clause clause = {.matches = &match, .match_cnt = 1};
	struct policy_rule rule = {.clauses = &clause, .clause_cnt = 1};
	struct policy policies[] = {sample_policy,
	        {.name = "huge", .ns = "demo", .rules = &rule, .rule_cnt = 1}, sample_policy,
	        {.name = "huge2", .ns = "demo", .rules = &rule, .rule_cnt = 1}};
	struct ipc_record whole = {
	        .type = IPC_ANSWER_POLICIES, .answer_policies = {.policies = policies, .policy_cnt = 4}};
	struct tally t = send_all(&whole, IPC_RECORD_MAX);
	assert_int_equal(t.item_cnt, 2);
	assert_int_equal(t.skipped, 2);
	assert_non_null(strstr(t.text, "policy demo/huge2: "));
	assert_int_equal(t.page_cnt, 3);
}

/* So is one with text that has no wire form: the answer does not stop there. */
/* What fits no page travels as a file, whole. */
static void test_file(void **state)
{
	static struct cidr ranges[3000];
	for (size_t i = 0; i < CNT(ranges); i++)
		ranges[i] = (struct cidr){
		        .ip = {.family = 6, .b = {0x20, 1, (uint8_t)(i >> 8), (uint8_t)i}}, .len = 32};
	const struct policy_match match = {.source_ips = ranges, .source_ip_cnt = CNT(ranges)};
	const struct policy_clause clause = {.matches = &match, .match_cnt = 1};
	const struct policy_rule rule = {.clauses = &clause, .clause_cnt = 1};
	const struct policy large = {.name = "large", .ns = "ns", .rules = &rule, .rule_cnt = 1};
	struct ipc_record rec = {.type = IPC_ANSWER_POLICIES,
	        .answer_policies = {.generation = 7, .last = true, .policies = &large, .policy_cnt = 1}};
	struct buf body;
	struct ipc_record back;
	struct arena *arena = arena_new(LIMIT_POLICIES_ARENA);
	assert_false(ipc_fits_pages(&rec));
	buf_init(&body, 1024);
	assert_int_equal(ipc_file_encode(&rec, &body, &err), -EMSGSIZE);
	buf_done(&body);
	buf_init(&body, LIMIT_FILE_POLICIES);
	assert_int_equal(ipc_file_encode(&rec, &body, &err), 0);
	assert_int_equal(ipc_file_decode(IPC_ANSWER_POLICIES, body.data, body.len, arena, &back, &err), 0);
	assert_int_equal(back.answer_policies.policy_cnt, 1);
	const struct policy_match *got = back.answer_policies.policies[0].rules[0].clauses[0].matches;
	assert_int_equal(got->source_ip_cnt, CNT(ranges));
	assert_memory_equal(&got->source_ips[2999], &ranges[2999], sizeof(ranges[0]));
	assert_true(ipc_file_decode(IPC_ANSWER_POLICIES, body.data, body.len - 1, arena, &back, &err) < 0);
	rec.answer_policies.policy_cnt = 0;
	assert_true(ipc_fits_pages(&rec));
	buf_done(&body);
	arena_unref(arena);
}

static void test_bad_item(void **state)
{
	struct policy policies[] = {sample_policy, {.name = "\xff", .ns = "demo"}, sample_policy};
	struct ipc_record whole = {
	        .type = IPC_ANSWER_POLICIES, .answer_policies = {.policies = policies, .policy_cnt = 3}};
	struct tally t = send_all(&whole, IPC_RECORD_MAX);
	assert_int_equal(t.item_cnt, 2);
	assert_int_equal(t.skipped, 1);
	assert_non_null(strstr(t.text, "name: not valid UTF-8"));
}

/* What IPC_ITEM_MAX promises: a workload of that size fits, whatever stands around it. */
static void test_item_max(void **state)
{
	static char key[512][509];
	const char *keys[512];
	struct workload w = sample_workload;
	size_t size = 0;
	w.policies = keys;
	w.policy_cnt = 0;
	while (size <= IPC_ITEM_MAX - 520) {
		memset(key[w.policy_cnt], 'k', sizeof(key[0]) - 1);
		keys[w.policy_cnt] = key[w.policy_cnt];
		w.policy_cnt++;
		assert_ok(ipc_workload_size(&w, &size, &err));
	}
	char filler[520];
	size_t room = IPC_ITEM_MAX - size - 4; /* two bytes of tag, one or two of length */
	assert_true(room < sizeof(filler) - 1 && room > 0);
	memset(filler, 'f', room);
	filler[room] = '\0';
	keys[w.policy_cnt++] = filler;
	assert_ok(ipc_workload_size(&w, &size, &err));
	assert_in_range(size, IPC_ITEM_MAX - 1, IPC_ITEM_MAX);
	char network[256], ns[254], host[256];
	memset(network, 'n', 255);
	memset(ns, 'n', 253);
	memset(host, 'h', 255);
	network[255] = ns[253] = host[255] = '\0';
	struct ipc_record view = {.id = UINT32_MAX,
	        .type = IPC_ANSWER_VIEW,
	        .answer_view = {.key = {.is_host = true, .ns = ns, .host = host},
	                .known = true,
	                .generation = UINT64_MAX,
	                .workload = &w}};
	assert_int_equal(send_all(&view, IPC_RECORD_MAX).workload_cnt, 1);
	struct ipc_record answer = {.id = UINT32_MAX,
	        .type = IPC_ANSWER_WORKLOAD,
	        .answer_workload = {.found = true, .generation = UINT64_MAX, .workload = &w}};
	assert_int_equal(send_all(&answer, IPC_RECORD_MAX).page_cnt, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_view),
	        cmocka_unit_test(test_small_answers_are_one_page),
	        cmocka_unit_test(test_state),
	        cmocka_unit_test(test_metrics),
	        cmocka_unit_test(test_too_large),
	        cmocka_unit_test(test_file),
	        cmocka_unit_test(test_bad_item),
	        cmocka_unit_test(test_item_max),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
