/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One outbound connection as a small machine: workload -> route -> (dial |
 * certificate -> tunnel -> CONNECT) -> copy -> line. Each step either goes on
 * at once or parks on a fetch, the pool or the dial and is called again.
 */
#include "silo/outbound.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "conn/pump.h"
#include "silo/access.h"
#include "silo/meta.h"
#include "silo/silo.h"

/* Words of a failure. */
#define TEXT_MAX 600
/* Time for the answer to CONNECT, ms: the other side may need its own 10 s to reach the application. */
#define ANSWER_MS 20000

struct outbound {
	struct conn conn;
	struct list node;    /* in silo.outbounds */
	struct stream *down; /* the application's socket; the pump's once it runs */
	struct stream *up;   /* the way out; likewise */
	struct addr src;     /* the application's address */
	struct addr dst;     /* what it dialled */
	uint64_t start_ms;
	struct route_env env;     /* the same for every try: random included */
	struct fetch_wait wait;   /* record, view or certificate */
	struct own_workload *own; /* our record as it was at the start */
	struct route route;
	bool is_opened; /* an access-log line is owed */
	struct dial *dial;
	struct pool_wait pool_wait;
	struct timer answer_timer;
	char peer_id[IDENTITY_STR_MAX]; /* identity at the end of the tunnel */
	struct pump *pump;
};

static void step_route(struct outbound *out);
static void step_certificate(struct outbound *out);

/* --- ends ---------------------------------------------------------------- */

static void out_free(struct outbound *out)
{
	struct silo *silo = out->conn.silo;
	fetch_wait_cancel(&out->wait);
	io_timer_stop(silo->io, &out->answer_timer);
	pool_wait_cancel(&out->pool_wait);
	dial_cancel(out->dial);
	pump_free(out->pump);
	stream_free(out->up);
	stream_free(out->down);
	route_done(&out->route);
	own_workload_unref(out->own);
	list_del(&out->node);
	silo_conn_del(&out->conn);
	mem_free(out);
}

static bool is_tunnel(const struct outbound *out)
{
	return out->route.kind == ROUTE_HBONE || out->route.kind == ROUTE_DOUBLE_HBONE;
}

static void describe(const struct outbound *out, struct access *access)
{
	*access = (struct access){
	        .src = out->src,
	        .dst = out->route.tcp_dst,
	        .src_workload = out->own->workload,
	        .dst_workload = out->route.workload,
	        .dst_service = out->route.service ? out->route.service->hostname : NULL,
	};
	if (!is_tunnel(out))
		return;
	access->hbone_addr = out->route.authority;
	access->src_identity = out->own->spiffe;
	access->dst_identity = out->peer_id;
}

/* Ends with an access-log line; NULL text = without error. */
static void finish(struct outbound *out, const char *error)
{
	struct silo *silo = out->conn.silo;
	struct access access;
	describe(out, &access);
	access_complete(&silo->log, &access, out->pump ? pump_received(out->pump) : 0,
	        out->pump ? pump_sent(out->pump) : 0, io_now_ms(silo->io) - out->start_ms, error);
	out_free(out);
}

/* Refused before anything was opened. */
static void deny(struct outbound *out, const char *error)
{
	access_denied(&out->conn.silo->log, &out->src, &out->dst, false, error);
	out_free(out);
}

static void finish_io(struct outbound *out, int code)
{
	char os[128];
	char text[TEXT_MAX];
	if (code == -ETIMEDOUT)
		snprintf(text, sizeof(text), "io error: deadline has elapsed");
	else
		snprintf(text, sizeof(text), "io error: %s", err_io_text(code, os, sizeof(os)));
	finish(out, text);
}

static void out_cut(struct conn *conn)
{
	struct outbound *out = list_entry(conn, struct outbound, conn);
	if (out->is_opened)
		finish(out, err_str(ERR_DRAINED));
	else
		deny(out, err_str(ERR_DRAINED));
}

static const struct conn_ops CONN_OPS = {.cut = out_cut};

/* --- copying ------------------------------------------------------------- */

static void on_pump_done(void *ctx, int code, const char *text)
{
	struct outbound *out = ctx;
	finish(out, code ? text : NULL);
}

static const struct pump_events PUMP_EVENTS = {.on_done = on_pump_done};

static void start_copy(struct outbound *out)
{
	int r = pump_start(out->down, out->up, NULL, &PUMP_EVENTS, out, &out->pump);
	if (r < 0) {
		finish(out, err_str(r));
		return;
	}
	if (!out->conn.silo->settings.reset_fidelity)
		pump_soften(out->pump);
	out->down = NULL;
	out->up = NULL;
}

/* --- plain --------------------------------------------------------------- */

static void on_dialled(void *ctx, int code, struct stream *stream)
{
	struct outbound *out = ctx;
	out->dial = NULL;
	if (code < 0) {
		finish_io(out, code);
		return;
	}
	out->up = stream;
	start_copy(out);
}

