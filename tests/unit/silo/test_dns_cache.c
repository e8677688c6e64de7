/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies are kept for as long as they hold, under both ceilings, the least recently used go first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "silo/dns_cache.h"

static struct dns_question question(const char *name, uint16_t type)
{
	struct dns_question q;
	assert_int_equal(dns_question_set(&q, name, type), 0);
	return q;
}

static void put(struct dns_cache *cache, const char *name, size_t len, uint32_t ttl, uint64_t now)
{
	static uint8_t bytes[70000];
	struct dns_question q = question(name, 1);
	dns_cache_put(cache, &q, bytes, len, ttl, now);
}

static bool has(struct dns_cache *cache, const char *name, uint16_t type, uint64_t now, uint32_t *ret_age)
{
	struct dns_question q = question(name, type);
	struct dns_cached got;
	if (dns_cache_get(cache, &q, now, &got) < 0)
		return false;
	*ret_age = got.age;
	return true;
}

static void test_life(void **state)
{
	struct dns_cache cache;
	uint32_t age;
	dns_cache_init(&cache);
	put(&cache, "a.example", 100, 30, 1000);
	assert_true(has(&cache, "A.Example", 1, 30999, &age));
	assert_int_equal(age, 29);
	assert_false(has(&cache, "a.example", 28, 1000, &age));
	assert_false(has(&cache, "b.example", 1, 1000, &age));
	assert_false(has(&cache, "a.example", 1, 31000, &age));
	assert_int_equal(cache.bytes, 0);
	/* Nothing that does not hold; an older one goes all the same. */
	put(&cache, "a.example", 100, 30, 1000);
	put(&cache, "a.example", 100, 0, 2000);
	assert_false(has(&cache, "a.example", 1, 2000, &age));
	put(&cache, "a.example", 100, UINT32_MAX, 1000);
	assert_true(has(&cache, "a.example", 1, 1000 + 86399999ull, &age));
	assert_false(has(&cache, "a.example", 1, 1000 + 86400000ull, &age));
	dns_cache_done(&cache);
}

static void test_ceilings(void **state)
{
	struct dns_cache cache;
	char name[32];
	uint32_t age;
	dns_cache_init(&cache);
	for (int i = 0; i < DNS_CACHE_ENTRIES; i++) {
		snprintf(name, sizeof(name), "n%d.example", i);
		put(&cache, name, 20, 60, 1000);
	}
	/* The first one is used, so the second is the oldest. */
	assert_true(has(&cache, "n0.example", 1, 1000, &age));
	put(&cache, "more.example", 20, 60, 1000);
	assert_true(has(&cache, "n0.example", 1, 1000, &age));
	assert_false(has(&cache, "n1.example", 1, 1000, &age));
	assert_true(has(&cache, "n2.example", 1, 1000, &age));
	/* Large ones push out by bytes. */
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "big%d.example", i);
		put(&cache, name, 60000, 60, 1000);
		assert_true(cache.bytes <= DNS_CACHE_BYTES);
	}
	assert_false(has(&cache, "n0.example", 1, 1000, &age));
	assert_false(has(&cache, "big3.example", 1, 1000, &age));
	assert_true(has(&cache, "big4.example", 1, 1000, &age));
	dns_cache_done(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_life), cmocka_unit_test(test_ceilings)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
