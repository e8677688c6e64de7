/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The certificate service's messages by tables; see citadel.h. */
#include "pb/citadel.h"

#include <errno.h>

#include "citadel.pb.h"

#include "pb/codec_table.h"

/* clang-format off */

struct value {
	const char *string_value;
};

static const struct codec_field value_fields[] = {
	F_STR(struct value, istio_v1_auth_StringValue, string_value),
};
CODEC_TABLE(value, struct value, istio_v1_auth_StringValue);

struct field {
	const char *key;
	struct value value;
};

static const struct codec_field field_fields[] = {
	F_STR(struct field, istio_v1_auth_StringField, key),
	F_MSG(struct field, istio_v1_auth_StringField, value, &value),
};
CODEC_TABLE(field, struct field, istio_v1_auth_StringField);

struct metadata {
	struct field *fields;
	size_t field_cnt;
};

static const struct codec_field metadata_fields[] = {
	F_MSGS(struct metadata, istio_v1_auth_StringStruct, fields, field_cnt, &field),
};
CODEC_TABLE(metadata, struct metadata, istio_v1_auth_StringStruct);

struct request {
	const char *csr;
	uint64_t validity_duration;
	struct metadata *metadata;
};

static const struct codec_field request_fields[] = {
	F_STR(struct request, istio_v1_auth_IstioCertificateRequest, csr),
	F_VAL(struct request, istio_v1_auth_IstioCertificateRequest, validity_duration, CODEC_U64),
	F_REF(struct request, istio_v1_auth_IstioCertificateRequest, metadata, &metadata),
};
CODEC_TABLE(request, struct request, istio_v1_auth_IstioCertificateRequest);

struct response {
	const char **cert_chain;
	size_t cnt;
};

static const struct codec_field response_fields[] = {
	F_STRS(struct response, istio_v1_auth_IstioCertificateResponse, cert_chain, cnt),
};
CODEC_TABLE(response, struct response, istio_v1_auth_IstioCertificateResponse);

/* clang-format on */

int citadel_request_encode(const struct citadel_request *in, struct buf *out, struct err *err)
{
	struct field impersonated = {.key = "ImpersonatedIdentity",
	        .value.string_value = in->impersonated ? in->impersonated : ""};
	struct metadata meta = {.fields = &impersonated, .field_cnt = 1};
	const struct request obj = {.csr = in->csr,
	        .validity_duration = in->validity_s,
	        .metadata = in->impersonated ? &meta : NULL};
	static const char name[] = "IstioCertificateRequest";
	size_t len;
	int r = codec_size(&request, &obj, name, &len, err);
	if (r == 0)
		r = buf_reserve(out, len);
	if (r == 0)
		r = codec_encode(&request, &obj, name, out->data + out->len, len, &len, err);
	if (r == 0)
		buf_commit(out, len);
	return r;
}

int citadel_response_decode(const uint8_t *bytes, size_t len, struct arena *arena,
        const char *const **ret_chain, size_t *ret_cnt, struct err *err)
{
	struct response obj;
	int r = codec_decode(&response, bytes, len, "IstioCertificateResponse", arena, &obj, err);
	if (r < 0)
		return r;
	*ret_chain = obj.cert_chain;
	*ret_cnt = obj.cnt;
	return 0;
}
