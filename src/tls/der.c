/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DER writer: see der.h.
 */
#include "tls/der.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void der_init(struct der *d)
{
	d->at = DER_MAX;
	d->err = 0;
}

const uint8_t *der_bytes(const struct der *d)
{
	return d->buf + d->at;
}

size_t der_len(const struct der *d)
{
	return DER_MAX - d->at;
}

void der_raw(struct der *d, const void *p, size_t len)
{
	if (d->err || len > d->at) {
		d->err = -EMSGSIZE;
		return;
	}
	d->at -= len;
	if (len)
		memcpy(d->buf + d->at, p, len);
}

void der_wrap(struct der *d, uint8_t tag, size_t since)
{
	size_t len = der_len(d) - since;
	uint8_t head[4] = {tag, (uint8_t)len};
	size_t head_len = 2;
	if (len > 255) {
		head[1] = 0x82;
		head[2] = (uint8_t)(len >> 8);
		head[3] = (uint8_t)len;
		head_len = 4;
	} else if (len > 127) {
		head[1] = 0x81;
		head[2] = (uint8_t)len;
		head_len = 3;
	}
	der_raw(d, head, head_len);
}

void der_elem(struct der *d, uint8_t tag, const void *p, size_t len)
{
	size_t since = der_len(d);
	der_raw(d, p, len);
	der_wrap(d, tag, since);
}

void der_uint(struct der *d, const uint8_t *p, size_t len)
{
	while (len > 1 && p[0] == 0) {
		p++;
		len--;
	}
	size_t since = der_len(d);
	der_raw(d, p, len);
	/* A set top bit would make it negative. */
	if (len == 0 || (p[0] & 0x80))
		der_raw(d, "", 1);
	der_wrap(d, DER_INTEGER, since);
}

void der_bits(struct der *d, const void *p, size_t len)
{
	size_t since = der_len(d);
	der_raw(d, p, len);
	der_raw(d, "", 1); /* number of unused bits */
	der_wrap(d, DER_BITS, since);
}

void der_time(struct der *d, int64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;
	char text[32];
	if (!gmtime_r(&t, &tm) || tm.tm_year < 50 || tm.tm_year > 9999 - 1900) {
		d->err = -EMSGSIZE;
		return;
	}
	size_t len = strftime(text, sizeof(text), "%Y%m%d%H%M%SZ", &tm);
	if (tm.tm_year < 150)
		der_elem(d, DER_UTC_TIME, text + 2, len - 2); /* two digits for the year */
	else
		der_elem(d, DER_TIME, text, len);
}
