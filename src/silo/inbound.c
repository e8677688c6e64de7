/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two machines: the tunnel (certificate -> TLS and HTTP/2) and, on it, the
 * request (record -> route -> source -> policies -> delivery). Both park on
 * fetches. A request outlives nothing of its tunnel: streams end first.
 */
#include "silo/inbound.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "conn/link.h"
#include "silo/delivery.h"
#include "silo/meta.h"
#include "silo/revocation.h"
#include "silo/silo.h"

/* Words of a failure. */
#define TEXT_MAX 600
/* A telemetry look-up never holds traffic up for longer, ms: without it the line just says less. */
#define SOURCE_WAIT_MS 200
/* Memory of one request's texts: authority, forwarded host, baggage. */
#define REQUEST_ARENA_MAX 65536
/* Room for a host name of a forwarded header. */
#define HOST_MAX 256

/* A connection on 15008. */
struct tunnel {
	struct conn conn;
	struct stream *socket; /* until the link takes it */
	struct link *link;
	struct addr src;        /* the client proxy's address */
	struct addr local;      /* what it connected to */
	struct fetch_wait wait; /* for our certificate */
	struct list requests;   /* struct request */
	char peer_id[IDENTITY_STR_MAX];
	struct record_clock clock; /* certificate and TLS; the first request shows them */
	bool is_over;              /* the link has closed; free with the last request */
	bool is_unpaced;           /* the client is on this node, and the socket was told */
};

/* One CONNECT. */
struct request {
	struct list node; /* in tunnel->requests */
	struct tunnel *tunnel;
	struct stream *stream; /* until the delivery takes it */
	struct arena *arena;   /* texts below; until the delivery takes it */
	const char *method;
	const char *authority;          /* "" = none was sent */
	const char *forwarded_host;     /* "" = none */
	const struct workload *baggage; /* what baggage says of the source, or NULL */
	bool from_gateway;              /* x-forwarded-network names another network */
	struct fetch_wait wait;
	struct own_workload *own;
	struct route_env env;
	struct view *src_view;
	struct delivery delivery;
	bool is_delivering;
	uint64_t start_ms;
	struct record_clock clock;
};

static void step_route(struct request *req);
static void step_policies(struct request *req);

/* --- requests ------------------------------------------------------------ */

static void tunnel_free_if_over(struct tunnel *tunnel);

static void request_free(struct request *req)
{
	struct tunnel *tunnel = req->tunnel;
	fetch_wait_cancel(&req->wait);
	if (req->is_delivering)
		delivery_done(&req->delivery);
	else
		route_inbound_done(&req->delivery.route);
	stream_free(req->stream);
	view_unref(req->src_view);
	own_workload_unref(req->own);
	arena_unref(req->arena);
	list_del(&req->node);
	mem_free(req);
	tunnel_free_if_over(tunnel);
}

/* Answers with a status and nothing else; the stream ends (dataplane 8.2). */
static void answer(struct stream *stream, int status)
{
	if (stream)
		link_respond(stream, status, NULL, 0, true);
}

/* Refused before anything was opened. */
static void deny(struct request *req, int status, const char *error)
{
	const struct tunnel *tunnel = req->tunnel;
	access_denied(&tunnel->conn.silo->log, &tunnel->src, &tunnel->local, true, error);
	recorder_add_denied(
	        tunnel->conn.silo, &req->clock, &tunnel->src, &tunnel->local, tunnel->peer_id, error);
	answer(req->stream, status);
	request_free(req);
}

static int on_connected(struct delivery *d)
{
	struct request *req = list_entry(d, struct request, delivery);
	struct silo *silo = d->silo;
	struct h2_header baggage = {.name = "baggage", .value = d->own->baggage};
	bool has_baggage = silo->settings.response_baggage && d->own->baggage[0];
	(void)req;
	return link_respond(d->down, 200, &baggage, has_baggage ? 1 : 0, false);
}

