/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages put together: order, generations, foreign pages, ceilings. */
#include "../pb/unit.h"

#include <errno.h>

#include "../pb/samples.h"
#include "base/mem.h"
#include "ipc/gather.h"

static struct err err;
static struct gather gather;
static struct arena *done_arena;
static struct ipc_record done;
static long allocations_left = -1; /* negative = all succeed */

bool mem_should_fail(size_t len)
{
	if (allocations_left > 0)
		allocations_left--;
	return allocations_left == 0;
}

static int teardown(void **state)
{
	gather_done(&gather);
	return 0;
}

/* Hands in a page as the channel would: in an arena of its own that goes away. */
static int feed(const struct ipc_record *rec)
{
	uint8_t bytes[IPC_RECORD_MAX];
	size_t len;
	struct ipc_record page;
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	assert_ok(ipc_encode(rec, bytes, sizeof(bytes), &len, &err));
	assert_ok(ipc_decode(bytes, len, arena, &page, &err));
	int rc = gather_add(&gather, arena, &page, &done_arena, &done, &err);
	arena_unref(arena);
	return rc;
}

static struct ipc_record view_page(uint64_t generation, uint32_t page, bool last, size_t endpoint_cnt)
{
	static struct endpoint endpoints[128];
	for (size_t i = 0; i < CNT(endpoints); i++)
		endpoints[i].workload = &sample_workload;
	return (struct ipc_record){.type = IPC_ANSWER_VIEW,
	        .answer_view = {.key = {.is_host = true, .ns = "demo", .host = "h"},
	                .known = true,
	                .generation = generation,
	                .page = page,
	                .last = last,
	                .endpoints = endpoints,
	                .endpoint_cnt = endpoint_cnt}};
}

/* All pages of a view of every size come out as the view that went in. */
static void test_whole_way(void **state)
{
	struct workload workloads[128];
	struct endpoint endpoints[128];
	char names[128][8];
	for (size_t i = 0; i < 128; i++) {
		snprintf(names[i], sizeof(names[i]), "w%zu", i);
		workloads[i] = sample_workload;
		workloads[i].uid = names[i];
		endpoints[i] = (struct endpoint){.workload = &workloads[i]};
	}
	for (size_t cnt = 0; cnt <= 128; cnt += 16) {
		struct ipc_record whole = view_page(9, 0, false, cnt);
		struct ipc_pager pager = {0};
		whole.answer_view.endpoints = endpoints;
		whole.answer_view.workload = &sample_workload;
		whole.answer_view.service = &sample_service;
		while (!pager.done) {
			static uint8_t bytes[IPC_RECORD_MAX];
			size_t len;
			struct ipc_record page;
			struct arena *arena = arena_new(IPC_ARENA_MAX);
			assert_ok(ipc_encode_page(&whole, &pager, bytes, 9000, &len, &err));
			assert_ok(ipc_decode(bytes, len, arena, &page, &err));
			int rc = gather_add(&gather, arena, &page, &done_arena, &done, &err);
			arena_unref(arena);
			assert_int_equal(rc, pager.done ? 0 : -EAGAIN);
		}
		assert_int_equal(done.answer_view.endpoint_cnt, cnt);
		assert_string_equal(done.answer_view.key.host, "h");
		assert_string_equal(done.answer_view.workload->uid, sample_workload.uid);
		assert_string_equal(done.answer_view.service->hostname, sample_service.hostname);
		for (size_t i = 0; i < cnt; i++) {
			assert_string_equal(done.answer_view.endpoints[i].workload->uid, names[i]);
			assert_int_equal(done.answer_view.endpoints[i].workload->service_cnt, 2);
		}
		arena_unref(done_arena);
	}
}

static void test_policies(void **state)
{
	struct policy policies[] = {sample_policy, {.name = "b", .ns = "demo"}, {.name = "c", .ns = "demo"}};
	struct ipc_record page = {.type = IPC_ANSWER_POLICIES,
	        .answer_policies = {.generation = 1, .policies = policies, .policy_cnt = 2}};
	assert_int_equal(feed(&page), -EAGAIN);
	page.answer_policies.page = 1;
	page.answer_policies.last = true;
	page.answer_policies.policies = policies + 2;
	page.answer_policies.policy_cnt = 1;
	assert_ok(feed(&page));
	assert_int_equal(done.answer_policies.policy_cnt, 3);
	assert_string_equal(done.answer_policies.policies[0].name, sample_policy.name);
	assert_int_equal(done.answer_policies.policies[0].rule_cnt, sample_policy.rule_cnt);
	assert_string_equal(done.answer_policies.policies[2].name, "c");
	arena_unref(done_arena);
}

/* A single page keeps its own arena: nothing is copied. */
static void test_single_page(void **state)
{
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	struct ipc_record page = view_page(3, 0, true, 1);
	assert_int_equal(gather_add(&gather, arena, &page, &done_arena, &done, &err), 0);
	assert_ptr_equal(done_arena, arena);
	assert_ptr_equal(done.answer_view.endpoints, page.answer_view.endpoints);
	arena_unref(done_arena);
	arena_unref(arena);
}

