/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Responses: applying, remembering, answering; see delta.h. Requests are in request.c. */
#include "xds/delta.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "culvert/limits.h"
#include "xds/delta_int.h"

/* Bytes of either half of a NACK's text, so that both and the number of the rest fit. */
#define REASONS_MAX (XDS_NACK_MAX / 2 - 64)

static const struct xds_splitter_ops SPLITTER_OPS;

/* --- life ----------------------------------------------------------------- */

static struct map_key demand_key(const void *item)
{
	return map_key_str(((const struct xds_demand *)item)->key);
}

/* Forgets what belonged to the response under way. */
static void message_reset(struct xds_delta *d)
{
	xds_splitter_reset(&d->splitter);
	buf_done(&d->message.held);
	buf_done(&d->message.removed);
	buf_done(&d->message.refused);
	buf_done(&d->message.malformed);
	mem_free(d->message.type_url);
	mem_free(d->message.nonce);
	d->message = (struct xds_message){.type = XDS_TYPE_UNKNOWN};
	buf_init(&d->message.held, XDS_HELD_MAX);
	buf_init(&d->message.removed, XDS_REMOVED_MAX);
	buf_init(&d->message.refused, XDS_NACK_MAX);
	buf_init(&d->message.malformed, XDS_NACK_MAX);
}

struct xds_delta *xds_delta_new(
        const struct xds_delta_ops *ops, void *ctx, const uint8_t *node, size_t node_len, bool is_on_demand)
{
	struct xds_delta *d = mem_zalloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->ops = ops;
	d->ctx = ctx;
	d->is_on_demand = is_on_demand;
	d->versions_max = XDS_REQUEST_MAX;
	for (int i = 0; i < XDS_TYPE_CNT; i++)
		xds_known_init(&d->subs[i].known);
	map_init(&d->demands, XDS_DEMANDS_MAX, demand_key);
	xds_splitter_init(&d->splitter, &SPLITTER_OPS, d);
	message_reset(d);
	d->node = mem_alloc(node_len ? node_len : 1);
	if (!d->node) {
		xds_delta_free(d);
		return NULL;
	}
	if (node_len)
		memcpy(d->node, node, node_len);
	d->node_len = node_len;
	/* On demand nobody knows what a complete set of addresses would be. */
	d->subs[XDS_TYPE_ADDRESS].is_warm = is_on_demand;
	return d;
}

void xds_delta_free(struct xds_delta *d)
{
	void *item;
	if (!d)
		return;
	message_reset(d);
	for (int i = 0; i < XDS_TYPE_CNT; i++)
		xds_known_done(&d->subs[i].known);
	while ((item = map_pop(&d->demands)))
		mem_free(item);
	map_done(&d->demands);
	mem_free(d->node);
	mem_free(d);
}

bool xds_delta_is_warm(const struct xds_delta *d)
{
	for (int i = 0; i < XDS_TYPE_CNT; i++)
		if (!d->subs[i].is_warm)
			return false;
	return true;
}

size_t xds_delta_known_cnt(const struct xds_delta *d, enum xds_type type)
{
	return xds_known_cnt(&d->subs[type].known);
}

void xds_delta_close(struct xds_delta *d, const struct grpc_status *status)
{
	/* The first thing sent was refused for its size: the next one is smaller. A server that is merely
	 * busy costs a full answer that way, once. */
	if (status->code == GRPC_RESOURCE_EXHAUSTED && !d->had_message && d->versions_sent)
		d->versions_max = d->versions_sent - 1;
	d->is_open = false;
	d->is_receiving = false;
	message_reset(d);
	/* What the whole state did not name is not known before it is in: the next stream begins anew. */
	for (int i = 0; i < XDS_TYPE_CNT; i++)
		d->subs[i].resync = RESYNC_NONE;
}

/* --- rejections ----------------------------------------------------------- */

/* Adds "<name>: <reason>" unless the text is full. Returns whether it did. */
static bool add_reason(struct buf *text, const char *name, const char *reason)
{
	if (text->err || text->len + strlen(name) + strlen(reason) + 4 > REASONS_MAX)
		return false;
	return buf_printf(text, "%s%s: %s", text->len ? "; " : "", name, reason) == 0;
}

