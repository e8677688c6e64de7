/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flight recorder as JSON, with a wait for what comes next; see admin_events.h. */
#include "silo/admin_events.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "conn/web.h"
#include "silo/recorder.h"
#include "silo/silo.h"

/* Bytes of one answer: 256 events of 2 KB at most. */
#define BODY_MAX (1u << 20)
/* Digits of a number with terminator. */
#define NUMBER_MAX 24

/* A request that waits for an event. */
struct waiting {
	struct silo *silo;
	uint64_t after;
	struct web_wait web;
	struct record_wait event;
	struct timer clock;
};

static const char *const PHASES[RECORD_PHASE_CNT] = {
        [RECORD_LOOKUP] = "lookup",
        [RECORD_POLICY] = "policy",
        [RECORD_CERTIFICATE] = "certificate",
        [RECORD_TCP] = "tcp",
        [RECORD_TLS] = "tls",
        [RECORD_CONNECT] = "connect",
        [RECORD_FIRST_BYTE] = "firstByte",
};

static const char *const BY[] = {
        [RECORD_BY_NOBODY] = "proxy",
        [RECORD_BY_CLIENT] = "client",
        [RECORD_BY_SERVER] = "server",
        [RECORD_BY_PROXY] = "proxy",
};

static const char *const HOW[] = {
        [RECORD_HOW_END] = "end",
        [RECORD_HOW_RESET] = "reset",
        [RECORD_HOW_ERROR] = "error",
        [RECORD_HOW_REFUSED] = "refused",
        [RECORD_HOW_DRAIN] = "drain",
        [RECORD_HOW_POLICY] = "policy",
        [RECORD_HOW_REVOKED] = "revoked",
};

static const char *const PROTOCOLS[] = {"TCP", "HBONE", "DOUBLEHBONE"};

/* --- JSON ---------------------------------------------------------------- */

static void put_addr(struct json *json, const char *key, const struct addr *addr)
{
	char text[ADDR_STR_MAX];
	json_kv_str(json, key, addr->ip.family ? addr_format(addr, text) : NULL);
}

static void put_phases(struct json *json, const struct record_event *event)
{
	json_key(json, "phases");
	json_obj(json);
	for (size_t i = 0; i < RECORD_PHASE_CNT; i++) {
		json_key(json, PHASES[i]);
		if (event->present & (1u << i))
			json_u64(json, event->us[i]);
		else
			json_null(json);
	}
	json_obj_end(json);
}

static void put_event(struct json *json, const struct record_event *event)
{
	char time[CLOCK_STR_MAX];
	clock_format(event->wall_us, 6, time);
	json_obj(json);
	json_kv_u64(json, "seq", event->seq);
	json_kv_str(json, "time", time);
	json_kv_str(json, "direction", event->is_inbound ? "inbound" : "outbound");
	json_kv_str(json, "protocol", PROTOCOLS[event->tunnels < 2 ? event->tunnels : 2]);
	put_addr(json, "src", &event->src);
	put_addr(json, "originalDst", &event->original_dst);
	put_addr(json, "actualDst", &event->actual_dst);
	json_kv_str(json, "peerIdentity", event->peer[0] ? event->peer : NULL);
	json_kv_u64(json, "attempts", event->attempts);
	put_phases(json, event);
	json_kv_u64(json, "durationMicroseconds", event->duration_us);
	json_kv_u64(json, "sent", event->sent);
	json_kv_u64(json, "received", event->received);
	json_kv_str(json, "closedBy", BY[event->by]);
	json_kv_str(json, "closeReason", HOW[event->how]);
	json_kv_str(json, "flags", response_flag_str((enum response_flag)event->flag));
	json_kv_str(json, "error", event->error[0] ? event->error : NULL);
	json_obj_end(json);
}

static void reply_events(struct silo *silo, struct web_conn *conn, uint64_t after)
{
	struct buf body;
	struct json json;
	struct record_event event;
	uint64_t last = recorder_last(silo);
	uint64_t first = recorder_first(silo);
	uint64_t seq = first > after ? first : after + 1;
	buf_init(&body, BODY_MAX);
	json_init(&json, &body, true);
	json_obj(&json);
	json_key(&json, "events");
	json_arr(&json);
	for (; seq <= last && recorder_get(silo, seq, &event); seq++)
		put_event(&json, &event);
	json_arr_end(&json);
	json_kv_u64(&json, "lastSeq", last);
	json_kv_u64(&json, "missed", first > after + 1 ? first - after - 1 : 0);
	json_obj_end(&json);
	buf_add_u8(&body, '\n');
	if (body.err)
		web_reply_text(conn, 500, "text/plain", "out of memory\n");
	else
		web_reply(conn, 200, "application/json", body.data, body.len);
	buf_done(&body);
}

/* --- waiting ------------------------------------------------------------- */

static void waiting_free(struct waiting *waiting)
{
	io_timer_stop(waiting->silo->io, &waiting->clock);
	list_del(&waiting->event.node);
	mem_free(waiting);
}

static void answer(struct waiting *waiting)
{
	struct silo *silo = waiting->silo;
	struct web_conn *conn = waiting->web.conn;
	uint64_t after = waiting->after;
	waiting_free(waiting);
	reply_events(silo, conn, after);
}

static void on_event(struct record_wait *wait)
{
	answer(list_entry(wait, struct waiting, event));
}

static void expired(struct timer *timer, uint64_t now)
{
	(void)now;
	answer(list_entry(timer, struct waiting, clock));
}

static void gone(struct web_wait *wait)
{
	waiting_free(list_entry(wait, struct waiting, web));
}

static void wait_for_event(struct silo *silo, struct web_conn *conn, uint64_t after, uint64_t ms)
{
	struct waiting *waiting = mem_zalloc(1, sizeof(*waiting));
	if (!waiting) {
		reply_events(silo, conn, after);
		return;
	}
	waiting->silo = silo;
	waiting->after = after;
	waiting->web.gone = gone;
	waiting->event.on_event = on_event;
	list_init(&waiting->event.node);
	timer_init(&waiting->clock, expired);
	/* Without memory for a recorder there will be no event: the time is all that is waited for. */
	(void)recorder_wait(silo, &waiting->event);
	io_timer_start(silo->io, &waiting->clock, ms);
	web_conn_wait(conn, &waiting->web);
}

/* A number of the query; 0 when it is absent. Negative: it is none. */
static int get_number(const struct http_request *request, const char *name, uint64_t *ret_value)
{
	char text[NUMBER_MAX];
	char *end;
	int r = http_query_get(request, name, text, sizeof(text));
	*ret_value = 0;
	if (r <= 0)
		return r;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

void admin_events_serve(struct silo *silo, struct web_conn *conn, const struct http_request *request)
{
	uint64_t after;
	uint64_t ms;
	if (get_number(request, "after", &after) < 0 || get_number(request, "wait", &ms) < 0) {
		web_reply_text(conn, 400, "text/plain", "GET /events?after=SEQ&wait=MILLISECONDS\n");
		return;
	}
	uint64_t last = recorder_last(silo);
	if (after > last)
		after = 0;
	if (ms > ADMIN_EVENTS_WAIT_MAX)
		ms = ADMIN_EVENTS_WAIT_MAX;
	if (last > after || ms == 0)
		reply_events(silo, conn, after);
	else
		wait_for_event(silo, conn, after, ms);
}
