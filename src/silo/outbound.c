/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One outbound connection as a small machine: workload -> route -> (dial |
 * hbone) -> copy -> line. Each step either goes on at once or parks on a
 * fetch, the dial or the hbone and is called again. A way that fails before a
 * byte has moved is tried again over another endpoint.
 */
#include "silo/outbound.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "conn/pump.h"
#include "silo/access.h"
#include "silo/hbone.h"
#include "silo/meta.h"
#include "silo/metrics.h"
#include "silo/recorder.h"
#include "silo/silo.h"

/* Words of a failure. */
#define TEXT_MAX 600
/* Further tries after the first one. More would only multiply the load on a service in trouble. */
#define RETRY_MAX 2
/* How soon the end of a try's share is looked at again while our own certificate is awaited, ms. */
#define PREPARE_CHECK_MS 1000

struct outbound {
	struct conn conn;
	struct list node;    /* in silo.outbounds */
	struct stream *down; /* the application's socket; the pump's once it runs */
	struct chain early;  /* what the application said before the pump runs (SOCKS5) */
	struct addr src;     /* the application's address */
	struct addr dst;     /* what it dialled */
	uint64_t start_ms;
	struct route_env env;     /* the same for every pass over the routing: random included */
	struct fetch_wait wait;   /* record or view */
	struct own_workload *own; /* our record as it was at the start */
	struct route route;
	bool is_routed;      /* an access-log line is owed */
	bool is_opened_told; /* and its "opened" was written */
	struct dial *dial;
	struct hbone *hbone;
	struct timer share; /* of the connect's time, for the present try */
	char traceparent[META_TRACEPARENT_MAX];
	char *peer_id;                 /* identity at the end of the tunnel; owned, NULL = not known */
	const struct workload *remote; /* who that is, in the words of a double tunnel's answer */
	bool is_remote_set;            /* remote counts, NULL or not */
	const char *avoid[RETRY_MAX];  /* uids of endpoints that failed; owned */
	unsigned retry_cnt;            /* further tries begun */
	char *failure;                 /* why the last try failed; NULL during the first */
	struct pump *pump;
	struct metrics_conn metrics;
	struct record_clock clock;
};

static void step_route(struct outbound *out);

/* --- ends ---------------------------------------------------------------- */

static void out_free(struct outbound *out)
{
	metrics_close(&out->metrics, NULL);
	io_timer_stop(out->conn.silo->io, &out->share);
	fetch_wait_cancel(&out->wait);
	dial_cancel(out->dial);
	pump_free(out->pump);
	hbone_free(out->hbone);
	stream_refuse(out->down, out->conn.silo->settings.reset_fidelity);
	chain_clear(&out->early);
	route_done(&out->route);
	own_workload_unref(out->own);
	mem_free(out->peer_id);
	for (size_t i = 0; i < out->env.avoid_cnt; i++)
		mem_free((char *)(uintptr_t)out->avoid[i]);
	mem_free(out->failure);
	silo_walk_del(out->conn.silo, &out->node);
	silo_conn_del(&out->conn);
	mem_free(out);
}

static const char *peer_of(const struct outbound *out)
{
	return out->peer_id ? out->peer_id : "";
}

/* Of its own length: there may be tens of thousands. Without memory the lines say less. */
static void set_peer(struct outbound *out, const char *identity)
{
	mem_free(out->peer_id);
	out->peer_id = mem_strdup(identity);
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
	        .dst_workload = out->is_remote_set ? out->remote : out->route.workload,
	        .dst_service = out->route.service ? out->route.service->hostname : NULL,
	        .service = out->route.service,
	};
	if (!is_tunnel(out))
		return;
	access->hbone_addr = out->route.authority;
	access->src_identity = out->own->spiffe;
	access->dst_identity = peer_of(out);
}

