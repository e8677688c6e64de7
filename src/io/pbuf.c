/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Provided-buffer rings (io_uring_register_buf_ring(3)): the kernel picks a
 * buffer only when bytes have arrived. Each buffer is the payload of a chunk,
 * which is handed on as it is and replaced by another, so nothing is copied.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/internal.h"

/* Pause after a refusal, ms: most likely no locked memory is left, and asking costs a system call. */
#define RETRY_MS 1000

void pbuf_init(struct pbuf *pbuf, enum pbuf_group group, unsigned cnt, size_t payload)
{
	ASSERT(cnt <= IO_SMALL_CNT);
	*pbuf = (struct pbuf){.group = group, .cnt = cnt, .payload = payload};
}

int pbuf_start(struct io *io, struct pbuf *pbuf)
{
	if (pbuf->ring)
		return 0;
	if (io->now_ms < pbuf->retry_ms)
		return -ENOMEM;
	int ret = 0;
	pbuf->ring = io_uring_setup_buf_ring(&io->ring, pbuf->cnt, (int)pbuf->group, 0, &ret);
	if (!pbuf->ring) {
		pbuf->retry_ms = io->now_ms + RETRY_MS;
		return ret < 0 ? ret : -ENOMEM;
	}
	pbuf_refill(io, pbuf);
	return 0;
}

void pbuf_refill(struct io *io, struct pbuf *pbuf)
{
	if (!pbuf->ring || pbuf->filled == pbuf->cnt)
		return;
	int added = 0;
	for (unsigned i = 0; i < pbuf->cnt; i++) {
		if (pbuf->slots[i])
			continue;
		struct chunk *c = chunk_new(&io->pool, pbuf->payload);
		if (!c)
			break;
		pbuf->slots[i] = c;
		io_uring_buf_ring_add(pbuf->ring, chunk_bytes(c), (unsigned)pbuf->payload, (unsigned short)i,
		        io_uring_buf_ring_mask(pbuf->cnt), added++);
	}
	io_uring_buf_ring_advance(pbuf->ring, added);
	pbuf->filled += (unsigned)added;
}

struct chunk *pbuf_take(struct pbuf *pbuf, uint32_t flags, int len)
{
	if (!(flags & IORING_CQE_F_BUFFER))
		return NULL;
	unsigned id = flags >> IORING_CQE_BUFFER_SHIFT;
	ASSERT(id < pbuf->cnt && pbuf->slots[id]);
	struct chunk *c = pbuf->slots[id];
	pbuf->slots[id] = NULL;
	pbuf->filled--;
	if (len <= 0) {
		chunk_free(c);
		return NULL;
	}
	ASSERT((size_t)len <= chunk_room(c));
	c->len = (uint32_t)len;
	return c;
}

void pbuf_stop(struct io *io, struct pbuf *pbuf)
{
	if (!pbuf->ring)
		return;
	ASSERT(pbuf->armed == 0);
	if (io_uring_free_buf_ring(&io->ring, pbuf->ring, pbuf->cnt, (int)pbuf->group) < 0)
		return;
	pbuf_forget(pbuf);
}

void pbuf_rest(struct pbuf *pbuf)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	if (pbuf->payload < 16 * page)
		return;
	for (unsigned i = 0; i < pbuf->cnt; i++) {
		struct chunk *c = pbuf->slots[i];
		if (!c)
			continue;
		/* Only whole pages behind the header: nothing in them is ours before the kernel writes. */
		uintptr_t from = ((uintptr_t)chunk_bytes(c) + page - 1) & ~(page - 1);
		uintptr_t to = (uintptr_t)(c->data + c->cap) & ~(page - 1);
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
}

void pbuf_forget(struct pbuf *pbuf)
{
	pbuf->ring = NULL;
	for (unsigned i = 0; i < pbuf->cnt; i++) {
		chunk_free(pbuf->slots[i]);
		pbuf->slots[i] = NULL;
	}
	pbuf->filled = 0;
}