static void reject(struct xds_delta *d, enum xds_type type, const char *name, int rc, const char *reason)
{
	bool is_malformed = rc == ERR_PROTOCOL || rc == ERR_BAD_UTF8;
	d->message.rejected++;
	if (!add_reason(is_malformed ? &d->message.malformed : &d->message.refused, name, reason))
		d->message.unlisted++;
	/* What was accepted before stays, with its version. */
	for (int i = 0; i < XDS_TYPE_CNT; i++)
		if (type == XDS_TYPE_UNKNOWN || (int)type == i)
			xds_known_mark(&d->subs[i].known, name);
	d->ops->rejected(d->ctx, name, reason);
}

/* --- demands -------------------------------------------------------------- */

static void note_answer(struct xds_delta *d, const char *key, size_t len)
{
	struct xds_demand *demand = map_get(&d->demands, key, len);
	if (demand && demand->state == DEMAND_WAITS) {
		demand->state = DEMAND_SEEN;
		d->message.answers++;
	}
}

static void tell_answers(struct xds_delta *d)
{
	size_t cursor = 0;
	struct xds_demand *demand;
	if (d->message.answers == 0)
		return;
	while ((demand = map_next(&d->demands, &cursor))) {
		if (demand->state != DEMAND_SEEN)
			continue;
		demand->state = DEMAND_ANSWERED;
		d->ops->answered(d->ctx, demand->key);
	}
}

/* --- resources ------------------------------------------------------------ */

/* Whether the store, asked for its names, will say this one. */
static bool keeps_name(const char *name, const struct xds_record *record)
{
	size_t ns_len;
	switch (record->kind) {
	case XDS_WORKLOAD:
		return strcmp(record->workload->uid, name) == 0;
	case XDS_SERVICE:
		ns_len = strlen(record->service->ns);
		return strncmp(record->service->ns, name, ns_len) == 0 && name[ns_len] == '/' &&
		       strcmp(record->service->hostname, name + ns_len + 1) == 0;
	case XDS_POLICY:
		break;
	}
	return true;
}

/* Decodes, applies and remembers one resource. */
static int accept_resource(struct xds_delta *d, enum xds_type type, const char *name, const char *version,
        const struct xds_resource *res, struct err *why)
{
	struct xds_record record;
	struct arena *arena = arena_new(LIMIT_RECORD_ARENA);
	if (!arena)
		return err_set(why, -ENOMEM, "out of memory");
	int rc = xds_decode(type, res->value, res->value_len, arena, &record, why);
	if (rc == 0)
		rc = d->ops->apply(d->ctx, name, &record, why);
	if (rc == 0) {
		/* A name that cannot be remembered could never be removed after a reconnect. */
		rc = xds_known_put(&d->subs[type].known, name, version, keeps_name(name, &record));
		if (rc < 0) {
			err_set(why, rc, "%s", err_str(rc));
			d->ops->remove(d->ctx, type, name);
			/* Of a former version nothing is left either: a reconnect must not claim it. */
			xds_known_del(&d->subs[type].known, name);
		}
	}
	arena_unref(arena);
	return rc;
}

static void note_aliases(struct xds_delta *d, const uint8_t *bytes, size_t len)
{
	const char *alias;
	size_t alias_len, at = 0;
	if (!d->is_on_demand)
		return;
	while (xds_resource_alias(bytes, len, &at, &alias, &alias_len) > 0)
		note_answer(d, alias, alias_len);
}

/* One entry of `resources` whose type is known. */
static int take(struct xds_delta *d, enum xds_type type, const uint8_t *bytes, size_t len, struct err *err)
{
	struct xds_resource res;
	struct err why = {0};
	char name[XDS_TEXT_MAX + 1], version[XDS_VERSION_MAX + 1];
	int rc = xds_resource_read(bytes, len, &res, err);
	if (rc < 0)
		return rc;
	size_t name_len = utf8_cut(res.name, res.name_len, XDS_TEXT_MAX);
	memcpy(name, res.name, name_len);
	name[name_len] = 0;
	/* A version too long to keep counts as none: the resource will come again. */
	size_t version_len = res.version_len > XDS_VERSION_MAX ? 0 : res.version_len;
	memcpy(version, res.version, version_len);
	version[version_len] = 0;
	d->message.value_bytes += res.value_len;
	if (name_len != res.name_len)
		rc = err_set(&why, ERR_TOO_LARGE, "its name has %zu bytes", res.name_len);
	else if (!res.has_any)
		rc = err_set(&why, ERR_PROTOCOL, "XDS payload without resource");
	else
		rc = accept_resource(d, type, name, version, &res, &why);
	if (rc < 0)
		reject(d, type, name, rc, why.text);
	else
		d->message.updated++;
	note_answer(d, name, name_len);
	note_aliases(d, bytes, len);
	return 0;
}

