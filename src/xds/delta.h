/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The client side of a delta ADS stream (reference control.md 4.3 to 4.9):
 * what to ask for, what to do with each response, what to answer, what to say
 * after a reconnect. Sans I/O: no socket, no clock, no log, no store; those are
 * the owner's, behind xds_delta_ops.
 */
#ifndef CULVERT_XDS_DELTA_H
#define CULVERT_XDS_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "grpc/status.h"
#include "pb/xds.h"

/* Bytes of a request with resource versions; istiod takes 4 MiB and answers more with an error, for ever
 * (istiod-istioctl.md B.2). */
#define XDS_REQUEST_MAX (3584u << 10)
/* Bytes of the text of a NACK; it goes into the control plane's log, once for each response. */
#define XDS_NACK_MAX 8192
/* Bytes of resources that wait for their type, when neither their payload nor the message has said it yet. */
#define XDS_HELD_MAX (4u << 20)
/* Bytes of names that one response may remove: 100,000 names take 6 MB. */
#define XDS_REMOVED_MAX (64u << 20)
/* Keys that may have been demanded at once; a node's silos together know some thousands. */
#define XDS_DEMANDS_MAX 65536

/* What one complete response came to. */
struct xds_outcome {
	enum xds_type type;
	const char *type_url; /* as sent */
	size_t updated;       /* resources that were applied */
	size_t removed;       /* names in removed_resources */
	size_t rejected;
	size_t value_bytes; /* of all payloads */
	const char *nack;   /* the text sent, "" = ACK */
};

/* Hears a name. Returns false to stop. */
typedef bool xds_name_fn(void *ctx, const char *name);

/* What the stream needs of its owner. */
struct xds_delta_ops {
	/* Sends one request. Negative: the stream is as good as gone and will be closed. */
	int (*send)(void *ctx, const uint8_t *bytes, size_t len);
	/* Puts a record into the store; name is that of the resource. Negative: err holds the reason of the
	 * refusal. */
	int (*apply)(void *ctx, const char *name, const struct xds_record *record, struct err *err);
	/* Takes what the name means out of the store; an unknown name is fine. */
	void (*remove)(void *ctx, enum xds_type type, const char *name);
	/* Names of all records in the store that could be of that type. Negative: no memory. */
	int (*each_name)(void *ctx, enum xds_type type, xds_name_fn *fn, void *fn_ctx);
	/* One resource was refused. */
	void (*rejected)(void *ctx, const char *name, const char *reason);
	/* A demanded key has been answered, by whatever answer. Must not demand another from within. */
	void (*answered)(void *ctx, const char *key);
	/* A response was worked off and answered. */
	void (*done)(void *ctx, const struct xds_outcome *outcome);
};

struct xds_delta; /* opaque */

/* A client. node is the encoded Node, copied. NULL when out of memory. */
struct xds_delta *xds_delta_new(
        const struct xds_delta_ops *ops, void *ctx, const uint8_t *node, size_t node_len, bool is_on_demand);

/* Frees it. NULL is fine. */
void xds_delta_free(struct xds_delta *delta);

/* A new stream: sends the first request of each type. 0, -ENOMEM, or what send returned. */
int xds_delta_open(struct xds_delta *delta);

/*
 * Next bytes of a response; is_last with its final ones. Resources are applied
 * as they come. Negative: the stream cannot go on (malformed envelope, ceiling
 * of a text, no memory, send failed), with words in err.
 */
int xds_delta_bytes(struct xds_delta *delta, const uint8_t *bytes, size_t len, bool is_last, struct err *err);

/* The stream is gone, or none came about; status is what it ended with. What was applied stays. */
void xds_delta_close(struct xds_delta *delta, const struct grpc_status *status);

/*
 * Whether a reconnect without versions has been answered, no response is under
 * way, and names may be left that the answer did not hold. The owner calls xds_delta_sweep() once it has
 * been quiet for a while: a server may spread its state over several responses.
 */
bool xds_delta_wants_sweep(const struct xds_delta *delta);

/* Removes what the whole state did not name. Returns how many names. */
size_t xds_delta_sweep(struct xds_delta *delta);

/* Whether each awaited type has had a response without rejection; stays true. */
bool xds_delta_is_warm(const struct xds_delta *delta);

/*
 * On-demand only: whether key has been answered, or had its answer before.
 * Otherwise it is asked for, once, and `answered` will tell. -EAGAIN: wait;
 * 0: the store has what there is; -ENOSPC, -ENOMEM: it cannot be asked for.
 */
int xds_delta_demand(struct xds_delta *delta, const char *key);

/* Names that the control plane would have to be told of after a reconnect. */
size_t xds_delta_known_cnt(const struct xds_delta *delta, enum xds_type type);

#endif
