/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Outstanding asks: right answer to the right owner, late and wrong ones, deadlines, ceilings, re-entrance.
 */
#include "../pb/unit.h"

#include <errno.h>

#include "base/mem.h"
#include "ipc/ask.h"

static struct ask_table table;
static bool fail_memory;

bool mem_should_fail(size_t len)
{
	return fail_memory;
}

/* An ask that notes what happened to it. */
struct probe {
	struct ask ask;
	int rc;
	size_t cnt;
	bool is_last;
	struct probe *starts; /* opened from within the call */
	struct probe *cancels;
};

static void on_done(struct ask *ask, int rc, const struct ipc_record *rec, bool is_last)
{
	struct probe *p = (struct probe *)ask;
	p->rc = rc;
	p->cnt++;
	p->is_last = is_last;
	assert_int_equal(rec == NULL, rc < 0);
	assert_int_equal(ask->id == 0, is_last);
	if (p->starts)
		assert_int_equal(ask_start(&table, &p->starts->ask, IPC_ASK_WORKLOAD, 0), 0);
	if (p->cancels)
		ask_cancel(&table, &p->cancels->ask);
}

static int setup(void **state)
{
	ask_table_init(&table, 64);
	return 0;
}

static int teardown(void **state)
{
	ask_table_done(&table);
	return 0;
}

static struct probe fresh(void)
{
	return (struct probe){.ask.done = on_done};
}

static int answer(uint32_t id, enum ipc_type type)
{
	struct ipc_record rec = {.id = id, .type = type};
	if (type == IPC_ANSWER_VIEW)
		rec.answer_view.last = true;
	return ask_answer(&table, &rec);
}

static void test_answers_meet_their_asks(void **state)
{
	struct probe a = fresh(), b = fresh();
	assert_int_equal(ask_start(&table, &a.ask, IPC_ASK_WORKLOAD, 0), 0);
	assert_int_equal(ask_start(&table, &b.ask, IPC_ASK_HOST, 0), 0);
	assert_int_not_equal(a.ask.id, 0);
	assert_int_not_equal(a.ask.id, b.ask.id);
	assert_int_equal(answer(b.ask.id, IPC_ANSWER_VIEW), 0);
	assert_int_equal(b.cnt, 1);
	assert_int_equal(a.cnt, 0);
	assert_int_equal(answer(a.ask.id, IPC_ANSWER_WORKLOAD), 0);
	assert_int_equal(a.cnt, 1);
	assert_int_equal(table.cnt, 0);
}

static void test_pages_keep_it_open(void **state)
{
	struct probe a = fresh();
	struct ipc_record rec = {.type = IPC_ANSWER_VIEW};
	assert_int_equal(ask_start(&table, &a.ask, IPC_ASK_ADDRESS, 0), 0);
	rec.id = a.ask.id;
	assert_int_equal(ask_answer(&table, &rec), 0);
	assert_false(a.is_last);
	assert_int_equal(ask_answer(&table, &rec), 0);
	rec.answer_view.last = true;
	assert_int_equal(ask_answer(&table, &rec), 0);
	assert_true(a.is_last);
	assert_int_equal(a.cnt, 3);
	assert_int_equal(ask_answer(&table, &rec), -ENOENT);
}

/* An id is not used again soon: the answer to a cancelled ask does not meet the next one in its slot. */
static void test_late_answer(void **state)
{
	struct probe a = fresh(), b = fresh();
	assert_int_equal(ask_start(&table, &a.ask, IPC_ASK_WORKLOAD, 0), 0);
	uint32_t old = a.ask.id;
	ask_cancel(&table, &a.ask);
	ask_cancel(&table, &a.ask);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(ask_start(&table, &b.ask, IPC_ASK_WORKLOAD, 0), 0);
		assert_int_not_equal(b.ask.id, old);
		assert_int_equal(answer(old, IPC_ANSWER_WORKLOAD), -ENOENT);
		ask_cancel(&table, &b.ask);
	}
	assert_int_equal(answer(0xffffffff, IPC_ANSWER_WORKLOAD), -ENOENT);
	assert_int_equal(a.cnt + b.cnt, 0);
}

