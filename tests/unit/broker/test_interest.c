/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The index of interests: everybody hears of exactly what concerns them, in
 * any order of coming and going; thousands of others cost nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "broker/interest.h"

static size_t fail_at; /* 0 = never; else counts down to the allocation that fails */

bool mem_should_fail(size_t len)
{
	return fail_at && --fail_at == 0;
}

/* A silo with a key; counts what it heard. */
struct silo {
	struct interest_view view;
	struct interest_owner owner;
	struct view_key key;
	struct workload_info info;
	char name[24];
	unsigned views, owns, policies;
};

static void on_view(void *ctx, struct interest_view *view)
{
	list_entry(view, struct silo, view)->views++;
	++*(unsigned *)ctx;
}

static void on_own(void *ctx, struct interest_owner *owner)
{
	list_entry(owner, struct silo, owner)->owns++;
	++*(unsigned *)ctx;
}

static void on_policies(void *ctx, struct interest_owner *owner)
{
	list_entry(owner, struct silo, owner)->policies++;
	++*(unsigned *)ctx;
}

static const struct interest_events EVENTS = {on_view, on_own, on_policies};

/* Tells a change; returns how many heard of it. */
static unsigned tell(const struct interest *interest, const struct store_change *change)
{
	unsigned cnt = 0;
	interest_tell(interest, change, &EVENTS, &cnt);
	return cnt;
}

static void enter(struct interest *interest, struct silo *silo, const struct view_key *key, const char *name,
        const char *ns)
{
	*silo = (struct silo){.key = *key};
	snprintf(silo->name, sizeof(silo->name), "%s", name);
	silo->info = (struct workload_info){.name = silo->name, .ns = ns, .service_account = "sa"};
	assert_int_equal(interest_view_enter(interest, &silo->view, &silo->key), 0);
	assert_int_equal(interest_owner_enter(interest, &silo->owner, &silo->info), 0);
}

static void leave(struct interest *interest, struct silo *silo)
{
	interest_view_leave(interest, &silo->view);
	interest_owner_leave(interest, &silo->owner);
}

static struct store_change change_of(enum store_subject subject)
{
	return (struct store_change){.subject = subject,
	        .network = "",
	        .ns = "",
	        .hostname = "",
	        .name = "",
	        .service_account = "",
	        .policy_key = ""};
}

static void test_views(void **state)
{
	struct interest interest;
	struct silo a, b, c, d;
	struct ip ip = ip_v4(10, 0, 0, 1), far = ip_v4(10, 9, 0, 1);
	struct view_key near_key = view_key_address("", &ip), net_key = view_key_address("net", &ip);
	struct view_key any_key = view_key_host("", "h"), own_key = view_key_host("red", "h");

	near_key.ns = near_key.hostname = net_key.ns = net_key.hostname = "";
	interest_init(&interest);
	enter(&interest, &a, &near_key, "a", "red");
	enter(&interest, &b, &net_key, "b", "red");
	enter(&interest, &c, &any_key, "c", "red");
	enter(&interest, &d, &own_key, "d", "red");

	struct store_change change = change_of(STORE_ADDRESS);
	change.ip = ip;
	assert_int_equal(tell(&interest, &change), 1);
	assert_int_equal(a.views, 1);
	change.network = "net";
	assert_int_equal(tell(&interest, &change), 1);
	assert_int_equal(b.views, 1);
	change.ip = far;
	assert_int_equal(tell(&interest, &change), 0);

	change = change_of(STORE_CIDR);
	change.cidr = (struct cidr){.ip = ip_v4(10, 0, 0, 0), .len = 16};
	assert_int_equal(tell(&interest, &change), 1);
	assert_int_equal(a.views, 2);

	change = change_of(STORE_HOST);
	change.hostname = "h";
	change.ns = "blue";
	assert_int_equal(tell(&interest, &change), 1);
	assert_int_equal(c.views, 1);
	change.ns = "red";
	assert_int_equal(tell(&interest, &change), 2);
	assert_int_equal(d.views, 1);

	leave(&interest, &c);
	leave(&interest, &c);
	assert_int_equal(tell(&interest, &change), 1);
	leave(&interest, &a);
	leave(&interest, &b);
	leave(&interest, &d);
	assert_int_equal(tell(&interest, &change), 0);
	interest_done(&interest);
}

