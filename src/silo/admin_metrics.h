/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `/metrics` of the pod's admin socket: what this silo has counted, as its share of the node's 15020. */
#ifndef CULVERT_SILO_ADMIN_METRICS_H
#define CULVERT_SILO_ADMIN_METRICS_H

struct silo;
struct web_conn;

/* Answers one request, in the OpenMetrics format 1.0. */
void admin_metrics_serve(struct silo *silo, struct web_conn *conn);

#endif