static const struct dial_events DIAL_EVENTS = {.on_done = on_dialled};

static void connect_plain(struct outbound *out)
{
	struct dial_opts opts = silo_dial_opts(out->conn.silo, &out->route.tcp_dst);
	int r = dial_start(out->conn.silo->io, &opts, &DIAL_EVENTS, out, &out->dial);
	if (r < 0)
		finish_io(out, r);
}

/* --- tunnel -------------------------------------------------------------- */

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

static void on_response(void *ctx, struct stream *stream, int status, const struct h2_headers *headers)
{
	struct outbound *out = ctx;
	char text[TEXT_MAX];
	(void)stream;
	(void)headers;
	io_timer_stop(out->conn.silo->io, &out->answer_timer);
	if (status == 200) {
		start_copy(out);
		return;
	}
	snprintf(text, sizeof(text), "http status: %d%s", status, reason_phrase(status));
	finish(out, text);
}

static void on_up_error(void *ctx, int code, const char *words)
{
	struct outbound *out = ctx;
	char text[TEXT_MAX];
	(void)code;
	snprintf(text, sizeof(text), "%s: %s", err_str(ERR_H2), words);
	finish(out, text);
}

static void answer_expired(struct timer *timer, uint64_t now)
{
	(void)now;
	struct outbound *out = list_entry(timer, struct outbound, answer_timer);
	finish(out, "h2 failed: no answer to CONNECT: deadline has elapsed");
}

static const struct link_answer_events ANSWER_EVENTS = {.on_response = on_response};
static const struct stream_events UP_EVENTS = {.on_error = on_up_error};

static void on_link(struct pool_wait *wait, struct link *link)
{
	struct outbound *out = list_entry(wait, struct outbound, pool_wait);
	char forwarded[META_FORWARDED_MAX];
	char traceparent[META_TRACEPARENT_MAX];
	struct h2_header headers[3];
	size_t cnt = 0;
	snprintf(out->peer_id, sizeof(out->peer_id), "%s", link_peer_identity(link));
	meta_forwarded_format(&out->src, out->route.service ? out->route.service->hostname : NULL, forwarded);
	meta_traceparent_make(traceparent);
	if (out->own->baggage[0])
		headers[cnt++] = (struct h2_header){.name = "baggage", .value = out->own->baggage};
	headers[cnt++] = (struct h2_header){.name = "forwarded", .value = forwarded, .is_unique = true};
	headers[cnt++] = (struct h2_header){.name = "traceparent", .value = traceparent, .is_unique = true};
	int r = link_connect(link, out->route.authority, headers, cnt, &ANSWER_EVENTS, out, &out->up);
	if (r < 0) {
		on_up_error(out, r, err_str(r));
		return;
	}
	stream_set_events(out->up, &UP_EVENTS, out);
	io_timer_start(out->conn.silo->io, &out->answer_timer, ANSWER_MS);
}

static void on_link_failed(struct pool_wait *wait, int code, const char *text)
{
	(void)code;
	finish(list_entry(wait, struct outbound, pool_wait), text);
}

static void on_certificate(struct fetch_wait *wait, int code, void *value)
{
	struct outbound *out = list_entry(wait, struct outbound, wait);
	char text[TEXT_MAX];
	(void)value;
	if (code == 0) {
		step_certificate(out);
		return;
	}
	const char *why =
	        code == -ETIMEDOUT ? err_str(ERR_TIMEOUT_FETCH) : out->conn.silo->context.certificate.text;
	snprintf(text, sizeof(text), "%s: %s", err_str(ERR_IDENTITY), why);
	finish(out, text);
}

static void step_certificate(struct outbound *out)
{
	struct silo *silo = out->conn.silo;
	struct tls_identity *identity;
	char text[TEXT_MAX];
	int r = context_certificate(silo, &identity);
	if (r == -EAGAIN) {
		/* The CA has its own time limits; a connection waits no longer than for a connect. */
		fetch_wait_start(&silo->context.certificate, &out->wait, DIAL_TIMEOUT_MS, on_certificate);
		return;
	}
	if (r < 0) {
		snprintf(text, sizeof(text), "%s: %s", err_str(ERR_IDENTITY), silo->context.certificate.text);
		finish(out, text);
		return;
	}
	struct pool_target target = {.dst = out->route.tcp_dst,
	        .accept = &out->route.identities,
	        .uid = out->route.workload ? out->route.workload->uid : "",
	        .identity = identity};
	out->pool_wait.on_link = on_link;
	out->pool_wait.on_failed = on_link_failed;
	r = pool_get(&silo->pool, &target, &out->pool_wait);
	if (r < 0)
		finish_io(out, r);
}

/* --- route --------------------------------------------------------------- */

