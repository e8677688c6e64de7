/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gathers the silos' states, then writes the dump; see dump.h. */
#include "broker/dump.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/dump_mesh.h"
#include "broker/silo_peer.h"
#include "broker/web.h"

/* Memory for what all silos tell; what is beyond it is left out. */
#define STATES_MAX (64u << 20)
/* Most bytes of a dump: 100,000 workloads have some 60 MB. */
#define DUMP_MAX (256u << 20)

/* One page of connections, kept until all have come. */
struct page {
	struct page *next;
	const struct ipc_connection *all;
	size_t cnt;
};

/* What one pod's silo told. */
struct pod_state {
	struct silo_state_ask ask;
	struct dump *dump;
	const char *uid, *name, *ns, *service_account; /* in the dump's arena */
	bool is_up;
	struct page *pages;
	const struct ipc_certificate *certificate; /* NULL = none told */
};

/* A dump under way. */
struct dump {
	struct web_wait wait;
	struct broker *broker;
	struct arena *arena;
	struct pod_state *pods; /* array of cnt, in the arena */
	size_t cnt;
	size_t awaited;
};

/* --- keeping pages ------------------------------------------------------- */

static void keep_connections(struct pod_state *pod, const struct ipc_answer_state *state)
{
	struct arena *arena = pod->dump->arena;
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
	*page = (struct page){.next = pod->pages, .all = all, .cnt = state->connection_cnt};
	pod->pages = page;
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
	struct arena *arena = pod->dump->arena;
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

static void put_certificates(struct json *json, const struct dump *dump)
{
	json_key(json, "certificates");
	json_arr(json);
	for (size_t i = 0; i < dump->cnt; i++) {
		const struct ipc_certificate *c = dump->pods[i].certificate;
		if (!c)
			continue;
		json_obj(json);
		put_certs(json, "certChain", c->chain, c->chain_cnt);
		json_kv_str(json, "identity", c->identity);
		put_certs(json, "rootCerts", c->roots, c->root_cnt);
		json_kv_str(json, "state", c->state);
		json_obj_end(json);
	}
	json_arr_end(json);
}

static void put_connections(struct json *json, const char *key, const struct pod_state *pod, bool inbound)
{
	char text[ADDR_STR_MAX];
	json_key(json, key);
	json_arr(json);
	for (const struct page *page = pod->pages; page; page = page->next) {
		for (size_t i = 0; i < page->cnt; i++) {
			const struct ipc_connection *c = &page->all[i];
			if (c->inbound != inbound)
				continue;
			json_obj(json);
			json_kv_str(json, "actualDst", addr_format(&c->actual_dst, text));
			json_kv_str(json, "originalDst", c->original_dst[0] ? c->original_dst : NULL);
			json_kv_str(json, "protocol", c->protocol);
			json_kv_str(json, "src", addr_format(&c->src, text));
			json_obj_end(json);
		}
	}
	json_arr_end(json);
}

static void put_workload_state(struct json *json, const struct dump *dump)
{
	json_key(json, "workloadState");
	json_obj(json);
	for (size_t i = 0; i < dump->cnt; i++) {
		const struct pod_state *pod = &dump->pods[i];
		json_key(json, pod->uid);
		json_obj(json);
		if (pod->is_up) {
			json_key(json, "connections");
			json_obj(json);
			put_connections(json, "inbound", pod, true);
			put_connections(json, "outbound", pod, false);
			json_obj_end(json);
		}
		json_key(json, "info");
		json_obj(json);
		json_kv_str(json, "name", pod->name);
		json_kv_str(json, "namespace", pod->ns);
		json_kv_str(json, "serviceAccount", pod->service_account);
		json_obj_end(json);
		json_kv_str(json, "state", pod->is_up ? "Up" : "Pending");
		json_obj_end(json);
	}
	json_obj_end(json);
}

static int write_dump(const struct dump *dump, struct buf *body)
{
	const struct store *store = dump->broker->store;
	struct json json;
	json_init(&json, body, true);
	json_obj(&json);
	put_certificates(&json, dump);
	int r = dump_policies(&json, store);
	if (r == 0)
		r = dump_services(&json, store);
	json_key(&json, "version");
	json_obj(&json);
	json_kv_str(&json, "istioVersion", dump->broker->settings.istio_version);
	json_kv_str(&json, "version", CULVERT_VERSION);
	json_obj_end(&json);
	if (!dump->broker->settings.dedicated)
		put_workload_state(&json, dump);
	if (r == 0)
		r = dump_workloads(&json, store);
	json_obj_end(&json);
	return r < 0 ? r : body->err;
}

/* --- life ---------------------------------------------------------------- */

static void dump_free(struct dump *dump)
{
	for (size_t i = 0; i < dump->cnt; i++)
		silo_peer_cancel_state(&dump->pods[i].ask);
	arena_unref(dump->arena);
	mem_free(dump);
}

static void finish(struct dump *dump)
{
	struct web_conn *conn = dump->wait.conn;
	struct buf body;
	buf_init(&body, DUMP_MAX);
	int r = write_dump(dump, &body);
	dump_free(dump);
	if (r == 0)
		web_reply(conn, 200, "application/json", body.data, body.len);
	else
		web_reply_text(conn, 500, NULL, err_str(r));
	buf_done(&body);
}

static void on_page(struct silo_state_ask *ask, const struct ipc_answer_state *state)
{
	struct pod_state *pod = list_entry(ask, struct pod_state, ask);
	if (state && state->connection_cnt > 0)
		keep_connections(pod, state);
	if (state && state->certificate_cnt > 0)
		keep_certificate(pod, &state->certificates[0]);
	if ((!state || state->last) && --pod->dump->awaited == 0)
		finish(pod->dump);
}

static void on_gone(struct web_wait *wait)
{
	dump_free(list_entry(wait, struct dump, wait));
}

/* Notes a pod and asks its silo. */
static void add_pod(struct dump *dump, const struct pod *pod)
{
	struct pod_state *state = &dump->pods[dump->cnt];
	*state = (struct pod_state){
	        .dump = dump,
	        .uid = arena_strdup(dump->arena, pod->uid),
	        .name = arena_strdup(dump->arena, pod->name),
	        .ns = arena_strdup(dump->arena, pod->ns),
	        .service_account = arena_strdup(dump->arena, pod->service_account),
	        .is_up = pod->is_up,
	};
	if (!state->uid || !state->name || !state->ns || !state->service_account)
		return;
	dump->cnt++;
	state->ask.page = on_page;
	if (silo_peer_ask_state(
	            dump->broker, pod->uid, IPC_STATE_CONNECTIONS | IPC_STATE_CERTIFICATES, &state->ask) == 0)
		dump->awaited++;
}

void dump_serve(struct broker *broker, struct web_conn *conn)
{
	struct dump *dump = mem_zalloc(1, sizeof(*dump));
	struct arena *arena = arena_new(STATES_MAX);
	struct pod_state *pods = arena ? arena_zalloc(arena, broker->pod_cnt + 1, sizeof(*pods)) : NULL;
	if (!dump || !pods) {
		arena_unref(arena);
		mem_free(dump);
		web_reply_text(conn, 500, NULL, err_str(-ENOMEM));
		return;
	}
	*dump = (struct dump){.broker = broker, .arena = arena, .pods = pods};
	dump->wait.gone = on_gone;
	web_conn_wait(conn, &dump->wait);
	list_for_each(it, &broker->pods) add_pod(dump, list_entry(it, struct pod, node));
	if (dump->awaited == 0)
		finish(dump);
}
