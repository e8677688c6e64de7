/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Record -> source -> service -> policies -> delivery; see plaintext.h. */
#include "silo/plaintext.h"

#include <errno.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/mem.h"
#include "silo/delivery.h"
#include "silo/silo.h"

/* Words of a failure. */
#define TEXT_MAX 600
/* A telemetry look-up never holds traffic up for longer, ms. */
#define SOURCE_WAIT_MS 200

struct plaintext {
	struct conn conn;
	struct stream *stream; /* until the delivery takes it */
	struct addr src;
	struct addr dst; /* original destination */
	struct fetch_wait wait;
	struct own_workload *own;
	struct view *src_view;
	struct delivery delivery;
	bool is_delivering;
	uint64_t start_ms;
	struct record_clock clock;
};

static void plain_free(struct plaintext *plain)
{
	fetch_wait_cancel(&plain->wait);
	if (plain->is_delivering)
		delivery_done(&plain->delivery);
	else
		route_inbound_done(&plain->delivery.route);
	stream_free(plain->stream);
	view_unref(plain->src_view);
	own_workload_unref(plain->own);
	silo_conn_del(&plain->conn);
	mem_free(plain);
}

static void deny(struct plaintext *plain, const char *error)
{
	access_denied(&plain->conn.silo->log, &plain->src, &plain->dst, true, error);
	recorder_add_denied(plain->conn.silo, &plain->clock, &plain->src, &plain->dst, NULL, error);
	plain_free(plain);
}

static int on_connected(struct delivery *d)
{
	(void)d;
	return 0;
}

static void on_refused(struct delivery *d, int status)
{
	/* Nothing can be said on a plain connection: it is refused or closed. */
	if (status != ROUTE_STATUS_UNAVAILABLE)
		return;
	stream_refuse(d->down, d->silo->settings.reset_fidelity);
	d->down = NULL;
}

static void on_ended(struct delivery *d)
{
	plain_free(list_entry(d, struct plaintext, delivery));
}

static const struct delivery_events DELIVERY_EVENTS = {
        .connected = on_connected,
        .refused = on_refused,
        .ended = on_ended,
};

static void deliver(struct plaintext *plain)
{
	struct silo *silo = plain->conn.silo;
	struct delivery *d = &plain->delivery;
	d->silo = silo;
	d->events = &DELIVERY_EVENTS;
	d->down = plain->stream;
	d->upstream = plain->dst;
	d->own = plain->own;
	d->src_view = plain->src_view;
	d->start_ms = plain->start_ms;
	d->clock = plain->clock;
	if (silo_keeps_source(silo))
		d->source = plain->src.ip;
	d->track.conn = (struct rbac_conn){.source = plain->src.ip, .destination = plain->dst};
	d->access = (struct access){
	        .src = plain->src,
	        .dst = plain->dst,
	        .src_workload = plain->src_view ? plain->src_view->workload : NULL,
	        .dst_workload = plain->own->workload,
	        .dst_service = d->route.service ? d->route.service->hostname : NULL,
	        .service = d->route.service,
	        .is_inbound = true,
	};
	plain->stream = NULL;
	plain->own = NULL;
	plain->src_view = NULL;
	plain->is_delivering = true;
	delivery_start(d);
}

static void on_policies(struct fetch_wait *wait, int code, void *value)
{
	struct plaintext *plain = list_entry(wait, struct plaintext, wait);
	(void)value;
	if (code == 0)
		deliver(plain);
	else
		deny(plain, err_str(ERR_TIMEOUT_FETCH));
}

static void step_policies(struct plaintext *plain)
{
	struct silo *silo = plain->conn.silo;
	if (context_policies(silo))
		deliver(plain);
	else
		fetch_wait_start(&silo->context.policies, &plain->wait, SILO_FETCH_MS, on_policies);
}

static void step_service(struct plaintext *plain);

