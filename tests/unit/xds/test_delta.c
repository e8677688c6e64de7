/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client state machine against a store and a server that are lists of strings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "pb/codec.h"
#include "xds/delta.h"

#define STORE_MAX 4096

/* Everything around the client. */
struct world {
	struct xds_delta *delta;
	char *names[XDS_TYPE_CNT][STORE_MAX]; /* keys of the records held */
	size_t cnt[XDS_TYPE_CNT];
	struct buf sent; /* requests as text, one a line */
	struct buf answered;
	size_t last_len; /* of the last request */
	struct xds_outcome last;
	char nack[XDS_NACK_MAX];
	int send_fails;
	int apply_fails;
};

/* --- the store -------------------------------------------------------------- */

static void forget(struct world *w, enum xds_type type, const char *name)
{
	for (size_t i = 0; i < w->cnt[type]; i++)
		if (strcmp(w->names[type][i], name) == 0) {
			free(w->names[type][i]);
			w->names[type][i] = w->names[type][--w->cnt[type]];
			return;
		}
}

static bool holds(const struct world *w, enum xds_type type, const char *name)
{
	for (size_t i = 0; i < w->cnt[type]; i++)
		if (strcmp(w->names[type][i], name) == 0)
			return true;
	return false;
}

static int on_apply(void *ctx, const char *name, const struct xds_record *record, struct err *err)
{
	struct world *w = ctx;
	enum xds_type type = record->kind == XDS_POLICY ? XDS_TYPE_POLICY : XDS_TYPE_ADDRESS;
	const char *key = record->kind == XDS_WORKLOAD ? record->workload->uid : name;
	if (w->apply_fails)
		return err_set(err, w->apply_fails, "cannot be stored");
	forget(w, type, key);
	assert_true(w->cnt[type] < STORE_MAX);
	w->names[type][w->cnt[type]++] = strdup(key);
	return 0;
}

static void on_remove(void *ctx, enum xds_type type, const char *name)
{
	forget(ctx, type, name);
}

static int on_each_name(void *ctx, enum xds_type type, xds_name_fn *fn, void *fn_ctx)
{
	struct world *w = ctx;
	for (size_t i = 0; i < w->cnt[type]; i++)
		if (!fn(fn_ctx, w->names[type][i]))
			return 0;
	return 0;
}

/* --- the server ------------------------------------------------------------- */

static void print_versions(struct buf *out, const struct codec_item *entry)
{
	struct codec_item item;
	size_t at = 0;
	buf_add_str(out, " ");
	while (codec_next(entry->p, entry->len, &at, &item) > 0)
		buf_printf(out, "%s%.*s", item.tag == 1 ? "" : "=", (int)item.len, (const char *)item.p);
}

/* A request as text: address or policy, then node, +name -name name=version nonce and error. */
static int on_send(void *ctx, const uint8_t *bytes, size_t len)
{
	struct world *w = ctx;
	struct codec_item item, inner;
	size_t at = 0;
	if (w->send_fails)
		return w->send_fails;
	w->last_len = len;
	while (codec_next(bytes, len, &at, &item) > 0) {
		size_t in = 0;
		if (item.tag == 1)
			buf_add_str(&w->sent, "node ");
		else if (item.tag == 2)
			buf_printf(&w->sent, "%s",
			        xds_type_of(item.p, item.len) == XDS_TYPE_ADDRESS  ? "address"
			        : xds_type_of(item.p, item.len) == XDS_TYPE_POLICY ? "policy"
			                                                           : "unknown");
		else if (item.tag == 3 || item.tag == 4)
			buf_printf(&w->sent, " %s%.*s", item.tag == 3 ? "+" : "-", (int)item.len,
			        (const char *)item.p);
		else if (item.tag == 5)
			print_versions(&w->sent, &item);
		else if (item.tag == 6)
			buf_printf(&w->sent, " [%.*s]", (int)item.len, (const char *)item.p);
		else if (item.tag == 7 && codec_next(item.p, item.len, &in, &inner) > 0)
			buf_printf(&w->sent, " error(%.*s)", (int)inner.len, (const char *)inner.p);
	}
	buf_add_str(&w->sent, "\n");
	return 0;
}

