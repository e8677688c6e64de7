/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker-thread table of reference control.md 3.6. */
#include <errno.h>

#include "base/workers.h"
#include "unit.h"

static void counts(void **state)
{
	static const struct {
		struct worker_inputs in;
		uint64_t want;
	} rows[] = {
	        {{NULL, 0, NULL, NULL, 4}, 2},
	        {{NULL, 0, NULL, NULL, 6}, 2},
	        {{NULL, 0, NULL, NULL, 8}, 2},
	        {{NULL, 0, NULL, NULL, 12}, 3},
	        {{NULL, 0, NULL, NULL, 16}, 4},
	        {{NULL, 0, NULL, NULL, 32}, 8},
	        {{NULL, 0, NULL, NULL, 33}, 9},
	        {{NULL, 16, NULL, NULL, 64}, 4},
	        {{NULL, 0, NULL, "5", 4}, 5},
	        {{NULL, 0, "3", NULL, 64}, 3},
	        {{NULL, 0, "1.5", NULL, 64}, 2},
	        {{NULL, 0, "500m", NULL, 64}, 1},
	        {{NULL, 0, "2", "3500m", 64}, 4},
	        {{NULL, 16, "2.0001", NULL, 64}, 3},
	        {{"7", 0, NULL, NULL, 2}, 7},
	        {{"0", 0, NULL, NULL, 24}, 24},
	        {{"0", 6, NULL, NULL, 24}, 6},
	        {{"50%", 0, NULL, NULL, 5}, 3},
	        {{"1%", 0, NULL, NULL, 5}, 1},
	        {{"100%", 0, "3", NULL, 5}, 3},
	        {{"12.5%", 0, NULL, NULL, 16}, 2},
	        {{NULL, 0, "3", NULL, 64, true, 5}, 5},
	        {{NULL, 6, NULL, NULL, 64, true, 0}, 6},
	        {{"7", 0, NULL, NULL, 64, true, 5}, 7},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		uint64_t cnt = 0;
		assert_int_equal(workers_count(&rows[i].in, &cnt, NULL), 0);
		assert_int_equal(cnt, rows[i].want);
	}
}

static void refused(void **state)
{
	static const char *const threads[] = {"", "-1", "x", "0%", "101%", "%", "50 %", "1.5", "NaN%"};
	static const char *const quantities[] = {
	        "", "0", "-1", "0m", "NaN", "inf", "1.", ".5", "1e3", "m", "1k", "0.0", "1.x"};
	uint64_t cnt;
	for (size_t i = 0; i < CNT(threads); i++) {
		struct worker_inputs in = {.threads = threads[i], .machine_cores = 4};
		struct err e = {0};
		assert_int_equal(workers_count(&in, &cnt, &e), -EINVAL);
		assert_non_null(strstr(e.text, "ZTUNNEL_WORKER_THREADS"));
	}
	for (size_t i = 0; i < CNT(quantities); i++) {
		/* The whole chain is checked even when the explicit number would win. */
		struct worker_inputs in = {.threads = "3", .limit = quantities[i], .machine_cores = 4};
		assert_int_equal(workers_count(&in, &cnt, NULL), -EINVAL);
		in.request = in.limit;
		in.limit = NULL;
		assert_int_equal(workers_count(&in, &cnt, NULL), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
