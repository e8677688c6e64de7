/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loop: one submit-and-wait per turn, completions copied out first and
 * dispatched after, deferred work by phase. An idle process sleeps without a
 * tick: the only timeout is that of the next timer.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/internal.h"

void io_task_init(struct io_task *task, void (*run)(struct io_task *task))
{
	task->run = run;
	list_init(&task->node);
}

void io_defer(struct io *io, struct io_task *task, enum io_phase phase)
{
	if (list_empty(&task->node))
		list_add_tail(&io->phases[phase], &task->node);
}

void io_undefer(struct io_task *task)
{
	list_del(&task->node);
}

void io_wait_buffers(struct io *io, struct io_task *task)
{
	if (list_empty(&task->node))
		list_add_tail(&io->starved, &task->node);
}

/* The first task of the lowest phase that has any, off its queue; NULL when all are empty. */
static struct io_task *next_task(struct io *io)
{
	for (int i = 0; i < IO_PHASE_CNT; i++) {
		struct list *node = list_pop(&io->phases[i]);
		if (node)
			return list_entry(node, struct io_task, node);
	}
	return NULL;
}

static void run_tasks(struct io *io)
{
	struct io_task *task;
	while ((task = next_task(io)))
		task->run(task);
}

static void refill(struct io *io)
{
	bool has_any = true;
	for (int i = 0; i < PBUF_GROUP_CNT; i++) {
		struct pbuf *pbuf = &io->pbufs[i];
		pbuf_refill(io, pbuf);
		has_any = has_any && (!pbuf->ring || pbuf->filled > 0);
	}
	if (!has_any || list_empty(&io->starved))
		return;
	struct list ready = LIST_INIT(ready);
	list_move_all(&ready, &io->starved);
	struct list *node;
	while ((node = list_pop(&ready)))
		list_entry(node, struct io_task, node)->run(list_entry(node, struct io_task, node));
}

/* Room for one more completion in io->reaped. */
static bool reaped_room(struct io *io)
{
	if (io->reaped_cnt < io->reaped_cap)
		return true;
	size_t cap = io->reaped_cap * 2;
	struct reaped *grown = mem_realloc(io->reaped, cap * sizeof(*grown));
	if (!grown)
		return false;
	io->reaped = grown;
	io->reaped_cap = cap;
	return true;
}

void io_post(struct io *io, struct io_op *op, int res)
{
	/* An operation that never ends would keep its owner for ever: rather stop. */
	ASSERT(reaped_room(io));
	io->reaped[io->reaped_cnt++] = (struct reaped){.op = op, .res = res};
}

void io_reap(struct io *io)
{
	struct io_uring_cqe *cqe;
	unsigned head;
	unsigned cnt = 0;
	io_uring_for_each_cqe(&io->ring, head, cqe)
	{
		if (io_uring_cqe_get_data(cqe) == &io->alarm) {
			io->alarm_ms = WHEEL_NONE;
			cnt++;
			continue;
		}
		/* Without memory the rest stays in the ring for the next turn. */
		if (!reaped_room(io))
			break;
		io->reaped[io->reaped_cnt++] = (struct reaped){
		        .op = io_uring_cqe_get_data(cqe), .res = cqe->res, .flags = cqe->flags};
		cnt++;
	}
	io_uring_cq_advance(&io->ring, cnt);
}

/*
 * Sees to it that a wait ends when the next timer is due. One timeout stays armed over many waits: with each
 * wait a timeout of its own, the kernel would set and clear a timer for every message, which is dear on a
 * virtual machine. One that comes too early ends a wait for nothing, once.
 */
static void set_alarm(struct io *io, uint64_t due)
{
	if (due >= io->alarm_ms)
		return;
	uint64_t now = clock_ms();
	uint64_t wait_ms = due > now ? due - now : 0;
	struct io_uring_sqe *sqe = io_sqe(io);
	io->alarm.tv_sec = (long long)(wait_ms / 1000);
	io->alarm.tv_nsec = (long long)(wait_ms % 1000) * 1000000;
	if (io->alarm_ms == WHEEL_NONE) {
		io_uring_prep_timeout(sqe, &io->alarm, 0, 0);
		io_uring_sqe_set_data(sqe, &io->alarm);
	} else {
		/* Too late for one that has just fired: that has ended the wait, and the next is a new one.
		 */
		io_uring_prep_timeout_update(sqe, &io->alarm, (uintptr_t)&io->alarm, 0);
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
		io_uring_sqe_set_data(sqe, NULL);
	}
	io->alarm_ms = due;
}

/* Submits, and waits for a completion, a timer or nothing. */
static int submit(struct io *io, bool may_wait)
{
	bool must_hurry = !may_wait || io->reaped_cnt || io->is_expected || io_uring_cq_ready(&io->ring);
	int r;
	io->is_expected = false;
	if (!must_hurry)
		set_alarm(io, wheel_next(&io->wheel));
	/* A full queue makes the alarm take completions: they are not waited for. */
	if (must_hurry || io->reaped_cnt)
		r = io_uring_submit_and_get_events(&io->ring);
	else
		r = io_uring_submit_and_wait(&io->ring, 1);
	/* A signal, or a kernel short of resources until completions are taken: all cured by going
	 * on. */
	if (r >= 0 || r == -EINTR || r == -EAGAIN || r == -EBUSY)
		return 0;
	return r;
}

static void dispatch(struct io *io)
{
	/* Callbacks may reap more (io_sqe), which moves the array. */
	for (size_t i = 0; i < io->reaped_cnt; i++) {
		struct reaped reaped = io->reaped[i];
		io_dispatch(io, &reaped);
	}
	io->reaped_cnt = 0;
}

int io_turn(struct io *io, bool may_wait)
{
	run_tasks(io);
	refill(io);
	int r = submit(io, may_wait);
	if (r < 0)
		return r;
	io->now_ms = clock_ms();
	io_reap(io);
	if (io->reaped_cnt)
		io_touch(io);
	io_settle_quiets(io);
	dispatch(io);
	wheel_run(&io->wheel, io->now_ms);
	return 0;
}

int io_run(struct io *io)
{
	int r = 0;
	io->is_stopped = false;
	/* What the start has left behind is given back as well, even when nothing ever completes. */
	io_touch(io);
	while (r == 0 && !io->is_stopped)
		r = io_turn(io, true);
	/* What the last turn prepared (a farewell, a close) still goes out. */
	return r == 0 ? io_turn(io, false) : r;
}

void io_stop(struct io *io)
{
	io->is_stopped = true;
}
