/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program of scripts/cost: see cost.h. Without an argument it goes through
 * all figures, with --about it says how it was compiled.
 */
#include "cost.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"

/* Callgrind knows both functions by their names: they must stay functions. */
#define COST_MARK __attribute__((noinline, used))

COST_MARK void cost_count(void (*piece)(void *ctx), void *ctx)
{
	piece(ctx);
}

/* Where callgrind writes down what it has counted. */
COST_MARK void cost_dump(void);
void cost_dump(void)
{
	/* Not even a compiler that looks into it may leave the call out. */
	__asm__ volatile("");
}

void cost_figure_end(const char *name, unsigned times)
{
	cost_dump();
	printf("%s %u\n", name, times);
}

uint64_t cost_number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 16;
}

/*
 * All randomness comes from this call (linked with --wrap=getrandom): seeds
 * of hash tables, keys, nonces. Equal in every run, or tables would collide
 * differently and signatures differ in length.
 */
ssize_t __wrap_getrandom(void *dst, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *dst, size_t len, unsigned flags)
{
	static uint64_t state;
	uint8_t *bytes = dst;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)cost_number(&state);
	return (ssize_t)len;
}

/* Compiler, processor, and whether counting makes sense, for cost.py. */
static void say_about(void)
{
#if defined(__clang__)
	printf("clang %d\n", __clang_major__);
#else
	printf("gcc %d\n", __GNUC__);
#endif
#if defined(__x86_64__)
	printf("x86_64\n");
#elif defined(__aarch64__)
	printf("aarch64\n");
#else
	printf("other\n");
#endif
#if defined(COST_SANITIZED)
	printf("sanitized\n");
#elif defined(__OPTIMIZE__)
	printf("optimised\n");
#else
	printf("unoptimised\n");
#endif
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		if (argc > 2 || strcmp(argv[1], "--about") != 0) {
			fprintf(stderr, "usage: cost [--about]\n");
			return 2;
		}
		say_about();
		return 0;
	}
	cost_records();
	cost_handshakes();
	cost_requests();
	cost_mesh();
	cost_xds();
	return 0;
}
