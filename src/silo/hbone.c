/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * certificate -> pooled tunnel -> CONNECT -> [TLS and HTTP/2 inside ->
 * CONNECT] -> stream. Each step either goes on at once or parks on a fetch,
 * the pool, a link or an answer. See hbone.h for what it must not know.
 */
#include "silo/hbone.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "silo/meta.h"
#include "silo/metrics.h"
#include "silo/revocation.h"
#include "silo/silo.h"

/* Words of a failure. */
#define TEXT_MAX 600
/* Memory of what an inner answer's baggage says. */
#define BAGGAGE_ARENA_MAX 65536

struct hbone {
	struct silo *silo;
	struct hbone_opts opts;
	const struct hbone_events *events;
	void *ctx;
	struct io_task start;          /* the first step, outside of hbone_start() */
	struct fetch_wait wait;        /* for the certificate */
	struct tls_identity *identity; /* ours, the same in both tunnels */
	struct pool_wait pool_wait;
	struct stream *stream; /* CONNECT is sent on it; the inner link's once that is made, the owner's once
	                          open */
	struct timer answer_timer;
	struct link *inner; /* the second tunnel */
	struct hbone_end end;
	struct arena *arena; /* of end.workload */
	char *peer_id;       /* of the tunnel's end; owned, NULL = not known */
	bool is_inner_ready;
};

/* --- ends ---------------------------------------------------------------- */

static void fail(struct hbone *hbone, enum hbone_fault fault, const char *text)
{
	io_timer_stop(hbone->silo->io, &hbone->answer_timer);
	hbone->events->on_failed(hbone->ctx, fault, text);
}

/* Of its own length: there may be tens of thousands. Without memory the lines say less. */
static void set_peer(struct hbone *hbone, const char *identity)
{
	mem_free(hbone->peer_id);
	hbone->peer_id = identity[0] ? mem_strdup(identity) : NULL;
}

static void fail_identity(struct hbone *hbone, const char *why)
{
	char text[TEXT_MAX];
	snprintf(text, sizeof(text), "%s: %s", err_str(ERR_IDENTITY), why);
	fail(hbone, HBONE_FINAL, text);
}

static void fail_h2(struct hbone *hbone, const char *why)
{
	char text[TEXT_MAX];
	snprintf(text, sizeof(text), "%s: %s", err_str(ERR_H2), why);
	fail(hbone, hbone->inner ? HBONE_FINAL : HBONE_LOST, text);
}

static void open_up(struct hbone *hbone)
{
	struct stream *stream = hbone->stream;
	hbone->stream = NULL;
	hbone->end.identity = hbone->peer_id ? hbone->peer_id : "";
	hbone->events->on_open(hbone->ctx, stream, &hbone->end);
}

/* --- CONNECT ------------------------------------------------------------- */

/* Reason phrases that a peer of ours may answer with; upstream's log shows number and phrase. */
static const char *reason_phrase(int status)
{
	switch (status) {
	case 400:
		return " Bad Request";
	case 401:
		return " Unauthorized";
	case 403:
		return " Forbidden";
	case 404:
		return " Not Found";
	case 500:
		return " Internal Server Error";
	case 502:
		return " Bad Gateway";
	case 503:
		return " Service Unavailable";
	case 504:
		return " Gateway Timeout";
	default:
		return "";
	}
}

/*
 * Only the workload itself can say that it cannot serve while another could.
 * A waypoint or a gateway has made its own choice already, and asking it
 * again would multiply the load; any other status is a verdict.
 */
static enum hbone_fault fault_of_status(const struct hbone *hbone, int status)
{
	bool is_direct = hbone->opts.route->kind == ROUTE_HBONE && !hbone->opts.route->is_waypoint;
	return is_direct && status >= 502 && status <= 504 ? HBONE_PEER : HBONE_FINAL;
}

static void on_refused(struct hbone *hbone, int status)
{
	char text[TEXT_MAX];
	snprintf(text, sizeof(text), "%s: %d%s", err_str(ERR_HTTP_STATUS), status, reason_phrase(status));
	fail(hbone, fault_of_status(hbone, status), text);
}

static void start_inner(struct hbone *hbone);

static void on_response(void *ctx, struct stream *stream, int status, const struct h2_headers *headers)
{
	struct hbone *hbone = ctx;
	(void)stream;
	(void)headers;
	io_timer_stop(hbone->silo->io, &hbone->answer_timer);
	record_lap(hbone->opts.clock, RECORD_CONNECT);
	if (status != 200)
		on_refused(hbone, status);
	else if (hbone->opts.route->kind == ROUTE_DOUBLE_HBONE)
		start_inner(hbone);
	else
		open_up(hbone);
}

static void on_stream_error(void *ctx, int code, const char *words)
{
	(void)code;
	fail_h2(ctx, words);
}

