/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes on the data path: a chain of chunks from a pool. Chunks move between
 * chains by pointer; each has headroom before its bytes, so that a frame or
 * record header is put in front without a copy. No per-byte work here but
 * chain_write and chain_copy.
 */
#ifndef CULVERT_BASE_CHAIN_H
#define CULVERT_BASE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/check.h"

/* Free bytes before the payload of a new chunk: an HTTP/2 frame header (9) or a TLS record header (5 + 8)
 * fits. */
#define CHUNK_HEADROOM 16u

/* Payload sizes of the three classes. */
#define CHUNK_SMALL 4096u
#define CHUNK_LARGE 65536u
#define CHUNK_BULK 524288u

enum chunk_class { CHUNK_CLASS_SMALL, CHUNK_CLASS_LARGE, CHUNK_CLASS_BULK, CHUNK_CLASS_CNT };

struct chunk_pool;

/* A piece of memory with valid bytes data[off .. off+len). Owned by one chain or one holder at a time. */
struct chunk {
	struct chunk *next;      /* in its chain or free list */
	struct chunk_pool *pool; /* where chunk_free puts it */
	uint8_t *data;           /* start of memory, headroom included */
	uint32_t off;            /* first valid byte; CHUNK_HEADROOM when new */
	uint32_t len;            /* valid bytes */
	uint32_t cap;            /* bytes at data, headroom included */
	uint32_t class;          /* enum chunk_class */
};

/* Chunks of one process, with free lists. */
struct chunk_pool {
	struct chunk *idle[CHUNK_CLASS_CNT]; /* free lists */
	unsigned idle_cnt[CHUNK_CLASS_CNT];  /* their lengths, <= LIMIT_CHUNK_IDLE_x */
	size_t used;                         /* payload bytes of chunks that are out */
	size_t max;                          /* ceiling of used; chunk_new fails above */
};

/* A queue of bytes; empty chunks are never in it. {0} is an empty chain. */
struct chain {
	struct chunk *head;
	struct chunk *tail;
	size_t len; /* bytes in all chunks */
};

/* An empty pool whose chunks may sum up to max payload bytes. */
void chunk_pool_init(struct chunk_pool *pool, size_t max);

/* Frees the idle chunks. All chunks must have come back. */
void chunk_pool_done(struct chunk_pool *pool);

/* Frees idle chunks until at most keep bytes of payload stay idle. */
void chunk_pool_trim(struct chunk_pool *pool, size_t keep);

/* Payload bytes held by idle chunks. */
size_t chunk_pool_idle(const struct chunk_pool *pool);

/*
 * An empty chunk of the smallest class with at least want payload bytes (a
 * want above CHUNK_BULK gets CHUNK_BULK). NULL at the ceiling or out of memory.
 */
struct chunk *chunk_new(struct chunk_pool *pool, size_t want);

/* Back to its pool; NULL is fine. */
void chunk_free(struct chunk *chunk);

/* First valid byte. */
static inline uint8_t *chunk_bytes(const struct chunk *c)
{
	return c->data + c->off;
}

/* Where the next byte goes. */
static inline uint8_t *chunk_end(const struct chunk *c)
{
	return c->data + c->off + c->len;
}

/* Free bytes after the valid ones. */
static inline size_t chunk_room(const struct chunk *c)
{
	return c->cap - c->off - c->len;
}

/* Makes n (<= off) bytes before the valid ones valid and returns where they start; not for a chunk in a chain
 * (its len would be wrong). */
static inline uint8_t *chunk_push_front(struct chunk *c, uint32_t n)
{
	ASSERT(n <= c->off);
	c->off -= n;
	c->len += n;
	return chunk_bytes(c);
}

/* Whether the chain has no bytes. */
static inline bool chain_empty(const struct chain *ch)
{
	return ch->head == NULL;
}

/* Appends a chunk, taking it over; an empty one is freed. */
static inline void chain_append(struct chain *ch, struct chunk *c)
{
	if (c->len == 0) {
		chunk_free(c);
		return;
	}
	c->next = NULL;
	if (ch->tail)
		ch->tail->next = c;
	else
		ch->head = c;
	ch->tail = c;
	ch->len += c->len;
}

/* Puts a chunk in front, taking it over; an empty one is freed. */
static inline void chain_prepend(struct chain *ch, struct chunk *c)
{
	if (c->len == 0) {
		chunk_free(c);
		return;
	}
	c->next = ch->head;
	ch->head = c;
	if (!ch->tail)
		ch->tail = c;
	ch->len += c->len;
}

/* Takes the first chunk off, which the caller then owns; NULL when empty. */
static inline struct chunk *chain_take(struct chain *ch)
{
	struct chunk *c = ch->head;
	if (!c)
		return NULL;
	ch->head = c->next;
	if (!ch->head)
		ch->tail = NULL;
	ch->len -= c->len;
	c->next = NULL;
	return c;
}

/* Moves everything from `from` to the end of `to`. */
static inline void chain_move(struct chain *to, struct chain *from)
{
	if (!from->head)
		return;
	if (to->tail)
		to->tail->next = from->head;
	else
		to->head = from->head;
	to->tail = from->tail;
	to->len += from->len;
	from->head = from->tail = NULL;
	from->len = 0;
}

/* Copies len bytes to the end: into the tail's room first, then into new chunks. All or nothing: -ENOMEM
 * leaves the chain as it was. */
int chain_write(struct chain *ch, struct chunk_pool *pool, const void *p, size_t len);

/*
 * Room for at least want (<= CHUNK_BULK) contiguous bytes at the end, in the
 * tail when it has that much. *ret_room says how many may be written; follow
 * with chain_commit before any other call on the chain or the pool. NULL when
 * out of memory.
 */
uint8_t *chain_reserve(
        struct chain *ch, struct chunk_pool *pool, size_t want, size_t *ret_room, struct chunk **ret_chunk);

/* Counts len bytes written after chain_reserve, which gave chunk; len 0 undoes the reservation. */
void chain_commit(struct chain *ch, struct chunk *chunk, size_t len);

/* Drops the first len (<= ch->len) bytes, freeing emptied chunks. */
void chain_consume(struct chain *ch, size_t len);

/*
 * Describes up to max_bytes bytes from the front in at most iov_max entries,
 * borrowed until the chain changes. Returns the entries used; *ret_bytes (may
 * be NULL) the bytes described.
 */
size_t chain_peek(
        const struct chain *ch, struct iovec *iov, size_t iov_max, size_t max_bytes, size_t *ret_bytes);

/* Copies up to len bytes from position off, without consuming. Returns the bytes copied. */
size_t chain_copy(const struct chain *ch, size_t off, void *dst, size_t len);

/* Moves exactly len (<= from->len) bytes from the front of `from` to the end of `to`; copies only where a
 * chunk is cut. -ENOMEM leaves both as they were. */
int chain_split(struct chain *to, struct chain *from, size_t len);

/* Frees all chunks; the chain is empty afterwards. */
void chain_clear(struct chain *ch);

#endif
