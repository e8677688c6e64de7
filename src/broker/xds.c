/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attempts, streams and their ends; the store as the client sees it. See xds.h. */
#include "broker/xds.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/control_channel.h"
#include "broker/metrics.h"
#include "broker/silo_peer.h"
#include "xds/backoff.h"
#include "xds/delta.h"

static const char TARGET[] = "ztunnel::xds::client";
static const char PATH[] = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

/* Longest message accepted, bytes; as upstream. Of it only one resource is ever held. */
#define MESSAGE_MAX (200u << 20)
/* Ceiling of the node's metadata, bytes; beside it a request has room for everything else. */
#define NODE_MAX (256u << 10)
/* Quiet time after a whole state before what it did not name is removed, ms: it may come in several
 * responses. */
#define SWEEP_MS 2000
/* Bytes of one log text. */
#define TEXT_MAX 1536
/* A response above that has left much freed memory behind, bytes. */
#define TRIM_MIN (1u << 20)

struct xds {
	struct broker *broker;
	struct control_channel *channel;
	struct control_call *call; /* NULL between attempts */
	struct xds_delta *delta;
	struct xds_backoff backoff;
	struct timer retry;
	struct timer sweep;
	uint64_t id;        /* of the attempt, from 1 */
	uint64_t opened_ms; /* when the stream opened */
	bool is_open;
	bool is_on_demand;
	bool has_answers; /* parked asks are to be looked at again */
};

static void start(struct xds *xds);

/* --- log ------------------------------------------------------------------ */