static void on_service(struct fetch_wait *wait, int code, void *value)
{
	struct plaintext *plain = list_entry(wait, struct plaintext, wait);
	(void)value;
	if (code == 0)
		step_service(plain);
	else
		step_policies(plain);
}

/* The service addressed is for telemetry only: what is not known soon goes without (reference
 * dataplane.md 8.7). */
static void step_service(struct plaintext *plain)
{
	struct silo *silo = plain->conn.silo;
	const struct route_env env = silo_route_env(silo, &plain->src.ip);
	struct cache_source source;
	struct err err = {0};
	cache_source_init(&source, &silo->cache);
	int r = route_plaintext(
	        &env, &source.source, plain->own->workload, &plain->dst, &plain->delivery.route, &err);
	if (r == -EAGAIN && source.missing)
		fetch_wait_start(source.missing, &plain->wait, SOURCE_WAIT_MS, on_service);
	else
		step_policies(plain);
}

static void on_source(struct fetch_wait *wait, int code, void *value)
{
	struct plaintext *plain = list_entry(wait, struct plaintext, wait);
	if (code == 0)
		plain->src_view = view_ref(value);
	step_service(plain);
}

static void step_source(struct plaintext *plain)
{
	struct silo *silo = plain->conn.silo;
	struct view_key key = view_key_address(silo->settings.network, &plain->src.ip);
	struct fetch *missing;
	if (cache_view(&silo->cache, &key, &plain->src_view, &missing) == -EAGAIN)
		fetch_wait_start(missing, &plain->wait, SOURCE_WAIT_MS, on_source);
	else
		step_service(plain);
}

static void on_workload(struct fetch_wait *wait, int code, void *value)
{
	struct plaintext *plain = list_entry(wait, struct plaintext, wait);
	const struct workload_info *info = &plain->conn.silo->info;
	char text[TEXT_MAX];
	if (code == 0) {
		plain->own = own_workload_ref(value);
		step_source(plain);
		return;
	}
	snprintf(text, sizeof(text), "%s: %s.%s (%s)", err_str(ERR_NO_LOCAL_WORKLOAD), info->service_account,
	        info->ns, info->name);
	deny(plain, text);
}

static void step_workload(struct plaintext *plain)
{
	struct silo *silo = plain->conn.silo;
	const struct own_workload *own = context_workload(silo);
	if (!own) {
		fetch_wait_start(&silo->context.workload, &plain->wait, SILO_FETCH_MS, on_workload);
		return;
	}
	plain->own = own_workload_ref(own);
	step_source(plain);
}

static void plain_cut(struct conn *conn)
{
	struct plaintext *plain = list_entry(conn, struct plaintext, conn);
	if (plain->is_delivering)
		delivery_cut(&plain->delivery, err_str(ERR_DRAINED));
	else
		deny(plain, err_str(ERR_DRAINED));
}

static const struct conn_ops CONN_OPS = {.cut = plain_cut};

static int find_addresses(struct plaintext *plain, int fd)
{
	int r = sock_peer_addr(fd, &plain->src);
	if (r == 0 && sock_original_dst(fd, &plain->dst) < 0)
		r = sock_local_addr(fd, &plain->dst);
	return r;
}

void plaintext_accept(struct silo *silo, int fd)
{
	struct plaintext *plain = mem_zalloc(1, sizeof(*plain));
	if (!plain || !silo_conn_add(silo, &plain->conn, &CONN_OPS)) {
		mem_free(plain);
		fd_close(&fd);
		return;
	}
	plain->start_ms = io_now_ms(silo->io);
	record_start(&plain->clock);
	if (find_addresses(plain, fd) < 0 || sock_new(silo->io, fd, &plain->stream) < 0) {
		fd_close(&fd);
		plain_free(plain);
		return;
	}
	const struct route_env env = silo_route_env(silo, &plain->src.ip);
	if (route_is_illegal_port(&env, plain->dst.port))
		deny(plain, err_str(ERR_SELF_CALL));
	else
		step_workload(plain);
}
