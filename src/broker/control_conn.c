/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connection to the control plane from name to TLS: roots, addresses, TCP
 * one after the other, handshake, PINGs while a call is open. Knows no call
 * but that there are some.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/control_priv.h"

static const char TARGET[] = "ztunnel::tls::control";

/* Limits of one TCP connect and of a name's resolution (reference control.md 4.1). */
#define CONNECT_MS 5000
#define RESOLVE_MS 10000
/* TCP keepalive (control.md 4.1). */
#define KEEPALIVE_IDLE_S 300
#define KEEPALIVE_INTERVAL_S 75
#define KEEPALIVE_PROBES 9
/* HTTP/2 as upstream's library has it (control.md 4.1). */
#define STREAM_WINDOW (2u << 20)
#define CONN_WINDOW (5u << 20)
#define FRAME_MAX 16384
#define PING_EVERY_MS 30000
#define PING_ANSWER_MS 10000

/* What a call wants to know of an answer. */
static const char *const kept_headers[] = {
        "content-type", "grpc-encoding", "grpc-message", "grpc-status", NULL};

/* Whether the URI does not name the address that was tried. */
static bool is_where_new(const struct control_conn *conn)
{
	return conn->where[0] && strcmp(conn->where, conn->channel->auth.authority) != 0;
}

static void fail_calls(struct control_conn *conn, enum control_stage stage, const char *text)
{
	const char *authority = conn->channel->auth.authority;
	bool is_new = is_where_new(conn);
	if (conn->channel->current == conn)
		conn->channel->current = NULL;
	list_for_each_safe(it, &conn->calls)
	{
		struct control_call *call = list_entry(it, struct control_call, node);
		control_call_fail(call, stage, GRPC_UNAVAILABLE, "%s%s%s%s: %s", authority,
		        is_new ? " (" : "", is_new ? conn->where : "", is_new ? ")" : "", text);
	}
	io_defer(conn->channel->broker->io, &conn->reap, IO_PHASE_WORK);
}

/* --- link ----------------------------------------------------------------- */

static void open_waiting(struct control_conn *conn)
{
	list_for_each_safe(it, &conn->calls)
	{
		struct control_call *call = list_entry(it, struct control_call, node);
		if (!call->stream)
			control_call_open(call);
	}
}

static void on_ready(void *ctx)
{
	struct control_conn *conn = ctx;
	conn->is_ready = true;
	log_msg(&conn->channel->broker->log, LOG_DEBUG, TARGET, "connected to %s (%s), %s",
	        conn->channel->auth.authority, conn->where, link_tls_version(conn->link));
	open_waiting(conn);
}

static void on_room(void *ctx)
{
	struct control_conn *conn = ctx;
	if (conn->is_ready)
		open_waiting(conn);
}

static void on_goaway(void *ctx)
{
	struct control_conn *conn = ctx;
	control_conn_retire(conn);
	list_for_each_safe(it, &conn->calls)
	{
		struct control_call *call = list_entry(it, struct control_call, node);
		if (!call->stream)
			control_call_fail(call, CONTROL_CONNECT, GRPC_UNAVAILABLE,
			        "%s (%s): the server is going away", conn->channel->auth.authority,
			        conn->where);
	}
}

static void dial_next(struct control_conn *conn, int last_code);

static void on_closed(void *ctx, int code, const char *text)
{
	struct control_conn *conn = ctx;
	char words[ERR_TEXT_MAX];
	char number[128];
	/* Our own codes name the step that failed and the text the reason; of the system's codes one is
	 * enough. */
	const char *step = code == 0 ? "connection closed" : code < -1000 ? err_str(code) : "";
	if (strncmp(text, step, strlen(step)) == 0)
		step = "";
	const char *reason = *text || *step ? text : err_io_text(code, number, sizeof(number));
	(void)snprintf(words, sizeof(words), "%s%s%s", step, *step && *reason ? ": " : "", reason);
	link_free(conn->link);
	conn->link = NULL;
	if (conn->is_ready || conn->next_ip == conn->ip_cnt) {
		fail_calls(conn, CONTROL_CONNECT, words);
		return;
	}
	/* One bad server behind a name does not hide the good ones. */
	log_msg(&conn->channel->broker->log, LOG_DEBUG, TARGET, "%s (%s): %s, trying the next address",
	        conn->channel->auth.authority, conn->where, words);
	dial_next(conn, code);
}

static const struct link_events link_events = {
        .on_ready = on_ready,
        .on_room = on_room,
        .on_goaway = on_goaway,
        .on_closed = on_closed,
};

static int start_link(struct control_conn *conn, struct stream *transport, struct err *err)
{
	struct h2_config h2;
	h2_config_init(&h2, false);
	h2.stream_window_start = h2.stream_window_max = STREAM_WINDOW;
	h2.conn_window_start = h2.conn_window_max = CONN_WINDOW;
	h2.frame_max = FRAME_MAX;
	h2.ping_interval_ms = PING_EVERY_MS;
	h2.ping_timeout_ms = PING_ANSWER_MS;
	h2.ping_busy_only = true;
	h2.keep_headers = kept_headers;
	const struct link_opts opts = {.env = conn->channel->broker->h2_env, .trust = conn->trust, .h2 = &h2};
	return link_new(conn->channel->broker->io, transport, &opts, &link_events, conn, &conn->link, err);
}

