/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers from the kernel (getrandom(2)). No generator state here. */
#ifndef CULVERT_BASE_RAND_H
#define CULVERT_BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

/* Fills len bytes. The kernel not giving any ends the process: there is no safe way on. */
void rand_bytes(void *dst, size_t len);

/* 64 random bits. */
uint64_t rand_u64(void);

/* Uniform in [0, bound); bound 0 gives 0. */
uint64_t rand_below(uint64_t bound);

/* value changed by up to +-percent (0..100) of itself, uniformly. */
uint64_t rand_jitter(uint64_t value, unsigned percent);

#endif
