/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths of the pod's admin socket; see admin.h. Reads what others own, changes log levels only. */
#include "silo/admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "conn/web.h"
#include "silo/access.h"
#include "silo/admin_conns.h"
#include "silo/admin_events.h"
#include "silo/admin_metrics.h"
#include "silo/silo.h"

/* Bytes of one answer. */
#define BODY_MAX (8u << 20)

#define GET_ONLY (1u << HTTP_GET)
#define POST_ONLY (1u << HTTP_POST)

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

static void put_key(struct json *json, const struct view_key *key)
{
	char ip[ADDR_STR_MAX];
	switch (key->kind) {
	case VIEW_ADDRESS:
		json_kv_str(json, "kind", "address");
		json_kv_str(json, "network", key->network);
		json_kv_str(json, "address", ip_format(&key->ip, ip));
		json_kv_bool(json, "unfiltered", key->unfiltered);
		break;
	case VIEW_HOST:
		json_kv_str(json, "kind", "host");
		json_kv_str(json, "namespace", key->ns);
		json_kv_str(json, "hostname", key->hostname);
		break;
	case VIEW_NAME:
		json_kv_str(json, "kind", "name");
		json_kv_str(json, "hostname", key->hostname);
		break;
	}
}

/* A question to the broker and where its answer stands. */
static void put_entry(void *ctx, const struct view_key *key, const struct fetch *fetch)
{
	struct json *json = ctx;
	const struct view *view = fetch_peek(fetch);
	json_obj(json);
	put_key(json, key);
	json_kv_str(json, "state", !view ? "awaited" : view->known ? "known" : "unknown");
	if (view && view->known) {
		json_kv_str(json, "workload", view->workload ? view->workload->uid : NULL);
		json_kv_str(json, "service", view->service ? view->service->hostname : NULL);
		json_kv_u64(json, "endpoints", view->endpoint_cnt);
	}
	json_obj_end(json);
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
	json_key(&json, "entries");
	json_arr(&json);
	cache_each(&silo->cache, put_entry, &json);
	json_arr_end(&json);
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

/* The value of CULVERT_ACCESS_LOG that is meant; NULL = none is. */
static const char *access_mode(const char *text)
{
	static const char *const MODES[] = {"all", "errors", "off"};
	for (size_t i = 0; i < sizeof(MODES) / sizeof(MODES[0]); i++)
		if (strcmp(text, MODES[i]) == 0)
			return MODES[i];
	return NULL;
}

/* Changes filter and access log as the query says. Negative: nothing was. */
static int change_log(struct silo *silo, const struct http_request *request, char level[LIMIT_HTTP_HEAD])
{
	char text[LIMIT_HTTP_HEAD];
	struct err err = {0};
	const char *mode = silo->settings.access_log;
	int r = http_query_get(request, "access", text, sizeof(text));
	if (r > 0)
		mode = access_mode(text);
	if (r < 0 || !mode)
		return -EINVAL;
	bool is_reset = http_query_get(request, "reset", text, sizeof(text)) != 0;
	r = http_query_get(request, "level", level, LIMIT_HTTP_HEAD);
	if (r < 0)
		return r;
	/* What the former mode holds back is in the filter: it is made anew, unless levels of one's own are.
	 */
	if (mode != silo->settings.access_log)
		r = log_change(&silo->log, false, "access=info", &err);
	if (r >= 0 && (level[0] || is_reset))
		r = log_change(&silo->log, is_reset, level, &err);
	if (r < 0)
		return r;
	silo->settings.access_log = mode;
	return access_limit(&silo->log, mode, &err);
}

/*
 * The node's /logging for this silo alone, until the node's changes the levels again; what `access` says
 * (all, errors, off) stays.
 */
static void serve_logging(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct silo *silo = ctx;
	char level[LIMIT_HTTP_HEAD] = "";
	struct buf body;
	if (request->method != HTTP_POST) {
		web_reply_text(conn, 405, "text/plain",
		        "POST /logging?level=TARGET=LEVEL,... or ?reset or ?access=all|errors|off\n");
		return;
	}
	int r = change_log(silo, request, level);
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

/*
 * Ends what is open without ending the silo: a silo that went away would refuse the pod's connections until
 * the warden has started another.
 */
static void serve_drain(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct silo *silo = ctx;
	char text[128];
	(void)request;
	if (silo->phase != SILO_SERVING) {
		web_reply_text(conn, 503, "text/plain", "the silo is not serving\n");
		return;
	}
	log_msg(&silo->log, LOG_INFO, "ztunnel::drain",
	        "drain of %zu connections requested over the admin socket", silo->conn_cnt);
	snprintf(text, sizeof(text), "draining; %zu connections are open, new ones are accepted\n",
	        silo->conn_cnt);
	silo_drain_tunnels(silo);
	web_reply_text(conn, 200, "text/plain", text);
}

static void serve_connections(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	(void)request;
	admin_conns_serve(ctx, conn);
}

static void serve_metrics(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	(void)request;
	admin_metrics_serve(ctx, conn);
}

static const struct web_route ROUTES[] = {
        {"/cache", GET_ONLY, serve_cache},
        {"/certificate", GET_ONLY, serve_certificate},
        {"/config_dump", GET_ONLY, serve_dump},
        {"/connections", GET_ONLY, serve_connections},
        {"/drain", POST_ONLY, serve_drain},
        {"/events", GET_ONLY, serve_events},
        {"/logging", 0, serve_logging},
        {"/metrics", GET_ONLY, serve_metrics},
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