/* --- TCP ------------------------------------------------------------------ */

static void on_dialled(void *ctx, int code, struct stream *transport)
{
	struct control_conn *conn = ctx;
	struct err err = {0};
	conn->dial = NULL;
	if (code < 0) {
		dial_next(conn, code);
		return;
	}
	(void)sock_set_nodelay(sock_fd(transport));
	if (start_link(conn, transport, &err) < 0) {
		stream_free(transport);
		fail_calls(conn, CONTROL_CONFIG, err.text);
	}
}

static const struct dial_events dial_events = {.on_done = on_dialled};

/* The next address, or the end with the last one's failure. */
static void dial_next(struct control_conn *conn, int last_code)
{
	char text[128];
	if (conn->next_ip == conn->ip_cnt) {
		fail_calls(conn, CONTROL_CONNECT, err_io_text(last_code, text, sizeof(text)));
		return;
	}
	const struct dial_opts opts = {
	        .dst = {.ip = conn->ips[conn->next_ip++], .port = conn->channel->auth.port},
	        .keepalive = {.is_on = true,
	                .idle_s = KEEPALIVE_IDLE_S,
	                .interval_s = KEEPALIVE_INTERVAL_S,
	                .probe_cnt = KEEPALIVE_PROBES},
	        .timeout_ms = CONNECT_MS};
	addr_format(&opts.dst, conn->where);
	int r = dial_start(conn->channel->broker->io, &opts, &dial_events, conn, &conn->dial);
	if (r < 0)
		fail_calls(conn, CONTROL_CONNECT, err_str(r));
}

static void on_resolved(void *ctx, int code, const struct ip *ips, size_t cnt, const char *text)
{
	struct control_conn *conn = ctx;
	conn->resolve = NULL;
	if (code < 0) {
		fail_calls(conn, CONTROL_CONNECT, text);
		return;
	}
	memcpy(conn->ips, ips, cnt * sizeof(*ips));
	conn->ip_cnt = cnt;
	dial_next(conn, 0);
}

/* --- beginning ------------------------------------------------------------ */

/* xDS reads its roots for each connection and fails without; the CA's last good ones go on being used. */
static int find_trust(struct control_conn *conn, struct err *err)
{
	struct control_channel *channel = conn->channel;
	int r = control_auth_trust(&channel->auth, &conn->trust, err);
	if (channel->purpose == CONTROL_XDS)
		return r;
	if (r == 0) {
		tls_trust_unref(channel->trust);
		channel->trust = tls_trust_ref(conn->trust);
	} else if (channel->trust) {
		log_msg(&channel->broker->log, LOG_WARN, TARGET,
		        "%s: the root certificates read before stay in use: %s", channel->auth.authority,
		        err->text);
		conn->trust = tls_trust_ref(channel->trust);
		r = 0;
	}
	return r;
}

static void on_begin(struct io_task *task)
{
	struct control_conn *conn = list_entry(task, struct control_conn, begin);
	struct control_channel *channel = conn->channel;
	struct err err = {0};
	if (channel->auth.is_plain) {
		fail_calls(conn, CONTROL_CONNECT, "unsupported scheme http");
		return;
	}
	if (find_trust(conn, &err) < 0) {
		fail_calls(conn, CONTROL_CONFIG, err.text);
		return;
	}
	const struct resolve_opts opts = {.name = channel->auth.host,
	        .v4 = true,
	        .v6 = channel->broker->settings.ipv6_enabled,
	        .deadline_ms = RESOLVE_MS};
	int r = resolve_start(channel->broker->io, &opts, on_resolved, conn, &conn->resolve);
	if (r < 0)
		fail_calls(conn, CONTROL_CONNECT, err_str(r));
}

static void on_reap(struct io_task *task)
{
	struct control_conn *conn = list_entry(task, struct control_conn, reap);
	/* Between the last call and this turn's end the channel may have given it another. */
	if (!list_empty(&conn->calls) || conn->channel->current == conn)
		return;
	if (conn->link)
		link_goodbye(conn->link);
	control_conn_free(conn);
}

struct control_conn *control_conn_get(struct control_channel *channel)
{
	if (channel->current)
		return channel->current;
	struct control_conn *conn = mem_zalloc(1, sizeof(*conn));
	if (!conn)
		return NULL;
	conn->channel = channel;
	list_init(&conn->calls);
	io_task_init(&conn->begin, on_begin);
	io_task_init(&conn->reap, on_reap);
	list_add_tail(&channel->conns, &conn->node);
	channel->current = conn;
	io_defer(channel->broker->io, &conn->begin, IO_PHASE_WORK);
	return conn;
}

void control_conn_retire(struct control_conn *conn)
{
	if (conn->channel->current == conn)
		conn->channel->current = NULL;
	control_conn_left(conn);
}

void control_conn_left(struct control_conn *conn)
{
	if (list_empty(&conn->calls) && conn->channel->current != conn)
		io_defer(conn->channel->broker->io, &conn->reap, IO_PHASE_WORK);
}

void control_conn_free(struct control_conn *conn)
{
	io_undefer(&conn->begin);
	io_undefer(&conn->reap);
	resolve_cancel(conn->resolve);
	dial_cancel(conn->dial);
	link_free(conn->link);
	tls_trust_unref(conn->trust);
	list_del(&conn->node);
	mem_free(conn);
}
