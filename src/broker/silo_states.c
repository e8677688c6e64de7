/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to all silos, and their answers as JSON; see silo_states.h. */
#include "broker/silo_states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/silo_peer.h"

/* One page of connections. */
struct page {
	struct page *next;
	const struct ipc_connection *all;
	size_t cnt;
};

/* What one pod's silo told. */
struct pod_state {
	struct silo_state_ask ask;
	struct silo_states *states;
	const char *uid, *name, *ns, *service_account; /* in the arena */
	bool is_up;
	bool was_up;    /* its proxy has run once */
	bool is_self;   /* the daemon's own: no workload */
	bool is_silent; /* it was asked and did not answer to the end */
	struct page *first, *last;
	const struct ipc_certificate *certificate; /* NULL = none told */
};

struct silo_states {
	struct broker *broker;
	void (*done)(void *ctx);
	void *ctx;
	struct arena *arena;
	struct pod_state *pods;       /* cnt, in the arena; by arrival */
	struct pod_state **by_uid;    /* the same in order */
	struct pod_state **by_spiffe; /* the same in order of identity, then uid */
	size_t cnt;
	size_t awaited;
	bool is_asking; /* inside of silo_states_new() */
};

/* --- keeping ------------------------------------------------------------- */

static void keep_connections(struct pod_state *pod, const struct ipc_answer_state *state)
{
	struct arena *arena = pod->states->arena;
	struct page *page = arena_zalloc(arena, 1, sizeof(*page));
	struct ipc_connection *all = arena_zalloc(arena, state->connection_cnt, sizeof(*all));
	if (!page || !all)
		return;
	for (size_t i = 0; i < state->connection_cnt; i++) {
		all[i] = state->connections[i];
		all[i].original_dst = arena_strdup(arena, all[i].original_dst);
		all[i].protocol = arena_strdup(arena, all[i].protocol);
		if (!all[i].original_dst || !all[i].protocol)
			return;
	}
	*page = (struct page){.all = all, .cnt = state->connection_cnt};
	if (pod->last)
		pod->last->next = page;
	else
		pod->first = page;
	pod->last = page;
}

static const struct ipc_cert *keep_certs(struct arena *arena, const struct ipc_cert *certs, size_t cnt)
{
	struct ipc_cert *all = arena_zalloc(arena, cnt ? cnt : 1, sizeof(*all));
	for (size_t i = 0; all && i < cnt; i++) {
		all[i] = certs[i];
		all[i].pem = arena_strdup(arena, certs[i].pem);
		all[i].serial = arena_strdup(arena, certs[i].serial);
		if (!all[i].pem || !all[i].serial)
			return NULL;
	}
	return all;
}

static void keep_certificate(struct pod_state *pod, const struct ipc_certificate *told)
{
	struct arena *arena = pod->states->arena;
	struct ipc_certificate *mine = arena_zalloc(arena, 1, sizeof(*mine));
	if (!mine)
		return;
	*mine = *told;
	mine->identity = arena_strdup(arena, told->identity);
	mine->state = arena_strdup(arena, told->state);
	mine->chain = keep_certs(arena, told->chain, told->chain_cnt);
	mine->roots = keep_certs(arena, told->roots, told->root_cnt);
	if (mine->identity && mine->state && mine->chain && mine->roots)
		pod->certificate = mine;
}

/* --- asking -------------------------------------------------------------- */

static int by_uid(const void *a, const void *b)
{
	const struct pod_state *const *x = a, *const *y = b;
	return strcmp((*x)->uid, (*y)->uid);
}

static int by_spiffe(const void *a, const void *b)
{
	const struct pod_state *const *x = a, *const *y = b;
	const struct ipc_certificate *c = (*x)->certificate, *d = (*y)->certificate;
	int order = !c || !d ? (c == NULL) - (d == NULL) : strcmp(c->identity, d->identity);
	return order ? order : by_uid(a, b);
}