static void answer_expired(struct timer *timer, uint64_t now)
{
	(void)now;
	struct hbone *hbone = list_entry(timer, struct hbone, answer_timer);
	fail(hbone, HBONE_FINAL, "h2 failed: no answer to CONNECT: deadline has elapsed");
}

static const struct stream_events STREAM_EVENTS = {.on_error = on_stream_error};

/* Sends CONNECT with the headers of dataplane.md 4.8, in its order; the answer's events are the caller's. */
static void send_connect(struct hbone *hbone, struct link *link, const struct link_answer_events *events)
{
	const struct route *route = hbone->opts.route;
	char forwarded[META_FORWARDED_MAX];
	struct h2_header headers[4];
	size_t cnt = 0;
	meta_forwarded_format(hbone->opts.src, route->service ? route->service->hostname : NULL, forwarded);
	if (hbone->opts.own->baggage[0])
		headers[cnt++] = (struct h2_header){.name = "baggage", .value = hbone->opts.own->baggage};
	headers[cnt++] = (struct h2_header){.name = "forwarded", .value = forwarded, .is_unique = true};
	headers[cnt++] = (struct h2_header){
	        .name = "traceparent", .value = hbone->opts.traceparent, .is_unique = true};
	if (link == hbone->inner)
		headers[cnt++] = (struct h2_header){
		        .name = "x-forwarded-network", .value = hbone->silo->settings.network};
	int r = link_connect(link, route->authority, headers, cnt, events, hbone, &hbone->stream);
	if (r < 0) {
		fail_h2(hbone, err_str(r));
		return;
	}
	stream_set_events(hbone->stream, &STREAM_EVENTS, hbone);
	io_timer_start(hbone->silo->io, &hbone->answer_timer, hbone->silo->settings.connect_answer_ms);
}

/* --- the second tunnel --------------------------------------------------- */

/* The gateway has chosen the destination: only its own words say who it is (dataplane.md 4.7). */
static void read_baggage(struct hbone *hbone, const struct h2_headers *headers)
{
	struct meta_baggage baggage = {0};
	struct h2_headers_it it = {0};
	hbone->arena = arena_new(BAGGAGE_ARENA_MAX);
	if (!hbone->arena)
		return;
	while (h2_headers_next(headers, "baggage", &it))
		meta_baggage_parse(&baggage, hbone->arena, it.value, it.value_len);
	hbone->end.workload = meta_baggage_workload(&baggage, hbone->arena);
}

static void on_inner_response(void *ctx, struct stream *stream, int status, const struct h2_headers *headers)
{
	struct hbone *hbone = ctx;
	(void)stream;
	io_timer_stop(hbone->silo->io, &hbone->answer_timer);
	record_lap(hbone->opts.clock, RECORD_CONNECT);
	if (status != 200) {
		on_refused(hbone, status);
		return;
	}
	read_baggage(hbone, headers);
	open_up(hbone);
}

static const struct link_answer_events INNER_ANSWER_EVENTS = {.on_response = on_inner_response};

static void on_inner_ready(void *ctx)
{
	struct hbone *hbone = ctx;
	metrics_handshake(hbone->silo, hbone->inner, false);
	record_lap(hbone->opts.clock, RECORD_TLS);
	set_peer(hbone, link_peer_identity(hbone->inner));
	hbone->is_inner_ready = true;
	send_connect(hbone, hbone->inner, &INNER_ANSWER_EVENTS);
}

static void on_inner_closed(void *ctx, int code, const char *text)
{
	struct hbone *hbone = ctx;
	revocation_note(hbone->silo, false, code);
	char words[TEXT_MAX];
	/* From on_inner_ready on there is a stream, which is told before. */
	if (hbone->is_inner_ready)
		return;
	if (code == ERR_H2 || code == ERR_H2_HANDSHAKE)
		snprintf(words, sizeof(words), "%s: %s", err_str(ERR_H2_HANDSHAKE), text);
	else
		snprintf(words, sizeof(words), "io error: %s", text);
	fail(hbone, HBONE_FINAL, words);
}

static const struct link_events INNER_EVENTS = {.on_ready = on_inner_ready, .on_closed = on_inner_closed};

/* End to end with the workload, over the gateway's stream. Never pooled: one destination would get all that
 * the gateway would spread. */
static void start_inner(struct hbone *hbone)
{
	struct silo *silo = hbone->silo;
	struct h2_config h2;
	struct err err = {0};
	char text[TEXT_MAX];
	silo_h2_config(silo, false, &h2);
	const struct link_opts opts = {
	        .env = silo->h2_env,
	        .identity = hbone->identity,
	        .accept = hbone->opts.route->inner.texts,
	        .accept_cnt = hbone->opts.route->inner.cnt,
	        .h2 = &h2,
	        .handshake_ms = (uint32_t)silo->settings.tls_handshake_ms,
	};
	set_peer(hbone, "");
	int r = link_new(silo->io, hbone->stream, &opts, &INNER_EVENTS, hbone, &hbone->inner, &err);
	if (r < 0) {
		snprintf(text, sizeof(text), "%s: %s", err_str(ERR_TLS_SETUP), err.text);
		fail(hbone, HBONE_FINAL, text);
		return;
	}
	hbone->stream = NULL;
}