static void on_rejected(void *ctx, const char *name, const char *reason)
{
	(void)ctx;
	assert_true(name && reason[0]);
}

static void on_answered(void *ctx, const char *key)
{
	buf_printf(&((struct world *)ctx)->answered, "%s ", key);
}

static void on_done(void *ctx, const struct xds_outcome *outcome)
{
	struct world *w = ctx;
	w->last = *outcome;
	snprintf(w->nack, sizeof(w->nack), "%s", outcome->nack);
}

static const struct xds_delta_ops OPS = {
        on_send, on_apply, on_remove, on_each_name, on_rejected, on_answered, on_done};

static struct world *world_new(bool is_on_demand)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	buf_init(&w->sent, 64u << 20);
	buf_init(&w->answered, 1u << 16);
	w->delta = xds_delta_new(&OPS, w, (const uint8_t *)"", 0, is_on_demand);
	assert_non_null(w->delta);
	return w;
}

static void world_free(struct world *w)
{
	xds_delta_free(w->delta);
	for (int t = 0; t < XDS_TYPE_CNT; t++)
		for (size_t i = 0; i < w->cnt[t]; i++)
			free(w->names[t][i]);
	buf_done(&w->sent);
	buf_done(&w->answered);
	free(w);
}

/* What was sent since the last look. */
static void assert_sent(struct world *w, const char *want)
{
	assert_string_equal(buf_cstr(&w->sent), want);
	buf_clear(&w->sent);
}

static void assert_answered(struct world *w, const char *want)
{
	assert_string_equal(buf_cstr(&w->answered), want);
	buf_clear(&w->answered);
}

static void field(struct buf *out, uint32_t tag, const void *p, size_t len)
{
	uint8_t head[CODEC_HEAD_MAX];
	buf_add(out, head, codec_head(tag, len, head));
	buf_add(out, p, len);
}

static void text(struct buf *out, uint32_t tag, const char *s)
{
	field(out, tag, s, strlen(s));
}

/* Adds a resource around a payload; url NULL leaves the Any out. */
static void add_raw(
        struct buf *msg, const char *url, const char *name, const char *version, const void *p, size_t len)
{
	struct buf res, any;
	buf_init(&res, 16u << 20);
	buf_init(&any, 16u << 20);
	text(&res, 1, version);
	if (url) {
		text(&any, 1, url);
		field(&any, 2, p, len);
		field(&res, 2, any.data, any.len);
	}
	text(&res, 3, name);
	field(msg, 2, res.data, res.len);
	buf_done(&res);
	buf_done(&any);
}

/* Adds a workload of that uid, or a policy. */
static void add_as(struct buf *msg, enum xds_type type, const char *url, const char *name,
        const char *version, const char *uid)
{
	struct buf body, outer;
	buf_init(&body, 1u << 16);
	buf_init(&outer, 1u << 16);
	text(&body, type == XDS_TYPE_ADDRESS ? 20 : 1, uid);
	field(&outer, 1, body.data, body.len);
	if (type == XDS_TYPE_ADDRESS)
		add_raw(msg, url, name, version, outer.data, outer.len);
	else
		add_raw(msg, url, name, version, body.data, body.len);
	buf_done(&body);
	buf_done(&outer);
}

static void add(struct buf *msg, enum xds_type type, const char *name, const char *version)
{
	add_as(msg, type, xds_type_url(type), name, version, name);
}

static int feed(struct world *w, const struct buf *msg, size_t step)
{
	struct err err = {0};
	int rc = 0;
	for (size_t at = 0; rc == 0 && at < msg->len; at += step) {
		size_t n = msg->len - at < step ? msg->len - at : step;
		rc = xds_delta_bytes(w->delta, msg->data + at, n, at + n == msg->len, &err);
	}
	return rc;
}

