/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A response that arrives in pieces: whatever the cut, the same is applied,
 * removed and answered. The first byte is the length of a piece.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "xds/delta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Everything that the client said to its surroundings, in order. */
struct diary {
	struct buf text;
	bool is_on; /* requests of the opening are left out */
};

static int on_send(void *ctx, const uint8_t *bytes, size_t len)
{
	struct diary *diary = ctx;
	if (diary->is_on)
		buf_add(&diary->text, bytes, len);
	return 0;
}

static int on_apply(void *ctx, const char *name, const struct xds_record *record, struct err *err)
{
	(void)err;
	buf_printf(&((struct diary *)ctx)->text, "apply %d %s\n", (int)record->kind, name);
	return 0;
}

static void on_remove(void *ctx, enum xds_type type, const char *name)
{
	buf_printf(&((struct diary *)ctx)->text, "remove %d %s\n", (int)type, name);
}

static int on_each_name(void *ctx, enum xds_type type, xds_name_fn *fn, void *fn_ctx)
{
	(void)ctx;
	(void)type;
	fn(fn_ctx, "held/before");
	return 0;
}

static void on_rejected(void *ctx, const char *name, const char *reason)
{
	buf_printf(&((struct diary *)ctx)->text, "reject %s %s\n", name, reason);
}

static void on_answered(void *ctx, const char *key)
{
	buf_printf(&((struct diary *)ctx)->text, "answer %s\n", key);
}

static void on_done(void *ctx, const struct xds_outcome *outcome)
{
	buf_printf(&((struct diary *)ctx)->text, "done %d %zu %zu %zu\n", (int)outcome->type,
	        outcome->updated, outcome->removed, outcome->rejected);
}

static const struct xds_delta_ops OPS = {
        on_send, on_apply, on_remove, on_each_name, on_rejected, on_answered, on_done};

static int play(struct diary *diary, const uint8_t *data, size_t len, size_t step)
{
	static const struct grpc_status END = {.code = GRPC_UNAVAILABLE};
	struct err err = {0};
	int rc = 0;
	struct xds_delta *delta = xds_delta_new(&OPS, diary, NULL, 0, true);
	buf_init(&diary->text, 1u << 24);
	diary->is_on = false;
	if (!delta)
		return 0;
	xds_delta_demand(delta, "held/before");
	xds_delta_open(delta);
	diary->is_on = true;
	for (size_t at = 0; rc == 0 && at < len; at += step) {
		size_t n = len - at < step ? len - at : step;
		rc = xds_delta_bytes(delta, data + at, n, at + n == len, &err);
	}
	if (rc < 0 && !err.text[0])
		abort();
	xds_delta_close(delta, &END);
	diary->is_on = false;
	xds_delta_open(delta);
	xds_delta_sweep(delta);
	xds_delta_free(delta);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct diary whole, pieces;
	if (len < 2)
		return 0;
	int rc = play(&whole, data + 1, len - 1, len);
	int again = play(&pieces, data + 1, len - 1, data[0] % 64 + 1u);
	if (rc != again || whole.text.len != pieces.text.len ||
	        (whole.text.len && memcmp(whole.text.data, pieces.text.data, whole.text.len) != 0))
		abort();
	buf_done(&whole.text);
	buf_done(&pieces.text);
	return 0;
}
