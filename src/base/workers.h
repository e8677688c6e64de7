/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Upstream's worker-thread arithmetic (reference control.md 3.6). We have no threads: checked and shown only.
 * For param.c and its tests. */
#ifndef CULVERT_BASE_WORKERS_H
#define CULVERT_BASE_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What goes in; NULL or 0 = unset. */
struct worker_inputs {
	const char *threads;    /* ZTUNNEL_WORKER_THREADS */
	uint64_t cpu_limit;     /* ZTUNNEL_CPU_LIMIT */
	const char *limit;      /* ZTUNNEL_RESOURCE_CPU_LIMIT */
	const char *request;    /* ZTUNNEL_RESOURCE_CPU_REQUEST */
	uint64_t machine_cores; /* > 0 */
	bool has_concurrency;   /* ProxyConfig concurrency is there */
	uint64_t concurrency;   /* ProxyConfig concurrency, 0 = all cores */
};

/* The number of threads upstream would start, at least 1. -EINVAL with text naming the bad variable. */
int workers_count(const struct worker_inputs *in, uint64_t *ret_cnt, struct err *err);

#endif
