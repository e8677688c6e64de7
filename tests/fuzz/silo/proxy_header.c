/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PROXY header as an application takes it apart (version 2 of the protocol, section 2.2): whatever goes
 * in, it must be one header that says exactly that. Input: families, two addresses with ports, the rest is
 * the identity. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "silo/proxy_protocol.h"

#define FIXED_LEN 16
#define IDENTITY_MAX 5000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool is_so)
{
	if (!is_so)
		abort();
}

static const uint8_t *take_addr(const uint8_t *at, uint8_t family, struct addr *ret_addr)
{
	*ret_addr = (struct addr){.ip.family = family & 1 ? 6 : 4, .port = (uint16_t)(at[16] << 8 | at[17])};
	memcpy(ret_addr->ip.b, at, family & 1 ? 16 : 4);
	return at + 18;
}

static void check_header(
        const struct buf *out, const struct addr *src, const struct addr *dst, const char *identity)
{
	static const uint8_t signature[12] = "\r\n\r\n\0\r\nQUIT\n";
	const uint8_t *p = out->data;
	size_t ip_len = src->ip.family != dst->ip.family ? 0 : src->ip.family == 4 ? 4 : 16;
	size_t id_len = strlen(identity);
	check(out->len >= FIXED_LEN && memcmp(p, signature, sizeof(signature)) == 0 && p[12] == 0x21);
	check(p[13] == (ip_len == 4 ? 0x11 : ip_len == 16 ? 0x21 : 0x01));
	check((size_t)(p[14] << 8 | p[15]) == out->len - FIXED_LEN);
	p += FIXED_LEN;
	if (ip_len) {
		check(memcmp(p, src->ip.b, ip_len) == 0 && memcmp(p + ip_len, dst->ip.b, ip_len) == 0);
		p += 2 * ip_len;
		check((p[0] << 8 | p[1]) == src->port && (p[2] << 8 | p[3]) == dst->port);
		p += 4;
	}
	if (id_len) {
		check(p[0] == PROXY_TLV_IDENTITY && (size_t)(p[1] << 8 | p[2]) == id_len);
		check(memcmp(p + 3, identity, id_len) == 0);
		p += 3 + id_len;
	}
	check(p == (const uint8_t *)out->data + out->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct addr src, dst;
	char identity[IDENTITY_MAX + 1];
	struct buf out;
	if (len < 37)
		return 0;
	const uint8_t *rest = take_addr(take_addr(data + 1, data[0], &src), (uint8_t)(data[0] >> 1), &dst);
	size_t id_len = len - 37 < IDENTITY_MAX ? len - 37 : IDENTITY_MAX;
	memcpy(identity, rest, id_len);
	identity[id_len] = '\0';
	buf_init(&out, PROXY_HEADER_MAX);
	if (proxy_header_encode(&src, &dst, identity, &out) == 0)
		check_header(&out, &src, &dst, identity);
	else
		check(strlen(identity) > PROXY_HEADER_MAX - 64);
	buf_done(&out);
	return 0;
}
