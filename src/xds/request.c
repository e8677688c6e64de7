/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests: the first one of each type with what we hold, replies, demands;
 * see delta.h. On demand every name must be told, or the server would forget
 * it: what does not fit the first request follows as subscriptions.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "xds/delta_int.h"

/* Bytes of names in one subscription request. */
#define SUBSCRIBE_MAX (256u << 10)
/* Bytes of a request beside versions: node, metadata and type. */
#define REQUEST_BASE_MAX (1u << 20)

static int send_request(struct xds_delta *d, struct buf *out)
{
	int rc = out->err;
	if (rc == 0)
		rc = d->ops->send(d->ctx, out->data, out->len);
	return rc;
}

/* --- versions ------------------------------------------------------------- */

/* A walk over all that is to be told of one type. */
struct walk {
	struct xds_delta *d;
	const struct xds_known *known;
	struct buf *out;
	size_t max;   /* bytes that out may have */
	bool is_full; /* some did not fit */
	size_t cnt;   /* names written */
	size_t skip;  /* names to pass over, in the second walk */
	int rc;
};

static bool tell(struct walk *w, const char *name, const char *version)
{
	if (w->out->len + strlen(name) + strlen(version) + 32 > w->max) {
		w->is_full = true;
		return false;
	}
	xds_request_version(w->out, name, version);
	w->cnt++;
	return w->out->err == 0;
}

static bool flush_names(struct walk *w)
{
	w->rc = send_request(w->d, w->out);
	buf_clear(w->out);
	xds_request_type(w->out, xds_type_url(XDS_TYPE_ADDRESS));
	return w->rc == 0;
}

static bool subscribe(struct walk *w, const char *name)
{
	if (w->skip) {
		w->skip--;
		return true;
	}
	xds_request_subscribe(w->out, name);
	w->cnt++;
	return w->out->len < SUBSCRIBE_MAX || flush_names(w);
}

static bool visit(struct walk *w, const char *name, const char *version)
{
	return w->max ? tell(w, name, version) : subscribe(w, name);
}

static bool visit_name(void *ctx, const char *name)
{
	struct walk *w = ctx;
	char version[XDS_VERSION_MAX + 1];
	if (xds_known_is_odd(w->known, name) || !xds_known_get(w->known, name, version))
		return true;
	return visit(w, name, version);
}

static bool visit_odd(void *ctx, const char *name, const char *version, bool is_stale)
{
	(void)is_stale;
	return visit(ctx, name, version);
}

/* Demanded keys that are no resource's name: the server is to look after them again. */
static bool visit_demands(struct walk *w)
{
	size_t cursor = 0;
	const struct xds_demand *demand;
	while ((demand = map_next(&w->d->demands, &cursor)))
		if (!xds_known_get(w->known, demand->key, NULL) && !visit(w, demand->key, ""))
			return false;
	return true;
}

/* Everything that we hold or want, in the same order each time. */
static int walk_all(struct walk *w, enum xds_type type)
{
	int rc = w->d->ops->each_name(w->d->ctx, type, visit_name, w);
	if (rc == 0 && !w->is_full && w->rc == 0)
		xds_known_each_odd(w->known, visit_odd, w);
	if (rc == 0 && !w->is_full && w->rc == 0 && type == XDS_TYPE_ADDRESS)
		visit_demands(w);
	return rc < 0 ? rc : w->rc;
}

/* --- the first request of a type ------------------------------------------ */

/* Appends versions; *ret_cnt names were told, *ret_full says that some did not fit. */
static int add_versions(
        struct xds_delta *d, enum xds_type type, struct buf *out, size_t *ret_cnt, bool *ret_full)
{
	size_t base = out->len;
	struct walk walk = {.d = d, .known = &d->subs[type].known, .out = out, .max = d->versions_max};
	int rc = walk_all(&walk, type);
	if (rc < 0)
		return rc;
	/* All or nothing: of half a report the server would not know what else to remove. */
	if (walk.is_full && !d->is_on_demand) {
		out->len = base;
		walk.cnt = 0;
	}
	*ret_cnt = walk.cnt;
	*ret_full = walk.is_full;
	return 0;
}

