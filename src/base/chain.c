/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pool and chains of data-path chunks. Large chunks are mapped, so that giving
 * them back returns the memory at once instead of leaving holes in the heap.
 */
#include "base/chain.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "culvert/limits.h"

/* Header rounded up so that the payload of a mapped chunk starts on a cache line. */
#define CHUNK_HEADER (64u - CHUNK_HEADROOM)

_Static_assert(sizeof(struct chunk) <= CHUNK_HEADER, "the payload would start late");

static const uint32_t class_size[CHUNK_CLASS_CNT] = {CHUNK_SMALL, CHUNK_LARGE, CHUNK_BULK};
static const unsigned class_idle[CHUNK_CLASS_CNT] = {
        LIMIT_CHUNK_IDLE_SMALL, LIMIT_CHUNK_IDLE_LARGE, LIMIT_CHUNK_IDLE_BULK};

static size_t class_bytes(unsigned class)
{
	return CHUNK_HEADER + CHUNK_HEADROOM + class_size[class];
}

static struct chunk *class_alloc(unsigned class)
{
	if (class == CHUNK_CLASS_SMALL)
		return mem_alloc(class_bytes(class));
	if (mem_should_fail && mem_should_fail(class_bytes(class)))
		return NULL;
	void *p = mmap(NULL, class_bytes(class), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void class_free(struct chunk *c)
{
	if (c->class == CHUNK_CLASS_SMALL)
		mem_free(c);
	else
		munmap(c, class_bytes(c->class));
}

void chunk_pool_init(struct chunk_pool *pool, size_t max)
{
	*pool = (struct chunk_pool){.max = max};
}

void chunk_pool_done(struct chunk_pool *pool)
{
	ASSERT(pool->used == 0);
	chunk_pool_trim(pool, 0);
}

void chunk_pool_trim(struct chunk_pool *pool, size_t keep)
{
	size_t idle = chunk_pool_idle(pool);
	/* Largest first: that frees most with the fewest calls. */
	for (unsigned class = CHUNK_CLASS_CNT; class -- > 0;) {
		while (idle > keep && pool->idle[class]) {
			struct chunk *c = pool->idle[class];
			pool->idle[class] = c->next;
			pool->idle_cnt[class]--;
			idle -= class_size[class];
			class_free(c);
		}
	}
}

size_t chunk_pool_idle(const struct chunk_pool *pool)
{
	size_t sum = 0;
	for (unsigned class = 0; class < CHUNK_CLASS_CNT; class ++)
		sum += (size_t)pool->idle_cnt[class] * class_size[class];
	return sum;
}

struct chunk *chunk_new(struct chunk_pool *pool, size_t want)
{
	unsigned class = want <= CHUNK_SMALL   ? CHUNK_CLASS_SMALL
	                 : want <= CHUNK_LARGE ? CHUNK_CLASS_LARGE
	                                       : CHUNK_CLASS_BULK;
	if (pool->used > pool->max || class_size[class] > pool->max - pool->used)
		return NULL;
	struct chunk *c = pool->idle[class];
	if (c) {
		pool->idle[class] = c->next;
		pool->idle_cnt[class]--;
	} else {
		c = class_alloc(class);
		if (!c)
			return NULL;
		c->pool = pool;
		c->data = (uint8_t *)c + CHUNK_HEADER;
		c->cap = CHUNK_HEADROOM + class_size[class];
		c->class = class;
	}
	c->next = NULL;
	c->off = CHUNK_HEADROOM;
	c->len = 0;
	pool->used += class_size[class];
	return c;
}

void chunk_free(struct chunk *chunk)
{
	if (!chunk)
		return;
	struct chunk_pool *pool = chunk->pool;
	unsigned class = chunk->class;
	pool->used -= class_size[class];
	if (pool->idle_cnt[class] >= class_idle[class]) {
		class_free(chunk);
		return;
	}
	chunk->next = pool->idle[class];
	pool->idle[class] = chunk;
	pool->idle_cnt[class]++;
}

/* Copies as much of len bytes as fits into the chunk; returns how much. */
static size_t fill(struct chunk *c, const uint8_t *p, size_t len)
{
	size_t n = chunk_room(c) < len ? chunk_room(c) : len;
	memcpy(chunk_end(c), p, n);
	c->len += (uint32_t)n;
	return n;
}

int chain_write(struct chain *ch, struct chunk_pool *pool, const void *p, size_t len)
{
	const uint8_t *from = p;
	const uint8_t *end = from + len;
	struct chain fresh = {0};
	size_t room = ch->tail ? chunk_room(ch->tail) : 0;
	struct chunk **link = &fresh.head;
	/* All memory first, so that a failure leaves the chain alone. */
	for (size_t left = len > room ? len - room : 0; left > 0;) {
		struct chunk *c = chunk_new(pool, left <= 2 * CHUNK_SMALL ? CHUNK_SMALL : CHUNK_LARGE);
		if (!c) {
			chain_clear(&fresh);
			return -ENOMEM;
		}
		*link = c;
		link = &c->next;
		left -= chunk_room(c) < left ? chunk_room(c) : left;
	}
	if (len && room) {
		size_t n = fill(ch->tail, from, len);
		ch->len += n;
		from += n;
	}
	for (struct chunk *c = fresh.head; c;) {
		struct chunk *next = c->next;
		from += fill(c, from, (size_t)(end - from));
		chain_append(ch, c);
		c = next;
	}
	return 0;
}

uint8_t *chain_reserve(
        struct chain *ch, struct chunk_pool *pool, size_t want, size_t *ret_room, struct chunk **ret_chunk)
{
	struct chunk *c = ch->tail;
	if (!c || chunk_room(c) < want)
		c = chunk_new(pool, want);
	if (!c || chunk_room(c) < want) {
		if (c)
			chunk_free(c);
		return NULL;
	}
	*ret_room = chunk_room(c);
	*ret_chunk = c;
	return chunk_end(c);
}

void chain_commit(struct chain *ch, struct chunk *chunk, size_t len)
{
	ASSERT(len <= chunk_room(chunk));
	chunk->len += (uint32_t)len;
	if (chunk == ch->tail)
		ch->len += len;
	else
		chain_append(ch, chunk);
}

void chain_consume(struct chain *ch, size_t len)
{
	ASSERT(len <= ch->len);
	ch->len -= len;
	while (len) {
		struct chunk *c = ch->head;
		if (len < c->len) {
			c->off += (uint32_t)len;
			c->len -= (uint32_t)len;
			return;
		}
		len -= c->len;
		ch->head = c->next;
		if (!ch->head)
			ch->tail = NULL;
		chunk_free(c);
	}
}

size_t chain_peek(
        const struct chain *ch, struct iovec *iov, size_t iov_max, size_t max_bytes, size_t *ret_bytes)
{
	size_t cnt = 0;
	size_t left = max_bytes;
	for (struct chunk *c = ch->head; c && cnt < iov_max && left; c = c->next) {
		size_t n = c->len < left ? c->len : left;
		iov[cnt++] = (struct iovec){.iov_base = chunk_bytes(c), .iov_len = n};
		left -= n;
	}
	if (ret_bytes)
		*ret_bytes = max_bytes - left;
	return cnt;
}

size_t chain_copy(const struct chain *ch, size_t off, void *dst, size_t len)
{
	uint8_t *to = dst;
	size_t done = 0;
	for (struct chunk *c = ch->head; c && done < len; c = c->next) {
		if (off >= c->len) {
			off -= c->len;
			continue;
		}
		size_t n = c->len - off < len - done ? c->len - off : len - done;
		memcpy(to + done, chunk_bytes(c) + off, n);
		done += n;
		off = 0;
	}
	return done;
}

/* A new chunk with len bytes from p. */
static struct chunk *copy_of(struct chunk_pool *pool, const uint8_t *p, size_t len)
{
	struct chunk *c = chunk_new(pool, len);
	if (!c)
		return NULL;
	memcpy(chunk_bytes(c), p, len);
	c->len = (uint32_t)len;
	return c;
}

int chain_split(struct chain *to, struct chain *from, size_t len)
{
	ASSERT(len <= from->len);
	size_t cut = len;
	struct chunk *last = from->head;
	for (; cut && cut >= last->len; last = last->next)
		cut -= last->len;
	/* The shorter side of the cut chunk is the one that is copied. */
	bool copy_rest = cut && last->len - cut < cut;
	struct chunk *fresh = NULL;
	if (cut) {
		fresh = copy_rest ? copy_of(last->pool, chunk_bytes(last) + cut, last->len - cut)
		                  : copy_of(last->pool, chunk_bytes(last), cut);
		if (!fresh)
			return -ENOMEM;
	}
	while (from->head != last)
		chain_append(to, chain_take(from));
	if (!cut)
		return 0;
	if (copy_rest) {
		struct chunk *c = chain_take(from);
		c->len = (uint32_t)cut;
		chain_append(to, c);
		chain_prepend(from, fresh);
	} else {
		chain_append(to, fresh);
		chain_consume(from, cut);
	}
	return 0;
}

void chain_clear(struct chain *ch)
{
	while (ch->head) {
		struct chunk *c = ch->head;
		ch->head = c->next;
		chunk_free(c);
	}
	ch->tail = NULL;
	ch->len = 0;
}
