/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all connections of a silo share: lists, options, accepting, draining. */
#include "silo/silo.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"
#include "silo/dns.h"
#include "silo/inbound.h"
#include "silo/metrics.h"
#include "silo/outbound.h"
#include "silo/plaintext.h"
#include "silo/socks_client.h"
#include "silo/warden_link.h"

static const char TARGET[] = "ztunnel::proxy";

/* Port numbers for the log, upstream's component names. */
static const struct {
	uint16_t port;
	const char *component;
} PORTS[SILO_PORT_CNT] = {
        [SILO_PORT_OUTBOUND] = {ROUTE_PORT_OUTBOUND, "outbound"},
        [SILO_PORT_PLAINTEXT] = {ROUTE_PORT_PASSTHROUGH, "inbound plaintext"},
        [SILO_PORT_HBONE] = {ROUTE_PORT_INBOUND, "inbound"},
        [SILO_PORT_SOCKS] = {ROUTE_PORT_SOCKS, "socks5"},
};

/* The drain is over: says so and lets the loop end. */
static void finish_drain(struct silo *silo)
{
	if (silo->phase != SILO_DRAINING)
		return;
	silo->phase = SILO_ENDED;
	metrics_answer(silo, 0);
	io_timer_stop(silo->io, &silo->drain_timer);
	warden_link_drained(silo->warden, silo->drain_forced);
	io_stop(silo->io);
}

bool silo_conn_add(struct silo *silo, struct conn *conn, const struct conn_ops *ops)
{
	if (silo->conn_cnt >= SILO_CONN_MAX)
		return false;
	conn->silo = silo;
	conn->ops = ops;
	list_init(&conn->node);
	list_add_tail(&silo->conns, &conn->node);
	silo->conn_cnt++;
	return true;
}

void silo_conn_del(struct conn *conn)
{
	struct silo *silo = conn->silo;
	list_del(&conn->node);
	silo->conn_cnt--;
	if (silo->conn_cnt == 0)
		finish_drain(silo);
}

void silo_walk_del(struct silo *silo, struct list *entry)
{
	list_for_each(it, &silo->walks)
	{
		struct silo_walk *walk = list_entry(it, struct silo_walk, node);
		if (walk->next == entry)
			walk->next = entry->next;
	}
	list_del(entry);
}

struct route_env silo_route_env(const struct silo *silo, const struct ip *source)
{
	return (struct route_env){
	        .network = silo->settings.network,
	        .has_socks = silo->settings.socks5,
	        .local_app_tunnel = silo->settings.localhost_app_tunnel,
	        .source_ip = *source,
	        .random = rand_u64(),
	};
}

/* Keepalive as the environment has it, in the kernel's units. */
static struct sock_keepalive keepalive_of(const struct settings *settings)
{
	struct sock_keepalive keepalive = {
	        .is_on = settings->keepalive_enabled,
	        .idle_s = (uint32_t)(settings->keepalive_time_ms / 1000),
	        .interval_s = (uint32_t)(settings->keepalive_interval_ms / 1000),
	        .probe_cnt = settings->keepalive_retries,
	};
	if (settings->user_timeout_enabled) {
		uint64_t ms = settings->keepalive_time_ms +
		              settings->keepalive_retries * settings->keepalive_interval_ms;
		keepalive.user_timeout_ms = ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
	}
	return keepalive;
}

struct dial_opts silo_dial_opts(const struct silo *silo, const struct addr *dst)
{
	bool is_marked = !silo->is_self && (!silo->settings.dedicated || silo->settings.packet_mark_set);
	return (struct dial_opts){
	        .dst = *dst,
	        .mark = is_marked ? silo->settings.packet_mark : 0,
	        .keepalive = keepalive_of(&silo->settings),
	};
}

bool silo_shares_node(struct silo *silo, const struct workload *workload)
{
	const struct own_workload *own = context_workload(silo);
	return own && workload && own->workload->node[0] && strcmp(own->workload->node, workload->node) == 0;
}

bool silo_keeps_source(const struct silo *silo)
{
	/* Unset means: where possible; the dial itself degrades with a warning. */
	return !silo->is_self && (!silo->settings.enable_orig_src_set || silo->settings.enable_orig_src);
}

void silo_h2_config(const struct silo *silo, bool is_server, struct h2_config *ret_config)
{
	const struct settings *settings = &silo->settings;
	h2_config_init(ret_config, is_server);
	ret_config->stream_window_max = settings->h2_stream_window;
	ret_config->conn_window_max = settings->h2_connection_window;
	ret_config->frame_max = settings->h2_frame_size;
	if (ret_config->stream_window_start > ret_config->stream_window_max)
		ret_config->stream_window_start = ret_config->stream_window_max;
	if (ret_config->conn_window_start > ret_config->conn_window_max)
		ret_config->conn_window_start = ret_config->conn_window_max;
}