/* Subscribes to what did not fit the first request. */
static int subscribe_rest(struct xds_delta *d, enum xds_type type, size_t skip)
{
	struct buf out;
	struct walk walk = {.d = d, .known = &d->subs[type].known, .out = &out, .skip = skip};
	buf_init(&out, SUBSCRIBE_MAX + (64u << 10));
	xds_request_type(&out, xds_type_url(type));
	size_t empty = out.len;
	int rc = walk_all(&walk, type);
	if (rc == 0 && out.len > empty)
		rc = send_request(d, &out);
	buf_done(&out);
	return rc;
}

static int open_type(struct xds_delta *d, enum xds_type type)
{
	struct xds_sub *sub = &d->subs[type];
	struct buf out;
	size_t cnt = 0;
	bool is_full = false;
	buf_init(&out, XDS_REQUEST_MAX + REQUEST_BASE_MAX);
	xds_request_node(&out, d->node, d->node_len);
	xds_request_type(&out, xds_type_url(type));
	bool on_demand = d->is_on_demand && type == XDS_TYPE_ADDRESS;
	if (on_demand) {
		xds_request_subscribe(&out, "*");
		xds_request_unsubscribe(&out, "*");
	}
	int rc = add_versions(d, type, &out, &cnt, &is_full);
	if (rc == 0)
		rc = send_request(d, &out);
	if (cnt && out.len > d->versions_sent)
		d->versions_sent = out.len;
	buf_done(&out);
	xds_known_unmark(&sub->known);
	if (rc == 0 && is_full && on_demand)
		rc = subscribe_rest(d, type, cnt);
	else if (is_full)
		sub->resync = RESYNC_ASKED;
	return rc;
}

int xds_delta_open(struct xds_delta *d)
{
	int rc = 0;
	d->is_open = true;
	d->had_message = false;
	d->versions_sent = 0;
	for (unsigned i = 0; rc == 0 && i < XDS_TYPE_CNT; i++)
		rc = open_type(d, (enum xds_type)i);
	return rc;
}

/* --- later ones ----------------------------------------------------------- */

int xds_request_reply(struct xds_delta *d, const char *type_url, const char *nonce, const char *nack)
{
	struct buf out;
	buf_init(&out, 2 * XDS_TEXT_MAX + XDS_NACK_MAX + 64);
	xds_request_type(&out, type_url);
	xds_request_nonce(&out, nonce);
	if (nack[0])
		xds_request_error(&out, nack, strlen(nack));
	int rc = send_request(d, &out);
	buf_done(&out);
	return rc;
}

static int send_demand(struct xds_delta *d, const char *key)
{
	struct buf out;
	buf_init(&out, SUBSCRIBE_MAX);
	xds_request_type(&out, xds_type_url(XDS_TYPE_ADDRESS));
	xds_request_subscribe(&out, key);
	int rc = send_request(d, &out);
	buf_done(&out);
	return rc;
}

int xds_delta_demand(struct xds_delta *d, const char *key)
{
	size_t len = strlen(key) + 1;
	struct xds_demand *demand = map_get_str(&d->demands, key);
	if (demand)
		return demand->state == DEMAND_ANSWERED ? 0 : -EAGAIN;
	demand = mem_alloc(sizeof(*demand) + len);
	if (!demand)
		return -ENOMEM;
	demand->state = DEMAND_WAITS;
	memcpy(demand->key, key, len);
	int rc = map_put(&d->demands, demand, NULL);
	if (rc < 0) {
		mem_free(demand);
		return rc;
	}
	/* Without a stream, or when it breaks now, the next one's first request holds the key. */
	if (d->is_open)
		(void)send_demand(d, key);
	return -EAGAIN;
}