static void on_refused(struct delivery *d, int status)
{
	answer(d->down, status);
}

static void on_ended(struct delivery *d)
{
	request_free(list_entry(d, struct request, delivery));
}

static const struct delivery_events DELIVERY_EVENTS = {
        .connected = on_connected,
        .refused = on_refused,
        .ended = on_ended,
};

/* The client gave up before its answer. */
static void on_stream_error(void *ctx, int code, const char *text)
{
	struct request *req = ctx;
	(void)code;
	req->delivery.clock.by = RECORD_BY_CLIENT;
	if (req->is_delivering)
		delivery_cut(&req->delivery, text);
	else
		request_free(req);
}

static const struct stream_events STREAM_EVENTS = {.on_error = on_stream_error};

/* Once it is known that the client is on this node, its tunnel is treated accordingly. */
static void note_source(struct tunnel *tunnel, const struct workload *src)
{
	if (tunnel->is_unpaced || tunnel->is_over || !silo_shares_node(tunnel->conn.silo, src))
		return;
	tunnel->is_unpaced = true;
	sock_set_unpaced(sock_fd(link_transport(tunnel->link)));
}

/* Everything is known: hands over to the delivery. */
static void deliver(struct request *req)
{
	struct tunnel *tunnel = req->tunnel;
	struct silo *silo = tunnel->conn.silo;
	struct delivery *d = &req->delivery;
	struct route_inbound *route = &d->route;
	const struct workload *src = req->src_view ? req->src_view->workload : NULL;
	note_source(tunnel, src);
	d->silo = silo;
	d->events = &DELIVERY_EVENTS;
	d->down = req->stream;
	d->upstream = route->upstream;
	d->own = req->own;
	d->arena = req->arena;
	d->src_view = req->src_view;
	d->start_ms = req->start_ms;
	d->clock = req->clock;
	d->original_dst = req->forwarded_host[0] ? req->forwarded_host : NULL;
	if (silo_keeps_source(silo) && !route->is_loopback)
		d->source = tunnel->src.ip;
	d->track.conn = (struct rbac_conn){.source = tunnel->src.ip, .destination = route->rbac_dst};
	d->track.conn.has_identity =
	        identity_parse(tunnel->peer_id, strlen(tunnel->peer_id), &d->track.conn.identity) == 0;
	d->access = (struct access){
	        .src = tunnel->src,
	        .dst = tunnel->local,
	        .hbone_addr = req->authority,
	        .src_workload = src ? src : req->baggage,
	        .dst_workload = req->own->workload,
	        .src_identity = tunnel->peer_id,
	        .dst_identity = req->own->spiffe,
	        .dst_service = route->service ? route->service->hostname : NULL,
	        .service = route->service,
	        .is_src_derived = !src && req->baggage,
	        .is_inbound = true,
	};
	req->stream = NULL;
	req->own = NULL;
	req->arena = NULL;
	req->src_view = NULL;
	req->is_delivering = true;
	delivery_start(d);
}

static void on_policies(struct fetch_wait *wait, int code, void *value)
{
	struct request *req = list_entry(wait, struct request, wait);
	(void)value;
	if (code == 0)
		deliver(req);
	else
		deny(req, ROUTE_STATUS_UNAVAILABLE, err_str(ERR_TIMEOUT_FETCH));
}

static void step_policies(struct request *req)
{
	struct silo *silo = req->tunnel->conn.silo;
	if (context_policies(silo))
		deliver(req);
	else
		fetch_wait_start(&silo->context.policies, &req->wait, SILO_FETCH_MS, on_policies);
}

/* Who the client is, for telemetry only: unknown is fine. */
static void on_source(struct fetch_wait *wait, int code, void *value)
{
	struct request *req = list_entry(wait, struct request, wait);
	if (code == 0)
		req->src_view = view_ref(value);
	step_policies(req);
}

