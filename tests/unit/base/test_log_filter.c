/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filter syntax and precedence (reference control.md 11.6 and 13). */
#include <errno.h>

#include "base/log.h"
#include "base/log_filter.h"
#include "unit.h"

static void nowhere(void *ctx, const char *line, size_t len)
{
}

static void assert_text(const struct log *log, const char *want)
{
	struct buf b;
	buf_init(&b, 65536);
	log_filter_text(log, &b);
	assert_string_equal(buf_cstr(&b), want);
	buf_done(&b);
}

static void start_filters(void **state)
{
	static const char *const rows[][2] = {
	        {NULL, "hickory_server::server=off,info"},
	        {"debug", "hickory_server::server=off,debug"},
	        {"", "hickory_server::server=off,error"},
	        {"INFO,", "hickory_server::server=off,error"},
	        {"access=debug,info", "hickory_server::server=off,access=debug,info"},
	        {"info,access=off,dns=3", "hickory_server::server=off,access=off,dns=info,info"},
	        {"aa=warn,bb=warn,ccc", "hickory_server::server=off,ccc=trace,bb=warn,aa=warn"},
	        {"x[{f}]=debug,y=", "hickory_server::server=off,y=error,x=debug"},
	        {"a=info,a=trace,0", "hickory_server::server=off,a=trace,off"},
	        {"hickory_server::server=debug", "hickory_server::server=debug"},
	        {"DeBuG,x=WARN", "hickory_server::server=off,x=warn,debug"},
	};
	for (size_t i = 0; i < CNT(rows); i++) {
		struct log log;
		struct err e = {0};
		if (log_init(&log, rows[i][0], false, nowhere, NULL, &e) < 0)
			fail_msg("%s: %s", rows[i][0], e.text);
		assert_text(&log, rows[i][1]);
		log_done(&log);
	}
	static const char *const bad[] = {"a=b=c", "x=loud", "9", "x=6", "x[{f=info", "x[{a}][{b}]=info",
	        "x[{=info", "info,x=?", "x[{a}]", "x[{a"};
	for (size_t i = 0; i < CNT(bad); i++) {
		struct log log;
		struct err e = {0};
		if (log_init(&log, bad[i], false, nowhere, NULL, &e) != -EINVAL)
			fail_msg("%s", bad[i]);
		assert_non_null(strstr(e.text, "invalid filter directive"));
	}
}

static void longest_prefix_wins(void **state)
{
	struct log log;
	assert_int_equal(log_init(&log, "warn,ztunnel::xds=debug,ztunnel::xds::client=error,access=off",
	                         false, nowhere, NULL, NULL),
	        0);
	assert_true(log_enabled(&log, LOG_DEBUG, "ztunnel::xds"));
	assert_true(log_enabled(&log, LOG_DEBUG, "ztunnel::xdsother"));
	assert_false(log_enabled(&log, LOG_TRACE, "ztunnel::xds"));
	assert_false(log_enabled(&log, LOG_WARN, "ztunnel::xds::client"));
	assert_true(log_enabled(&log, LOG_ERROR, "ztunnel::xds::client"));
	assert_true(log_enabled(&log, LOG_WARN, "other"));
	assert_false(log_enabled(&log, LOG_INFO, "other"));
	assert_false(log_enabled(&log, LOG_ERROR, "access"));
	assert_false(log_enabled(&log, LOG_OFF, "other"));
	assert_false(log_enabled(NULL, LOG_ERROR, "other"));
	log_done(&log);
	assert_int_equal(log_init(&log, "dns", false, nowhere, NULL, NULL), 0);
	assert_true(log_enabled(&log, LOG_TRACE, "dns"));
	assert_false(log_enabled(&log, LOG_ERROR, "access"));
	log_done(&log);
}

static void changes(void **state)
{
	struct log log;
	struct err e = {0};
	assert_int_equal(log_init(&log, NULL, false, nowhere, NULL, NULL), 0);
	assert_int_equal(log_change(&log, false, "access=debug", &e), 0);
	assert_text(&log, "hickory_server::server=off,access=debug,info");
	assert_int_equal(log_change(&log, false, "debug", &e), 0);
	assert_text(&log, "hickory_server::server=off,access=debug,debug");
	assert_int_equal(log_change(&log, false, "access:warn,ztunnel::xds:off", &e), 0);
	assert_text(&log, "hickory_server::server=off,ztunnel::xds=off,access=warn,debug");
	static const char *const bad[] = {
	        "info,", ",", "DEBUG", "access", "access=", "5", "a:b", "x=loud", "warn,x", "ztunnel::xds"};
	for (size_t i = 0; i < CNT(bad); i++) {
		if (log_change(&log, true, bad[i], &e) != -EINVAL)
			fail_msg("%s", bad[i]);
		assert_text(&log, "hickory_server::server=off,ztunnel::xds=off,access=warn,debug");
	}
	assert_int_equal(log_change(&log, false, "", &e), 0);
	assert_int_equal(log_change(&log, true, "x=TRACE", &e), 0);
	assert_text(&log, "hickory_server::server=off,x=trace,info");
	assert_int_equal(log_change(&log, true, NULL, &e), 0);
	assert_text(&log, "hickory_server::server=off,info");
	assert_int_equal(log_set(&log, "hickory_server::server=off,access=debug,warn", &e), 0);
	assert_text(&log, "hickory_server::server=off,access=debug,warn");
	assert_int_equal(log_set(&log, "a=b=c", &e), -EINVAL);
	assert_text(&log, "hickory_server::server=off,access=debug,warn");
	log_done(&log);
}

static void keeps_ceiling(void **state)
{
	struct log log;
	struct err e;
	assert_int_equal(log_init(&log, NULL, false, nowhere, NULL, NULL), 0);
	char clause[16];
	int rc = 0;
	for (int i = 0; rc == 0 && i < 1000; i++) {
		snprintf(clause, sizeof(clause), "t%d=warn", i);
		rc = log_change(&log, false, clause, &e);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(log.filter.cnt, LIMIT_LOG_DIRECTIVES);
	assert_int_equal(log_change(&log, false, "t0=info", &e), 0);
	log_done(&log);
}

static void out_of_memory(void **state)
{
	struct log log;
	long n = 0;
	int rc = -ENOMEM;
	for (; rc < 0; n++) {
		allocations_left = n;
		rc = log_init(&log, "access=debug,info,x=off", false, nowhere, NULL, NULL);
		allocations_left = -1;
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	assert_true(n > 5);
	for (rc = -ENOMEM, n = 0; rc < 0; n++) {
		allocations_left = n;
		rc = log_change(&log, true, "y=debug", NULL);
		allocations_left = -1;
		if (rc < 0)
			assert_text(&log, "hickory_server::server=off,access=debug,x=off,info");
	}
	log_done(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(start_filters),
	        cmocka_unit_test(longest_prefix_wins),
	        cmocka_unit_test(changes),
	        cmocka_unit_test(keeps_ceiling),
	        cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
