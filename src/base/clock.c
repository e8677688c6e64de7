/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clocks and RFC 3339 text. The calendar is computed here: no time zone files, no locale. */
#include "base/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts = {0};
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_us(void)
{
	return clock_ns() / 1000;
}

uint64_t clock_ms(void)
{
	return clock_ns() / 1000000;
}

uint64_t clock_wall_us(void)
{
	return read_ns(CLOCK_REALTIME) / 1000;
}

/* Days since 1970-01-01 to a date, counting years from March so that the leap day is last. */
static void civil(uint64_t days, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day)
{
	uint64_t z = days + 719468;
	uint64_t era = z / 146097;
	unsigned doe = (unsigned)(z % 146097);
	unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	unsigned mp = (5 * doy + 2) / 153;
	*ret_day = doy - (153 * mp + 2) / 5 + 1;
	*ret_month = mp < 10 ? mp + 3 : mp - 9;
	*ret_year = (unsigned)(era * 400) + yoe + (*ret_month <= 2);
}

static char *put(char *p, uint64_t v, unsigned digits)
{
	for (unsigned i = digits; i-- > 0; v /= 10)
		p[i] = (char)('0' + v % 10);
	return p + digits;
}

size_t clock_format(uint64_t wall_us, unsigned digits, char *dst)
{
	/* 9999-12-31T23:59:59.999999Z */
	if (wall_us > 253402300799999999u)
		wall_us = 253402300799999999u;
	uint64_t s = wall_us / 1000000;
	unsigned year, month, day;
	civil(s / 86400, &year, &month, &day);
	char *p = put(dst, year, 4);
	*p++ = '-';
	p = put(p, month, 2);
	*p++ = '-';
	p = put(p, day, 2);
	*p++ = 'T';
	p = put(p, s / 3600 % 24, 2);
	*p++ = ':';
	p = put(p, s / 60 % 60, 2);
	*p++ = ':';
	p = put(p, s % 60, 2);
	if (digits) {
		*p++ = '.';
		p = digits == 3 ? put(p, wall_us / 1000 % 1000, 3) : put(p, wall_us % 1000000, 6);
	}
	*p++ = 'Z';
	*p = '\0';
	return (size_t)(p - dst);
}