/* Ends the message with type, nonce and removed names, and feeds it. */
static void finish(struct world *w, struct buf *msg, const char *url, const char *nonce, const char *removed)
{
	text(msg, 4, url);
	text(msg, 5, nonce);
	for (; removed && removed[0]; removed += strlen(removed) + 1)
		text(msg, 6, removed);
	assert_int_equal(feed(w, msg, 7), 0);
	buf_clear(msg);
}

static void reconnect(struct world *w, enum grpc_code code)
{
	struct grpc_status status = {.code = code};
	xds_delta_close(w->delta, &status);
	assert_int_equal(xds_delta_open(w->delta), 0);
}

#define URL_A "type.googleapis.com/istio.workload.Address"
#define URL_P "type.googleapis.com/istio.security.Authorization"

/* --- tests ------------------------------------------------------------------ */

static void test_two_subscriptions_and_resume(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	(void)state;
	buf_init(&m, 1u << 20);
	assert_int_equal(xds_delta_open(w->delta), 0);
	assert_sent(w, "node address\nnode policy\n");
	add(&m, XDS_TYPE_ADDRESS, "a", "1f");
	add(&m, XDS_TYPE_ADDRESS, "b", "odd version");
	finish(w, &m, URL_A, "n1", NULL);
	assert_sent(w, "address [n1]\n");
	assert_false(xds_delta_is_warm(w->delta));
	add(&m, XDS_TYPE_POLICY, "ns/p", "");
	finish(w, &m, URL_P, "n2", NULL);
	assert_sent(w, "policy [n2]\n");
	assert_true(xds_delta_is_warm(w->delta));
	/* Removal comes after the update of the same response; unknown names are fine. */
	add(&m, XDS_TYPE_ADDRESS, "c", "2");
	finish(w, &m, URL_A, "n3", "c\0nobody\0");
	assert_sent(w, "address [n3]\n");
	assert_int_equal(w->last.removed, 2);
	assert_false(holds(w, XDS_TYPE_ADDRESS, "c"));
	/* The same nonce again is worked off again. */
	finish(w, &m, URL_A, "n3", NULL);
	assert_sent(w, "address [n3]\n");
	reconnect(w, GRPC_UNAVAILABLE);
	assert_sent(w, "node address a=1f b=odd version\nnode policy ns/p=\n");
	assert_true(holds(w, XDS_TYPE_ADDRESS, "a"));
	assert_false(xds_delta_wants_sweep(w->delta));
	assert_true(xds_delta_is_warm(w->delta));
	buf_done(&m);
	world_free(w);
}

static void test_rejections_are_per_resource(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	(void)state;
	buf_init(&m, 1u << 20);
	xds_delta_open(w->delta);
	add(&m, XDS_TYPE_ADDRESS, "keeps", "1");
	finish(w, &m, URL_A, "n0", NULL);
	buf_clear(&w->sent);
	add_raw(&m, URL_A, "cut", "1", "\x0a\x7f", 2);
	add(&m, XDS_TYPE_ADDRESS, "good", "1");
	add_raw(&m, URL_A, "empty", "1", "", 0);
	add_raw(&m, NULL, "nothing", "1", "", 0);
	add_raw(&m, URL_A, "keeps", "2", "", 0);
	finish(w, &m, URL_A, "n1", NULL);
	assert_sent(w, "address [n1] error(empty: unknown address type; keeps: unknown address type; "
	               "cut: decode: failed to decode Protobuf message: Address: malformed; "
	               "nothing: XDS payload without resource)\n");
	assert_int_equal(w->last.rejected, 4);
	assert_int_equal(w->last.updated, 1);
	w->apply_fails = -ENOSPC;
	add(&m, XDS_TYPE_ADDRESS, "full", "1");
	finish(w, &m, URL_A, "n2", NULL);
	assert_sent(w, "address [n2] error(full: cannot be stored)\n");
	reconnect(w, GRPC_OK);
	assert_sent(w, "node address keeps=1 good=1\nnode policy\n");
	buf_done(&m);
	world_free(w);
}

