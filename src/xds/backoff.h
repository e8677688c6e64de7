/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long to wait before the next attempt (reference control.md 4.9). Where
 * upstream would spin, a second delay grows from 10 ms to 15 s: attempts that
 * end at once cost nothing then. Pure: the clock is an argument.
 */
#ifndef CULVERT_XDS_BACKOFF_H
#define CULVERT_XDS_BACKOFF_H

#include <stdint.h>

#include "grpc/status.h"

/* The shortest and the longest delay, ms. */
#define XDS_BACKOFF_MIN_MS 10
#define XDS_BACKOFF_MAX_MS 15000
/* A stream that lived that long was a good one: the growing delay starts anew, ms. */
#define XDS_BACKOFF_GOOD_MS 5000

/* Where an attempt ended. */
enum xds_stage {
	XDS_AT_CONFIG,  /* before anything was tried: root file, names, memory */
	XDS_AT_CONNECT, /* no stream came about */
	XDS_AT_STREAM,  /* the stream had been open */
};

/* Why an attempt ended, as the metric's label has it. */
enum xds_reason {
	XDS_CONNECTION_ERROR,
	XDS_ERROR,
	XDS_RECONNECT,
	XDS_COMPLETE,
	XDS_REASON_CNT,
};

/* The label of a reason; static. */
const char *xds_reason_label(enum xds_reason reason);

/* The state between attempts. */
struct xds_backoff {
	uint64_t error_ms; /* upstream's b */
	uint64_t spin_ms;  /* next delay where upstream has none or a constant one */
};

/* The state before the first attempt. */
void xds_backoff_init(struct xds_backoff *backoff);

/* An attempt ended with that status after lived_ms as an open stream: *ret_delay_ms is how long to wait. */
enum xds_reason xds_backoff_next(struct xds_backoff *backoff, enum xds_stage stage,
        const struct grpc_status *status, uint64_t lived_ms, uint64_t *ret_delay_ms);

#endif
