/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Heap allocation that tests can make fail, plus wiping and giving back.
 * A test program that defines mem_should_fail() decides for each allocation
 * whether it fails; programs don't define it.
 */
#ifndef CULVERT_BASE_MEM_H
#define CULVERT_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* Defined by tests only: true makes the allocation of len bytes fail. */
bool mem_should_fail(size_t len) __attribute__((weak));

/* len bytes, uninitialised; NULL when out of memory. Caller frees with mem_free. */
void *mem_alloc(size_t len);

/* cnt * size zeroed bytes; NULL when out of memory or on overflow. */
void *mem_zalloc(size_t cnt, size_t size);

/* Resizes p (may be NULL); on NULL the old block stays valid and owned by the caller. */
void *mem_realloc(void *p, size_t len);

/* Copy of len bytes with a terminating zero after them; NULL when out of memory. */
char *mem_strndup(const char *s, size_t len);

/* Copy of a string; NULL when out of memory. */
char *mem_strdup(const char *s);

/* Frees p, NULL is fine. */
void mem_free(void *p);

/* Overwrites len bytes with zeros in a way that the compiler keeps (keys). */
void mem_wipe(void *p, size_t len);

/*
 * Gives back to the kernel what is not in use: freed heap, and the stack below
 * the caller. For idle moments: costs a heap walk.
 */
void mem_trim(void);

/* Gives the whole pages within a buffer back; its content is lost and reads as zero. */
void mem_forget(void *p, size_t len);

#endif
