/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Durations as people write them for upstream: terms of a whole number and a
 * unit, juxtaposed, added or multiplied (reference control.md 3.5). Knows
 * nothing of where the text came from.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/param.h"

/* Nanoseconds of a unit; 128 bits hold every product that is in range. */
struct unit {
	const char *name;
	uint64_t ns;
};

#define NS_S 1000000000ull
#define NS_DAY (86400ull * NS_S)

static const struct unit units[] = {
        {"", NS_S},
        {"y", 365 * NS_DAY},
        {"year", 365 * NS_DAY},
        {"years", 365 * NS_DAY},
        {"mon", 30 * NS_DAY},
        {"month", 30 * NS_DAY},
        {"months", 30 * NS_DAY},
        {"w", 7 * NS_DAY},
        {"week", 7 * NS_DAY},
        {"weeks", 7 * NS_DAY},
        {"d", NS_DAY},
        {"day", NS_DAY},
        {"days", NS_DAY},
        {"h", 3600 * NS_S},
        {"hr", 3600 * NS_S},
        {"hour", 3600 * NS_S},
        {"hours", 3600 * NS_S},
        {"m", 60 * NS_S},
        {"min", 60 * NS_S},
        {"minute", 60 * NS_S},
        {"minutes", 60 * NS_S},
        {"s", NS_S},
        {"sec", NS_S},
        {"second", NS_S},
        {"seconds", NS_S},
        {"ms", 1000000},
        {"msec", 1000000},
        {"millisecond", 1000000},
        {"milliseconds", 1000000},
        {"\xc2\xb5s", 1000},
        {"\xce\xbcs", 1000}, /* both code points of the micro sign */
        {"us", 1000},
        {"usec", 1000},
        {"microsecond", 1000},
        {"microseconds", 1000},
        {"ns", 1},
        {"nsec", 1},
        {"nanosecond", 1},
        {"nanoseconds", 1},
};

/* What is left of the text. */
struct cursor {
	const char *p;
	size_t len;
};

static void skip_blanks(struct cursor *c)
{
	while (c->len && strchr(" \t\r\n", *c->p) && *c->p) {
		c->p++;
		c->len--;
	}
}

static bool is_unit_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
}

static int parse_number(struct cursor *c, uint64_t *ret_value)
{
	uint64_t v = 0;
	size_t n = 0;
	for (; n < c->len && c->p[n] >= '0' && c->p[n] <= '9'; n++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		        __builtin_add_overflow(v, (uint64_t)(c->p[n] - '0'), &v))
			return -ERANGE;
	if (n == 0)
		return -EINVAL;
	c->p += n;
	c->len -= n;
	*ret_value = v;
	return 0;
}

static int parse_unit(struct cursor *c, uint64_t *ret_ns)
{
	size_t n = 0;
	while (n < c->len && is_unit_byte(c->p[n]))
		n++;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].name) == n && strncasecmp(units[i].name, c->p, n) == 0) {
			c->p += n;
			c->len -= n;
			*ret_ns = units[i].ns;
			return 0;
		}
	}
	return -EINVAL;
}

/* A term; *ret_bare is its number without a unit, for `2m*3`, where the second factor is a count. */
static int parse_term(struct cursor *c, unsigned __int128 *ret_ns, uint64_t *ret_bare, bool *ret_has_unit)
{
	uint64_t unit;
	int rc = parse_number(c, ret_bare);
	if (rc < 0)
		return rc;
	skip_blanks(c);
	size_t before = c->len;
	rc = parse_unit(c, &unit);
	if (rc < 0)
		return rc;
	*ret_has_unit = c->len != before;
	*ret_ns = (unsigned __int128)*ret_bare * unit;
	skip_blanks(c);
	return 0;
}

/* Largest intermediate value: what fits uint64_t milliseconds. */
static const unsigned __int128 ns_max = (unsigned __int128)UINT64_MAX * 1000000;

/* Takes one further term in with its operator. *mode is 0 before the first operator, then '+' or '*'. */
static int parse_more(struct cursor *c, char *mode, unsigned __int128 *sum)
{
	char op = *c->p == '*' ? '*' : '+';
	if (*c->p == '+' || *c->p == '*') {
		c->p++;
		c->len--;
		skip_blanks(c);
	}
	if (*mode && *mode != op)
		return -EINVAL;
	*mode = op;
	unsigned __int128 term;
	uint64_t bare;
	bool has_unit;
	int rc = parse_term(c, &term, &bare, &has_unit);
	if (rc < 0)
		return rc;
	if (op == '+') {
		*sum += term;
	} else {
		/* A factor counts in seconds, which is also what a bare number means: 2m*3 = 2m*3s = 6
		 * minutes. */
		unsigned __int128 factor = has_unit ? term / NS_S : bare;
		if (factor && *sum > ns_max / factor)
			return -ERANGE;
		*sum *= factor;
	}
	return *sum > ns_max ? -ERANGE : 0;
}

static int parse_all(struct cursor *c, unsigned __int128 *ret_ns)
{
	unsigned __int128 sum;
	uint64_t bare;
	bool has_unit;
	char mode = 0;
	skip_blanks(c);
	int rc = parse_term(c, &sum, &bare, &has_unit);
	while (rc == 0 && c->len)
		rc = parse_more(c, &mode, &sum);
	if (rc == 0)
		*ret_ns = sum;
	return rc;
}

int duration_parse(const char *text, size_t len, uint64_t *ret_ms, const char **ret_why)
{
	struct cursor c = {text, len};
	unsigned __int128 ns = 0;
	int rc = len ? parse_all(&c, &ns) : -EINVAL;
	if (rc == 0 && ns > ns_max)
		rc = -ERANGE;
	if (rc < 0) {
		if (ret_why)
			*ret_why = len == 0        ? "Empty input"
			           : rc == -ERANGE ? "overflow"
			                           : "not a duration, e.g. 30s, 5m, 1h30m";
		return rc;
	}
	*ret_ms = (uint64_t)((ns + 999999) / 1000000);
	return 0;
}
