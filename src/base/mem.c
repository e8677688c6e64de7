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

void mem_trim(void)
{
	malloc_trim(0);
}
