/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two halves of the client share: delta.c (responses) and request.c. Private to src/xds. */
#ifndef CULVERT_XDS_DELTA_INT_H
#define CULVERT_XDS_DELTA_INT_H

#include "base/buf.h"
#include "base/map.h"
#include "xds/delta.h"
#include "xds/known.h"
#include "xds/splitter.h"

/* How a reconnect without versions stands. */
enum resync {
	RESYNC_NONE,
	RESYNC_ASKED,    /* the whole state is on its way */
	RESYNC_ANSWERED, /* its first response is in; what has no mark is to go */
};

/* One of the two subscriptions. */
struct xds_sub {
	struct xds_known known;
	enum resync resync;
	bool is_warm; /* had a response without rejection */
};

/* How a demanded key stands. */
enum demand_state { DEMAND_WAITS, DEMAND_SEEN, DEMAND_ANSWERED };

/* A key that was asked for on demand. */
struct xds_demand {
	enum demand_state state;
	char key[];
};

/* The response under way. */
struct xds_message {
	char *type_url; /* owned; NULL = not seen yet */
	enum xds_type type;
	enum xds_type early;  /* type of resources applied before the type was seen */
	bool is_early;        /* there were such */
	bool is_held_full;    /* some could not be held back */
	char *nonce;          /* owned, NULL = none */
	struct buf held;      /* resources whose type is not known yet: length, bytes, length … */
	struct buf removed;   /* removed names, each terminated */
	struct buf refused;   /* reasons of refusals */
	struct buf malformed; /* reasons of decode failures, which come last in a NACK */
	size_t updated;
	size_t rejected;
	size_t value_bytes;
	size_t unlisted; /* rejections that the text has no room for */
	size_t answers;  /* demands in state DEMAND_SEEN */
};

struct xds_delta {
	const struct xds_delta_ops *ops;
	void *ctx;
	uint8_t *node; /* owned */
	size_t node_len;
	bool is_on_demand;
	bool is_open;
	bool had_message;     /* something has come on this stream */
	bool is_receiving;    /* in the middle of a response */
	size_t versions_max;  /* longest request with versions, bytes */
	size_t versions_sent; /* longest one of this stream, 0 = none */
	struct xds_sub subs[XDS_TYPE_CNT];
	struct map demands; /* struct xds_demand */
	struct xds_splitter splitter;
	struct xds_message message;
};

/* Sends ACK (nack "") or NACK. 0, -ENOMEM, or what send returned. */
int xds_request_reply(struct xds_delta *delta, const char *type_url, const char *nonce, const char *nack);

#endif
