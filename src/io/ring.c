/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Making and freeing the ring: flags, restrictions, and the words for an
 * operator when the kernel refuses. io_uring_setup(2), io_uring_register(2).
 */
#include "io/ring.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "io/internal.h"

/* How long memory that activity has left behind stays around, ms. */
#define TRIM_MS 1000

/* What operations the ring may do: ring operations bypass seccomp, so this is the filter. */
static const uint8_t permitted_ops[] = {IORING_OP_POLL_ADD, IORING_OP_ACCEPT, IORING_OP_CONNECT,
        IORING_OP_RECV, IORING_OP_SEND, IORING_OP_SENDMSG, IORING_OP_CLOSE, IORING_OP_ASYNC_CANCEL,
        IORING_OP_TIMEOUT, IORING_OP_TIMEOUT_REMOVE};

/* What the ring may be told after it is enabled. */
static const uint8_t permitted_registers[] = {
        IORING_REGISTER_PBUF_RING, IORING_UNREGISTER_PBUF_RING, IORING_UNREGISTER_RING_FDS};

#define PERMITTED_FLAGS (IOSQE_BUFFER_SELECT | IOSQE_CQE_SKIP_SUCCESS)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int io_start_error(int code, int sysctl_disabled, uint64_t memlock, struct err *err)
{
	switch (code) {
	case -EPERM:
		if (sysctl_disabled > 0)
			return err_set(err, code,
			        "io_uring is switched off on this machine: set the sysctl "
			        "kernel.io_uring_disabled to 0 (it is %d)",
			        sysctl_disabled);
		return err_set(err, code,
		        "io_uring is refused: let the container's seccomp profile allow "
		        "io_uring_setup, io_uring_enter and io_uring_register");
	case -ENOSYS:
		return err_set(err, code,
		        "io_uring is missing: either this kernel is built without it (CONFIG_IO_URING), or the "
		        "container's seccomp profile hides io_uring_setup, io_uring_enter and io_uring_register");
	case -ENOMEM:
		return err_set(err, code,
		        "no memory for the ring: the limit of locked memory (RLIMIT_MEMLOCK, "
		        "%" PRIu64
		        " KB for all processes of this user together) is used up: raise it, or grant CAP_IPC_LOCK",
		        memlock / 1024);
	case -EINVAL:
		return err_set(err, code, "this kernel's io_uring is too old: Linux 6.1 or newer is needed");
	default:
		return err_sys(err, code, "io_uring");
	}
}

static int start_error(int code, struct err *err)
{
	char line[16] = "";
	struct rlimit limit = {0};
	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	uint64_t disabled = 0;
	if (file_read_line("/proc/sys/kernel/io_uring_disabled", line, sizeof(line)) == 0)
		(void)num_parse(line, strlen(line), INT_MAX, &disabled);
	return io_start_error(code, (int)disabled, limit.rlim_cur, err);
}

static int setup(struct io *io, unsigned extra_flags)
{
	struct io_uring_params params = {
	        .flags = IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
	                 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | extra_flags,
	        .cq_entries = IO_CQ_CNT,
	};
	return io_uring_queue_init_params(IO_SQ_CNT, &io->ring, &params);
}

static int restrict_ring(struct io *io)
{
	struct io_uring_restriction list[COUNT(permitted_ops) + COUNT(permitted_registers) + 1] = {0};
	unsigned cnt = 0;
	for (size_t i = 0; i < COUNT(permitted_ops); i++)
		list[cnt++] = (struct io_uring_restriction){
		        .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = permitted_ops[i]};
	for (size_t i = 0; i < COUNT(permitted_registers); i++)
		list[cnt++] = (struct io_uring_restriction){
		        .opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = permitted_registers[i]};
	list[cnt++] = (struct io_uring_restriction){
	        .opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED, .sqe_flags = PERMITTED_FLAGS};
	return io_uring_register_restrictions(&io->ring, list, cnt);
}

/* Sets up, restricts and enables; leaves no ring behind on failure. */
static int ring_open(struct io *io, bool baseline61)
{
	int r = baseline61 ? -EINVAL : setup(io, IORING_SETUP_NO_SQARRAY);
	io->features.no_sqarray = r == 0;
	if (r == -EINVAL)
		r = setup(io, 0);
	if (r < 0)
		return r;
	io->features.registered_fd = io_uring_register_ring_fd(&io->ring) == 1;
	r = restrict_ring(io);
	if (r == 0)
		r = io_uring_enable_rings(&io->ring);
	io->features.restricted = r == 0;
	if (r < 0)
		io_uring_queue_exit(&io->ring);
	return r < 0 ? r : 0;
}

