/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths of the pod's admin socket; see admin.h. Reads what others own, changes log levels only. */
#include "silo/admin.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "conn/link.h"
#include "conn/sock.h"
#include "conn/web.h"
#include "silo/access.h"
#include "silo/admin_events.h"
#include "silo/delivery.h"
#include "silo/outbound.h"
#include "silo/silo.h"

/* Bytes of one answer. */
#define BODY_MAX (8u << 20)

#define GET_ONLY (1u << HTTP_GET)

/* --- answers ------------------------------------------------------------- */

static void reply_json(struct web_conn *conn, struct buf *body)
{
	buf_add_u8(body, '\n');
	if (body->err)
		web_reply_text(conn, 500, "text/plain", "the answer is too large\n");
	else
		web_reply(conn, 200, "application/json", body->data, body->len);
	buf_done(body);
}

static void begin_json(struct json *json, struct buf *body)
{
	buf_init(body, BODY_MAX);
	json_init(json, body, true);
}

/* --- connections --------------------------------------------------------- */

/* What the kernel says of a TCP connection (tcp(7), TCP_INFO). */
static void put_tcp(struct json *json, int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return;
	json_key(json, "tcp");
	json_obj(json);
	json_kv_u64(json, "congestionWindow", info.tcpi_snd_cwnd);
	json_kv_u64(json, "lost", info.tcpi_lost);
	json_kv_u64(json, "retransmits", info.tcpi_total_retrans);
	json_kv_u64(json, "rttMicroseconds", info.tcpi_rtt);
	json_kv_u64(json, "rttVarianceMicroseconds", info.tcpi_rttvar);
	json_kv_u64(json, "state", info.tcpi_state);
	json_kv_u64(json, "unacked", info.tcpi_unacked);
	json_obj_end(json);
}

static void put_tls(struct json *json, const struct link *link)
{
	if (!link_tls_version(link)[0])
		return;
	json_key(json, "tls");
	json_obj(json);
	json_kv_str(json, "cipher", link_tls_cipher(link));
	json_kv_str(json, "group", link_tls_group(link));
	json_kv_str(json, "peerIdentity", link_peer_identity(link));
	json_kv_str(json, "version", link_tls_version(link));
	json_obj_end(json);
}

/* One side of a connection, that lies in so many tunnels; what is inside of the outermost is its stream's. */
static void put_leg(struct json *json, const char *key, const struct stream *stream, unsigned tunnels)
{
	struct link *link = NULL;
	for (; stream && tunnels > 0; tunnels--) {
		struct link *outer = link_of(stream);
		/* The inner handshake is with the peer that counts. */
		link = link ? link : outer;
		stream = outer ? link_transport(outer) : NULL;
	}
	if (!stream)
		return;
	json_key(json, key);
	json_obj(json);
	put_tcp(json, sock_fd(stream));
	if (link)
		put_tls(json, link);
	json_obj_end(json);
}

/* The list being written. */
struct listing {
	struct silo *silo;
	struct json json;
	size_t cnt; /* rows so far */
};

static void put_addr(struct json *json, const char *key, const struct addr *addr)
{
	char text[ADDR_STR_MAX];
	json_kv_str(json, key, addr_format(addr, text));
}

static void put_age(struct listing *list, uint64_t start_ms)
{
	uint64_t now = clock_ms();
	json_kv_u64(&list->json, "ageMilliseconds", now > start_ms ? now - start_ms : 0);
}

static bool put_outbound(void *ctx, const struct outbound_view *view)
{
	struct listing *list = ctx;
	struct json *json = &list->json;
	if (list->cnt++ >= ADMIN_CONNECTIONS_MAX)
		return true;
	json_obj(json);
	put_addr(json, "actualDst", &view->actual_dst);
	put_age(list, view->start_ms);
	json_kv_str(json, "direction", "outbound");
	if (view->pump) {
		put_leg(json, "down", pump_down(view->pump), 0);
		put_leg(json, "up", pump_up(view->pump), view->tunnels);
	}
	put_addr(json, "originalDst", &view->original_dst);
	json_kv_str(json, "peerIdentity", view->peer_identity[0] ? view->peer_identity : NULL);
	json_kv_str(json, "protocol", view->protocol);
	json_kv_u64(json, "received", view->pump ? pump_sent(view->pump) : 0);
	json_kv_u64(json, "sent", view->pump ? pump_received(view->pump) : 0);
	put_addr(json, "src", &view->src);
	json_obj_end(json);
	return true;
}