static void test_names(void **state)
{
	struct interest interest;
	struct silo a, b;
	struct view_key a_key = view_key_name("web.ns"), b_key = view_key_name("db");

	interest_init(&interest);
	enter(&interest, &a, &a_key, "a", "red");
	enter(&interest, &b, &b_key, "b", "red");
	struct store_change change = change_of(STORE_HOST);
	change.hostname = "web.ns.svc.cluster.local";
	assert_int_equal(tell(&interest, &change), 1);
	assert_int_equal(a.views, 1);
	change.hostname = "web-2.ns";
	assert_int_equal(tell(&interest, &change), 0);
	change.hostname = "*.svc.cluster.local";
	assert_int_equal(tell(&interest, &change), 2);
	leave(&interest, &a);
	leave(&interest, &b);
	assert_int_equal(tell(&interest, &change), 0);
	interest_done(&interest);
}

static void test_owners(void **state)
{
	struct interest interest;
	struct silo a, twin, other;
	struct view_key key = view_key_host("", "h");

	interest_init(&interest);
	enter(&interest, &a, &key, "web-0", "red");
	enter(&interest, &twin, &key, "web-0", "blue");
	enter(&interest, &other, &key, "web-1", "red");

	struct store_change change = change_of(STORE_OWN);
	change.name = "web-0";
	change.ns = "red";
	change.service_account = "sa";
	assert_int_equal(tell(&interest, &change), 1);
	assert_int_equal(a.owns, 1);
	change.service_account = "sb";
	assert_int_equal(tell(&interest, &change), 0);

	change = change_of(STORE_POLICY);
	change.ns = "red";
	assert_int_equal(tell(&interest, &change), 2);
	assert_int_equal(twin.policies, 0);
	change.is_selector = true;
	assert_int_equal(tell(&interest, &change), 3);
	change.is_selector = false;
	change.ns = "";
	assert_int_equal(tell(&interest, &change), 3);
	change.ns = "green";
	assert_int_equal(tell(&interest, &change), 0);
	leave(&interest, &a);
	change.ns = "red";
	assert_int_equal(tell(&interest, &change), 1);
	leave(&interest, &twin);
	leave(&interest, &other);
	assert_int_equal(tell(&interest, &change), 0);
	interest_done(&interest);
}

#define MANY 5000

static void test_many(void **state)
{
	static struct silo silos[MANY];
	struct interest interest;

	interest_init(&interest);
	for (unsigned i = 0; i < MANY; i++) {
		struct ip ip = ip_v4(10, 0, (uint8_t)(i / 10 >> 8), (uint8_t)(i / 10));
		struct view_key key = view_key_address("", &ip);
		char name[24];
		key.ns = key.hostname = "";
		snprintf(name, sizeof(name), "pod-%u", i);
		enter(&interest, &silos[i], &key, name, i % 2 ? "red" : "blue");
	}
	/* Every third leaves, heads and tails of chains alike. */
	for (unsigned i = 0; i < MANY; i += 3)
		leave(&interest, &silos[i]);
	for (unsigned i = 0; i < MANY / 10; i++) {
		struct store_change change = change_of(STORE_ADDRESS);
		change.ip = ip_v4(10, 0, (uint8_t)(i >> 8), (uint8_t)i);
		tell(&interest, &change);
	}
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(silos[i].views, i % 3 ? 1 : 0);
		leave(&interest, &silos[i]);
	}
	interest_done(&interest);
}

static void test_allocation_failures(void **state)
{
	struct view_key key = view_key_host("", "h");
	struct workload_info info = {.name = "a", .ns = "red", .service_account = "sa"};

	for (size_t at = 1;; at++) {
		struct interest interest;
		struct interest_view view = {0};
		struct interest_owner owner = {0};
		interest_init(&interest);
		fail_at = at;
		int rc = interest_view_enter(&interest, &view, &key);
		if (rc == 0)
			rc = interest_owner_enter(&interest, &owner, &info);
		bool is_over = fail_at > 0;
		fail_at = 0;
		assert_int_equal(rc, is_over ? 0 : -ENOMEM);
		interest_view_leave(&interest, &view);
		interest_owner_leave(&interest, &owner);
		interest_done(&interest);
		if (is_over)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_views),
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_owners),
	        cmocka_unit_test(test_many),
	        cmocka_unit_test(test_allocation_failures),
	};
	return cmocka_run_group_tests_name("interest", tests, NULL, NULL);
}
