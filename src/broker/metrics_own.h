/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the broker itself knows for a scrape: the node, its own process, and of each silo what /proc shows
 * even when it hangs. Knows neither scrapes nor silos' channels. */
#ifndef CULVERT_BROKER_METRICS_OWN_H
#define CULVERT_BROKER_METRICS_OWN_H

#include "base/metric.h"

struct broker;

/* Numbers that the broker counts as they happen. */
struct metrics_own {
	uint64_t started_cnt; /* proxies that came up */
	uint64_t stopped_cnt; /* proxies that went down */
	uint64_t dropped_cnt; /* label sets that found no room */
	uint64_t fd_max;      /* RLIMIT_NOFILE, soft, at start */
};

/* Adds the rows to `table`; missing_cnt = silos without an answer. */
void metrics_own_fill(struct broker *broker, const struct metrics_own *own, uint64_t missing_cnt,
        struct metric_table *table);

#endif