/* Keeps a resource until the message has said what it is. */
static int hold(struct xds_delta *d, const uint8_t *bytes, size_t len)
{
	uint32_t head = (uint32_t)len;
	struct buf *held = &d->message.held;
	if (held->len + sizeof(head) + len > XDS_HELD_MAX) {
		d->message.is_held_full = true;
		return 0;
	}
	buf_add(held, &head, sizeof(head));
	return buf_add(held, bytes, len);
}

static int release_held(struct xds_delta *d, struct err *err)
{
	struct buf *held = &d->message.held;
	uint32_t len;
	int rc = 0;
	for (size_t at = 0; rc == 0 && at < held->len; at += len) {
		memcpy(&len, held->data + at, sizeof(len));
		at += sizeof(len);
		rc = take(d, d->message.type, held->data + at, len, err);
	}
	buf_done(held);
	/* Without their names the rest cannot be told one by one. */
	if (rc == 0 && d->message.is_held_full)
		reject(d, d->message.type, "*", ERR_TOO_LARGE,
		        "the payloads do not say their type and are too large together");
	return rc;
}

static int on_resource(void *ctx, const uint8_t *bytes, size_t len, struct err *err)
{
	struct xds_delta *d = ctx;
	enum xds_type type = d->message.type;
	struct xds_resource res;
	/* The message's type follows its resources on the wire, so it is the payload that says what it is. */
	if (!d->message.type_url) {
		int rc = xds_resource_read(bytes, len, &res, err);
		if (rc < 0)
			return rc;
		type = res.type;
		if (type == XDS_TYPE_UNKNOWN)
			return hold(d, bytes, len);
		d->message.early = type;
		d->message.is_early = true;
	}
	/* A type that nobody asked for: nothing in it is ours. */
	return type == XDS_TYPE_UNKNOWN ? 0 : take(d, type, bytes, len, err);
}

static int on_oversized(void *ctx, const char *name, struct err *err)
{
	(void)err;
	reject(ctx, ((struct xds_delta *)ctx)->message.type, name, ERR_TOO_LARGE, "larger than 4 MiB");
	note_answer(ctx, name, strlen(name));
	return 0;
}

static int on_type_url(void *ctx, const char *url, struct err *err)
{
	struct xds_delta *d = ctx;
	if (d->message.type_url)
		return err_set(err, ERR_PROTOCOL, "the response has two type URLs");
	d->message.type_url = mem_strdup(url);
	if (!d->message.type_url)
		return err_set(err, -ENOMEM, "out of memory");
	d->message.type = xds_type_of(url, strlen(url));
	bool is_ours = d->message.type != XDS_TYPE_UNKNOWN;
	if (is_ours && d->message.is_early && d->message.early != d->message.type)
		return err_set(
		        err, ERR_PROTOCOL, "the response holds resources of another type than %s", url);
	return is_ours ? release_held(d, err) : 0;
}

static int on_nonce(void *ctx, const char *nonce, struct err *err)
{
	struct xds_delta *d = ctx;
	mem_free(d->message.nonce);
	d->message.nonce = mem_strdup(nonce);
	return d->message.nonce ? 0 : err_set(err, -ENOMEM, "out of memory");
}

/* Removals come after all updates, whatever the order on the wire. */
static int on_removed(void *ctx, const char *name, struct err *err)
{
	struct xds_delta *d = ctx;
	int rc = buf_add(&d->message.removed, name, strlen(name) + 1);
	return rc < 0 ? err_set(err, rc, "too many removals in one response") : 0;
}

static const struct xds_splitter_ops SPLITTER_OPS = {.resource = on_resource,
        .oversized = on_oversized,
        .type_url = on_type_url,
        .nonce = on_nonce,
        .removed = on_removed};

/* --- the end of a response ------------------------------------------------ */

/* Removes the names in a block of terminated strings; returns how many. */
static size_t remove_names(struct xds_delta *d, enum xds_type type, const struct buf *names)
{
	size_t cnt = 0;
	for (size_t at = 0; at < names->len; at += strlen((const char *)names->data + at) + 1, cnt++) {
		const char *name = (const char *)names->data + at;
		d->ops->remove(d->ctx, type, name);
		xds_known_del(&d->subs[type].known, name);
		note_answer(d, name, strlen(name));
	}
	return cnt;
}

