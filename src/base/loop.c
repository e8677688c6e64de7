/* SPDX-License-Identifier: GPL-2.0-or-later */
/* epoll loop with a timer wheel, for programs that need no throughput. */
#include "base/loop.h"

#include <errno.h>
#include <limits.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

int loop_init(struct loop *loop)
{
	*loop = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
	if (loop->epoll_fd < 0)
		return -errno;
	loop->now = clock_ms();
	wheel_init(&loop->wheel, loop->now);
	return 0;
}

void loop_done(struct loop *loop)
{
	fd_close(&loop->epoll_fd);
}

static int control(struct loop *loop, int op, struct watch *watch)
{
	struct epoll_event ev = {.events = watch->events, .data.ptr = watch};
	return epoll_ctl(loop->epoll_fd, op, watch->fd, &ev) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct watch *watch, int fd, uint32_t events)
{
	watch->fd = fd;
	watch->events = events;
	int rc = control(loop, EPOLL_CTL_ADD, watch);
	if (rc < 0)
		watch->fd = -1;
	return rc;
}

int loop_mod(struct loop *loop, struct watch *watch, uint32_t events)
{
	if (watch->events == events)
		return 0;
	uint32_t old = watch->events;
	watch->events = events;
	int rc = control(loop, EPOLL_CTL_MOD, watch);
	if (rc < 0)
		watch->events = old;
	return rc;
}

void loop_del(struct loop *loop, struct watch *watch)
{
	if (watch->fd < 0)
		return;
	(void)control(loop, EPOLL_CTL_DEL, watch);
	watch->fd = -1;
	for (int i = 0; i < loop->batch_cnt; i++)
		if (loop->batch[i].data.ptr == watch)
			loop->batch[i].data.ptr = NULL;
}

void loop_after(struct loop *loop, struct timer *timer, uint64_t delay_ms)
{
	uint64_t now = clock_ms();
	wheel_add(&loop->wheel, timer, delay_ms > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + delay_ms);
}

void loop_cancel(struct loop *loop, struct timer *timer)
{
	wheel_del(&loop->wheel, timer);
}

static int wait_ms(const struct loop *loop, int max_wait_ms)
{
	uint64_t next = wheel_next(&loop->wheel);
	if (next == WHEEL_NONE)
		return max_wait_ms;
	uint64_t now = clock_ms();
	uint64_t wait = next > now ? next - now : 0;
	if (max_wait_ms >= 0 && wait > (uint64_t)max_wait_ms)
		return max_wait_ms;
	return wait > INT_MAX ? INT_MAX : (int)wait;
}

int loop_step(struct loop *loop, int max_wait_ms)
{
	int n = epoll_wait(loop->epoll_fd, loop->batch, LOOP_BATCH, wait_ms(loop, max_wait_ms));
	if (n < 0 && errno != EINTR)
		return -errno;
	loop->batch_cnt = n > 0 ? n : 0;
	loop->now = clock_ms();
	for (int i = 0; i < loop->batch_cnt; i++) {
		struct watch *watch = loop->batch[i].data.ptr;
		if (watch)
			watch->ready(watch, loop->batch[i].events);
	}
	loop->batch_cnt = 0;
	wheel_run(&loop->wheel, loop->now);
	return 0;
}

int loop_run(struct loop *loop)
{
	loop->stopped = false;
	while (!loop->stopped) {
		int rc = loop_step(loop, -1);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

int loop_signal_fd(const sigset_t *signals, int *ret_fd)
{
	if (sigprocmask(SIG_BLOCK, signals, NULL) < 0)
		return -errno;
	int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int loop_signal_next(int fd, pid_t *ret_pid)
{
	struct signalfd_siginfo info;
	ssize_t n;
	do {
		n = read(fd, &info, sizeof(info));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if ((size_t)n != sizeof(info))
		return -EIO;
	if (ret_pid)
		*ret_pid = (pid_t)info.ssi_pid;
	return (int)info.ssi_signo;
}