static void say(struct xds *xds, enum log_level level, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* A line in the span of this attempt. */
static void say(struct xds *xds, enum log_level level, const char *fmt, ...)
{
	const struct log_field id = {.key = "id", .num = xds->id};
	const struct log_span span = {.name = "xds", .fields = &id, .field_cnt = 1};
	struct log_line line;
	char text[TEXT_MAX];
	va_list ap;
	if (!log_enabled(&xds->broker->log, level, TARGET))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (log_begin_in(&line, &xds->broker->log, level, TARGET, &span, text))
		log_end(&line);
}

/* The fields of a response that scripts look for. */
static void say_response(struct xds *xds, const struct xds_outcome *outcome)
{
	const struct log_field id = {.key = "id", .num = xds->id};
	const struct log_span span = {.name = "xds", .fields = &id, .field_cnt = 1};
	struct log_line line;
	if (!log_begin_in(&line, &xds->broker->log, LOG_INFO, TARGET, &span, "received response"))
		return;
	log_str(&line, "type_url", outcome->type_url);
	log_u64(&line, "size", outcome->updated + outcome->rejected);
	log_u64(&line, "removes", outcome->removed);
	log_end(&line);
}

/* --- the store, as the client sees it ------------------------------------- */

static int on_apply(void *ctx, const char *name, const struct xds_record *record, struct err *err)
{
	struct xds *xds = ctx;
	struct store *store = xds->broker->store;
	int rc = -EINVAL;
	switch (record->kind) {
	case XDS_WORKLOAD:
		rc = store_insert_workload(store, record->workload, STORE_XDS);
		break;
	case XDS_SERVICE:
		rc = store_insert_service(store, record->service, NULL, 0, STORE_XDS);
		break;
	case XDS_POLICY:
		rc = store_insert_policy(store, name, record->policy, STORE_XDS);
		break;
	}
	return rc < 0 ? err_set(err, rc, "cannot be stored: %s", err_str(rc)) : 0;
}

static void on_remove(void *ctx, enum xds_type type, const char *name)
{
	struct xds *xds = ctx;
	int rc = type == XDS_TYPE_ADDRESS ? store_remove_address(xds->broker->store, name)
	                                  : store_remove_policy(xds->broker->store, name);
	say(xds, LOG_DEBUG, rc < 0 ? "removal of %s: not known" : "removed %s", name);
}

static int on_each_name(void *ctx, enum xds_type type, xds_name_fn *fn, void *fn_ctx)
{
	store_each_name(((struct xds *)ctx)->broker->store,
	        type == XDS_TYPE_POLICY ? STORE_RESOURCE_POLICY : STORE_RESOURCE_ADDRESS, fn, fn_ctx);
	return 0;
}

/* --- responses ------------------------------------------------------------ */

static int on_send(void *ctx, const uint8_t *bytes, size_t len)
{
	struct xds *xds = ctx;
	return xds->call ? control_call_send(xds->call, bytes, len) : -EPIPE;
}

static void on_rejected(void *ctx, const char *name, const char *reason)
{
	say(ctx, LOG_DEBUG, "rejected %s: %s", name, reason);
}

static void on_answered(void *ctx, const char *key)
{
	struct xds *xds = ctx;
	say(xds, LOG_DEBUG, "answered on demand: %s", key);
	xds->has_answers = true;
}

static void on_done(void *ctx, const struct xds_outcome *outcome)
{
	struct xds *xds = ctx;
	metrics_xds_message(xds->broker, outcome->type_url, outcome->value_bytes);
	say_response(xds, outcome);
	if (outcome->type == XDS_TYPE_UNKNOWN)
		say(xds, LOG_ERROR, "unknown type: %s", outcome->type_url);
	if (outcome->nack[0])
		say(xds, LOG_ERROR, "rejecting response of %s: %s", outcome->type_url, outcome->nack);
	if (!xds->broker->ready.mesh_complete && xds_delta_is_warm(xds->delta))
		broker_set_mesh_complete(xds->broker, true);
	if (xds->has_answers)
		silo_peers_recheck(xds->broker);
	xds->has_answers = false;
	if (xds_delta_wants_sweep(xds->delta))
		io_timer_start(xds->broker->io, &xds->sweep, SWEEP_MS);
	if (outcome->value_bytes > TRIM_MIN)
		mem_trim();
}

static const struct xds_delta_ops DELTA_OPS = {.send = on_send,
        .apply = on_apply,
        .remove = on_remove,
        .each_name = on_each_name,
        .rejected = on_rejected,
        .answered = on_answered,
        .done = on_done};

static void on_sweep(struct timer *timer, uint64_t now)
{
	struct xds *xds = list_entry(timer, struct xds, sweep);
	(void)now;
	/* In the middle of a response the end of it starts the timer again. */
	if (!xds_delta_wants_sweep(xds->delta))
		return;
	size_t cnt = xds_delta_sweep(xds->delta);
	say(xds, LOG_INFO, "the whole state is in, %zu names that it does not hold are removed", cnt);
	mem_trim();
}

/* --- attempts ------------------------------------------------------------- */

/* A delay as upstream prints it. */
static const char *delay_text(uint64_t ms, char *dst, size_t cap)
{
	if (ms >= 1000)
		snprintf(dst, cap, "%llu.%03llus", (unsigned long long)(ms / 1000),
		        (unsigned long long)(ms % 1000));
	else
		snprintf(dst, cap, "%llums", (unsigned long long)ms);
	return dst;
}

static void say_end(struct xds *xds, enum xds_reason reason, const struct grpc_status *status, uint64_t delay)
{
	char text[32];
	const char *code = grpc_code_name(status->code);
	delay_text(delay, text, sizeof(text));
	switch (reason) {
	case XDS_CONNECTION_ERROR:
		say(xds, LOG_WARN, "XDS client connection error: %s: %s, retrying in %s", code,
		        status->message, text);
		break;
	case XDS_RECONNECT:
		say(xds, LOG_DEBUG, "XDS client terminated: %s: %s, retrying in %s", code, status->message,
		        text);
		break;
	case XDS_COMPLETE:
		say(xds, LOG_WARN, "XDS client complete, retrying in %s", text);
		break;
	default:
		say(xds, LOG_WARN, "XDS client error: %s: %s, retrying in %s", code, status->message, text);
		break;
	}
}

/* An attempt is over; the next one is set. */
static void finish(struct xds *xds, enum xds_stage stage, const struct grpc_status *status)
{
	struct io *io = xds->broker->io;
	uint64_t lived = xds->is_open ? io_now_ms(io) - xds->opened_ms : 0;
	uint64_t delay;
	enum xds_reason reason = xds_backoff_next(&xds->backoff, stage, status, lived, &delay);
	xds->call = NULL;
	xds->is_open = false;
	io_timer_stop(io, &xds->sweep);
	xds_delta_close(xds->delta, status);
	metrics_xds_end(xds->broker, xds_reason_label(reason));
	say_end(xds, reason, status, delay);
	io_timer_start(io, &xds->retry, delay);
}

static void on_open(void *ctx)
{
	struct xds *xds = ctx;
	xds->is_open = true;
	xds->opened_ms = io_now_ms(xds->broker->io);
	say(xds, LOG_INFO, "Stream established");
}

/* The length is judged here, so that our refusal is not taken for the server's (xds_delta_close). */
static int on_message(void *ctx, size_t len, struct err *err)
{
	struct xds *xds = ctx;
	static const uint8_t NOTHING[1];
	if (len > MESSAGE_MAX)
		err_set(err, ERR_TOO_LARGE,
		        "decoded message length too large: found %zu bytes, the limit is: %u bytes", len,
		        MESSAGE_MAX);
	int rc = xds_delta_bytes(xds->delta, NOTHING, 0, false, NULL);
	return len > MESSAGE_MAX ? ERR_TOO_LARGE : rc;
}

static int on_bytes(void *ctx, const uint8_t *bytes, size_t len, bool is_last, struct err *err)
{
	struct xds *xds = ctx;
	return xds_delta_bytes(xds->delta, bytes, len, is_last, err);
}

static void on_end(void *ctx, enum control_stage stage, const struct grpc_status *status)
{
	static const enum xds_stage STAGES[] = {[CONTROL_CONFIG] = XDS_AT_CONFIG,
	        [CONTROL_CONNECT] = XDS_AT_CONNECT,
	        [CONTROL_STREAM] = XDS_AT_STREAM};
	finish(ctx, STAGES[stage], status);
}

static const struct control_call_events EVENTS = {
        .on_open = on_open, .on_message = on_message, .on_bytes = on_bytes, .on_end = on_end};

static void start(struct xds *xds)
{
	const struct control_call_opts opts = {.path = PATH, .message_max = UINT32_MAX};
	struct grpc_status status = {.code = GRPC_INTERNAL, .message = "out of memory"};
	xds->id++;
	/* Every attempt reads the roots and looks the name up again. */
	control_channel_renew(xds->channel);
	int rc = control_call_start(xds->channel, &opts, &EVENTS, xds, &xds->call);
	if (rc == 0 && xds_delta_open(xds->delta) == 0)
		return;
	control_call_cancel(xds->call);
	finish(xds, XDS_AT_CONFIG, &status);
}

static void on_retry(struct timer *timer, uint64_t now)
{
	(void)now;
	start(list_entry(timer, struct xds, retry));
}

/* --- life ----------------------------------------------------------------- */

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static struct xds_meta *meta_of(const struct setting_pairs *pairs)
{
	struct xds_meta *meta = mem_zalloc(pairs->cnt ? pairs->cnt : 1, sizeof(*meta));
	for (size_t i = 0; meta && i < pairs->cnt; i++)
		meta[i] = (struct xds_meta){pairs->pairs[i].key, pairs->pairs[i].value};
	return meta;
}

static void bad_meta(void *ctx, const char *key, const char *why)
{
	struct broker *broker = ctx;
	log_msg(&broker->log, LOG_ERROR, TARGET, "ISTIO_METAJSON_%s is no JSON and left out: %s", key, why);
}

static int make_delta(struct xds *xds)
{
	const struct settings *settings = &xds->broker->settings;
	struct xds_meta *meta = meta_of(&settings->metadata);
	struct xds_meta *json = meta_of(&settings->metadata_json);
	struct buf node;
	buf_init(&node, NODE_MAX);
	if (meta && json) {
		const struct xds_node who = {.ip = settings->instance_ip,
		        .pod = or_empty(settings->pod_name),
		        .ns = or_empty(settings->pod_namespace),
		        .node_name = or_empty(settings->node_name),
		        .meta = meta,
		        .meta_cnt = settings->metadata.cnt,
		        .json = json,
		        .json_cnt = settings->metadata_json.cnt};
		xds_node_write(&node, &who, bad_meta, xds->broker);
		if (node.err == 0)
			xds->delta = xds_delta_new(&DELTA_OPS, xds, node.data, node.len, xds->is_on_demand);
	}
	int rc = node.err;
	buf_done(&node);
	mem_free(meta);
	mem_free(json);
	return xds->delta ? 0 : rc ? rc : -ENOMEM;
}

int xds_new(struct broker *broker, struct xds **ret_xds, struct err *err)
{
	*ret_xds = NULL;
	if (!control_address(&broker->settings, CONTROL_XDS))
		return 0;
	struct xds *xds = mem_zalloc(1, sizeof(*xds));
	if (!xds)
		return err_set(err, -ENOMEM, "out of memory");
	xds->broker = broker;
	xds->is_on_demand = broker->settings.xds_on_demand;
	timer_init(&xds->retry, on_retry);
	timer_init(&xds->sweep, on_sweep);
	xds_backoff_init(&xds->backoff);
	int rc = make_delta(xds);
	if (rc < 0)
		err_set(err, rc, "metadata of the node: %s", err_str(rc));
	else
		rc = control_channel_new(broker, CONTROL_XDS, &xds->channel, err);
	if (rc < 0) {
		xds_free(xds);
		return rc;
	}
	*ret_xds = xds;
	/* The first attempt comes with the loop, when everything else stands. */
	io_timer_start(broker->io, &xds->retry, 0);
	return 0;
}

void xds_free(struct xds *xds)
{
	if (!xds)
		return;
	io_timer_stop(xds->broker->io, &xds->retry);
	io_timer_stop(xds->broker->io, &xds->sweep);
	control_call_cancel(xds->call);
	control_channel_free(xds->channel);
	xds_delta_free(xds->delta);
	mem_free(xds);
}

/* --- on demand ------------------------------------------------------------ */

bool xds_must_wait(struct xds *xds, const struct view_key *key)
{
	char name[VIEW_KEY_BYTES_MAX + IP_STR_MAX], ip[IP_STR_MAX];
	int len;
	if (!xds || !xds->is_on_demand)
		return false;
	if (key->kind == VIEW_ADDRESS)
		len = snprintf(name, sizeof(name), "%s/%s", key->network, ip_format(&key->ip, ip));
	else
		len = snprintf(name, sizeof(name), "%s/%s", key->ns, key->hostname);
	/* A name without namespace cannot be asked for: the store says what it has. */
	if (len < 0 || (size_t)len >= sizeof(name) || (key->kind != VIEW_ADDRESS && !key->ns[0]))
		return false;
	int rc = xds_delta_demand(xds->delta, name);
	if (rc < 0 && rc != -EAGAIN)
		say(xds, LOG_WARN, "%s cannot be asked for: %s", name, err_str(rc));
	return rc != 0;
}
