/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What culvert reads and writes of delta xDS: the resources of both types as
 * plain records, the requests as bytes (reference control.md 4.3 to 4.5, 5).
 * Knows no stream: which message is due when is for src/xds.
 */
#ifndef CULVERT_PB_XDS_H
#define CULVERT_PB_XDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "culvert/records.h"

/* The two subscriptions, in the order in which they are asked for. */
enum xds_type { XDS_TYPE_ADDRESS = 0, XDS_TYPE_POLICY, XDS_TYPE_CNT, XDS_TYPE_UNKNOWN = XDS_TYPE_CNT };

/* The type URL of a type; static. */
const char *xds_type_url(enum xds_type type);

/* The type of a URL of len bytes, or XDS_TYPE_UNKNOWN. */
enum xds_type xds_type_of(const void *url, size_t len);

/* Which record a resource holds. */
enum xds_kind { XDS_WORKLOAD, XDS_SERVICE, XDS_POLICY };

/* A decoded resource; the record lives in the arena of the decoding. */
struct xds_record {
	enum xds_kind kind;
	union {
		const struct workload *workload;
		const struct service *service;
		const struct policy *policy;
	};
};

/*
 * Decodes a resource of that type. On failure err's text is the reason that
 * the control plane is told: ERR_PROTOCOL or ERR_BAD_UTF8: it is malformed
 * ("decode: ..."); ERR_UNSUPPORTED: it says something that is not accepted;
 * ERR_TOO_MANY, ERR_TOO_LARGE: it is above a ceiling of proto/ *.options;
 * -ENOMEM also at the arena's ceiling.
 */
int xds_decode(enum xds_type type, const uint8_t *bytes, size_t len, struct arena *arena,
        struct xds_record *ret_record, struct err *err);

/* Field numbers that both directions of the stream need (envoy.service.discovery.v3). */
enum {
	XDS_RESPONSE_RESOURCES = 2,
	XDS_RESPONSE_TYPE_URL = 4,
	XDS_RESPONSE_NONCE = 5,
	XDS_RESPONSE_REMOVED = 6,
	XDS_RESOURCE_VERSION = 1,
	XDS_RESOURCE_ANY = 2,
	XDS_RESOURCE_NAME = 3,
	XDS_RESOURCE_ALIASES = 4,
};

/* One entry of DeltaDiscoveryResponse.resources, borrowed from its bytes. */
struct xds_resource {
	const char *name; /* not terminated */
	size_t name_len;
	const char *version; /* not terminated */
	size_t version_len;
	bool has_any;         /* it has a payload */
	enum xds_type type;   /* what the payload's URL says; XDS_TYPE_UNKNOWN is not an error */
	const uint8_t *value; /* the payload */
	size_t value_len;
};

/* Takes a resource apart. ERR_PROTOCOL when its bytes are malformed or its texts are not UTF-8. */
int xds_resource_read(const uint8_t *bytes, size_t len, struct xds_resource *ret_resource, struct err *err);

/* Steps through the aliases of a resource that xds_resource_read accepted: 1 = set, 0 = end. *at starts at 0.
 */
int xds_resource_alias(const uint8_t *bytes, size_t len, size_t *at, const char **ret_alias, size_t *ret_len);

/* A key and its value in the node's metadata. */
struct xds_meta {
	const char *key;
	const char *value; /* a string, or JSON text where said so */
};

/* Who we are (reference control.md 4.3). Strings are never NULL. */
struct xds_node {
	const char *ip;              /* INSTANCE_IP */
	const char *pod;             /* POD_NAME */
	const char *ns;              /* POD_NAMESPACE */
	const char *node_name;       /* NODE_NAME */
	const struct xds_meta *meta; /* proxy metadata, strings */
	size_t meta_cnt;
	const struct xds_meta *json; /* ISTIO_METAJSON_*: JSON text */
	size_t json_cnt;
};

/*
 * Appends the Node message. JSON that is none is left out; bad, when not NULL,
 * hears of it. Errors stick in out.
 */
void xds_node_write(struct buf *out, const struct xds_node *node,
        void (*bad)(void *ctx, const char *key, const char *why), void *ctx);

/* Appends text, JSON of len bytes, as a google.protobuf.Value. 0, -EINVAL with words in err, or out's error.
 */
int xds_json_write(struct buf *out, const char *text, size_t len, struct err *err);

/* Parts of a DeltaDiscoveryRequest, appended one by one; errors stick in out. */
void xds_request_type(struct buf *out, const char *type_url);
/* The node, as xds_node_write made it. */
void xds_request_node(struct buf *out, const uint8_t *node, size_t len);
void xds_request_subscribe(struct buf *out, const char *name);
void xds_request_unsubscribe(struct buf *out, const char *name);
/* One entry of initial_resource_versions. */
void xds_request_version(struct buf *out, const char *name, const char *version);
void xds_request_nonce(struct buf *out, const char *nonce);
/* error_detail with that message; code stays 0. */
void xds_request_error(struct buf *out, const char *message, size_t len);

#endif
