/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PROXY protocol, version 2, section 2.2 of its specification; see proxy_protocol.h. */
#include "silo/proxy_protocol.h"

#include <errno.h>
#include <string.h>

/* Version 2, command PROXY. */
#define VERSION_COMMAND 0x21
/* Address family, and that it is a stream. */
#define UNSPEC_STREAM 0x01
#define IPV4_STREAM 0x11
#define IPV6_STREAM 0x21
/* Type and length of an entry. */
#define TLV_HEAD_LEN 3

static const uint8_t SIGNATURE[12] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 'Q', 'U', 'I', 'T', 0x0a};

/* Bytes of one address; 0 when the two cannot be said together. */
static size_t address_len(const struct addr *src, const struct addr *dst)
{
	if (src->ip.family != dst->ip.family)
		return 0;
	return src->ip.family == 4 ? 4 : 16;
}

int proxy_header_encode(const struct addr *src, const struct addr *dst, const char *identity, struct buf *out)
{
	size_t len = address_len(src, dst);
	size_t id_len = strlen(identity);
	size_t total = (len ? 2 * len + 4 : 0) + (id_len ? TLV_HEAD_LEN + id_len : 0);
	if (total > PROXY_HEADER_MAX)
		return -EMSGSIZE;
	buf_add(out, SIGNATURE, sizeof(SIGNATURE));
	buf_add_u8(out, VERSION_COMMAND);
	buf_add_u8(out, len == 4 ? IPV4_STREAM : len ? IPV6_STREAM : UNSPEC_STREAM);
	buf_add_be16(out, (uint16_t)total);
	if (len) {
		buf_add(out, src->ip.b, len);
		buf_add(out, dst->ip.b, len);
		buf_add_be16(out, src->port);
		buf_add_be16(out, dst->port);
	}
	if (id_len) {
		buf_add_u8(out, PROXY_TLV_IDENTITY);
		buf_add_be16(out, (uint16_t)id_len);
		buf_add(out, identity, id_len);
	}
	return out->err;
}