/* The policy that lets it in now; null when none is needed. */
static void put_policy(struct json *json, struct silo *silo, const struct delivery *d)
{
	const struct policy_set *set = context_policies(silo);
	struct rbac_result result = {0};
	if (set)
		result = rbac_check(set->policies, set->cnt, &d->track.conn, NULL);
	json_key(json, "policy");
	if (!result.policy) {
		json_null(json);
		return;
	}
	struct buf name;
	buf_init(&name, LIMIT_LOG_LINE);
	buf_printf(&name, "%s/%s", result.policy->ns, result.policy->name);
	json_strn(json, (const char *)name.data, name.len);
	buf_done(&name);
}

static void put_inbound(struct listing *list, const struct delivery *d)
{
	struct json *json = &list->json;
	if (list->cnt++ >= ADMIN_CONNECTIONS_MAX)
		return;
	json_obj(json);
	put_addr(json, "actualDst", &d->upstream);
	put_age(list, d->start_ms);
	json_kv_str(json, "direction", "inbound");
	if (d->pump) {
		put_leg(json, "down", pump_down(d->pump), d->track.conn.has_identity ? 1 : 0);
		put_leg(json, "up", pump_up(d->pump), 0);
	}
	json_kv_str(json, "originalDst", d->original_dst);
	json_kv_str(json, "peerIdentity", d->access.src_identity);
	put_policy(json, list->silo, d);
	json_kv_str(json, "protocol", d->track.conn.has_identity ? "HBONE" : "TCP");
	json_kv_u64(json, "received", d->pump ? pump_received(d->pump) : 0);
	json_kv_u64(json, "sent", d->pump ? pump_sent(d->pump) : 0);
	put_addr(json, "src", &d->access.src);
	json_obj_end(json);
}

static void serve_connections(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct listing list = {.silo = ctx};
	struct buf body;
	(void)request;
	begin_json(&list.json, &body);
	json_obj(&list.json);
	json_key(&list.json, "connections");
	json_arr(&list.json);
	list_for_each(it, &list.silo->deliveries) put_inbound(&list, list_entry(it, struct delivery, node));
	outbound_each(list.silo, put_outbound, &list);
	json_arr_end(&list.json);
	json_kv_u64(&list.json, "total", list.cnt);
	json_obj_end(&list.json);
	reply_json(conn, &body);
}

/* --- the rest ------------------------------------------------------------ */

static void put_dates(struct json *json, const struct tls_certs *chain)
{
	char text[CLOCK_STR_MAX];
	char serial[TLS_CERT_SERIAL_TEXT_MAX];
	if (chain->cnt == 0)
		return;
	const struct tls_cert *leaf = &chain->all[0];
	clock_format(leaf->not_after > 0 ? (uint64_t)leaf->not_after * 1000000 : 0, 0, text);
	json_kv_str(json, "expirationTime", text);
	tls_cert_serial_text(leaf, serial);
	json_kv_str(json, "serialNumber", serial);
	clock_format(leaf->not_before > 0 ? (uint64_t)leaf->not_before * 1000000 : 0, 0, text);
	json_kv_str(json, "validFrom", text);
}

/* The certificate in force, or why there is none. */
static void put_certificate(struct json *json, struct silo *silo)
{
	const struct own_workload *own = fetch_peek(&silo->context.workload);
	const struct tls_identity *identity = fetch_peek(&silo->context.certificate);
	json_obj(json);
	if (!identity && silo->context.certificate.code != 0)
		json_kv_str(json, "error", silo->context.certificate.text);
	if (identity)
		put_dates(json, tls_identity_chain(identity));
	json_kv_str(json, "identity", own ? own->spiffe : NULL);
	json_kv_bool(json, "isAvailable", identity != NULL);
	json_obj_end(json);
}