/* The way is known: the line of this connection has a destination from here on. */
static void go(struct outbound *out)
{
	struct access access;
	out->is_opened = true;
	if (is_tunnel(out) && out->route.workload) {
		struct identity identity = identity_of(out->route.workload);
		if (identity_format(&identity, out->peer_id, sizeof(out->peer_id)) < 0)
			out->peer_id[0] = '\0';
	}
	describe(out, &access);
	access_opened(&out->conn.silo->log, &access);
	switch (out->route.kind) {
	case ROUTE_PASSTHROUGH:
	case ROUTE_TCP:
		connect_plain(out);
		return;
	case ROUTE_HBONE:
		step_certificate(out);
		return;
	case ROUTE_DOUBLE_HBONE:
		finish(out, "tunnels through network gateways are not supported by this release");
		return;
	}
}

static void on_view(struct fetch_wait *wait, int code, void *value)
{
	struct outbound *out = list_entry(wait, struct outbound, wait);
	(void)value;
	if (code == 0)
		step_route(out);
	else
		deny(out, code == -ETIMEDOUT ? err_str(ERR_TIMEOUT_FETCH) : err_str(code));
}

static void step_route(struct outbound *out)
{
	struct silo *silo = out->conn.silo;
	struct cache_source source;
	struct err err = {0};
	cache_source_init(&source, &silo->cache);
	int r = route_outbound(&out->env, &source.source, out->own->workload, &out->dst, &out->route, &err);
	if (r == -EAGAIN && source.missing) {
		fetch_wait_start(source.missing, &out->wait, SILO_FETCH_MS, on_view);
		return;
	}
	if (r < 0)
		deny(out, err.text[0] ? err.text : err_str(r));
	else
		go(out);
}

static void on_workload(struct fetch_wait *wait, int code, void *value)
{
	struct outbound *out = list_entry(wait, struct outbound, wait);
	char text[TEXT_MAX];
	if (code == 0) {
		out->own = own_workload_ref(value);
		step_route(out);
		return;
	}
	const struct workload_info *info = &out->conn.silo->info;
	snprintf(text, sizeof(text), "%s: %s.%s (%s)", err_str(ERR_NO_LOCAL_WORKLOAD), info->service_account,
	        info->ns, info->name);
	deny(out, text);
}

static void step_workload(struct outbound *out)
{
	struct silo *silo = out->conn.silo;
	const struct own_workload *own = context_workload(silo);
	if (!own) {
		fetch_wait_start(&silo->context.workload, &out->wait, SILO_FETCH_MS, on_workload);
		return;
	}
	out->own = own_workload_ref(own);
	step_route(out);
}

/* Fills in where the connection came from and was going to. */
static int find_addresses(struct outbound *out, int fd)
{
	int r = sock_peer_addr(fd, &out->src);
	if (r < 0)
		return r;
	r = sock_original_dst(fd, &out->dst);
	if (r == 0)
		return 0;
	log_msg(&out->conn.silo->log, LOG_WARN, "ztunnel::socket", "failed to read SO_ORIGINAL_DST: %s",
	        err_str(r));
	return sock_local_addr(fd, &out->dst);
}

void outbound_accept(struct silo *silo, int fd)
{
	struct outbound *out = mem_zalloc(1, sizeof(*out));
	if (!out || !silo_conn_add(silo, &out->conn, &CONN_OPS)) {
		mem_free(out);
		fd_close(&fd);
		return;
	}
	list_init(&out->node);
	list_add_tail(&silo->outbounds, &out->node);
	timer_init(&out->answer_timer, answer_expired);
	out->start_ms = io_now_ms(silo->io);
	int r = find_addresses(out, fd);
	if (r == 0)
		r = sock_new(silo->io, fd, &out->down);
	if (r < 0) {
		fd_close(&fd);
		out_free(out);
		return;
	}
	out->env = silo_route_env(silo, &out->src.ip);
	if (ip_is_loopback(&out->dst.ip) && route_is_illegal_port(&out->env, out->dst.port)) {
		deny(out, err_str(ERR_SELF_CALL));
		return;
	}
	step_workload(out);
}

/* --- dump ---------------------------------------------------------------- */

size_t outbound_dump(struct silo *silo, struct arena *arena, struct ipc_connection **ret_all)
{
	size_t cnt = 0;
	size_t max = 0;
	list_for_each(it, &silo->outbounds) max++;
	struct ipc_connection *all = arena_zalloc(arena, max ? max : 1, sizeof(*all));
	*ret_all = all;
	if (!all)
		return 0;
	list_for_each(it, &silo->outbounds)
	{
		const struct outbound *out = list_entry(it, struct outbound, node);
		char text[ADDR_STR_MAX];
		if (!out->is_opened)
			continue;
		all[cnt] = (struct ipc_connection){
		        .src = out->src,
		        .original_dst = arena_strdup(arena, addr_format(&out->dst, text)),
		        .actual_dst = out->route.tcp_dst,
		        .protocol = is_tunnel(out) ? "HBONE" : "TCP",
		        .sent = out->pump ? pump_received(out->pump) : 0,
		        .received = out->pump ? pump_sent(out->pump) : 0,
		};
		cnt++;
	}
	return cnt;
}
