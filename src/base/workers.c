/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thousandths instead of floating point: the inputs are Kubernetes quantities and percentages. */
#include "base/workers.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"

/* Above any machine; keeps products far from overflow. */
#define CORES_MAX 1000000u

/* "2", "1.5" or, with suffix 'm', "500m", as thousandths rounded up. -EINVAL for anything else and for 0. */
static int parse_milli(const char *s, size_t len, uint64_t *ret_milli)
{
	const char *dot = memchr(s, '.', len);
	size_t whole_len = dot ? (size_t)(dot - s) : len;
	uint64_t whole, milli = 0;
	if (num_parse(s, whole_len, CORES_MAX, &whole) < 0 || (dot && whole_len + 1 == len))
		return -EINVAL;
	uint64_t unit = 100;
	for (size_t i = whole_len + 1; i < len; i++, unit /= 10) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		if (unit)
			milli += (uint64_t)(s[i] - '0') * unit;
		else if (s[i] != '0')
			milli++;
	}
	if (whole == 0 && milli == 0)
		return -EINVAL;
	*ret_milli = whole * 1000 + milli;
	return 0;
}

/* Cores of a quantity, rounded up; 0 when unset. */
static int quantity(const char *name, const char *s, uint64_t *ret_cores, struct err *err)
{
	uint64_t milli;
	*ret_cores = 0;
	if (!s)
		return 0;
	size_t len = strlen(s);
	bool is_milli = len > 0 && s[len - 1] == 'm';
	if (parse_milli(s, len - is_milli, &milli) < 0)
		return err_set(
		        err, -EINVAL, "invalid env var %s=%s (not a positive quantity of cores)", name, s);
	uint64_t per_core = is_milli ? 1000000 : 1000;
	*ret_cores = (milli + per_core - 1) / per_core;
	return 0;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* An explicit setting: a number, 0 = all cores, or a percentage of them. */
static int explicit_count(const char *s, uint64_t cores, uint64_t *ret_cnt, struct err *err)
{
	size_t len = strlen(s);
	uint64_t v;
	if (num_parse(s, len, CORES_MAX, &v) == 0) {
		*ret_cnt = v ? v : cores;
		return 0;
	}
	if (len < 2 || s[len - 1] != '%' || parse_milli(s, len - 1, &v) < 0 || v > 100000)
		return err_set(err, -EINVAL,
		        "invalid env var ZTUNNEL_WORKER_THREADS=%s (neither a number nor a percentage above 0 and up to 100)",
		        s);
	*ret_cnt = max_of(1, (cores * v + 99999) / 100000);
	return 0;
}

int workers_count(const struct worker_inputs *in, uint64_t *ret_cnt, struct err *err)
{
	uint64_t limit, request;
	int rc = quantity("ZTUNNEL_RESOURCE_CPU_LIMIT", in->limit, &limit, err);
	if (rc == 0)
		rc = quantity("ZTUNNEL_RESOURCE_CPU_REQUEST", in->request, &request, err);
	if (rc < 0)
		return rc;
	uint64_t cores = limit ? limit : in->cpu_limit ? in->cpu_limit : in->machine_cores;
	uint64_t cnt = limit ? max_of(limit, request) : max_of(max_of((cores + 3) / 4, request), 2);
	if (in->has_concurrency)
		cnt = in->concurrency ? in->concurrency : cores;
	if (in->threads) {
		rc = explicit_count(in->threads, cores, &cnt, err);
		if (rc < 0)
			return rc;
	}
	*ret_cnt = max_of(cnt, 1);
	return 0;
}
