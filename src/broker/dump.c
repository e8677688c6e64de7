/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a dump in their order, and how far the writing is; see dump.h. */
#include "broker/dump.h"

#include <errno.h>

#include "base/json.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/dump_config.h"
#include "broker/dump_mesh.h"
#include "broker/silo_states.h"
#include "conn/web.h"

static const char TARGET[] = "ztunnel::admin";

/* Room for the names of what is pending. */
#define PENDING_MAX 256

/* A dump under way. */
struct dump {
	struct web_wait wait;
	struct web_source source;
	struct broker *broker;
	struct silo_states *states;
	struct json json;
	struct buf *out;         /* the piece being written */
	bool is_short;           /* of the parts only those of /culvert/state */
	size_t part;             /* index into PARTS */
	bool is_open;            /* the part's key and opening bracket are written */
	size_t at;               /* element of the part */
	struct store_keys *keys; /* of the part's records */
	struct dump_service service;
	struct silo_states_cursor cursor;
};

/* How a part goes on: 1 (call again), 0 (the part is complete), or a negative errno. */
typedef int part_fn(struct dump *dump);

static bool is_full(const struct dump *dump)
{
	return dump->out->len >= WEB_PIECE_LEN;
}

/* --- parts of records ---------------------------------------------------- */

/* Writes one record; 0, -ENOENT, -ENOMEM. */
typedef int show_fn(struct dump *dump);

/* Goes through the records of a kind as far as the piece has room. */
static int each_record(
        struct dump *dump, enum store_kind kind, const enum store_origin *origin, show_fn *show)
{
	if (!dump->keys) {
		int r = store_keys_new(dump->broker->store, kind, origin, &dump->keys);
		if (r < 0)
			return r;
	}
	size_t cnt = store_keys_cnt(dump->keys);
	for (; dump->at < cnt && !is_full(dump); dump->at += !dump->service.is_open) {
		int r = show(dump);
		if (r < 0 && r != -ENOENT)
			return r;
		if (dump->service.is_cut)
			return -ENOMEM;
	}
	if (dump->at < cnt)
		return 1;
	store_keys_free(dump->keys);
	dump->keys = NULL;
	return 0;
}

static int show_policy(struct dump *dump)
{
	return store_show_policy(dump->broker->store, dump->keys, dump->at, dump_policy, &dump->json);
}

static int show_service(struct dump *dump)
{
	int r = store_show_service(dump->broker->store, dump->keys, dump->at, dump_service, &dump->service);
	if (r == -ENOENT)
		dump_service_gone(&dump->service);
	return r;
}

static int show_staged(struct dump *dump)
{
	int r = store_show_service(dump->broker->store, dump->keys, dump->at, dump_staged, &dump->service);
	if (r == -ENOENT)
		dump_staged_gone(&dump->service);
	return r;
}

static int show_workload(struct dump *dump)
{
	return store_show_workload(dump->broker->store, dump->keys, dump->at, dump_workload, &dump->json);
}

static int show_static_workload(struct dump *dump)
{
	return store_show_workload(
	        dump->broker->store, dump->keys, dump->at, dump_static_workload, &dump->json);
}

static const enum store_origin FROM_FILE = STORE_FILE;

static int policies(struct dump *dump)
{
	return each_record(dump, STORE_POLICIES, NULL, show_policy);
}

static int services(struct dump *dump)
{
	return each_record(dump, STORE_SERVICES, NULL, show_service);
}

static int staged_services(struct dump *dump)
{
	return each_record(dump, STORE_STAGED, NULL, show_staged);
}

static int workloads(struct dump *dump)
{
	return each_record(dump, STORE_WORKLOADS, NULL, show_workload);
}

static int static_policies(struct dump *dump)
{
	return each_record(dump, STORE_POLICIES, &FROM_FILE, show_policy);
}

static int static_services(struct dump *dump)
{
	return each_record(dump, STORE_SERVICES, &FROM_FILE, show_service);
}

static int static_workloads(struct dump *dump)
{
	return each_record(dump, STORE_WORKLOADS, &FROM_FILE, show_static_workload);
}

/* --- other parts --------------------------------------------------------- */

static int certificates(struct dump *dump)
{
	for (; dump->at < silo_states_cnt(dump->states) && !is_full(dump); dump->at++)
		silo_states_put_certificate(&dump->json, dump->states, dump->at);
	return dump->at < silo_states_cnt(dump->states);
}

static int workload_state(struct dump *dump)
{
	while (dump->at < silo_states_cnt(dump->states) && !is_full(dump))
		dump->at += !silo_states_put_pod(&dump->json, dump->states, dump->at, &dump->cursor);
	return dump->at < silo_states_cnt(dump->states);
}

static int config(struct dump *dump)
{
	return dump_config(&dump->json, &dump->broker->settings);
}

static int version(struct dump *dump)
{
	dump_version(&dump->json, &dump->broker->settings);
	return 0;
}

static int health(struct dump *dump)
{
	char pending[PENDING_MAX];
	broker_pending_text(dump->broker, pending, sizeof(pending));
	json_kv_bool(&dump->json, "isReady", !pending[0]);
	json_kv_str(&dump->json, "pending", pending);
	return 0;
}

/* Where a part belongs. */
enum {
	IN_DUMP = 1,   /* /config_dump */
	IN_STATE = 2,  /* /culvert/state */
	FOR_AGENT = 4, /* in the dump only where there is a node agent (control.md 14) */
};