static void step_source(struct request *req)
{
	struct silo *silo = req->tunnel->conn.silo;
	struct fetch *missing;
	struct view_key key = view_key_address(silo->settings.network, &req->tunnel->src.ip);
	/* Behind a gateway the address is the gateway's: baggage knows better. */
	int r = req->from_gateway ? -ENOENT : cache_view(&silo->cache, &key, &req->src_view, &missing);
	if (r == -EAGAIN)
		fetch_wait_start(missing, &req->wait, SOURCE_WAIT_MS, on_source);
	else
		step_policies(req);
}

static void on_view(struct fetch_wait *wait, int code, void *value)
{
	struct request *req = list_entry(wait, struct request, wait);
	(void)value;
	if (code == 0)
		step_route(req);
	else
		deny(req, ROUTE_STATUS_UNAVAILABLE, err_str(code == -ETIMEDOUT ? ERR_TIMEOUT_FETCH : code));
}

static void step_route(struct request *req)
{
	struct silo *silo = req->tunnel->conn.silo;
	struct cache_source source;
	struct err err = {0};
	int status = ROUTE_STATUS_UNAVAILABLE;
	const struct route_request request = {
	        .local = req->tunnel->local,
	        .authority = req->authority,
	        .authority_len = strlen(req->authority),
	        .forwarded_host = req->forwarded_host,
	};
	cache_source_init(&source, &silo->cache);
	int r = route_inbound(
	        &req->env, &source.source, req->own->workload, &request, &req->delivery.route, &status, &err);
	if (r == -EAGAIN && source.missing)
		fetch_wait_start(source.missing, &req->wait, SILO_FETCH_MS, on_view);
	else if (r < 0)
		deny(req, status, err.text[0] ? err.text : err_str(r));
	else
		step_source(req);
}

static void on_workload(struct fetch_wait *wait, int code, void *value)
{
	struct request *req = list_entry(wait, struct request, wait);
	const struct workload_info *info = &req->tunnel->conn.silo->info;
	char text[TEXT_MAX];
	if (code == 0) {
		req->own = own_workload_ref(value);
		step_route(req);
		return;
	}
	snprintf(text, sizeof(text), "%s: %s.%s (%s)", err_str(ERR_NO_LOCAL_WORKLOAD), info->service_account,
	        info->ns, info->name);
	deny(req, ROUTE_STATUS_UNAVAILABLE, text);
}

static void step_workload(struct request *req)
{
	struct silo *silo = req->tunnel->conn.silo;
	const struct own_workload *own = context_workload(silo);
	if (!own) {
		fetch_wait_start(&silo->context.workload, &req->wait, SILO_FETCH_MS, on_workload);
		return;
	}
	req->own = own_workload_ref(own);
	step_route(req);
}

/* Method and authority, before anything of the mesh is asked (checks 1 and 2). */
static void step_form(struct request *req)
{
	char text[TEXT_MAX];
	struct route_authority authority;
	if (strcmp(req->method, "CONNECT") != 0) {
		snprintf(text, sizeof(text), "%s, got %s", err_str(ERR_NOT_CONNECT), req->method);
		deny(req, ROUTE_STATUS_BAD, text);
		return;
	}
	if (route_authority_parse(req->authority, strlen(req->authority), &authority) < 0) {
		snprintf(text, sizeof(text), "%s: %s", err_str(ERR_BAD_AUTHORITY), req->authority);
		deny(req, ROUTE_STATUS_BAD, text);
		return;
	}
	step_workload(req);
}