/* --- the first tunnel ---------------------------------------------------- */

static const struct link_answer_events ANSWER_EVENTS = {.on_response = on_response};

static void on_link(struct pool_wait *wait, struct link *link)
{
	struct hbone *hbone = list_entry(wait, struct hbone, pool_wait);
	record_lap_at(hbone->opts.clock, RECORD_TCP, wait->dialled_us);
	record_lap_at(hbone->opts.clock, RECORD_TLS, wait->ready_us);
	set_peer(hbone, link_peer_identity(link));
	send_connect(hbone, link, &ANSWER_EVENTS);
}

static void on_link_failed(struct pool_wait *wait, int code, const char *text)
{
	/* Our own want of something is no reason to bother another endpoint. */
	bool is_ours = code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -ENOBUFS ||
	               code == ERR_TLS_SETUP;
	struct hbone *hbone = list_entry(wait, struct hbone, pool_wait);
	record_lap_at(hbone->opts.clock, RECORD_TCP, wait->dialled_us);
	if (!wait->ready_us)
		record_lap(hbone->opts.clock, wait->dialled_us ? RECORD_TLS : RECORD_TCP);
	fail(hbone, is_ours ? HBONE_FINAL : HBONE_PEER, text);
}

static void ask_pool(struct hbone *hbone)
{
	const struct route *route = hbone->opts.route;
	struct pool_target target = {
	        .dst = route->tcp_dst,
	        .accept = &route->identities,
	        .uid = route->workload ? route->workload->uid : "",
	        .identity = hbone->identity,
	        .is_local = silo_shares_node(hbone->silo, route->workload),
	};
	hbone->pool_wait.on_link = on_link;
	hbone->pool_wait.on_failed = on_link_failed;
	int r = pool_get(&hbone->silo->pool, &target, &hbone->pool_wait);
	if (r < 0)
		fail(hbone, HBONE_FINAL, err_str(r));
}

/* --- certificate --------------------------------------------------------- */

static void step_certificate(struct hbone *hbone);

static void on_certificate(struct fetch_wait *wait, int code, void *value)
{
	struct hbone *hbone = list_entry(wait, struct hbone, wait);
	(void)value;
	if (code == 0)
		step_certificate(hbone);
	else
		fail_identity(hbone, code == -ETIMEDOUT ? err_str(ERR_TIMEOUT_FETCH)
		                                        : hbone->silo->context.certificate.text);
}

static void step_certificate(struct hbone *hbone)
{
	struct silo *silo = hbone->silo;
	struct tls_identity *identity;
	int r = context_certificate(silo, &identity);
	if (r == -EAGAIN) {
		/* The CA has its own time limits; a connection waits no longer than for a connect. */
		fetch_wait_start(&silo->context.certificate, &hbone->wait, DIAL_TIMEOUT_MS, on_certificate);
	} else if (r < 0) {
		fail_identity(hbone, silo->context.certificate.text);
	} else {
		hbone->identity = tls_identity_ref(identity);
		record_lap(hbone->opts.clock, RECORD_CERTIFICATE);
		ask_pool(hbone);
	}
}

/* --- life ---------------------------------------------------------------- */

static void on_start(struct io_task *task)
{
	step_certificate(list_entry(task, struct hbone, start));
}

int hbone_start(struct silo *silo, const struct hbone_opts *opts, const struct hbone_events *events,
        void *ctx, struct hbone **ret_hbone)
{
	struct hbone *hbone = mem_zalloc(1, sizeof(*hbone));
	if (!hbone)
		return -ENOMEM;
	hbone->silo = silo;
	hbone->opts = *opts;
	hbone->events = events;
	hbone->ctx = ctx;
	io_task_init(&hbone->start, on_start);
	timer_init(&hbone->answer_timer, answer_expired);
	io_defer(silo->io, &hbone->start, IO_PHASE_WORK);
	*ret_hbone = hbone;
	return 0;
}

enum hbone_stage hbone_stage(const struct hbone *hbone)
{
	if (!hbone->identity)
		return HBONE_PREPARES;
	return hbone->pool_wait.tunnel ? HBONE_CONNECTS : HBONE_TALKS;
}

void hbone_free(struct hbone *hbone)
{
	if (!hbone)
		return;
	io_undefer(&hbone->start);
	io_timer_stop(hbone->silo->io, &hbone->answer_timer);
	fetch_wait_cancel(&hbone->wait);
	pool_wait_cancel(&hbone->pool_wait);
	stream_free(hbone->stream);
	if (hbone->inner) {
		link_goodbye(hbone->inner);
		link_free(hbone->inner);
	}
	tls_identity_unref(hbone->identity);
	mem_free(hbone->peer_id);
	arena_unref(hbone->arena);
	mem_free(hbone);
}
