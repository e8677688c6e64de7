/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bump allocation in blocks. The first block is inside the same allocation as
 * the arena: a record that fits costs one malloc.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

/* First block of an arena whose size nobody knows; later blocks double up to ARENA_BLOCK_MAX. */
#define ARENA_FIRST 480
#define ARENA_BLOCK_MAX 65536

struct block {
	struct block *next;
	size_t size; /* bytes behind the header */
	uint8_t bytes[] __attribute__((aligned(8)));
};

struct arena {
	struct block *more; /* blocks after the first, newest first */
	uint8_t *at;        /* next free byte of the newest block */
	uint8_t *end;       /* its end */
	size_t used;
	size_t held;
	size_t max;
	uint32_t ref_cnt;
	uint32_t next_size; /* of the next block */
	uint8_t bytes[] __attribute__((aligned(8)));
};

struct arena *arena_new_sized(size_t first, size_t max)
{
	if (first > SIZE_MAX / 2)
		return NULL;
	struct arena *a = mem_alloc(sizeof(*a) + first);
	if (!a)
		return NULL;
	*a = (struct arena){
	        .at = a->bytes,
	        .end = a->bytes + first,
	        .held = sizeof(*a) + first,
	        .max = max,
	        .ref_cnt = 1,
	        .next_size = 1024,
	};
	return a;
}

struct arena *arena_new(size_t max)
{
	return arena_new_sized(max < ARENA_FIRST ? max : ARENA_FIRST, max);
}

struct arena *arena_ref(struct arena *arena)
{
	ASSERT(arena->ref_cnt > 0 && arena->ref_cnt < UINT32_MAX);
	arena->ref_cnt++;
	return arena;
}

void arena_unref(struct arena *arena)
{
	if (!arena)
		return;
	ASSERT(arena->ref_cnt > 0);
	if (--arena->ref_cnt > 0)
		return;
	struct block *b = arena->more;
	while (b) {
		struct block *next = b->next;
		mem_free(b);
		b = next;
	}
	mem_free(arena);
}

static int grow(struct arena *a, size_t len)
{
	size_t size = a->next_size > len ? a->next_size : len;
	struct block *b = mem_alloc(sizeof(*b) + size);
	if (!b)
		return -1;
	b->next = a->more;
	b->size = size;
	a->more = b;
	a->at = b->bytes;
	a->end = b->bytes + size;
	a->held += sizeof(*b) + size;
	if (a->next_size < ARENA_BLOCK_MAX)
		a->next_size *= 2;
	return 0;
}

static void *take(struct arena *a, size_t len, size_t align)
{
	if (len > SIZE_MAX / 2 || len > a->max - a->used)
		return NULL;
	size_t pad = -(uintptr_t)a->at & (align - 1);
	if (pad + len > (size_t)(a->end - a->at)) {
		if (grow(a, len) < 0)
			return NULL;
		pad = 0;
	}
	if (pad + len > a->max - a->used)
		return NULL;
	void *p = a->at + pad;
	a->at += pad + len;
	a->used += pad + len;
	return p;
}

void *arena_alloc(struct arena *arena, size_t len)
{
	return take(arena, len, 8);
}

void *arena_zalloc(struct arena *arena, size_t cnt, size_t size)
{
	size_t len;
	if (__builtin_mul_overflow(cnt, size, &len))
		return NULL;
	void *p = take(arena, len, 8);
	if (p && len)
		memset(p, 0, len);
	return p;
}

void *arena_memdup(struct arena *arena, const void *p, size_t len)
{
	void *copy = take(arena, len, 1);
	if (copy && len)
		memcpy(copy, p, len);
	return copy;
}

char *arena_strndup(struct arena *arena, const char *s, size_t len)
{
	char *copy = len < SIZE_MAX ? take(arena, len + 1, 1) : NULL;
	if (!copy)
		return NULL;
	if (len)
		memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *arena_strdup(struct arena *arena, const char *s)
{
	return arena_strndup(arena, s, strlen(s));
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *s = n < 0 ? NULL : take(arena, (size_t)n + 1, 1);
	if (!s)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

size_t arena_used(const struct arena *arena)
{
	return arena->used;
}

size_t arena_held(const struct arena *arena)
{
	return arena->held;
}
