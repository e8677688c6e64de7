/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Well-formed UTF-8 by the table of RFC 3629 section 4. */
#include "base/utf8.h"

#include <stdint.h>

size_t utf8_char_len(const void *text, size_t len)
{
	const uint8_t *p = text;
	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
	           : (p[0] & 0xf0) == 0xe0        ? 3
	           : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
	                                          : 0;
	if (n == 0 || n > len)
		return 0;
	/* The second byte is what excludes overlong forms, surrogates and too large values. */
	uint8_t lo = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
	uint8_t hi = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool utf8_valid(const void *text, size_t len)
{
	const uint8_t *p = text;
	while (len) {
		size_t n = utf8_char_len(p, len);
		if (n == 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

size_t utf8_cut(const void *text, size_t len, size_t max)
{
	const uint8_t *p = text;
	if (len <= max)
		return len;
	while (max > 0 && (p[max] & 0xc0) == 0x80)
		max--;
	return max;
}
