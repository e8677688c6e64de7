/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Policy, dial, copy, line; see delivery.h. */
#include "silo/delivery.h"

#include <errno.h>
#include <stdio.h>

#include "silo/proxy_protocol.h"
#include "silo/silo.h"

/* Words of a failure. */
#define TEXT_MAX 600

void delivery_done(struct delivery *d)
{
	metrics_close(&d->metrics, NULL);
	track_del(&d->track);
	if (d->node.next)
		silo_walk_del(d->silo, &d->node);
	dial_cancel(d->dial);
	d->dial = NULL;
	pump_free(d->pump);
	d->pump = NULL;
	stream_free(d->down);
	d->down = NULL;
	route_inbound_done(&d->route);
	view_unref(d->src_view);
	d->src_view = NULL;
	own_workload_unref(d->own);
	d->own = NULL;
	arena_unref(d->arena);
	d->arena = NULL;
}

/* Tells the flight recorder that it is over. */
static void record(struct delivery *d, const char *error)
{
	struct record_event event = {
	        .is_inbound = true,
	        .src = d->access.src,
	        .original_dst = d->access.dst,
	        .actual_dst = d->upstream,
	        .attempts = d->is_dialled,
	        .tunnels = d->access.src_identity != NULL,
	        .peer = d->access.src_identity,
	        .sent = d->pump ? pump_sent(d->pump) : 0,
	        .received = d->pump ? pump_received(d->pump) : 0,
	};
	recorder_add(d->silo, &d->clock, d->pump, error, &event);
}

/* The line, then the owner. */
static void end(struct delivery *d, const char *error)
{
	struct silo *silo = d->silo;
	metrics_close(&d->metrics, error);
	record(d, error);
	access_complete(&silo->log, &d->access, d->pump ? pump_sent(d->pump) : 0,
	        d->pump ? pump_received(d->pump) : 0, io_now_ms(silo->io) - d->start_ms, error);
	d->events->ended(d);
}

static void on_pump_done(void *ctx, int code, const char *text)
{
	end(ctx, code ? text : NULL);
}

static const struct pump_events PUMP_EVENTS = {.on_done = on_pump_done};

static void refuse(struct delivery *d, int status, const char *error)
{
	d->events->refused(d, status);
	end(d, error);
}

/* The application learns from the first bytes who the client is (dataplane 8.4). */
static int introduce(struct delivery *d, struct stream *up)
{
	struct chain bytes = {0};
	struct buf header;
	buf_init(&header, PROXY_HEADER_MAX);
	int r = proxy_header_encode(&d->access.src, &d->route.proxy_dst, d->access.src_identity, &header);
	if (r == 0)
		r = chain_write(&bytes, io_pool(d->silo->io), header.data, header.len);
	if (r == 0)
		r = stream_write(up, &bytes);
	chain_clear(&bytes);
	buf_done(&header);
	return r;
}

static void on_dialled(void *ctx, int code, struct stream *up)
{
	struct delivery *d = ctx;
	char text[TEXT_MAX];
	char os[128];
	d->dial = NULL;
	record_lap(&d->clock, RECORD_TCP);
	if (code < 0) {
		snprintf(text, sizeof(text), "%s: %s", err_str(ERR_CONNECT_FAILED),
		        code == -ETIMEDOUT ? "deadline has elapsed" : err_io_text(code, os, sizeof(os)));
		refuse(d, 503, text);
		return;
	}
	/* Policy changed during the dial: ended right after it, without a 200 (dataplane 11). */
	if (d->is_denied_late) {
		stream_free(up);
		end(d, err_str(ERR_POLICY_CHANGE));
		return;
	}
	int r = d->events->connected(d);
	if (r == 0 && d->route.has_proxy_header)
		r = introduce(d, up);
	if (r == 0)
		r = pump_start(d->down, up, NULL, &PUMP_EVENTS, d, &d->pump);
	if (r < 0) {
		stream_free(up);
		end(d, err_str(r));
		return;
	}
	if (!d->silo->settings.reset_fidelity)
		pump_soften(d->pump);
	d->down = NULL;
}

static void on_dial_warning(void *ctx, const char *step, int code)
{
	struct delivery *d = ctx;
	log_msg(&d->silo->log, LOG_WARN, "ztunnel::socket", "source address not preserved: %s: %s", step,
	        err_str(code));
}

static const struct dial_events DIAL_EVENTS = {.on_done = on_dialled, .on_warning = on_dial_warning};

static void on_denied(struct track *track)
{
	struct delivery *d = list_entry(track, struct delivery, track);
	char text[ADDR_STR_MAX];
	log_msg(&d->silo->log, LOG_INFO, "ztunnel::proxy::connection_manager",
	        "connection from %s closed because it's no longer allowed after a policy update",
	        addr_format(&d->access.src, text));
	if (d->pump)
		delivery_cut(d, err_str(ERR_POLICY_CHANGE));
	else
		d->is_denied_late = true;
}

void delivery_start(struct delivery *d)
{
	char reason[TEXT_MAX];
	struct silo *silo = d->silo;
	list_init(&d->node);
	list_add_tail(&silo->deliveries, &d->node);
	d->track.own = d->own->workload;
	if (!silo->is_self)
		track_add(silo, &d->track, on_denied);
	access_opened(&silo->log, &d->access);
	metrics_open(silo, &d->metrics, &d->access, &d->pump);
	record_lap(&d->clock, RECORD_LOOKUP);
	bool is_allowed = track_is_allowed(silo, &d->track, reason, sizeof(reason));
	record_lap(&d->clock, RECORD_POLICY);
	if (!is_allowed) {
		refuse(d, 401, reason);
		return;
	}
	struct dial_opts opts = silo_dial_opts(silo, &d->upstream);
	opts.src = d->source;
	opts.ports = &silo->dial_ports;
	opts.is_local = true;
	d->is_dialled = true;
	int r = dial_start(silo->io, &opts, &DIAL_EVENTS, d, &d->dial);
	if (r < 0)
		refuse(d, 503, err_str(r));
}

void delivery_cut(struct delivery *d, const char *error)
{
	struct pump *pump = d->pump;
	if (!pump) {
		end(d, error);
		return;
	}
	/* The line wants the counters, the peers want to know at once. */
	struct silo *silo = d->silo;
	metrics_close(&d->metrics, error);
	record(d, error);
	access_complete(&silo->log, &d->access, pump_sent(pump), pump_received(pump),
	        io_now_ms(silo->io) - d->start_ms, error);
	d->pump = NULL;
	pump_abort(pump);
	d->events->ended(d);
}