/* The way is known, and who is at its end: for a double tunnel only the inner answer says so. */
static void tell_opened(struct outbound *out)
{
	struct access access;
	if (out->is_opened_told)
		return;
	out->is_opened_told = true;
	describe(out, &access);
	access_opened(&out->conn.silo->log, &access);
	metrics_open(out->conn.silo, &out->metrics, &access, &out->pump);
}

/* How many tunnels the far side lies in. */
static unsigned tunnel_cnt(const struct outbound *out)
{
	return out->route.kind == ROUTE_DOUBLE_HBONE ? 2 : out->route.kind == ROUTE_HBONE;
}

/* Tells the flight recorder that it is over. */
static void record(struct outbound *out, const char *error)
{
	struct record_event event = {
	        .src = out->src,
	        .original_dst = out->dst,
	        .attempts = (uint8_t)(out->is_routed ? out->retry_cnt + 1 : 0),
	        .sent = out->pump ? pump_received(out->pump) : 0,
	        .received = out->pump ? pump_sent(out->pump) : 0,
	};
	if (out->is_routed) {
		event.actual_dst = out->route.tcp_dst;
		event.tunnels = (uint8_t)tunnel_cnt(out);
		event.peer = peer_of(out);
	}
	recorder_add(out->conn.silo, &out->clock, out->pump, error, &event);
}

/* Ends with an access-log line; NULL text = without error. */
static void finish(struct outbound *out, const char *error)
{
	struct silo *silo = out->conn.silo;
	struct access access;
	tell_opened(out);
	describe(out, &access);
	metrics_close(&out->metrics, error);
	record(out, error);
	access_complete(&silo->log, &access, out->pump ? pump_received(out->pump) : 0,
	        out->pump ? pump_sent(out->pump) : 0, io_now_ms(silo->io) - out->start_ms, error);
	out_free(out);
}

/* Refused before anything was opened. */
static void deny(struct outbound *out, const char *error)
{
	access_denied(&out->conn.silo->log, &out->src, &out->dst, false, error);
	record(out, error);
	out_free(out);
}

static void out_cut(struct conn *conn)
{
	struct outbound *out = list_entry(conn, struct outbound, conn);
	if (out->is_routed)
		finish(out, err_str(ERR_DRAINED));
	else
		deny(out, err_str(ERR_DRAINED));
}

static const struct conn_ops CONN_OPS = {.cut = out_cut};

/* --- another try --------------------------------------------------------- */

static bool may_retry(const struct outbound *out)
{
	const struct silo *silo = out->conn.silo;
	/* Without a workload nobody else could serve; what has taken a connect's whole time gets no second.
	 */
	return silo->settings.endpoint_retry && out->route.workload && out->retry_cnt < RETRY_MAX &&
	       silo->phase == SILO_SERVING && io_now_ms(silo->io) - out->start_ms < DIAL_TIMEOUT_MS;
}

/* Whether the route leads to an endpoint that has failed: there is no other. */
static bool is_avoided(const struct route_env *env, const struct route *route)
{
	for (size_t i = 0; i < env->avoid_cnt && route->workload; i++) {
		if (strcmp(env->avoid[i], route->workload->uid) == 0)
			return true;
	}
	return false;
}

/* Time that is left for getting connected, all tries together. */
static uint64_t left_ms(const struct outbound *out)
{
	uint64_t spent_ms = io_now_ms(out->conn.silo->io) - out->start_ms;
	return spent_ms < DIAL_TIMEOUT_MS ? DIAL_TIMEOUT_MS - spent_ms : 0;
}

/* The present way has failed, nothing has moved: another endpoint (or the same, see hbone.h), or the end. */
static void way_failed(struct outbound *out, enum hbone_fault fault, const char *text)
{
	char *failure = may_retry(out) && fault != HBONE_FINAL ? mem_strdup(text) : NULL;
	char *uid = failure && fault == HBONE_PEER ? mem_strdup(out->route.workload->uid) : NULL;
	if (!failure || (fault == HBONE_PEER && !uid)) {
		mem_free(failure);
		finish(out, text);
		return;
	}
	mem_free(out->failure);
	out->failure = failure;
	if (uid)
		out->avoid[out->env.avoid_cnt++] = uid;
	out->env.avoid = out->avoid;
	out->retry_cnt++;
	dial_cancel(out->dial);
	out->dial = NULL;
	hbone_free(out->hbone);
	out->hbone = NULL;
	step_route(out);
}

