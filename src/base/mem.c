/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Heap allocation with a hook for tests. The hook is a weak symbol that only
 * a test program defines, so programs carry no state for it.
 */
#include "base/mem.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of stack below mem_trim()'s frame that its own calls may use. */
#define STACK_LIVE 2048u
/* How far below that the stack is given back: deeper than our deepest calls, a TLS handshake's. */
#define STACK_DEPTH (128u * 1024)

static bool fails(size_t len)
{
	return mem_should_fail && mem_should_fail(len);
}

void *mem_alloc(size_t len)
{
	return fails(len) ? NULL : malloc(len ? len : 1);
}

void *mem_zalloc(size_t cnt, size_t size)
{
	size_t len;
	if (__builtin_mul_overflow(cnt, size, &len) || fails(len))
		return NULL;
	return calloc(1, len ? len : 1);
}

void *mem_realloc(void *p, size_t len)
{
	return fails(len) ? NULL : realloc(p, len ? len : 1);
}

char *mem_strndup(const char *s, size_t len)
{
	char *copy = len < SIZE_MAX ? mem_alloc(len + 1) : NULL;
	if (!copy)
		return NULL;
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

void mem_free(void *p)
{
	free(p);
}

void mem_wipe(void *p, size_t len)
{
	if (len)
		explicit_bzero(p, len);
}

void mem_forget(void *p, size_t len)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t from = ((uintptr_t)p + page - 1) & ~(page - 1);
	const uintptr_t to = ((uintptr_t)p + len) & ~(page - 1);
	if (from < to)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

void mem_trim(void)
{
	char *here = __builtin_frame_address(0);
	malloc_trim(0);
	/* Where the stack never reached, nothing is mapped: the kernel skips that. */
	mem_forget(here - STACK_LIVE - STACK_DEPTH, STACK_DEPTH);
}