static void test_generations(void **state)
{
	struct ipc_record first = view_page(5, 0, false, 1), second = view_page(5, 1, true, 2);
	struct ipc_record older = view_page(4, 0, false, 3), older_last = view_page(4, 1, true, 3),
	                  newer = view_page(6, 0, false, 4);
	struct ipc_record newer_last = view_page(6, 1, true, 5);
	assert_int_equal(feed(&first), -EAGAIN);
	assert_int_equal(feed(&older), -EAGAIN);
	assert_int_equal(feed(&older_last), -EAGAIN);
	assert_ok(feed(&second));
	assert_int_equal(done.answer_view.endpoint_cnt, 3);
	assert_int_equal(done.answer_view.generation, 5);
	arena_unref(done_arena);
	assert_int_equal(feed(&first), -EAGAIN);
	assert_int_equal(feed(&newer), -EAGAIN);
	assert_int_equal(feed(&newer_last), 0);
	assert_int_equal(done.answer_view.endpoint_cnt, 9);
	arena_unref(done_arena);
	/* A whole newer one ends the one that was being gathered. */
	assert_int_equal(feed(&first), -EAGAIN);
	newer.answer_view.last = true;
	assert_ok(feed(&newer));
	arena_unref(done_arena);
	assert_err(feed(&second), ERR_PROTOCOL, "out of order");
}

static void test_violations(void **state)
{
	struct ipc_record first = view_page(5, 0, false, 1), third = view_page(5, 2, true, 1),
	                  next = view_page(5, 1, false, 1);
	assert_int_equal(feed(&first), -EAGAIN);
	assert_err(feed(&third), ERR_PROTOCOL, "page 2 is out of order");
	assert_null(gather.arena);
	assert_int_equal(feed(&first), -EAGAIN);
	next.answer_view.key.host = "other";
	assert_err(feed(&next), ERR_PROTOCOL, "of another view");
	first.answer_view.workload = &sample_workload;
	next = view_page(5, 1, false, 1);
	next.answer_view.workload = &sample_workload;
	assert_int_equal(feed(&first), -EAGAIN);
	assert_err(feed(&next), ERR_PROTOCOL, "repeats");
	next = view_page(6, 1, false, 1);
	assert_int_equal(feed(&first), -EAGAIN);
	assert_err(feed(&next), ERR_PROTOCOL, "out of order");
	struct ipc_record policies = {
	        .type = IPC_ANSWER_POLICIES, .answer_policies = {.generation = 5, .page = 1}};
	assert_int_equal(feed(&first), -EAGAIN);
	assert_err(feed(&policies), ERR_PROTOCOL, "out of order");
	struct ipc_record other = {.type = IPC_READY};
	assert_err(feed(&other), ERR_PROTOCOL, "has no pages");
}

static void test_ceilings(void **state)
{
	/* 128 endpoints, not one more. */
	struct ipc_record first = view_page(1, 0, false, 30), page;
	assert_int_equal(feed(&first), -EAGAIN);
	for (uint32_t i = 1; i <= 3; i++) {
		page = view_page(1, i, false, 30);
		assert_int_equal(feed(&page), -EAGAIN);
	}
	page = view_page(1, 4, true, 9);
	assert_err(feed(&page), ERR_TOO_MANY, "too long");
	/* 256 pages, not one more, even empty ones. */
	page = view_page(1, 0, false, 0);
	assert_int_equal(feed(&page), -EAGAIN);
	for (uint32_t i = 1; i < GATHER_PAGE_MAX; i++) {
		page = view_page(1, i, false, 0);
		assert_int_equal(feed(&page), -EAGAIN);
	}
	page = view_page(1, GATHER_PAGE_MAX, false, 0);
	assert_err(feed(&page), ERR_TOO_MANY, "too long");
}

/* 4 MB of decoded policies end it, long before the number of pages does. */
static void test_memory_ceiling(void **state)
{
	struct policy_match matches[400] = {{.namespace_cnt = 0}};
	struct policy_clause clause = {.matches = matches, .match_cnt = CNT(matches)};
	struct policy_rule rule = {.clauses = &clause, .clause_cnt = 1};
	struct policy policies[8];
	for (size_t i = 0; i < CNT(policies); i++)
		policies[i] = (struct policy){.name = "n", .ns = "s", .rules = &rule, .rule_cnt = 1};
	struct ipc_record page = {.type = IPC_ANSWER_POLICIES,
	        .answer_policies = {.generation = 1, .policies = policies, .policy_cnt = 8}};
	int rc = feed(&page);
	while (rc == -EAGAIN) {
		page.answer_policies.page++;
		rc = feed(&page);
	}
	assert_int_equal(rc, ERR_TOO_LARGE);
	assert_true(page.answer_policies.page < 20);
	assert_null(gather.arena);
}

static void test_allocation_failures(void **state)
{
	struct ipc_record first = view_page(1, 0, false, 20), last = view_page(1, 1, true, 20);
	first.answer_view.workload = &sample_workload;
	first.answer_view.service = &sample_service;
	struct arena *arena = arena_new(64);
	int rc = ERR_TOO_LARGE;
	for (long n = 1; rc == ERR_TOO_LARGE; n++) {
		allocations_left = n;
		rc = gather_add(&gather, arena, &first, &done_arena, &done, &err);
		if (rc == -EAGAIN)
			rc = gather_add(&gather, arena, &last, &done_arena, &done, &err);
		allocations_left = -1;
		gather_done(&gather);
	}
	assert_int_equal(rc, 0);
	arena_unref(done_arena);
	arena_unref(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_teardown(test_whole_way, teardown),
	        cmocka_unit_test_teardown(test_policies, teardown),
	        cmocka_unit_test_teardown(test_single_page, teardown),
	        cmocka_unit_test_teardown(test_generations, teardown),
	        cmocka_unit_test_teardown(test_violations, teardown),
	        cmocka_unit_test_teardown(test_ceilings, teardown),
	        cmocka_unit_test_teardown(test_memory_ceiling, teardown),
	        cmocka_unit_test_teardown(test_allocation_failures, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