/* Whether the routing would name another endpoint if the present one had failed. */
static bool has_other(struct outbound *out)
{
	struct silo *silo = out->conn.silo;
	struct cache_source source;
	struct route route;
	struct route_env env = out->env;
	const char *avoid[RETRY_MAX + 1];
	for (size_t i = 0; i < env.avoid_cnt; i++)
		avoid[i] = env.avoid[i];
	avoid[env.avoid_cnt++] = out->route.workload->uid;
	env.avoid = avoid;
	cache_source_init(&source, &silo->cache);
	source.resolver = &silo->resolver;
	if (route_outbound(&env, &source.source, out->own->workload, &out->dst, &route, NULL) < 0)
		return false;
	bool is_other = route.workload && !is_avoided(&env, &route);
	route_done(&route);
	return is_other;
}

/*
 * An endpoint that swallows everything may not use up the whole time while
 * others are there: each try has what is left, divided by the tries left.
 */
static void start_share(struct outbound *out)
{
	if (out->route.service && out->route.workload && out->conn.silo->settings.endpoint_retry)
		io_timer_start(
		        out->conn.silo->io, &out->share, left_ms(out) / (RETRY_MAX + 1 - out->retry_cnt));
}

static bool is_connecting(const struct outbound *out)
{
	return out->dial || (out->hbone && hbone_stage(out->hbone) == HBONE_CONNECTS);
}

static void share_over(struct timer *timer, uint64_t now)
{
	struct outbound *out = list_entry(timer, struct outbound, share);
	char text[TEXT_MAX];
	(void)now;
	if (out->hbone && hbone_stage(out->hbone) == HBONE_PREPARES) {
		io_timer_start(out->conn.silo->io, &out->share, PREPARE_CHECK_MS);
		return;
	}
	if (!is_connecting(out))
		return;
	bool may_leave = may_retry(out) && has_other(out);
	if (may_leave || (out->retry_cnt > 0 && left_ms(out) == 0)) {
		snprintf(text, sizeof(text), "%s: deadline has elapsed",
		        out->hbone ? err_str(ERR_NETWORK_POLICY) : "io error");
		way_failed(out, may_leave ? HBONE_PEER : HBONE_FINAL, text);
	} else if (out->retry_cnt > 0) {
		/* The first try has the dial's own deadline. */
		io_timer_start(out->conn.silo->io, &out->share, left_ms(out));
	}
}

/* --- copying ------------------------------------------------------------- */

static void on_pump_done(void *ctx, int code, const char *text)
{
	struct outbound *out = ctx;
	finish(out, code ? text : NULL);
}

static const struct pump_events PUMP_EVENTS = {.on_done = on_pump_done};

/* Takes `up` over. */
static void start_copy(struct outbound *out, struct stream *up)
{
	io_timer_stop(out->conn.silo->io, &out->share);
	int r = pump_start(out->down, up, &out->early, &PUMP_EVENTS, out, &out->pump);
	if (r < 0) {
		stream_free(up);
		finish(out, err_str(r));
		return;
	}
	if (!out->conn.silo->settings.reset_fidelity)
		pump_soften(out->pump);
	out->down = NULL;
}

/* --- plain --------------------------------------------------------------- */

/* Our own want of something is no reason to bother another endpoint. */
static bool is_ours(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -ENOBUFS;
}

static void dial_failed(struct outbound *out, int code)
{
	char os[128];
	char text[TEXT_MAX];
	snprintf(text, sizeof(text), "io error: %s",
	        code == -ETIMEDOUT ? "deadline has elapsed" : err_io_text(code, os, sizeof(os)));
	way_failed(out, is_ours(code) ? HBONE_FINAL : HBONE_PEER, text);
}