/* Copies what later steps need of the headers. */
static int read_headers(struct request *req, const struct h2_headers *headers)
{
	struct silo *silo = req->tunnel->conn.silo;
	const char *authority = h2_headers_get(headers, ":authority");
	const char *method = h2_headers_get(headers, ":method");
	const char *network = h2_headers_get(headers, "x-forwarded-network");
	const char *forwarded = h2_headers_get(headers, "forwarded");
	char host[HOST_MAX] = "";
	req->method = arena_strdup(req->arena, method ? method : "");
	req->authority = arena_strdup(req->arena, authority ? authority : "");
	if (forwarded)
		meta_forwarded_host(forwarded, strlen(forwarded), host, sizeof(host));
	req->forwarded_host = arena_strdup(req->arena, host);
	req->from_gateway = network && strcasecmp(network, silo->settings.network) != 0;
	if (silo->settings.response_baggage) {
		struct meta_baggage baggage = {0};
		struct h2_headers_it it = {0};
		while (h2_headers_next(headers, "baggage", &it))
			meta_baggage_parse(&baggage, req->arena, it.value, it.value_len);
		req->baggage = meta_baggage_workload(&baggage, req->arena);
	}
	return req->method && req->authority && req->forwarded_host ? 0 : -ENOMEM;
}

static void on_request(void *ctx, struct stream *stream, const struct h2_headers *headers)
{
	struct tunnel *tunnel = ctx;
	struct silo *silo = tunnel->conn.silo;
	struct request *req = mem_zalloc(1, sizeof(*req));
	if (!req) {
		answer(stream, ROUTE_STATUS_UNAVAILABLE);
		stream_free(stream);
		return;
	}
	req->tunnel = tunnel;
	req->stream = stream;
	req->start_ms = io_now_ms(silo->io);
	record_start(&req->clock);
	record_borrow(&req->clock, &tunnel->clock);
	tunnel->clock.present = 0;
	req->env = silo_route_env(silo, &tunnel->src.ip);
	req->arena = arena_new(REQUEST_ARENA_MAX);
	list_init(&req->node);
	list_add_tail(&tunnel->requests, &req->node);
	stream_set_events(stream, &STREAM_EVENTS, req);
	if (!req->arena || read_headers(req, headers) < 0) {
		answer(stream, ROUTE_STATUS_UNAVAILABLE);
		request_free(req);
		return;
	}
	step_form(req);
}

/* --- tunnels ------------------------------------------------------------- */

static void tunnel_free(struct tunnel *tunnel)
{
	fetch_wait_cancel(&tunnel->wait);
	link_free(tunnel->link);
	stream_free(tunnel->socket);
	silo_conn_del(&tunnel->conn);
	mem_free(tunnel);
}

static void tunnel_free_if_over(struct tunnel *tunnel)
{
	if (tunnel->is_over && list_empty(&tunnel->requests))
		tunnel_free(tunnel);
}

/* Ends every request; each tells its own line. */
static void cut_requests(struct tunnel *tunnel, const char *error)
{
	tunnel->is_over = false;
	while (!list_empty(&tunnel->requests)) {
		struct request *req = list_entry(tunnel->requests.next, struct request, node);
		if (req->is_delivering)
			delivery_cut(&req->delivery, error);
		else
			request_free(req);
	}
}

/* It never came to a request. */
static void deny_tunnel(const struct tunnel *tunnel, const char *error)
{
	access_denied(&tunnel->conn.silo->log, &tunnel->src, &tunnel->local, true, error);
	recorder_add_denied(tunnel->conn.silo, &tunnel->clock, &tunnel->src, &tunnel->local, NULL, error);
}

static void on_link_ready(void *ctx)
{
	struct tunnel *tunnel = ctx;
	snprintf(tunnel->peer_id, sizeof(tunnel->peer_id), "%s", link_peer_identity(tunnel->link));
	metrics_handshake(tunnel->conn.silo, tunnel->link, true);
	record_lap(&tunnel->clock, RECORD_TLS);
}

