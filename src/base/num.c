/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decimal numbers without the C library's leniencies (blanks, signs, 0x, locale). */
#include "base/num.h"

#include <errno.h>

int num_parse(const char *text, size_t len, uint64_t max, uint64_t *ret_value)
{
	if (len == 0)
		return -EINVAL;
	uint64_t v = 0;
	int rc = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		/* Keep reading after an overflow: bad digits further on make it no number at all. */
		if (__builtin_mul_overflow(v, 10u, &v) ||
		        __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v))
			rc = -ERANGE;
	}
	if (rc < 0 || v > max)
		return -ERANGE;
	*ret_value = v;
	return 0;
}

size_t num_format(uint64_t value, char *dst)
{
	char tmp[NUM_STR_MAX];
	size_t n = 0;
	do {
		tmp[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < n; i++)
		dst[i] = tmp[n - 1 - i];
	dst[n] = '\0';
	return n;
}
