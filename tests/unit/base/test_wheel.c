/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The timer wheel against the plain definition: every timer fires at its time, never early, in order. */
#include <stdlib.h>

#include "base/list.h"
#include "base/wheel.h"
#include "unit.h"

#define TIMERS 300

struct probe {
	struct timer timer;
	struct wheel *wheel;
	uint64_t fired_at; /* 0 = not yet */
	uint64_t again;    /* set again that much later, once */
	struct probe *kill;
};

static uint64_t last_due;

static void on_fire(struct timer *timer, uint64_t now)
{
	struct probe *p = list_entry(timer, struct probe, timer);
	assert_false(timer_is_set(timer));
	assert_true(timer->due <= now);
	p->fired_at = now;
	last_due = timer->due;
	if (p->again) {
		wheel_add(p->wheel, timer, now + p->again);
		p->again = 0;
	}
	if (p->kill)
		wheel_del(p->wheel, &p->kill->timer);
}

static void idle_needs_no_tick(void **state)
{
	struct wheel w;
	wheel_init(&w, 1000);
	assert_true(wheel_next(&w) == WHEEL_NONE);
	assert_int_equal(wheel_run(&w, 1u << 30), 0);
	assert_true(wheel_next(&w) == WHEEL_NONE);
}

/* Wakes only when wheel_next says so and checks every timer against its due time. */
static void random_work(void **state)
{
	static struct probe probes[TIMERS];
	static const uint64_t spans[] = {
	        1, 2, 63, 64, 65, 4095, 4096, 100000, 16777216, 1ull << 31, 1ull << 40};
	srand(3);
	for (int round = 0; round < 40; round++) {
		struct wheel w;
		uint64_t now = (uint64_t)rand() << (round % 20);
		uint64_t end = now;
		wheel_init(&w, now);
		int set = 0;
		for (int i = 0; i < TIMERS; i++) {
			timer_init(&probes[i].timer, on_fire);
			probes[i].wheel = &w;
			probes[i].fired_at = probes[i].again = 0;
			probes[i].kill = NULL;
			uint64_t due = now + 1 +
			               ((uint64_t)rand() << 20 | (uint64_t)rand()) %
			                       spans[(size_t)rand() % CNT(spans)];
			wheel_add(&w, &probes[i].timer, due);
			if (rand() % 4 == 0)
				wheel_add(&w, &probes[i].timer,
				        due = now + 1 + (uint64_t)rand() % 5000); /* moved */
			if (rand() % 5 == 0)
				wheel_del(&w, &probes[i].timer);
			else
				set++;
			if (due > end)
				end = due;
		}
		int wakes = 0;
		for (uint64_t next = wheel_next(&w); next != WHEEL_NONE; next = wheel_next(&w), wakes++) {
			assert_true(next > now);
			for (int i = 0; i < TIMERS; i++)
				if (timer_is_set(&probes[i].timer))
					assert_true(next <= probes[i].timer.due);
			now = next;
			wheel_run(&w, now);
			for (int i = 0; i < TIMERS; i++)
				assert_true(!timer_is_set(&probes[i].timer) || probes[i].timer.due > now);
		}
		assert_true(now <= end);
		assert_true(wakes <= TIMERS * (WHEEL_LEVELS + 1) + 1024);
		for (int i = 0; i < TIMERS; i++)
			if (probes[i].fired_at) {
				assert_true(probes[i].fired_at == probes[i].timer.due);
				set--;
			}
		assert_int_equal(set, 0);
	}
}

static void late_run_keeps_order(void **state)
{
	static struct probe probes[100];
	struct wheel w;
	wheel_init(&w, 12345);
	for (int i = 0; i < 100; i++) {
		timer_init(&probes[i].timer, on_fire);
		probes[i].wheel = &w;
		wheel_add(&w, &probes[i].timer, 12345 + 1 + (uint64_t)(i * 7919 % 100) * 97);
	}
	for (int i = 0; i < 100; i++)
		probes[i].fired_at = 0;
	/* One step at a time would fire them one by one; all at once must give the same order. */
	uint64_t before = 0;
	for (int step = 0; step < 2; step++) {
		wheel_run(&w, 12345 + 5000 * (uint64_t)(step + 1));
		assert_true(last_due >= before);
		before = last_due;
	}
	for (int i = 0; i < 100; i++)
		assert_true(probes[i].fired_at == (probes[i].timer.due <= 17345 ? 17345 : 22345));
}

static void callbacks_may_change_it(void **state)
{
	struct wheel w;
	struct probe a = {.wheel = &w, .again = 5}, b = {.wheel = &w};
	wheel_init(&w, 100);
	timer_init(&a.timer, on_fire);
	timer_init(&b.timer, on_fire);
	a.kill = &b;
	wheel_add(&w, &a.timer, 110);
	wheel_add(&w, &b.timer, 111);
	assert_int_equal(wheel_run(&w, 200), 1); /* a kills b, which was due in the same run */
	assert_int_equal(b.fired_at, 0);
	assert_false(timer_is_set(&b.timer));
	assert_int_equal(wheel_next(&w), 205);
	wheel_del(&w, &a.timer);
	wheel_del(&w, &a.timer);
	assert_true(wheel_next(&w) == WHEEL_NONE);
}

static void past_fires_at_the_next_run(void **state)
{
	struct wheel w;
	struct probe a = {.wheel = &w};
	wheel_init(&w, 100);
	timer_init(&a.timer, on_fire);
	wheel_add(&w, &a.timer, 50);
	assert_int_equal(wheel_next(&w), 100);
	assert_int_equal(wheel_run(&w, 100), 1);
	wheel_add(&w, &a.timer, 40);
	wheel_del(&w, &a.timer);
	assert_true(wheel_next(&w) == WHEEL_NONE);
	/* Time does not run backwards. */
	wheel_add(&w, &a.timer, 130);
	wheel_run(&w, 120);
	assert_int_equal(wheel_run(&w, 5), 0);
	assert_int_equal(wheel_run(&w, 130), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(idle_needs_no_tick),
	        cmocka_unit_test(random_work),
	        cmocka_unit_test(late_run_keeps_order),
	        cmocka_unit_test(callbacks_may_change_it),
	        cmocka_unit_test(past_fires_at_the_next_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
