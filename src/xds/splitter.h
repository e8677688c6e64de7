/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Takes a DeltaDiscoveryResponse apart while it arrives: a control plane sends
 * its whole mesh as one message of tens of megabytes, of which never more than
 * one resource is held here. Knows fields, not what they mean. Sans I/O.
 */
#ifndef CULVERT_XDS_SPLITTER_H
#define CULVERT_XDS_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Bytes of one resource that is looked at; a larger one is skipped. A workload has 250 bytes, a policy with a
 * thousand rules a few hundred KB. */
#define XDS_RESOURCE_MAX (4u << 20)
/* Bytes of a type URL, a nonce or a removed name. istiod's are below 200; without bound they would be echoed.
 */
#define XDS_TEXT_MAX 4096

/* What the parts are told to; strings are terminated and valid UTF-8, borrowed for the call. Negative ends
 * the stream. */
struct xds_splitter_ops {
	/* An entry of `resources`, whole. */
	int (*resource)(void *ctx, const uint8_t *bytes, size_t len, struct err *err);
	/* One that is above XDS_RESOURCE_MAX, by its name ("" when that did not show). */
	int (*oversized)(void *ctx, const char *name, struct err *err);
	int (*type_url)(void *ctx, const char *url, struct err *err);
	int (*nonce)(void *ctx, const char *nonce, struct err *err);
	int (*removed)(void *ctx, const char *name, struct err *err);
};

/* What the next byte belongs to. Private. */
enum xds_split_state { XDS_SPLIT_KEY, XDS_SPLIT_VARINT, XDS_SPLIT_LEN, XDS_SPLIT_SKIP, XDS_SPLIT_COLLECT };

/* The splitter. Fields are private. */
struct xds_splitter {
	const struct xds_splitter_ops *ops;
	void *ctx;
	enum xds_split_state state;
	uint64_t varint; /* collected so far */
	unsigned shift;
	uint32_t tag;     /* of the field at hand */
	size_t left;      /* bytes of it to come */
	uint8_t *piece;   /* the field being collected, owned; NULL = none */
	size_t piece_len; /* its full length */
	bool in_big;      /* inside a resource that is too large */
	size_t big_left;  /* bytes of that to come */
	char *big_name;   /* owned, NULL = not seen */
};

/* A splitter at the start of a message. ops is borrowed. */
void xds_splitter_init(struct xds_splitter *splitter, const struct xds_splitter_ops *ops, void *ctx);

/* Frees what is half collected; ready for the next message. */
void xds_splitter_reset(struct xds_splitter *splitter);

/* The next bytes. ERR_PROTOCOL: malformed; ERR_TOO_LARGE: a text above XDS_TEXT_MAX; -ENOMEM; what ops
 * returned. */
int xds_splitter_feed(struct xds_splitter *splitter, const uint8_t *bytes, size_t len, struct err *err);

/* The message is complete: 0, or ERR_TRUNCATED when it ended inside a field. */
int xds_splitter_end(struct xds_splitter *splitter, struct err *err);

#endif