/* Activity has ended some time ago: what it needed goes back to the kernel. */
static void on_trim(struct timer *timer, uint64_t now)
{
	(void)now;
	struct io *io = list_entry(timer, struct io, trim);
	bool is_idle = true;
	io->is_busy = false;
	for (int i = 0; i < PBUF_GROUP_CNT; i++) {
		if (io->pbufs[i].armed == 0) {
			pbuf_stop(io, &io->pbufs[i]);
		} else {
			pbuf_rest(&io->pbufs[i]);
			is_idle = false;
		}
	}
	chunk_pool_trim(&io->pool, 0);
	if (!is_idle)
		return;
	if (io->on_idle)
		io->on_idle(io->idle_ctx);
	mem_trim();
}

void io_on_idle(struct io *io, void (*on_idle)(void *ctx), void *ctx)
{
	io->on_idle = on_idle;
	io->idle_ctx = ctx;
}

void io_touch(struct io *io)
{
	if (io->is_busy)
		return;
	io->is_busy = true;
	io_timer_start(io, &io->trim, TRIM_MS);
}

int io_new(const struct io_opts *opts, struct io **ret_io, struct err *err)
{
	struct io *io = mem_zalloc(1, sizeof(*io));
	struct reaped *reaped = mem_alloc(IO_CQ_CNT * sizeof(*reaped));
	if (!io || !reaped) {
		mem_free(io);
		mem_free(reaped);
		return err_set(err, -ENOMEM, "no memory for the ring");
	}
	io->reaped = reaped;
	io->reaped_cap = IO_CQ_CNT;
	int r = ring_open(io, opts->baseline61);
	if (r < 0) {
		start_error(r, err);
		goto out;
	}
	r = writable_open(io);
	if (r < 0) {
		io_uring_queue_exit(&io->ring);
		err_sys(err, r, "epoll_create1");
		goto out;
	}
	io->now_ms = clock_ms();
	io->alarm_ms = WHEEL_NONE;
	wheel_init(&io->wheel, io->now_ms);
	timer_init(&io->trim, on_trim);
	chunk_pool_init(&io->pool, opts->pool_max ? opts->pool_max : IO_POOL_MAX);
	for (int i = 0; i < IO_PHASE_CNT; i++)
		list_init(&io->phases[i]);
	list_init(&io->starved);
	pbuf_init(&io->pbufs[PBUF_SMALL], PBUF_SMALL, IO_SMALL_CNT, CHUNK_SMALL);
	pbuf_init(&io->pbufs[PBUF_BULK], PBUF_BULK, IO_BULK_CNT, IO_BULK_LEN);
	*ret_io = io;
	return 0;
out:
	mem_free(io->reaped);
	mem_free(io);
	return r;
}

void io_free(struct io *io)
{
	if (!io)
		return;
	/* The ring first: after it nothing of the kernel points into our memory. */
	io_uring_queue_exit(&io->ring);
	for (int i = 0; i < PBUF_GROUP_CNT; i++)
		pbuf_forget(&io->pbufs[i]);
	while (io->idle_gathers) {
		struct gather *g = io->idle_gathers;
		io->idle_gathers = g->next;
		mem_free(g);
	}
	mem_free(io->reaped);
	fd_close(&io->epoll_fd);
	chunk_pool_trim(&io->pool, 0);
	mem_free(io);
}

const struct io_features *io_features(const struct io *io)
{
	return &io->features;
}

struct chunk_pool *io_pool(struct io *io)
{
	return &io->pool;
}

uint64_t io_now_ms(const struct io *io)
{
	return io->now_ms;
}

size_t io_in_flight(const struct io *io)
{
	return io->in_flight;
}

void io_timer_start(struct io *io, struct timer *timer, uint64_t delay_ms)
{
	wheel_add(&io->wheel, timer, io->now_ms + delay_ms);
}

void io_timer_stop(struct io *io, struct timer *timer)
{
	wheel_del(&io->wheel, timer);
}
