/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resources of the control plane on their way into the store: taken apart,
 * decoded, inserted, answered, as the broker does it. First 10,000 workloads
 * in one response, then changes of single ones. What follows in the broker,
 * telling the silos that asked, is not counted.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "cost.h"
#include "meshes.h"
#include "pb/codec.h"
#include "xds/delta.h"

#define SERVICES 500
#define WORKLOADS 10000
#define UPDATES 200
/* Ceilings of what is written here: one workload, one response. */
#define PART_MAX (64u << 10)
#define RESPONSE_MAX (16u << 20)
/* A response comes in pieces of the size of a DATA frame. */
#define PIECE 16384u

struct world {
	struct store *store;
	struct xds_delta *delta;
	struct buf response; /* the next one */
	struct buf part[4];  /* messages within messages, while they are written */
	size_t changes;      /* told by the store */
	size_t updated;      /* resources of the last response */
	unsigned requests;   /* sent */
};

/* --- the owner's side of the client ------------------------------------------------ */

static int on_send(void *ctx, const uint8_t *bytes, size_t len)
{
	((struct world *)ctx)->requests++;
	return 0;
}

static int on_apply(void *ctx, const char *name, const struct xds_record *record, struct err *err)
{
	struct world *w = ctx;
	ASSERT(record->kind == XDS_WORKLOAD);
	return store_insert_workload(w->store, record->workload, STORE_XDS);
}

static void on_remove(void *ctx, enum xds_type type, const char *name)
{
	store_remove_address(((struct world *)ctx)->store, name);
}

static int on_each_name(void *ctx, enum xds_type type, xds_name_fn *fn, void *fn_ctx)
{
	store_each_name(((struct world *)ctx)->store,
	        type == XDS_TYPE_POLICY ? STORE_RESOURCE_POLICY : STORE_RESOURCE_ADDRESS, fn, fn_ctx);
	return 0;
}

static void on_rejected(void *ctx, const char *name, const char *reason)
{
	fprintf(stderr, "cost: %s is refused: %s\n", name, reason);
	ASSERT(false);
}

static void on_answered(void *ctx, const char *key)
{
}

static void on_done(void *ctx, const struct xds_outcome *outcome)
{
	((struct world *)ctx)->updated = outcome->updated;
}

static const struct xds_delta_ops delta_ops = {
        on_send, on_apply, on_remove, on_each_name, on_rejected, on_answered, on_done};

static void on_changed(void *ctx, const struct store_change *change)
{
	((struct world *)ctx)->changes++;
}

/* --- the control plane -------------------------------------------------------------- */

static void put(struct buf *out, uint32_t tag, const void *p, size_t len)
{
	uint8_t head[CODEC_HEAD_MAX];
	buf_add(out, head, codec_head(tag, len, head));
	buf_add(out, p, len);
}

static void put_text(struct buf *out, uint32_t tag, const char *text)
{
	put(out, tag, text, strlen(text));
}

static void put_number(struct buf *out, uint32_t tag, uint64_t value)
{
	uint8_t field[CODEC_HEAD_MAX];
	buf_add(out, field, codec_varint(tag, value, field));
}

/* A message within a message; empties the inner one. */
static void put_part(struct buf *out, uint32_t tag, struct buf *inner)
{
	put(out, tag, inner->data, inner->len);
	buf_clear(inner);
}

/* istio.workload.Workload; numbers of fields as in proto/workload.proto. */
static void write_workload(struct world *w, struct buf *out, const struct meshes_workload *m)
{
	const struct workload *r = &m->record;
	struct buf *port = &w->part[2], *list = &w->part[3];
	char key[2 * MESHES_TEXT_MAX];
	put_text(out, 1, r->name);
	put_text(out, 2, r->ns);
	put(out, 3, m->ip.b, 4);
	put_number(out, 5, 1);
	put_text(out, 6, r->trust_domain);
	put_text(out, 7, r->service_account);
	put_text(out, 9, r->node);
	put_text(out, 10, r->canonical_name);
	put_text(out, 11, r->canonical_revision);
	put_text(out, 13, r->workload_name);
	put_text(out, 18, r->cluster_id);
	put_text(out, 20, r->uid);
	put_number(port, 1, m->port.service_port);
	put_number(port, 2, m->port.target_port);
	put_part(list, 1, port);
	snprintf(key, sizeof(key), "%s/%s", r->ns, m->host);
	put_text(port, 1, key);
	put_part(port, 2, list);
	put_part(out, 22, port);
}

/* One more resource of the response: Workload in Address in Any in Resource. */
static void add_workload(struct world *w, const struct meshes_workload *m, const char *version)
{
	struct buf *a = &w->part[0], *b = &w->part[1];
	write_workload(w, a, m);
	put_part(b, 1, a);
	put_text(a, 1, xds_type_url(XDS_TYPE_ADDRESS));
	put_part(a, 2, b);
	put_text(b, XDS_RESOURCE_VERSION, version);
	put_part(b, XDS_RESOURCE_ANY, a);
	put_text(b, XDS_RESOURCE_NAME, m->uid);
	put_part(&w->response, XDS_RESPONSE_RESOURCES, b);
}

static void end_response(struct world *w)
{
	put_text(&w->response, XDS_RESPONSE_TYPE_URL, xds_type_url(XDS_TYPE_ADDRESS));
	put_text(&w->response, XDS_RESPONSE_NONCE, "nonce");
	ASSERT(w->response.err == 0);
}

/* --- figures ------------------------------------------------------------------------ */

static void receive(void *ctx)
{
	struct world *w = ctx;
	struct err err;
	for (size_t at = 0; at < w->response.len; at += PIECE) {
		size_t left = w->response.len - at, len = left < PIECE ? left : PIECE;
		int r = xds_delta_bytes(w->delta, w->response.data + at, len, len == left, &err);
		ASSERT(r == 0);
	}
}

static void world_init(struct world *w)
{
	const struct store_watcher watcher = {.ctx = w, .changed = on_changed};
	memset(w, 0, sizeof(*w));
	buf_init(&w->response, RESPONSE_MAX);
	for (int i = 0; i < 4; i++)
		buf_init(&w->part[i], PART_MAX);
	w->store = store_new("node");
	meshes_put_services(w->store, SERVICES);
	store_watch(w->store, &watcher);
	w->delta = xds_delta_new(&delta_ops, w, (const uint8_t *)"", 0, false);
	int r = xds_delta_open(w->delta);
	ASSERT(r == 0);
}

static void world_done(struct world *w)
{
	xds_delta_free(w->delta);
	store_free(w->store);
	for (int i = 0; i < 4; i++)
		buf_done(&w->part[i]);
	buf_done(&w->response);
}

void cost_xds(void)
{
	struct meshes_workload m;
	struct world w;
	world_init(&w);
	for (unsigned i = 0; i < WORKLOADS; i++) {
		meshes_workload(i, SERVICES, 8080, &m);
		add_workload(&w, &m, "1");
	}
	end_response(&w);
	cost_count(receive, &w);
	ASSERT(w.updated == WORKLOADS);
	cost_figure_end("xds-load", WORKLOADS);
	for (unsigned i = 0; i < UPDATES; i++) {
		size_t changes = w.changes;
		unsigned requests = w.requests;
		buf_clear(&w.response);
		meshes_workload(i * (WORKLOADS / UPDATES), SERVICES, 9090, &m);
		add_workload(&w, &m, "2");
		end_response(&w);
		cost_count(receive, &w);
		ASSERT(w.updated == 1 && w.changes > changes && w.requests == requests + 1);
	}
	cost_figure_end("xds-update", UPDATES);
	world_done(&w);
}
