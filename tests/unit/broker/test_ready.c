/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Readiness: the tasks of reference control.md 11.2, their order, and whom a pending workload concerns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "broker/broker.h"

static const char *pending(struct broker *broker)
{
	static char text[128];
	broker_ready_note(broker);
	broker_pending_text(broker, text, sizeof(text));
	return text;
}

static void init(struct broker *broker)
{
	*broker = (struct broker){.settings = {.enable_proxy = true, .dns_enabled = true}};
	list_init(&broker->pods);
}

static void make_ready(struct broker *broker)
{
	broker->ready.warden_up = broker->ready.mesh_complete = true;
	broker->ready.node_connected = broker->ready.node_snapshot = true;
	assert_string_equal(pending(broker), "");
}

static void test_shared(void **state)
{
	struct broker b;
	init(&b);
	assert_string_equal(pending(&b), "dns proxy, proxy, state manager, workload proxy manager");
	b.ready.warden_up = true;
	assert_string_equal(pending(&b), "state manager, workload proxy manager");
	b.ready.mesh_complete = true;
	b.ready.node_connected = true;
	assert_string_equal(pending(&b), "workload proxy manager");
	b.ready.node_pending = 1;
	b.ready.node_snapshot = true;
	assert_string_equal(pending(&b), "workload proxy manager");
	b.ready.node_pending = 0;
	assert_string_equal(pending(&b), "");
	/* Later failures don't count, a lost agent does, also while the warden is away. */
	b.ready.node_pending = 1;
	assert_string_equal(pending(&b), "");
	b.ready.node_connected = false;
	assert_string_equal(pending(&b), "workload proxy manager");
	b.ready.node_connected = true;
	assert_string_equal(pending(&b), "");
	b.ready.warden_up = false;
	assert_string_equal(pending(&b), "workload proxy manager");
}

static void test_what_does_not_run_is_not_awaited(void **state)
{
	struct broker b;
	init(&b);
	b.settings.dns_enabled = false;
	assert_string_equal(pending(&b), "proxy, state manager, workload proxy manager");
	b.settings.enable_proxy = false;
	assert_string_equal(pending(&b), "state manager, workload proxy manager");
}

static void test_strict(void **state)
{
	struct broker b;
	init(&b);
	b.settings.strict_readiness = true;
	make_ready(&b);
	b.ready.node_pending = 1;
	assert_string_equal(pending(&b), "workload proxy manager");
}

/* A broker that is younger than the node's readiness hears of it. */
static void test_new_broker(void **state)
{
	struct broker b;
	init(&b);
	b.ready.warden_up = b.ready.mesh_complete = true;
	b.ready.node_connected = b.ready.node_snapshot = true;
	b.ready.node_pending = 1;
	assert_string_equal(pending(&b), "workload proxy manager");
	b.ready.node_settled = true;
	assert_string_equal(pending(&b), "");
}

static void test_dedicated(void **state)
{
	struct broker b;
	struct pod pod = {.is_up = false};
	init(&b);
	b.settings.dedicated = true;
	b.ready.warden_up = b.ready.mesh_complete = true;
	assert_string_equal(pending(&b), "dns proxy, proxy");
	list_add_tail(&b.pods, &pod.node);
	assert_string_equal(pending(&b), "dns proxy, proxy");
	pod.is_up = true;
	assert_string_equal(pending(&b), "");
	pod.is_up = false;
	assert_string_equal(pending(&b), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_shared),
	        cmocka_unit_test(test_what_does_not_run_is_not_awaited),
	        cmocka_unit_test(test_strict),
	        cmocka_unit_test(test_new_broker),
	        cmocka_unit_test(test_dedicated),
	};
	return cmocka_run_group_tests_name("ready", tests, NULL, NULL);
}
