/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of known names against a plain model: versions of every form, removal, marks, sweeping, size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "xds/known.h"

static void test_versions_come_back(void **state)
{
	static const char *const VERSIONS[] = {"", "1", "ffffffffffffffff", "0", "00ff", "FF", "v1",
	        "12345678901234567", "a version with blanks", "deadbeef"};
	struct xds_known known;
	char name[32], version[XDS_VERSION_MAX + 1], longest[XDS_VERSION_MAX + 2];
	(void)state;
	xds_known_init(&known);
	for (size_t i = 0; i < sizeof(VERSIONS) / sizeof(VERSIONS[0]); i++) {
		for (int keeps = 0; keeps < 2; keeps++) {
			snprintf(name, sizeof(name), "n%zu-%d", i, keeps);
			assert_int_equal(xds_known_put(&known, name, VERSIONS[i], keeps), 0);
			assert_true(xds_known_get(&known, name, version));
			assert_string_equal(version, VERSIONS[i]);
			if (!keeps)
				assert_true(xds_known_is_odd(&known, name));
		}
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(xds_known_put(&known, "long", longest, true), 0);
	assert_true(xds_known_get(&known, "long", version));
	assert_string_equal(version, "");
	/* From text to number and back. */
	assert_int_equal(xds_known_put(&known, "n6-1", "ab", true), 0);
	assert_false(xds_known_is_odd(&known, "n6-1"));
	assert_int_equal(xds_known_put(&known, "n6-1", "no hex", true), 0);
	assert_true(xds_known_is_odd(&known, "n6-1"));
	assert_true(xds_known_get(&known, "n6-1", version));
	assert_string_equal(version, "no hex");
	assert_false(xds_known_get(&known, "absent", version));
	xds_known_done(&known);
}

#define NAMES 3000

/* Random puts and removals; everything that the model has is there, nothing else. */
static void test_against_a_model(void **state)
{
	static unsigned model[NAMES];
	struct xds_known known;
	char name[32], version[XDS_VERSION_MAX + 1], want[32];
	size_t cnt = 0;
	(void)state;
	srand(7);
	memset(model, 0, sizeof(model));
	xds_known_init(&known);
	for (int step = 0; step < 60000; step++) {
		unsigned i = (unsigned)rand() % NAMES;
		snprintf(name, sizeof(name), "ns-%u/host", i);
		if (rand() % 3) {
			cnt += model[i] == 0;
			model[i] = (unsigned)rand() % 1000000 + 1;
			snprintf(want, sizeof(want), model[i] % 5 ? "%x" : "v%x", model[i]);
			assert_int_equal(xds_known_put(&known, name, want, model[i] % 7 != 0), 0);
		} else {
			assert_int_equal(xds_known_del(&known, name), model[i] != 0);
			cnt -= model[i] != 0;
			model[i] = 0;
		}
		assert_int_equal(xds_known_cnt(&known), cnt);
	}
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "ns-%u/host", i);
		assert_int_equal(xds_known_get(&known, name, version), model[i] != 0);
		snprintf(want, sizeof(want), model[i] % 5 ? "%x" : "v%x", model[i]);
		if (model[i])
			assert_string_equal(version, want);
	}
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "ns-%u/host", i);
		xds_known_del(&known, name);
	}
	assert_int_equal(xds_known_cnt(&known), 0);
	assert_null(known.slots);
	xds_known_done(&known);
}

static bool count_stale(void *ctx, const char *name, const char *version, bool is_stale)
{
	(void)name;
	(void)version;
	*(int *)ctx += is_stale;
	return true;
}

static void test_sweep_takes_what_has_no_mark(void **state)
{
	struct xds_known known;
	char name[32];
	int stale = 0;
	(void)state;
	xds_known_init(&known);
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(xds_known_put(&known, name, i % 10 ? "1f" : "odd one", true), 0);
		assert_false(xds_known_is_stale(&known, name));
	}
	xds_known_unmark(&known);
	for (int i = 0; i < 2000; i += 4) {
		snprintf(name, sizeof(name), "n%d", i);
		if (i % 8)
			xds_known_mark(&known, name);
		else
			assert_int_equal(xds_known_put(&known, name, i % 10 ? "20" : "odd two", true), 0);
	}
	xds_known_mark(&known, "absent");
	assert_true(xds_known_is_stale(&known, "n1"));
	assert_false(xds_known_is_stale(&known, "n4"));
	assert_false(xds_known_is_stale(&known, "absent"));
	xds_known_each_odd(&known, count_stale, &stale);
	assert_int_equal(stale, 100);
	xds_known_sweep(&known);
	assert_int_equal(xds_known_cnt(&known), 500);
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_int_equal(xds_known_get(&known, name, NULL), i % 4 == 0);
	}
	xds_known_done(&known);
}

static void test_size_of_a_large_table(void **state)
{
	struct xds_known known;
	char name[64], version[32];
	(void)state;
	xds_known_init(&known);
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "Kubernetes//Pod/namespace-%u/workload-%u", i % 100, i);
		snprintf(version, sizeof(version), "%llx", 0x9e3779b97f4a7c15ULL * (i + 1) | 1ULL << 63);
		assert_int_equal(xds_known_put(&known, name, version, true), 0);
	}
	/* 16 bytes a slot, at most twice as many slots as names. */
	assert_true(known.cap * sizeof(*known.slots) <= 4u << 20);
	assert_int_equal(map_cnt(&known.odd), 0);
	xds_known_done(&known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_versions_come_back),
	        cmocka_unit_test(test_against_a_model),
	        cmocka_unit_test(test_sweep_takes_what_has_no_mark),
	        cmocka_unit_test(test_size_of_a_large_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