static void complete(struct silo_states *states)
{
	qsort(states->by_uid, states->cnt, sizeof(struct pod_state *), by_uid);
	qsort(states->by_spiffe, states->cnt, sizeof(struct pod_state *), by_spiffe);
	if (!states->is_asking)
		states->done(states->ctx);
}

static void on_page(struct silo_state_ask *ask, const struct ipc_answer_state *state)
{
	struct pod_state *pod = list_entry(ask, struct pod_state, ask);
	if (state && state->connection_cnt > 0)
		keep_connections(pod, state);
	if (state && state->certificate_cnt > 0)
		keep_certificate(pod, &state->certificates[0]);
	pod->is_silent = !state;
	if ((!state || state->last) && --pod->states->awaited == 0)
		complete(pod->states);
}

static void add_pod(struct silo_states *states, const struct pod *pod)
{
	struct pod_state *state = &states->pods[states->cnt];
	struct arena *arena = states->arena;
	*state = (struct pod_state){
	        .states = states,
	        .uid = arena_strdup(arena, pod->uid),
	        .name = arena_strdup(arena, pod->name),
	        .ns = arena_strdup(arena, pod->ns),
	        .service_account = arena_strdup(arena, pod->service_account),
	        .is_up = pod->is_up,
	        .was_up = pod->is_up || pod->restarts > 0,
	        .is_self = pod->is_self,
	};
	if (!state->uid || !state->name || !state->ns || !state->service_account)
		return;
	states->by_uid[states->cnt] = state;
	states->by_spiffe[states->cnt] = state;
	states->cnt++;
	state->ask.page = on_page;
	if (silo_peer_ask_state(states->broker, pod->uid, IPC_STATE_CONNECTIONS | IPC_STATE_CERTIFICATES,
	            &state->ask) == 0)
		states->awaited++;
	else
		state->is_silent = pod->is_up;
}

int silo_states_new(
        struct broker *broker, void (*done)(void *ctx), void *ctx, struct silo_states **ret_states)
{
	struct silo_states *states = mem_zalloc(1, sizeof(*states));
	size_t room = broker->pod_cnt + 1;
	if (!states)
		return -ENOMEM;
	*states = (struct silo_states){.broker = broker, .done = done, .ctx = ctx};
	states->arena = arena_new(SILO_STATES_MAX);
	if (states->arena) {
		states->pods = arena_zalloc(states->arena, room, sizeof(*states->pods));
		states->by_uid = arena_zalloc(states->arena, room, sizeof(*states->by_uid));
		states->by_spiffe = arena_zalloc(states->arena, room, sizeof(*states->by_spiffe));
	}
	if (!states->pods || !states->by_uid || !states->by_spiffe) {
		silo_states_free(states);
		return -ENOMEM;
	}
	states->is_asking = true;
	list_for_each(it, &broker->pods) add_pod(states, list_entry(it, struct pod, node));
	if (states->awaited == 0)
		complete(states);
	states->is_asking = false;
	*ret_states = states;
	return 0;
}

void silo_states_free(struct silo_states *states)
{
	if (!states)
		return;
	for (size_t i = 0; i < states->cnt; i++)
		silo_peer_cancel_state(&states->pods[i].ask);
	arena_unref(states->arena);
	mem_free(states);
}

bool silo_states_is_complete(const struct silo_states *states)
{
	return states->awaited == 0;
}

size_t silo_states_cnt(const struct silo_states *states)
{
	return states->cnt;
}

/* --- writing ------------------------------------------------------------- */

/* Base64 of a PEM text on one line (control.md 11.5; RFC 4648 4). */
static void put_base64(struct json *json, const char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text);
	char *out = mem_alloc(len / 3 * 4 + 5);
	size_t n = 0;
	if (!out) {
		json_null(json);
		return;
	}
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t bits = (uint32_t)(uint8_t)text[i] << 16;
		bits |= left > 1 ? (uint32_t)(uint8_t)text[i + 1] << 8 : 0;
		bits |= left > 2 ? (uint8_t)text[i + 2] : 0;
		out[n++] = digits[bits >> 18];
		out[n++] = digits[bits >> 12 & 63];
		out[n++] = left > 1 ? digits[bits >> 6 & 63] : '=';
		out[n++] = left > 2 ? digits[bits & 63] : '=';
	}
	json_strn(json, out, n);
	mem_free(out);
}