static void on_dialled(void *ctx, int code, struct stream *stream)
{
	struct outbound *out = ctx;
	out->dial = NULL;
	record_lap(&out->clock, RECORD_TCP);
	if (code < 0)
		dial_failed(out, code);
	else
		start_copy(out, stream);
}

static const struct dial_events DIAL_EVENTS = {.on_done = on_dialled};

static void connect_plain(struct outbound *out)
{
	struct silo *silo = out->conn.silo;
	struct dial_opts opts = silo_dial_opts(silo, &out->route.tcp_dst);
	/* All tries together have the time of one connect. */
	if (out->retry_cnt)
		opts.timeout_ms = (uint32_t)left_ms(out);
	int r = dial_start(silo->io, &opts, &DIAL_EVENTS, out, &out->dial);
	if (r < 0)
		dial_failed(out, r);
}

/* --- tunnel -------------------------------------------------------------- */

static void on_hbone_open(void *ctx, struct stream *stream, const struct hbone_end *end)
{
	struct outbound *out = ctx;
	set_peer(out, end->identity);
	out->is_remote_set = out->route.kind == ROUTE_DOUBLE_HBONE;
	out->remote = end->workload;
	tell_opened(out);
	start_copy(out, stream);
}

static void on_hbone_failed(void *ctx, enum hbone_fault fault, const char *text)
{
	way_failed(ctx, fault, text);
}

static const struct hbone_events HBONE_EVENTS = {.on_open = on_hbone_open, .on_failed = on_hbone_failed};

/* Who should be at the end of the (outer) tunnel, for lines about a tunnel that never was. */
static void expect_peer(struct outbound *out)
{
	struct identity identity = identity_of(out->route.workload);
	char text[IDENTITY_STR_MAX];
	set_peer(out, identity_format(&identity, text, sizeof(text)) < 0 ? "" : text);
}

static void connect_hbone(struct outbound *out)
{
	const struct hbone_opts opts = {.route = &out->route,
	        .own = out->own,
	        .src = &out->src,
	        .traceparent = out->traceparent,
	        .clock = &out->clock};
	expect_peer(out);
	if (out->route.kind == ROUTE_HBONE)
		tell_opened(out);
	int r = hbone_start(out->conn.silo, &opts, &HBONE_EVENTS, out, &out->hbone);
	if (r < 0)
		finish(out, err_str(r));
}

/* --- route --------------------------------------------------------------- */

static void go(struct outbound *out)
{
	out->is_routed = true;
	record_lap(&out->clock, RECORD_LOOKUP);
	start_share(out);
	if (is_tunnel(out)) {
		connect_hbone(out);
		return;
	}
	tell_opened(out);
	connect_plain(out);
}

static void no_route(struct outbound *out, const char *text)
{
	/* A later try that leads nowhere ends with what the one before it failed with. */
	if (out->is_routed)
		finish(out, out->failure);
	else
		deny(out, text);
}

static void on_view(struct fetch_wait *wait, int code, void *value)
{
	struct outbound *out = list_entry(wait, struct outbound, wait);
	(void)value;
	if (code == 0)
		step_route(out);
	else
		no_route(out, code == -ETIMEDOUT ? err_str(ERR_TIMEOUT_FETCH) : err_str(code));
}

/* What was counted for the endpoint that failed is closed there; the next one has its own labels. */
static void leave_endpoint(struct outbound *out, const struct route *next)
{
	if (next->workload && strcmp(next->workload->uid, out->route.workload->uid) == 0)
		return;
	metrics_close(&out->metrics, out->failure);
	out->is_opened_told = false;
}