static void test_wrong_answers(void **state)
{
	struct probe a = fresh();
	assert_int_equal(ask_start(&table, &a.ask, IPC_ASK_WORKLOAD, 0), 0);
	assert_int_equal(answer(a.ask.id, IPC_UNSUPPORTED), 0);
	assert_int_equal(a.rc, ERR_UNSUPPORTED);
	assert_int_equal(ask_start(&table, &a.ask, IPC_ASK_WORKLOAD, 0), 0);
	assert_int_equal(answer(a.ask.id, IPC_ANSWER_VIEW), ERR_PROTOCOL);
	assert_int_equal(a.rc, ERR_PROTOCOL);
	assert_int_equal(table.cnt, 0);
}

static void test_deadlines(void **state)
{
	struct probe a = fresh(), b = fresh(), c = fresh();
	assert_int_equal(ask_next_ms(&table), UINT64_MAX);
	assert_int_equal(ask_start(&table, &a.ask, IPC_ASK_WORKLOAD, 100), 0);
	assert_int_equal(ask_start(&table, &b.ask, IPC_ASK_WORKLOAD, 50), 0);
	assert_int_equal(ask_start(&table, &c.ask, IPC_ASK_WORKLOAD, 0), 0);
	assert_int_equal(ask_next_ms(&table), 50);
	assert_int_equal(ask_expire(&table, 49), 0);
	assert_int_equal(ask_expire(&table, 50), 1);
	assert_int_equal(b.rc, ERR_TIMEOUT_FETCH);
	assert_int_equal(ask_next_ms(&table), 100);
	assert_int_equal(answer(a.ask.id, IPC_ANSWER_WORKLOAD), 0);
	assert_int_equal(ask_expire(&table, 1000), 0);
	assert_int_equal(ask_next_ms(&table), UINT64_MAX);
	assert_int_equal(c.cnt, 0);
}

static void test_ceiling(void **state)
{
	struct probe probes[65];
	for (size_t i = 0; i < 64; i++) {
		probes[i] = fresh();
		assert_int_equal(ask_start(&table, &probes[i].ask, IPC_ASK_POLICIES, 0), 0);
	}
	probes[64] = fresh();
	assert_int_equal(ask_start(&table, &probes[64].ask, IPC_ASK_POLICIES, 0), -ENOBUFS);
	ask_cancel(&table, &probes[20].ask);
	assert_int_equal(ask_start(&table, &probes[64].ask, IPC_ASK_POLICIES, 0), 0);
	ask_table_done(&table);
	assert_int_equal(probes[3].ask.id, 0);
	assert_int_equal(probes[3].cnt, 0);
	fail_memory = true;
	assert_int_equal(ask_start(&table, &probes[3].ask, IPC_ASK_POLICIES, 0), -ENOMEM);
	fail_memory = false;
	assert_int_equal(probes[3].ask.id, 0);
}

/* Calls may open and close other asks of the table. */
static void test_lost_channel(void **state)
{
	struct probe a = fresh(), b = fresh(), c = fresh(), d = fresh();
	a.starts = &d;
	a.cancels = &b;
	assert_int_equal(ask_start(&table, &a.ask, IPC_ASK_WORKLOAD, 5), 0);
	assert_int_equal(ask_start(&table, &b.ask, IPC_ASK_WORKLOAD, 5), 0);
	assert_int_equal(ask_start(&table, &c.ask, IPC_ASK_WORKLOAD, 5), 0);
	ask_fail_all(&table, -EPIPE);
	assert_int_equal(a.rc, -EPIPE);
	assert_int_equal(b.cnt, 0);
	assert_int_equal(c.rc, -EPIPE);
	assert_int_equal(d.cnt, 0);
	assert_int_equal(table.cnt, 1);
	assert_int_equal(answer(d.ask.id, IPC_ANSWER_WORKLOAD), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_answers_meet_their_asks, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_pages_keep_it_open, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_late_answer, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_wrong_answers, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_deadlines, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_ceiling, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_lost_channel, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