static void serve_certificate(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct json json;
	struct buf body;
	(void)request;
	begin_json(&json, &body);
	put_certificate(&json, ctx);
	reply_json(conn, &body);
}

static void serve_cache(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct silo *silo = ctx;
	struct json json;
	struct buf body;
	(void)request;
	begin_json(&json, &body);
	json_obj(&json);
	json_kv_u64(&json, "ceiling", silo->cache.max);
	json_kv_u64(&json, "views", cache_cnt(&silo->cache));
	json_obj_end(&json);
	reply_json(conn, &body);
}

static void serve_dump(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	static const char *const phases[] = {"Starting", "Serving", "Draining", "Ended"};
	struct silo *silo = ctx;
	const struct policy_set *policies = context_policies(silo);
	struct json json;
	struct buf body;
	(void)request;
	begin_json(&json, &body);
	json_obj(&json);
	json_key(&json, "certificate");
	put_certificate(&json, silo);
	json_kv_u64(&json, "connections", silo->conn_cnt);
	json_key(&json, "info");
	json_obj(&json);
	json_kv_str(&json, "name", silo->info.name);
	json_kv_str(&json, "namespace", silo->info.ns);
	json_kv_str(&json, "serviceAccount", silo->info.service_account);
	json_obj_end(&json);
	json_kv_str(&json, "phase", phases[silo->phase]);
	json_kv_u64(&json, "policies", policies ? policies->cnt : 0);
	json_kv_bool(&json, "policiesKnown", policies != NULL);
	json_kv_str(&json, "uid", silo->uid);
	json_kv_u64(&json, "views", cache_cnt(&silo->cache));
	json_obj_end(&json);
	reply_json(conn, &body);
}

/* The node's /logging for this silo alone, until the node's changes it again. */
static void serve_logging(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct silo *silo = ctx;
	char level[LIMIT_HTTP_HEAD] = "";
	char ignored[LIMIT_HTTP_HEAD];
	struct err err = {0};
	struct buf body;
	int r = http_query_get(request, "level", level, sizeof(level));
	bool is_reset = http_query_get(request, "reset", ignored, sizeof(ignored)) != 0;
	if (request->method != HTTP_POST) {
		web_reply_text(conn, 405, "text/plain", "POST /logging?level=TARGET=LEVEL,... or ?reset\n");
		return;
	}
	if (r >= 0 && (level[0] || is_reset))
		r = log_change(&silo->log, is_reset, level, &err);
	if (r >= 0)
		r = access_limit(&silo->log, silo->settings.access_log, &err);
	buf_init(&body, 2 * LIMIT_HTTP_HEAD);
	if (r < 0) {
		buf_printf(&body, "Invalid level provided: %s\n", level);
	} else {
		buf_add_str(&body, "current log level is ");
		log_filter_text(&silo->log, &body);
		buf_add_str(&body, "\n");
	}
	web_reply(conn, r < 0 ? 400 : 200, "text/plain", body.data, body.len);
	buf_done(&body);
}

static void serve_events(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	admin_events_serve(ctx, conn, request);
}

static const struct web_route ROUTES[] = {
        {"/cache", GET_ONLY, serve_cache},
        {"/certificate", GET_ONLY, serve_certificate},
        {"/config_dump", GET_ONLY, serve_dump},
        {"/connections", GET_ONLY, serve_connections},
        {"/events", GET_ONLY, serve_events},
        {"/logging", 0, serve_logging},
};

int admin_serve(struct silo *silo, int fd)
{
	int r = web_new(silo->io, fd, ROUTES, sizeof(ROUTES) / sizeof(ROUTES[0]), silo, &silo->admin);
	if (r < 0)
		fd_close(&fd);
	return r;
}

void admin_stop(struct silo *silo)
{
	web_free(silo->admin);
	silo->admin = NULL;
}