static void test_nack_text_is_bounded(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	char name[64];
	(void)state;
	buf_init(&m, 1u << 20);
	xds_delta_open(w->delta);
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "resource-%d", i);
		add_raw(&m, URL_A, name, "1", i % 2 ? "\x0a\x7f" : "", i % 2 ? 2 : 0);
	}
	finish(w, &m, URL_A, "n1", NULL);
	assert_int_equal(w->last.rejected, 2000);
	assert_true(strlen(w->nack) < XDS_NACK_MAX);
	assert_non_null(strstr(w->nack, "; and 1"));
	assert_non_null(strstr(w->nack, "resource-1: decode: "));
	buf_done(&m);
	world_free(w);
}

static void test_warm_only_without_rejection(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	(void)state;
	buf_init(&m, 1u << 20);
	xds_delta_open(w->delta);
	finish(w, &m, URL_P, "p", NULL);
	add_raw(&m, URL_A, "empty", "1", "", 0);
	finish(w, &m, URL_A, "n1", NULL);
	assert_false(xds_delta_is_warm(w->delta));
	finish(w, &m, URL_A, "n2", NULL);
	assert_true(xds_delta_is_warm(w->delta));
	buf_done(&m);
	world_free(w);
}

static void test_unknown_types(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	(void)state;
	buf_init(&m, 1u << 20);
	xds_delta_open(w->delta);
	buf_clear(&w->sent);
	add_raw(&m, "type.googleapis.com/x.Y", "x", "1", "abc", 3);
	finish(w, &m, "type.googleapis.com/x.Y", "n1", "x\0");
	assert_sent(w, "unknown [n1]\n");
	assert_int_equal(w->last.type, XDS_TYPE_UNKNOWN);
	/* The payload's URL does not matter when the message says what it is, before or after. */
	add_as(&m, XDS_TYPE_ADDRESS, "", "held", "1", "held");
	add_as(&m, XDS_TYPE_ADDRESS, "some.other/Type", "held2", "1", "held2");
	finish(w, &m, URL_A, "n2", NULL);
	assert_sent(w, "address [n2]\n");
	assert_true(holds(w, XDS_TYPE_ADDRESS, "held") && holds(w, XDS_TYPE_ADDRESS, "held2"));
	text(&m, 4, URL_A);
	add_as(&m, XDS_TYPE_ADDRESS, "", "late", "1", "late");
	assert_int_equal(feed(w, &m, 5), 0);
	assert_true(holds(w, XDS_TYPE_ADDRESS, "late"));
	buf_clear(&m);
	/* Payloads of one of our types in a message of the other end the stream. */
	add(&m, XDS_TYPE_ADDRESS, "z", "1");
	text(&m, 4, URL_P);
	assert_int_equal(feed(w, &m, 5), ERR_PROTOCOL);
	buf_done(&m);
	world_free(w);
}

/* What came before a cut is kept, with its version; the rest is asked for again. */
static void test_cut_in_the_middle(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	struct err err = {0};
	(void)state;
	buf_init(&m, 1u << 20);
	xds_delta_open(w->delta);
	buf_clear(&w->sent);
	add(&m, XDS_TYPE_ADDRESS, "a", "1");
	add(&m, XDS_TYPE_ADDRESS, "b", "2");
	assert_int_equal(xds_delta_bytes(w->delta, m.data, m.len - 3, false, &err), 0);
	reconnect(w, GRPC_UNAVAILABLE);
	assert_sent(w, "node address a=1\nnode policy\n");
	buf_clear(&m);
	add(&m, XDS_TYPE_ADDRESS, "b", "2");
	finish(w, &m, URL_A, "n", NULL);
	assert_true(holds(w, XDS_TYPE_ADDRESS, "b"));
	buf_done(&m);
	world_free(w);
}

/* Resource k of many, with a name that makes reports large. */
static void long_name(int k, char dst[1024])
{
	memset(dst, 'n', 1000);
	snprintf(dst + 1000, 24, "%d", k);
}

static void load_many(struct world *w, struct buf *m, int from, int to)
{
	char name[1024];
	for (int i = from; i < to; i++) {
		long_name(i, name);
		add(m, XDS_TYPE_ADDRESS, name, "1");
	}
}

