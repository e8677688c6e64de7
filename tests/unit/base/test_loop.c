/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event loop: events, removal from callbacks, timers, signals. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/loop.h"
#include "unit.h"

struct peer {
	struct watch watch;
	struct loop *loop;
	struct peer *other; /* removed by the callback */
	int calls;
	uint32_t events;
};

static void on_ready(struct watch *watch, uint32_t events)
{
	struct peer *p = list_entry(watch, struct peer, watch);
	p->calls++;
	p->events = events;
	if (p->other)
		loop_del(p->loop, &p->other->watch);
}

static void dispatches(void **state)
{
	struct loop loop;
	int a[2], b[2];
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(fd_pair(a), 0);
	assert_int_equal(fd_pair(b), 0);
	struct peer one = {.watch.ready = on_ready, .loop = &loop},
	            two = {.watch.ready = on_ready, .loop = &loop};
	assert_int_equal(loop_add(&loop, &one.watch, a[0], EPOLLIN), 0);
	assert_int_equal(loop_add(&loop, &two.watch, b[0], EPOLLIN), 0);
	assert_int_equal(loop_step(&loop, 0), 0);
	assert_int_equal(one.calls + two.calls, 0);
	fd_send(a[1], "x", 1, -1);
	fd_send(b[1], "x", 1, -1);
	/* Both are ready; whichever comes first removes the other. */
	one.other = &two;
	two.other = &one;
	assert_int_equal(loop_step(&loop, 1000), 0);
	assert_int_equal(one.calls + two.calls, 1);
	struct peer *left = one.calls ? &one : &two;
	left->other = NULL;
	assert_int_equal(loop_mod(&loop, &left->watch, EPOLLIN | EPOLLOUT), 0);
	assert_int_equal(loop_mod(&loop, &left->watch, EPOLLIN | EPOLLOUT), 0);
	assert_int_equal(loop_step(&loop, 1000), 0);
	assert_int_equal(left->events, EPOLLIN | EPOLLOUT);
	loop_del(&loop, &one.watch);
	loop_del(&loop, &one.watch);
	loop_del(&loop, &two.watch);
	struct peer bad = {.watch.ready = on_ready};
	assert_int_equal(loop_add(&loop, &bad.watch, -1, EPOLLIN), -EBADF);
	assert_int_equal(bad.watch.fd, -1);
	for (int i = 0; i < 2; i++) {
		fd_close(&a[i]);
		fd_close(&b[i]);
	}
	loop_done(&loop);
}

struct alarm {
	struct timer timer;
	struct loop *loop;
	int cnt;
};

static void on_alarm(struct timer *timer, uint64_t now)
{
	struct alarm *a = list_entry(timer, struct alarm, timer);
	if (++a->cnt == 3)
		loop_stop(a->loop);
	else
		loop_after(a->loop, timer, 10);
}

static void timers(void **state)
{
	struct loop loop;
	assert_int_equal(loop_init(&loop), 0);
	struct alarm a = {.loop = &loop}, never = {.loop = &loop};
	timer_init(&a.timer, on_alarm);
	timer_init(&never.timer, on_alarm);
	loop_after(&loop, &a.timer, 10);
	loop_after(&loop, &never.timer, UINT64_MAX);
	uint64_t start = clock_ms();
	assert_int_equal(loop_run(&loop), 0);
	assert_true(clock_ms() - start >= 30);
	assert_int_equal(a.cnt, 3);
	assert_int_equal(never.cnt, 0);
	loop_cancel(&loop, &never.timer);
	assert_int_equal(wheel_next(&loop.wheel), WHEEL_NONE);
	loop_done(&loop);
}

static void signals(void **state)
{
	sigset_t set;
	int fd = -1;
	pid_t from = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	assert_int_equal(loop_signal_fd(&set, &fd), 0);
	assert_int_equal(loop_signal_next(fd, NULL), 0);
	kill(getpid(), SIGUSR1);
	assert_int_equal(loop_signal_next(fd, &from), SIGUSR1);
	assert_int_equal(from, getpid());
	assert_int_equal(loop_signal_next(fd, NULL), 0);
	fd_close(&fd);
	assert_int_equal(loop_signal_next(fd, NULL), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(dispatches), cmocka_unit_test(timers), cmocka_unit_test(signals)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