/* --- listeners ----------------------------------------------------------- */

static void on_outbound(void *ctx, int fd)
{
	outbound_accept(ctx, fd);
}

static void on_plaintext(void *ctx, int fd)
{
	plaintext_accept(ctx, fd);
}

static void on_hbone(void *ctx, int fd)
{
	inbound_accept(ctx, fd);
}

static void on_socks(void *ctx, int fd)
{
	socks_accept(ctx, fd);
}

static void on_accept_error(void *ctx, int code)
{
	struct silo *silo = ctx;
	log_msg(&silo->log, LOG_WARN, TARGET, "accept failed, pausing: %s", err_str(code));
}

static const struct listen_events LISTEN_EVENTS[SILO_PORT_CNT] = {
        [SILO_PORT_OUTBOUND] = {.on_accept = on_outbound, .on_error = on_accept_error},
        [SILO_PORT_PLAINTEXT] = {.on_accept = on_plaintext, .on_error = on_accept_error},
        [SILO_PORT_HBONE] = {.on_accept = on_hbone, .on_error = on_accept_error},
        [SILO_PORT_SOCKS] = {.on_accept = on_socks, .on_error = on_accept_error},
};

/* What happens to a listener, in upstream's words. */
static void tell_listener(struct silo *silo, size_t port, bool is_end)
{
	struct log_line line;
	struct addr local;
	char text[ADDR_STR_MAX];
	if (sock_local_addr(listen_fd(silo->listeners[port]), &local) < 0)
		local = (struct addr){.port = PORTS[port].port};
	if (!log_begin(&line, &silo->log, LOG_INFO, TARGET,
	            is_end ? "listener drained" : "listener established"))
		return;
	log_bare(&line, "address", addr_format(&local, text));
	log_str(&line, "component", PORTS[port].component);
	/* Not of one that ends: as upstream. */
	if (!is_end)
		log_bool(&line, "transparent", silo_keeps_source(silo));
	log_end(&line);
}

int silo_listen(struct silo *silo, enum silo_port port, int fd)
{
	struct listen_opts opts = {.nodelay = true};
	/* HBONE finds dead peers by its own pings; who comes by SOCKS5 is on this machine (dataplane 2.3). */
	if (port != SILO_PORT_HBONE && port != SILO_PORT_SOCKS)
		opts.keepalive = keepalive_of(&silo->settings);
	opts.is_local = port == SILO_PORT_OUTBOUND || port == SILO_PORT_SOCKS;
	int r = listen_start(silo->io, fd, &opts, &LISTEN_EVENTS[port], silo, &silo->listeners[port]);
	if (r < 0)
		return r;
	tell_listener(silo, port, false);
	return 0;
}

/* --- drain --------------------------------------------------------------- */

static void stop_listening(struct silo *silo)
{
	/* A successor has its own sockets: what would arrive here would be lost. */
	dns_stop(silo->dns);
	for (size_t i = 0; i < SILO_PORT_CNT; i++) {
		if (silo->listeners[i])
			tell_listener(silo, i, true);
		listen_stop(silo->listeners[i]);
		silo->listeners[i] = NULL;
	}
}

static void cut_all(struct silo *silo)
{
	while (!list_empty(&silo->conns)) {
		struct conn *conn = list_entry(silo->conns.next, struct conn, node);
		conn->ops->cut(conn);
	}
}

static void deadline_reached(struct timer *timer, uint64_t now)
{
	(void)now;
	struct silo *silo = list_entry(timer, struct silo, drain_timer);
	log_msg(&silo->log, LOG_WARN, "ztunnel::drain",
	        "drain duration expired with pending connections, forcefully shutting down");
	silo->drain_forced = true;
	cut_all(silo);
}

void silo_drain_tunnels(struct silo *silo)
{
	list_for_each_safe(it, &silo->conns)
	{
		struct conn *conn = list_entry(it, struct conn, node);
		if (conn->ops->drain)
			conn->ops->drain(conn);
	}
	pool_drain(&silo->pool);
}

static void drain_gently(struct silo *silo, uint64_t deadline_ms)
{
	timer_init(&silo->drain_timer, deadline_reached);
	io_timer_start(silo->io, &silo->drain_timer, deadline_ms);
	silo_drain_tunnels(silo);
}

void silo_drain(struct silo *silo, bool is_graceful, uint64_t deadline_ms)
{
	if (silo->phase == SILO_ENDED)
		return;
	bool was_draining = silo->phase == SILO_DRAINING;
	silo->phase = SILO_DRAINING;
	stop_listening(silo);
	if (!is_graceful)
		cut_all(silo);
	else if (!was_draining)
		drain_gently(silo, deadline_ms);
	/* The last connection may have gone before the drain began. */
	if (silo->conn_cnt == 0)
		finish_drain(silo);
}
