/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this silo has counted, by label set (reference dataplane.md 15): rows
 * in a bounded table that is made on first use. Bytes of live connections are
 * looked up when the broker asks, so that copying costs nothing. Knows no
 * text format.
 */
#ifndef CULVERT_SILO_METRICS_H
#define CULVERT_SILO_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/metric.h"

struct access;
struct arena;
struct ipc_answer_metrics;
struct link;
struct metrics;
struct pump;
struct silo;
struct workload;

/* Label sets of one silo; more are counted under the value "overflow". */
#define METRICS_SETS_MAX 2000
/* Rows with those that stand for the rest, which differ in the few values that the proxy chooses. */
#define METRICS_ROWS_MAX (METRICS_SETS_MAX + 256)
/* Bytes of all of them: a usual traffic row has 500. */
#define METRICS_BYTES_MAX (4u << 20)

/* A connection that is counted; embed it, zeroed. */
struct metrics_conn {
	struct list node;         /* in metrics.live */
	struct metrics *metrics;  /* NULL = not counted: not opened yet, or closed */
	struct metric_row *row;   /* its labels with the flag "-" */
	struct pump *const *pump; /* where the owner keeps its pump; *pump may be NULL */
	uint64_t received;        /* of its bytes, those that are in the row already */
	uint64_t sent;
	bool is_inbound;
};

/* Frees everything. */
void metrics_done(struct silo *silo);

/* A connection is opened: its labels are final. `pump` is looked at until metrics_close(). */
void metrics_open(
        struct silo *silo, struct metrics_conn *conn, const struct access *access, struct pump *const *pump);

/* It is over, with the access log's `error` or NULL; to be called while its pump lives. Harmless when it was
 * never opened, or is closed. */
void metrics_close(struct metrics_conn *conn, const char *error);

/* A TLS handshake of an HBONE link is done. */
void metrics_handshake(struct silo *silo, const struct link *link, bool is_server);

/* A workload's host name had to be resolved (dataplane 4.6). */
void metrics_on_demand_dns(struct silo *silo, const char *hostname);

/* A connection was refused or ended because of the CRL; or cannot be ended by a later one. */
void metrics_crl_rejected(struct silo *silo, bool is_inbound);
void metrics_crl_untracked(struct silo *silo, bool is_inbound);

/* A well-formed DNS request came; `type` is its query type in lower case, e.g. "aaaa". */
void metrics_dns_request(struct silo *silo, const char *type, bool is_tcp);

/* One was forwarded and ended after `us` microseconds; NXDOMAIN and NODATA are failures too (control 10.6).
 */
void metrics_dns_forwarded(struct silo *silo, const char *type, bool is_tcp, uint64_t us, bool is_failure);

/* Somebody has waited for the broker. */
void metrics_waited(struct silo *silo, uint64_t ms);

/*
 * Everything counted so far as the pod's rows on 15020 have it, its labels in front: into `table`, made with
 * metric_table_init() for METRICS_ROWS_MAX rows. 0 or -ENOMEM.
 */
int metrics_snapshot(struct silo *silo, struct metric_table *table);

/* Everything counted so far, as it goes to the broker, in `arena`; values and labels only live until
 * something else is counted. */
void metrics_collect(struct silo *silo, struct arena *arena, struct ipc_answer_metrics *ret_answer);

/* Answers the broker's ask `id`; 0: the last word before the silo ends. */
void metrics_answer(struct silo *silo, uint32_t id);

#endif