static void test_large_report_is_left_out_and_swept(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	char name[1024];
	(void)state;
	buf_init(&m, 64u << 20);
	xds_delta_open(w->delta);
	load_many(w, &m, 0, 3500);
	finish(w, &m, URL_A, "n1", NULL);
	add(&m, XDS_TYPE_POLICY, "ns/p", "");
	finish(w, &m, URL_P, "n2", NULL);
	reconnect(w, GRPC_UNAVAILABLE);
	buf_clear(&w->sent);
	assert_true(w->last_len < 200);
	load_many(w, &m, 3500, 3700);
	finish(w, &m, URL_A, "n3", NULL);
	buf_clear(&w->sent);
	reconnect(w, GRPC_UNAVAILABLE);
	assert_sent(w, "node address\nnode policy ns/p=\n");
	assert_false(xds_delta_wants_sweep(w->delta));
	/* Nothing goes while the answer is under way, nor when it is cut. */
	load_many(w, &m, 0, 10);
	assert_int_equal(feed(w, &m, 100), 0);
	buf_clear(&m);
	assert_false(xds_delta_wants_sweep(w->delta));
	reconnect(w, GRPC_UNAVAILABLE);
	assert_int_equal(w->cnt[XDS_TYPE_ADDRESS], 3700);
	buf_clear(&w->sent);
	load_many(w, &m, 1000, 1500);
	/* A refused version does not make the old one go. */
	long_name(1501, name);
	add_raw(&m, URL_A, name, "2", "", 0);
	finish(w, &m, URL_A, "n4", NULL);
	assert_true(xds_delta_wants_sweep(w->delta));
	/* A state in two responses: the second one counts as well. */
	load_many(w, &m, 1502, 1504);
	finish(w, &m, URL_A, "n5", NULL);
	assert_int_equal(xds_delta_sweep(w->delta), 3700 - 503);
	assert_int_equal(w->cnt[XDS_TYPE_ADDRESS], 503);
	assert_int_equal(xds_delta_known_cnt(w->delta, XDS_TYPE_ADDRESS), 503);
	assert_true(holds(w, XDS_TYPE_ADDRESS, name) && holds(w, XDS_TYPE_POLICY, "ns/p"));
	assert_false(xds_delta_wants_sweep(w->delta));
	buf_done(&m);
	world_free(w);
}

static void test_exhausted_server_gets_no_report(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	(void)state;
	buf_init(&m, 1u << 20);
	xds_delta_open(w->delta);
	add(&m, XDS_TYPE_ADDRESS, "a", "1");
	add_as(&m, XDS_TYPE_ADDRESS, URL_A, "a-name-that-takes-some-room-in-the-report", "1", "b");
	finish(w, &m, URL_A, "n1", NULL);
	buf_clear(&w->sent);
	/* After something has come it was not the report. */
	reconnect(w, GRPC_RESOURCE_EXHAUSTED);
	assert_sent(w, "node address a=1 a-name-that-takes-some-room-in-the-report=1\nnode policy\n");
	reconnect(w, GRPC_RESOURCE_EXHAUSTED);
	assert_sent(w, "node address\nnode policy\n");
	add(&m, XDS_TYPE_ADDRESS, "a", "2");
	finish(w, &m, URL_A, "n2", NULL);
	assert_int_equal(xds_delta_sweep(w->delta), 1);
	assert_int_equal(xds_delta_known_cnt(w->delta, XDS_TYPE_ADDRESS), 1);
	buf_clear(&w->sent);
	reconnect(w, GRPC_UNAVAILABLE);
	assert_sent(w, "node address a=2\nnode policy\n");
	buf_done(&m);
	world_free(w);
}