/* The text of the NACK into refused; "" = ACK. */
static const char *nack_text(struct xds_message *m)
{
	if (m->malformed.len)
		buf_printf(&m->refused, "%s%.*s", m->refused.len ? "; " : "", (int)m->malformed.len,
		        (const char *)m->malformed.data);
	if (m->unlisted)
		buf_printf(&m->refused, "%sand %zu more", m->refused.len ? "; " : "", m->unlisted);
	const char *text = m->rejected ? buf_cstr(&m->refused) : "";
	/* Even without memory for the reasons it is no ACK. */
	return text ? text : "rejected";
}

static void settle(struct xds_delta *d, struct xds_outcome *outcome)
{
	struct xds_sub *sub = &d->subs[d->message.type];
	outcome->removed = remove_names(d, d->message.type, &d->message.removed);
	if (outcome->rejected == 0)
		sub->is_warm = true;
	if (sub->resync == RESYNC_ASKED)
		sub->resync = RESYNC_ANSWERED;
	tell_answers(d);
}

static int message_end(struct xds_delta *d, struct err *err)
{
	struct xds_message *m = &d->message;
	int rc = xds_splitter_end(&d->splitter, err);
	if (rc < 0)
		return rc;
	if (m->type == XDS_TYPE_UNKNOWN)
		m->rejected = 0;
	struct xds_outcome outcome = {.type = m->type,
	        .type_url = m->type_url ? m->type_url : "",
	        .updated = m->updated,
	        .rejected = m->rejected,
	        .value_bytes = m->value_bytes,
	        .nack = nack_text(m)};
	if (m->type != XDS_TYPE_UNKNOWN)
		settle(d, &outcome);
	d->is_receiving = false;
	rc = xds_request_reply(d, outcome.type_url, m->nonce ? m->nonce : "", outcome.nack);
	d->ops->done(d->ctx, &outcome);
	message_reset(d);
	return rc < 0 ? err_set(err, rc, "the answer cannot be sent") : 0;
}

int xds_delta_bytes(struct xds_delta *d, const uint8_t *bytes, size_t len, bool is_last, struct err *err)
{
	d->had_message = true;
	d->is_receiving = true;
	int rc = xds_splitter_feed(&d->splitter, bytes, len, err);
	return rc == 0 && is_last ? message_end(d, err) : rc;
}

/* --- sweeping ------------------------------------------------------------- */

bool xds_delta_wants_sweep(const struct xds_delta *d)
{
	for (int i = 0; i < XDS_TYPE_CNT && !d->is_receiving; i++)
		if (d->subs[i].resync == RESYNC_ANSWERED)
			return true;
	return false;
}

/* Names of one type that the whole state did not hold. */
struct stale {
	const struct xds_known *known;
	struct buf names;
};

static bool add_stale(void *ctx, const char *name)
{
	struct stale *stale = ctx;
	if (xds_known_is_stale(stale->known, name) && !xds_known_is_odd(stale->known, name))
		buf_add(&stale->names, name, strlen(name) + 1);
	return true;
}

static bool add_stale_odd(void *ctx, const char *name, const char *version, bool is_stale)
{
	struct stale *stale = ctx;
	(void)version;
	if (is_stale)
		buf_add(&stale->names, name, strlen(name) + 1);
	return true;
}

static size_t sweep_type(struct xds_delta *d, enum xds_type type)
{
	struct stale stale = {.known = &d->subs[type].known};
	size_t cnt = 0;
	buf_init(&stale.names, XDS_REMOVED_MAX);
	int rc = d->ops->each_name(d->ctx, type, add_stale, &stale);
	xds_known_each_odd(stale.known, add_stale_odd, &stale);
	/* Without memory nothing is removed; the next reconnect tries again. */
	if (rc == 0 && stale.names.err == 0) {
		cnt = remove_names(d, type, &stale.names);
		xds_known_sweep(&d->subs[type].known);
	}
	buf_done(&stale.names);
	return cnt;
}

size_t xds_delta_sweep(struct xds_delta *d)
{
	size_t cnt = 0;
	for (unsigned i = 0; i < XDS_TYPE_CNT; i++) {
		if (d->subs[i].resync != RESYNC_ANSWERED)
			continue;
		d->subs[i].resync = RESYNC_NONE;
		cnt += sweep_type(d, (enum xds_type)i);
	}
	return cnt;
}