/* What surrounds the elements of a part. */
enum brackets {
	AROUND_ARRAY,  /* [] */
	AROUND_OBJECT, /* {} */
	AROUND_OPEN,   /* {, closed by a later part */
	AROUND_CLOSE,  /* } of an earlier part */
};

/* The dump: keys in alphabetical order. */
static const struct part {
	const char *key;
	enum brackets around;
	part_fn *go_on; /* NULL: brackets only */
	unsigned where; /* IN_DUMP, IN_STATE */
} PARTS[] = {
        {"certificates", AROUND_ARRAY, certificates, IN_DUMP | IN_STATE},
        {"config", AROUND_OBJECT, config, IN_DUMP},
        {"health", AROUND_OBJECT, health, IN_STATE},
        {"policies", AROUND_ARRAY, policies, IN_DUMP},
        {"services", AROUND_ARRAY, services, IN_DUMP},
        {"stagedServices", AROUND_OBJECT, staged_services, IN_DUMP},
        {"staticConfig", AROUND_OPEN, NULL, IN_DUMP},
        {"policies", AROUND_ARRAY, static_policies, IN_DUMP},
        {"services", AROUND_ARRAY, static_services, IN_DUMP},
        {"workloads", AROUND_ARRAY, static_workloads, IN_DUMP},
        {NULL, AROUND_CLOSE, NULL, IN_DUMP},
        {"version", AROUND_OBJECT, version, IN_DUMP | IN_STATE},
        {"workloadState", AROUND_OBJECT, workload_state, IN_DUMP | IN_STATE | FOR_AGENT},
        {"workloads", AROUND_ARRAY, workloads, IN_DUMP},
};
#define PART_CNT (sizeof(PARTS) / sizeof(PARTS[0]))

static void open_part(struct dump *dump, const struct part *part)
{
	if (part->key)
		json_key(&dump->json, part->key);
	if (part->around == AROUND_ARRAY)
		json_arr(&dump->json);
	else if (part->around != AROUND_CLOSE)
		json_obj(&dump->json);
	dump->is_open = true;
	dump->at = 0;
}

static void close_part(struct dump *dump, const struct part *part)
{
	if (part->around == AROUND_ARRAY)
		json_arr_end(&dump->json);
	else if (part->around != AROUND_OPEN)
		json_obj_end(&dump->json);
	dump->is_open = false;
	dump->part++;
}

static bool is_wanted(const struct dump *dump, const struct part *part)
{
	if (dump->is_short)
		return part->where & IN_STATE;
	return (part->where & IN_DUMP) && !(part->where & FOR_AGENT && dump->broker->settings.dedicated);
}

static int write_piece(struct dump *dump)
{
	while (dump->part < PART_CNT && !is_full(dump)) {
		const struct part *part = &PARTS[dump->part];
		if (!is_wanted(dump, part)) {
			dump->part++;
			continue;
		}
		if (!dump->is_open)
			open_part(dump, part);
		int r = part->go_on ? part->go_on(dump) : 0;
		if (r < 0)
			return r;
		if (r == 0)
			close_part(dump, part);
	}
	if (dump->part < PART_CNT)
		return 1;
	json_obj_end(&dump->json);
	return 0;
}

/* --- life ---------------------------------------------------------------- */

static void dump_free(struct dump *dump)
{
	dump->broker->dump_cnt--;
	silo_states_free(dump->states);
	store_keys_free(dump->keys);
	mem_free(dump->service.last_uid);
	mem_free(dump);
}

static int next_piece(struct web_source *source, struct buf *out)
{
	struct dump *dump = list_entry(source, struct dump, source);
	dump->out = out;
	if (dump->part == 0 && !dump->is_open) {
		json_init(&dump->json, out, true);
		json_obj(&dump->json);
	}
	dump->json.out = out;
	int r = write_piece(dump);
	if (r < 0)
		log_msg(&dump->broker->log, LOG_ERROR, TARGET, "config dump is cut: %s", err_str(r));
	return r;
}

static void on_done(struct web_source *source)
{
	dump_free(list_entry(source, struct dump, source));
}

static void on_gone(struct web_wait *wait)
{
	dump_free(list_entry(wait, struct dump, wait));
}

static void begin(void *ctx)
{
	const struct http_header type = {.name = "content-type", .value = "application/json"};
	struct dump *dump = ctx;
	web_stream(dump->wait.conn, 200, &type, 1, &dump->source);
}

static void start(struct broker *broker, struct web_conn *conn, bool is_short)
{
	if (broker->dump_cnt >= DUMPS_MAX) {
		web_reply_text(conn, 503, "text/plain", "too many dumps at once, try again\n");
		return;
	}
	struct dump *dump = mem_zalloc(1, sizeof(*dump));
	if (!dump) {
		web_reply_text(conn, 500, NULL, err_str(-ENOMEM));
		return;
	}
	*dump = (struct dump){.broker = broker,
	        .is_short = is_short,
	        .wait = {.gone = on_gone},
	        .source = {.next = next_piece, .done = on_done},
	        .service = {.json = &dump->json}};
	int r = silo_states_new(broker, begin, dump, &dump->states);
	if (r < 0) {
		mem_free(dump);
		web_reply_text(conn, 500, NULL, err_str(r));
		return;
	}
	broker->dump_cnt++;
	web_conn_wait(conn, &dump->wait);
	if (silo_states_is_complete(dump->states))
		begin(dump);
}

void dump_serve(struct broker *broker, struct web_conn *conn)
{
	start(broker, conn, false);
}

void dump_serve_state(struct broker *broker, struct web_conn *conn)
{
	start(broker, conn, true);
}