static void test_on_demand(void **state)
{
	struct world *w = world_new(true);
	struct buf m;
	(void)state;
	buf_init(&m, 1u << 20);
	assert_int_equal(xds_delta_demand(w->delta, "net/10.0.0.1"), -EAGAIN);
	xds_delta_open(w->delta);
	assert_sent(w, "node address +* -* net/10.0.0.1=\nnode policy\n");
	finish(w, &m, URL_P, "p", NULL);
	assert_true(xds_delta_is_warm(w->delta));
	buf_clear(&w->sent);
	assert_int_equal(xds_delta_demand(w->delta, "ns/host"), -EAGAIN);
	assert_int_equal(xds_delta_demand(w->delta, "ns/host"), -EAGAIN);
	assert_sent(w, "address +ns/host\n");
	finish(w, &m, URL_A, "n1", "ns/host\0");
	assert_answered(w, "ns/host ");
	assert_int_equal(xds_delta_demand(w->delta, "ns/host"), 0);
	assert_int_equal(xds_delta_demand(w->delta, "net/10.0.0.1"), -EAGAIN);
	/* Under its own name, the key as an alias. */
	struct buf res;
	buf_init(&res, 1024);
	text(&res, 3, "uid");
	text(&res, 4, "net/10.0.0.1");
	field(&m, 2, res.data, res.len);
	buf_done(&res);
	add(&m, XDS_TYPE_ADDRESS, "uid2", "9");
	finish(w, &m, URL_A, "n2", NULL);
	assert_answered(w, "net/10.0.0.1 ");
	buf_clear(&w->sent);
	reconnect(w, GRPC_UNAVAILABLE);
	const char *sent = buf_cstr(&w->sent);
	assert_non_null(strstr(sent, "node address +* -* uid2=9"));
	assert_non_null(strstr(sent, " ns/host="));
	assert_non_null(strstr(sent, " net/10.0.0.1="));
	buf_done(&m);
	world_free(w);
}

/* What does not fit the first request is subscribed to, each name once. */
static void test_on_demand_large(void **state)
{
	struct world *w = world_new(true);
	struct buf m;
	size_t told = 0, subscribed = 0;
	(void)state;
	buf_init(&m, 64u << 20);
	xds_delta_open(w->delta);
	load_many(w, &m, 0, 3800);
	finish(w, &m, URL_A, "n1", NULL);
	buf_clear(&w->sent);
	reconnect(w, GRPC_UNAVAILABLE);
	for (const char *at = buf_cstr(&w->sent); (at = strstr(at, "nnnn")); at += 1000) {
		if (at[-1] == '+')
			subscribed++;
		else
			told++;
	}
	assert_true(told > 3000 && subscribed > 0);
	assert_int_equal(told + subscribed, 3800);
	assert_false(xds_delta_wants_sweep(w->delta));
	buf_done(&m);
	world_free(w);
}

static void test_a_broken_stream(void **state)
{
	struct world *w = world_new(false);
	struct buf m;
	(void)state;
	buf_init(&m, 1024);
	w->send_fails = -EPIPE;
	assert_int_equal(xds_delta_open(w->delta), -EPIPE);
	w->send_fails = 0;
	reconnect(w, GRPC_UNAVAILABLE);
	w->send_fails = -EPIPE;
	text(&m, 4, URL_A);
	assert_int_equal(feed(w, &m, 100), -EPIPE);
	w->send_fails = 0;
	reconnect(w, GRPC_UNAVAILABLE);
	buf_clear(&m);
	field(&m, 2, "\x0a\x7f", 2); /* a malformed Resource, not its payload */
	assert_int_equal(feed(w, &m, 100), ERR_PROTOCOL);
	buf_done(&m);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_two_subscriptions_and_resume),
	        cmocka_unit_test(test_rejections_are_per_resource),
	        cmocka_unit_test(test_nack_text_is_bounded),
	        cmocka_unit_test(test_warm_only_without_rejection),
	        cmocka_unit_test(test_unknown_types),
	        cmocka_unit_test(test_cut_in_the_middle),
	        cmocka_unit_test(test_large_report_is_left_out_and_swept),
	        cmocka_unit_test(test_exhausted_server_gets_no_report),
	        cmocka_unit_test(test_on_demand),
	        cmocka_unit_test(test_on_demand_large),
	        cmocka_unit_test(test_a_broken_stream),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