static void step_route(struct outbound *out)
{
	struct silo *silo = out->conn.silo;
	struct cache_source source;
	struct route route;
	struct err err = {0};
	cache_source_init(&source, &silo->cache);
	source.resolver = &silo->resolver;
	int r = route_outbound(&out->env, &source.source, out->own->workload, &out->dst, &route, &err);
	if (r == -EAGAIN && source.missing) {
		fetch_wait_start(source.missing, &out->wait, SILO_FETCH_MS, on_view);
		return;
	}
	if (r < 0) {
		no_route(out, err.text[0] ? err.text : err_str(r));
		return;
	}
	if (is_avoided(&out->env, &route)) {
		route_done(&route);
		no_route(out, NULL);
		return;
	}
	if (out->is_routed)
		leave_endpoint(out, &route);
	route_done(&out->route);
	out->route = route;
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
static int find_addresses(struct silo *silo, int fd, struct addr *ret_src, struct addr *ret_dst)
{
	int r = sock_peer_addr(fd, ret_src);
	if (r < 0)
		return r;
	r = sock_original_dst(fd, ret_dst);
	if (r == 0)
		return 0;
	log_msg(&silo->log, LOG_WARN, "ztunnel::socket", "failed to read SO_ORIGINAL_DST: %s", err_str(r));
	return sock_local_addr(fd, ret_dst);
}

void outbound_begin(struct silo *silo, struct stream *down, const struct addr *src, const struct addr *dst,
        struct chain *early)
{
	struct outbound *out = mem_zalloc(1, sizeof(*out));
	if (!out || !silo_conn_add(silo, &out->conn, &CONN_OPS)) {
		mem_free(out);
		stream_free(down);
		chain_clear(early);
		return;
	}
	list_init(&out->node);
	list_add_tail(&silo->outbounds, &out->node);
	meta_traceparent_make(out->traceparent);
	out->start_ms = io_now_ms(silo->io);
	timer_init(&out->share, share_over);
	record_start(&out->clock);
	out->down = down;
	out->src = *src;
	out->dst = *dst;
	chain_move(&out->early, early);
	out->env = silo_route_env(silo, &out->src.ip);
	if (ip_is_loopback(&out->dst.ip) && route_is_illegal_port(&out->env, out->dst.port)) {
		deny(out, err_str(ERR_SELF_CALL));
		return;
	}
	step_workload(out);
}

void outbound_accept(struct silo *silo, int fd)
{
	struct addr src;
	struct addr dst;
	struct stream *down;
	struct chain early = {0};
	int r = find_addresses(silo, fd, &src, &dst);
	if (r == 0)
		r = sock_new(silo->io, fd, &down);
	if (r < 0)
		fd_close(&fd);
	else
		outbound_begin(silo, down, &src, &dst, &early);
}

/* --- dump ---------------------------------------------------------------- */

static const char *protocol_name(enum route_kind kind)
{
	switch (kind) {
	case ROUTE_HBONE:
		return "HBONE";
	case ROUTE_DOUBLE_HBONE:
		return "DOUBLEHBONE";
	case ROUTE_PASSTHROUGH:
	case ROUTE_TCP:
		break;
	}
	return "TCP";
}

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
		if (!out->is_routed)
			continue;
		all[cnt] = (struct ipc_connection){
		        .src = out->src,
		        .original_dst = arena_strdup(arena, addr_format(&out->dst, text)),
		        .actual_dst = out->route.tcp_dst,
		        .protocol = protocol_name(out->route.kind),
		        .sent = out->pump ? pump_received(out->pump) : 0,
		        .received = out->pump ? pump_sent(out->pump) : 0,
		};
		cnt++;
	}
	return cnt;
}

bool outbound_view(const struct list *entry, struct outbound_view *ret_view)
{
	const struct outbound *out = list_entry(entry, struct outbound, node);
	if (!out->is_routed)
		return false;
	*ret_view = (struct outbound_view){
	        .src = out->src,
	        .original_dst = out->dst,
	        .actual_dst = out->route.tcp_dst,
	        .protocol = protocol_name(out->route.kind),
	        .peer_identity = peer_of(out),
	        .tunnels = tunnel_cnt(out),
	        .start_ms = out->start_ms,
	        .pump = out->pump,
	};
	return true;
}
