/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cells of istioctl's tables for one record each (reference
 * istiod-istioctl.md A.5). Pure: the time is an argument.
 */
#ifndef CULVERT_CTL_CELLS_H
#define CULVERT_CTL_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/dump.h"
#include "ctl/table.h"

/* What cells depend on beside their record. */
struct cells_env {
	const struct dump *dump;
	bool is_raw;           /* connections: addresses, not names */
	const char *direction; /* connections: "inbound", "outbound"; NULL = both */
	int64_t now_s;         /* seconds since 1970 */
};

/* Adds the rows of one record. */
typedef void cells_fn(const struct cells_env *env, const cJSON *record, struct table *table);

cells_fn cells_workload, cells_service, cells_policy, cells_certificate, cells_connections;

/* A decimal number of any sign as hexadecimal text without leading zeros, "<nil>" when it is none or has more
 * than 200 digits. */
void cells_hex(const char *decimal, struct buf *dst);

#endif
