/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * X.509 extensions: see ext.h. Elements are written last to first (der.h).
 */
#include "tls/ext.h"

#include <string.h>

/* All object identifiers here are id-ce (2.5.29) and one more byte. */
enum {
	CE_SUBJECT_KEY = 14,
	CE_KEY_USAGE = 15,
	CE_SAN = 17,
	CE_BASIC = 19,
	CE_AUTHORITY_KEY = 35,
	CE_EXT_KEY_USAGE = 37
};

/* Makes an Extension of the value written since `since`. */
static void ext_wrap(struct der *d, uint8_t ce, bool is_critical, size_t since)
{
	const uint8_t oid[] = {0x55, 0x1d, ce};
	der_wrap(d, DER_OCTETS, since);
	if (is_critical)
		der_elem(d, DER_BOOLEAN, "\xff", 1);
	der_elem(d, DER_OID, oid, sizeof(oid));
	der_wrap(d, DER_SEQ, since);
}

void der_ext_uri_san(struct der *d, const char *const *uris, size_t cnt)
{
	size_t since = der_len(d);
	while (cnt-- > 0)
		der_elem(d, DER_URI, uris[cnt], strlen(uris[cnt]));
	der_wrap(d, DER_SEQ, since);
	ext_wrap(d, CE_SAN, true, since);
}

void der_ext_key_usage(struct der *d, uint8_t bits)
{
	/* A named bit list drops its trailing zero bits (X.690 11.2.2). */
	const uint8_t value[] = {(uint8_t)__builtin_ctz(bits), bits};
	size_t since = der_len(d);
	der_elem(d, DER_BITS, value, sizeof(value));
	ext_wrap(d, CE_KEY_USAGE, true, since);
}

void der_ext_both_auth(struct der *d)
{
	static const uint8_t client[] = {0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02};
	static const uint8_t server[] = {0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01};
	size_t since = der_len(d);
	der_elem(d, DER_OID, client, sizeof(client));
	der_elem(d, DER_OID, server, sizeof(server));
	der_wrap(d, DER_SEQ, since);
	ext_wrap(d, CE_EXT_KEY_USAGE, false, since);
}

void der_ext_basic(struct der *d, bool is_ca)
{
	size_t since = der_len(d);
	if (is_ca)
		der_elem(d, DER_BOOLEAN, "\xff", 1);
	der_wrap(d, DER_SEQ, since);
	ext_wrap(d, CE_BASIC, true, since);
}

void der_ext_subject_key(struct der *d, const uint8_t id[EXT_KEY_ID_LEN])
{
	size_t since = der_len(d);
	der_elem(d, DER_OCTETS, id, EXT_KEY_ID_LEN);
	ext_wrap(d, CE_SUBJECT_KEY, false, since);
}

void der_ext_authority_key(struct der *d, const uint8_t id[EXT_KEY_ID_LEN])
{
	size_t since = der_len(d);
	der_elem(d, DER_KEY_ID, id, EXT_KEY_ID_LEN);
	der_wrap(d, DER_SEQ, since);
	ext_wrap(d, CE_AUTHORITY_KEY, false, since);
}
