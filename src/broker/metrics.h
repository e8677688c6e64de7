/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The metrics of the node on 15020 (reference control.md 11.3, 12): asks every
 * silo when somebody scrapes, sums up what has the same labels, adds what the
 * broker knows itself, and streams the text. A silo that does not answer in
 * time costs its own series only. What a silo that ended counted last is kept
 * until it was scraped once, and on while other silos count under the same
 * labels, so that no counter of theirs falls. A silo that crashes takes what it
 * had counted along.
 */
#ifndef CULVERT_BROKER_METRICS_H
#define CULVERT_BROKER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "broker/metrics_sum.h"
#include "culvert/records.h"
#include "pb/ipc.h"

struct broker;
struct http_request;
struct metrics;
struct web_conn;

/* Time for the silos to answer, ms. */
#define METRICS_GATHER_MS 1000
/* Label sets and bytes of one scrape: the sets of 110 busy workloads; more are left out and counted. */
#define METRICS_ROWS_MAX 32768
#define METRICS_BYTES_MAX (24u << 20)
/* The same for what ended silos have left. */
#define METRICS_ENDED_ROWS_MAX 8192
#define METRICS_ENDED_BYTES_MAX (6u << 20)
/* Scrapes in memory at a time: one that is gathered, others that slow clients still read. */
#define METRICS_SCRAPES_MAX 4

/* What the metrics know of a silo; embed it in the peer, zeroed. */
struct metrics_peer {
	uint32_t last_id;           /* of the asks */
	bool is_asked;              /* has an ask without an answer; a silo that hangs gets no second one */
	bool is_awaited;            /* the present scrape waits for it */
	bool has_ended;             /* its last word has come */
	uint64_t began_in;          /* number of the scrape in which its present answer began */
	struct metrics_quota quota; /* of its present answer: from the ask on, not from each first page */
	struct metrics_quota ended; /* of its last word, which comes once */
	uint64_t told_in;           /* number of the last scrape that has its whole answer */
};

/* Makes the counters; nobody listens yet. 0 or -ENOMEM. */
int metrics_new(struct broker *broker);

/* Listens on the port of the settings, 15020. 0, or a negative code with text. */
int metrics_start(struct broker *broker, struct err *err);

/* Serves one request for the metrics, on whichever server. */
void metrics_serve(struct broker *broker, struct web_conn *conn, const struct http_request *request);

/* Stops to listen, what is being read goes on; counting too. */
void metrics_drain(struct broker *broker);

/* Frees everything. */
void metrics_free(struct broker *broker);

/* A page came from the silo of workload `info`: an answer, or with id 0 a part of its last word. */
void metrics_on_answer(struct broker *broker, struct metrics_peer *peer, const struct workload_info *info,
        uint32_t id, const struct ipc_answer_metrics *answer);

/* A silo's channel is over: no answer comes any more. */
void metrics_peer_gone(struct broker *broker, struct metrics_peer *peer);

/* A workload's proxy came up, or went down (upstream's proxies_started and proxies_stopped). */
void metrics_proxy(struct broker *broker, bool is_up);

/* A response of the control plane of this type and sum of bytes (reference control.md 4.10). */
void metrics_xds_message(struct broker *broker, const char *url, uint64_t bytes);

/* An attempt with the control plane ended: ConnectionError, Error, Reconnect or Complete. */
void metrics_xds_end(struct broker *broker, const char *reason);

#endif