static void put_certs(struct json *json, const char *key, const struct ipc_cert *certs, size_t cnt)
{
	char time[CLOCK_STR_MAX];
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < cnt; i++) {
		json_obj(json);
		clock_format(certs[i].expires * 1000000, 0, time);
		json_kv_str(json, "expirationTime", time);
		json_key(json, "pem");
		put_base64(json, certs[i].pem);
		json_kv_str(json, "serialNumber", certs[i].serial);
		clock_format(certs[i].valid_from * 1000000, 0, time);
		json_kv_str(json, "validFrom", time);
		json_obj_end(json);
	}
	json_arr_end(json);
}

void silo_states_put_certificate(struct json *json, const struct silo_states *states, size_t i)
{
	const struct ipc_certificate *c = states->by_spiffe[i]->certificate;
	if (!c)
		return;
	json_obj(json);
	put_certs(json, "certChain", c->chain, c->chain_cnt);
	json_kv_str(json, "identity", c->identity);
	put_certs(json, "rootCerts", c->roots, c->root_cnt);
	json_kv_str(json, "state", c->state);
	json_obj_end(json);
}

static void put_connection(struct json *json, const struct ipc_connection *c)
{
	char text[ADDR_STR_MAX];
	json_obj(json);
	json_kv_str(json, "actualDst", addr_format(&c->actual_dst, text));
	json_kv_str(json, "originalDst", c->original_dst[0] ? c->original_dst : NULL);
	json_kv_str(json, "protocol", c->protocol);
	json_kv_str(json, "src", addr_format(&c->src, text));
	json_obj_end(json);
}

static void put_page(struct json *json, const struct page *page, bool is_inbound)
{
	for (size_t i = 0; i < page->cnt; i++)
		if (page->all[i].inbound == is_inbound)
			put_connection(json, &page->all[i]);
}

static void put_info(struct json *json, const struct pod_state *pod)
{
	json_key(json, "info");
	json_obj(json);
	json_kv_str(json, "name", pod->name);
	json_kv_str(json, "namespace", pod->ns);
	json_kv_str(json, "serviceAccount", pod->service_account);
	json_obj_end(json);
	/* Ours; istioctl skips it. */
	if (pod->is_silent)
		json_kv_str(json, "note", "the silo did not answer in time: its connections are not known");
	json_kv_str(json, "state", pod->is_up ? "Up" : "Pending");
}

/* The phases of a pod: what comes before its connections, inbound pages, outbound pages. */
enum { POD_HEAD, POD_INBOUND, POD_OUTBOUND };

static void open_connections(struct json *json, const struct pod_state *pod,
        struct silo_states_cursor *cursor, unsigned phase, const char *key)
{
	json_key(json, key);
	json_arr(json);
	*cursor = (struct silo_states_cursor){.phase = phase, .page = pod->first};
}

bool silo_states_put_pod(
        struct json *json, const struct silo_states *states, size_t i, struct silo_states_cursor *cursor)
{
	const struct pod_state *pod = states->by_uid[i];
	const struct page *page = cursor->page;
	if (pod->is_self)
		return false;
	if (cursor->phase == POD_HEAD) {
		json_key(json, pod->uid);
		json_obj(json);
		if (pod->was_up) {
			json_key(json, "connections");
			json_obj(json);
			open_connections(json, pod, cursor, POD_INBOUND, "inbound");
			return true;
		}
	} else if (page) {
		put_page(json, page, cursor->phase == POD_INBOUND);
		cursor->page = page->next;
		return true;
	} else {
		json_arr_end(json);
		if (cursor->phase == POD_INBOUND) {
			open_connections(json, pod, cursor, POD_OUTBOUND, "outbound");
			return true;
		}
		json_obj_end(json);
	}
	put_info(json, pod);
	json_obj_end(json);
	*cursor = (struct silo_states_cursor){0};
	return false;
}