static void on_link_closed(void *ctx, int code, const char *text)
{
	struct tunnel *tunnel = ctx;
	char words[TEXT_MAX];
	revocation_note(tunnel->conn.silo, true, code);
	/* Before the peer was known it is a failed handshake; afterwards its streams tell their own story. */
	if (!tunnel->peer_id[0] && code != 0) {
		snprintf(words, sizeof(words), "%s: %s", err_str(ERR_TLS_HANDSHAKE), text);
		record_lap(&tunnel->clock, RECORD_TLS);
		deny_tunnel(tunnel, words);
	}
	tunnel->is_over = true;
	tunnel_free_if_over(tunnel);
}

static const struct link_events LINK_EVENTS = {
        .on_ready = on_link_ready,
        .on_request = on_request,
        .on_closed = on_link_closed,
};

static void start_link(struct tunnel *tunnel, struct tls_identity *identity)
{
	struct silo *silo = tunnel->conn.silo;
	struct h2_config h2;
	struct err err = {0};
	record_lap(&tunnel->clock, RECORD_CERTIFICATE);
	silo_h2_config(silo, true, &h2);
	const struct link_opts opts = {.env = silo->h2_env,
	        .identity = identity,
	        .is_server = true,
	        .h2 = &h2,
	        .handshake_ms = (uint32_t)silo->settings.tls_handshake_ms};
	int r = link_new(silo->io, tunnel->socket, &opts, &LINK_EVENTS, tunnel, &tunnel->link, &err);
	if (r < 0) {
		deny_tunnel(tunnel, err.text);
		tunnel_free(tunnel);
		return;
	}
	tunnel->socket = NULL;
}

static void refuse_unsigned(struct tunnel *tunnel, const char *why)
{
	char text[TEXT_MAX];
	snprintf(text, sizeof(text), "%s: %s", err_str(ERR_SIGNING), why);
	deny_tunnel(tunnel, text);
	tunnel_free(tunnel);
}

static void on_certificate(struct fetch_wait *wait, int code, void *value)
{
	struct tunnel *tunnel = list_entry(wait, struct tunnel, wait);
	if (code == 0)
		start_link(tunnel, value);
	else
		refuse_unsigned(tunnel, code == -ETIMEDOUT ? err_str(ERR_TIMEOUT_FETCH)
		                                           : tunnel->conn.silo->context.certificate.text);
}

static void step_certificate(struct tunnel *tunnel)
{
	struct silo *silo = tunnel->conn.silo;
	struct tls_identity *identity;
	int r = context_certificate(silo, &identity);
	if (r == -EAGAIN)
		fetch_wait_start(
		        &silo->context.certificate, &tunnel->wait, LINK_HANDSHAKE_MS, on_certificate);
	else if (r < 0)
		refuse_unsigned(tunnel, silo->context.certificate.text);
	else
		start_link(tunnel, identity);
}

static void tunnel_cut(struct conn *conn)
{
	struct tunnel *tunnel = list_entry(conn, struct tunnel, conn);
	cut_requests(tunnel, err_str(ERR_DRAINED));
	if (tunnel->link)
		link_goodbye(tunnel->link);
	tunnel_free(tunnel);
}

static void tunnel_drain(struct conn *conn)
{
	struct tunnel *tunnel = list_entry(conn, struct tunnel, conn);
	if (tunnel->link)
		link_drain(tunnel->link);
}

static const struct conn_ops CONN_OPS = {.cut = tunnel_cut, .drain = tunnel_drain};

void inbound_accept(struct silo *silo, int fd)
{
	struct tunnel *tunnel = mem_zalloc(1, sizeof(*tunnel));
	if (!tunnel || !silo_conn_add(silo, &tunnel->conn, &CONN_OPS)) {
		mem_free(tunnel);
		fd_close(&fd);
		return;
	}
	list_init(&tunnel->requests);
	record_start(&tunnel->clock);
	if (sock_peer_addr(fd, &tunnel->src) < 0 || sock_local_addr(fd, &tunnel->local) < 0 ||
	        sock_new(silo->io, fd, &tunnel->socket) < 0) {
		fd_close(&fd);
		tunnel_free(tunnel);
		return;
	}
	step_certificate(tunnel);
}
