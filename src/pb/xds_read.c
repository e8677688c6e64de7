/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What arrives: resources and what is in them; see xds.h. */
#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "pb/xds.h"
#include "pb/xds_table.h"

static const char *const URLS[XDS_TYPE_CNT] = {
        [XDS_TYPE_ADDRESS] = "type.googleapis.com/istio.workload.Address",
        [XDS_TYPE_POLICY] = "type.googleapis.com/istio.security.Authorization",
};

const char *xds_type_url(enum xds_type type)
{
	return URLS[type];
}

enum xds_type xds_type_of(const void *url, size_t len)
{
	for (unsigned i = 0; i < XDS_TYPE_CNT; i++)
		if (strlen(URLS[i]) == len && memcmp(URLS[i], url, len) == 0)
			return (enum xds_type)i;
	return XDS_TYPE_UNKNOWN;
}

/* A failure of the codec in upstream's words, where there are such. */
static int decode_failed(int rc, struct err *err)
{
	if (rc == ERR_PROTOCOL || rc == ERR_BAD_UTF8)
		return err_wrap(err, "decode: failed to decode Protobuf message");
	return rc;
}

static int decode_address(struct xds_reader *r, const uint8_t *bytes, size_t len, struct xds_record *ret)
{
	struct wire_address wire;
	int rc = codec_decode(&xds_table_address, bytes, len, "Address", r->arena, &wire, r->err);
	if (rc < 0)
		return decode_failed(rc, r->err);
	if (wire.workload && wire.service)
		return err_set(r->err, ERR_PROTOCOL,
		        "decode: failed to decode Protobuf message: Address: both a workload and a service");
	if (wire.workload) {
		ret->kind = XDS_WORKLOAD;
		return xds_read_workload(r, wire.workload, &ret->workload);
	}
	if (wire.service) {
		ret->kind = XDS_SERVICE;
		return xds_read_service(r, wire.service, &ret->service);
	}
	return err_set(r->err, ERR_UNSUPPORTED, "unknown address type");
}

static int decode_policy(struct xds_reader *r, const uint8_t *bytes, size_t len, struct xds_record *ret)
{
	struct wire_policy wire;
	int rc = codec_decode(&xds_table_policy, bytes, len, "Authorization", r->arena, &wire, r->err);
	if (rc < 0)
		return decode_failed(rc, r->err);
	ret->kind = XDS_POLICY;
	return xds_read_policy(r, &wire, &ret->policy);
}

int xds_decode(enum xds_type type, const uint8_t *bytes, size_t len, struct arena *arena,
        struct xds_record *ret_record, struct err *err)
{
	struct xds_reader r = {.arena = arena, .err = err};
	struct xds_record record;
	int rc = type == XDS_TYPE_ADDRESS ? decode_address(&r, bytes, len, &record)
	                                  : decode_policy(&r, bytes, len, &record);
	if (rc == 0)
		*ret_record = record;
	return rc;
}

/* --- the envelope --------------------------------------------------------- */

static int read_text(const struct codec_item *item, const char **ret_text, size_t *ret_len, struct err *err)
{
	if (!item->is_bytes || !utf8_valid(item->p, item->len) || memchr(item->p, 0, item->len))
		return err_set(err, ERR_PROTOCOL, "a resource's name or version is no text");
	*ret_text = (const char *)item->p;
	*ret_len = item->len;
	return 0;
}

static int read_any(const struct codec_item *outer, struct xds_resource *res, struct err *err)
{
	struct codec_item item;
	size_t at = 0;
	int rc;
	if (!outer->is_bytes)
		return err_set(err, ERR_PROTOCOL, "a resource's payload has the wrong wire type");
	res->has_any = true;
	while ((rc = codec_next(outer->p, outer->len, &at, &item)) > 0) {
		if (item.tag == 1 && item.is_bytes) {
			res->type = xds_type_of(item.p, item.len);
		} else if (item.tag == 2 && item.is_bytes) {
			res->value = item.p;
			res->value_len = item.len;
		} else if (item.tag <= 2) {
			return err_set(err, ERR_PROTOCOL, "a resource's payload has the wrong wire type");
		}
	}
	return rc < 0 ? err_set(err, rc, "a resource's payload is malformed") : 0;
}

int xds_resource_read(const uint8_t *bytes, size_t len, struct xds_resource *ret_resource, struct err *err)
{
	struct xds_resource res = {.name = "", .version = "", .type = XDS_TYPE_UNKNOWN};
	struct codec_item item;
	size_t at = 0;
	int next, rc = 0;
	while (rc == 0 && (next = codec_next(bytes, len, &at, &item)) != 0) {
		if (next < 0)
			return err_set(err, next, "a resource is malformed");
		const char *alias;
		size_t alias_len;
		if (item.tag == XDS_RESOURCE_VERSION)
			rc = read_text(&item, &res.version, &res.version_len, err);
		else if (item.tag == XDS_RESOURCE_ANY)
			rc = read_any(&item, &res, err);
		else if (item.tag == XDS_RESOURCE_NAME)
			rc = read_text(&item, &res.name, &res.name_len, err);
		else if (item.tag == XDS_RESOURCE_ALIASES)
			rc = read_text(&item, &alias, &alias_len, err);
	}
	if (rc == 0)
		*ret_resource = res;
	return rc;
}

int xds_resource_alias(const uint8_t *bytes, size_t len, size_t *at, const char **ret_alias, size_t *ret_len)
{
	struct codec_item item;
	while (codec_next(bytes, len, at, &item) > 0) {
		if (item.tag != XDS_RESOURCE_ALIASES || !item.is_bytes)
			continue;
		*ret_alias = (const char *)item.p;
		*ret_len = item.len;
		return 1;
	}
	return 0;
}
