/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsing, ordering and matching of log directives. Never writes a line. */
#include "base/log_filter.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", "trace"};

const char *log_level_str(enum log_level level)
{
	return (size_t)level < sizeof(level_names) / sizeof(level_names[0]) ? level_names[level] : "off";
}

/* A level name in any case, a digit, or (unless strict) nothing, which means error. */
static int parse_level(const char *s, size_t len, bool strict, enum log_level *ret_level)
{
	if (len == 0 && !strict) {
		*ret_level = LOG_ERROR;
		return 0;
	}
	if (len == 1 && *s >= '0' && *s <= '5') {
		*ret_level = (enum log_level)(*s - '0');
		return 0;
	}
	for (int i = LOG_OFF; i <= LOG_TRACE; i++) {
		if (strlen(level_names[i]) == len && strncasecmp(level_names[i], s, len) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

static bool all_digits(const char *s, size_t len)
{
	size_t i = 0;
	while (i < len && s[i] >= '0' && s[i] <= '9')
		i++;
	return len > 0 && i == len;
}

/* Length of the target without a field part `[{...}]`; -EINVAL when that part is malformed. */
static int target_len(const char *s, size_t len, size_t *ret_len)
{
	const char *open = memmem(s, len, "[{", 2);
	if (!open) {
		*ret_len = len;
		return 0;
	}
	size_t head = (size_t)(open - s);
	size_t rest = len - head - 2;
	if (rest < 2 || memcmp(s + len - 2, "}]", 2) != 0 || memmem(open + 2, rest, "[{", 2))
		return -EINVAL;
	*ret_len = head;
	return 0;
}

/* The colon of target:level, not one of a "::"; NULL when there is none. */
static const char *lone_colon(const char *s, size_t len)
{
	const char *colon = memrchr(s, ':', len);
	return colon && colon > s && colon[-1] != ':' ? colon : NULL;
}

/* A clause taken apart; target has no terminator. */
struct clause {
	bool has_target;
	const char *target;
	size_t target_len;
	enum log_level level;
};

static int parse_pair(const char *s, size_t len, const char *split, bool strict, struct clause *ret_clause)
{
	size_t left = (size_t)(split - s);
	const char *right = split + 1;
	size_t right_len = len - left - 1;
	struct clause c = {.has_target = true, .target = s};
	if (memchr(right, '=', right_len) || target_len(s, left, &c.target_len) < 0)
		return -EINVAL;
	if (parse_level(right, right_len, strict, &c.level) < 0)
		return -EINVAL;
	*ret_clause = c;
	return 0;
}

static int parse_clause(const char *s, size_t len, bool strict, struct clause *ret_clause)
{
	const char *split = memchr(s, '=', len);
	if (!split && strict)
		split = lone_colon(s, len);
	if (split)
		return parse_pair(s, len, split, strict, ret_clause);
	struct clause c = {0};
	if (parse_level(s, len, strict, &c.level) == 0) {
		/* The endpoint takes bare levels in lower case only. */
		if (strict &&
		        (strlen(level_names[c.level]) != len || memcmp(level_names[c.level], s, len) != 0))
			return -EINVAL;
		*ret_clause = c;
		return 0;
	}
	/* A bare number above 5 is a bad level, not a target; a field part needs its level, or the printed
	 * filter could not be read again. */
	if (strict || all_digits(s, len) || memmem(s, len, "[{", 2))
		return -EINVAL;
	*ret_clause = (struct clause){.has_target = true, .target = s, .target_len = len, .level = LOG_TRACE};
	return 0;
}

/* Most specific first: longer targets, then reverse alphabetical; a bare level is last. */
static int compare(const struct log_directive *d, const struct clause *c)
{
	if (!d->target || !c->has_target)
		return (d->target == NULL) - !c->has_target;
	size_t len = strlen(d->target);
	if (len != c->target_len)
		return len > c->target_len ? -1 : 1;
	return -memcmp(d->target, c->target, len);
}

static void refresh_max(struct log_filter *filter)
{
	filter->max_level = LOG_OFF;
	for (size_t i = 0; i < filter->cnt; i++)
		if (filter->directives[i].level > filter->max_level)
			filter->max_level = filter->directives[i].level;
}

static int insert(struct log_filter *filter, const struct clause *c)
{
	size_t at = 0;
	while (at < filter->cnt && compare(&filter->directives[at], c) < 0)
		at++;
	if (at < filter->cnt && compare(&filter->directives[at], c) == 0) {
		filter->directives[at].level = c->level;
		return 0;
	}
	if (filter->cnt == LIMIT_LOG_DIRECTIVES)
		return -ENOSPC;
	char *target = c->has_target ? mem_strndup(c->target, c->target_len) : NULL;
	struct log_directive *list = mem_realloc(filter->directives, (filter->cnt + 1) * sizeof(*list));
	if (list)
		filter->directives = list;
	if (!list || (c->has_target && !target)) {
		mem_free(target);
		return -ENOMEM;
	}
	memmove(list + at + 1, list + at, (filter->cnt - at) * sizeof(*list));
	list[at] = (struct log_directive){.target = target, .level = c->level};
	filter->cnt++;
	return 0;
}

void log_filter_done(struct log_filter *filter)
{
	for (size_t i = 0; i < filter->cnt; i++)
		mem_free(filter->directives[i].target);
	mem_free(filter->directives);
	*filter = (struct log_filter){0};
}

int log_filter_copy(struct log_filter *to, const struct log_filter *from)
{
	struct log_filter copy = {0};
	for (size_t i = 0; i < from->cnt; i++) {
		const struct log_directive *d = &from->directives[i];
		struct clause c = {.has_target = d->target,
		        .target = d->target,
		        .target_len = d->target ? strlen(d->target) : 0,
		        .level = d->level};
		int rc = insert(&copy, &c);
		if (rc < 0) {
			log_filter_done(&copy);
			return rc;
		}
	}
	refresh_max(&copy);
	*to = copy;
	return 0;
}

static int add_all(struct log_filter *filter, const char *text, bool strict, struct err *err)
{
	for (const char *s = text; s;) {
		const char *comma = strchr(s, ',');
		size_t len = comma ? (size_t)(comma - s) : strlen(s);
		struct clause c;
		if (parse_clause(s, len, strict, &c) < 0)
			return err_set(err, -EINVAL, "invalid filter directive: %.*s",
			        (int)(len < 200 ? len : 200), s);
		int rc = insert(filter, &c);
		if (rc < 0)
			return err_sys(err, rc, "log filter");
		s = comma ? comma + 1 : NULL;
	}
	return 0;
}

int log_filter_add(struct log_filter *filter, const char *text, bool strict, struct err *err)
{
	struct log_filter next;
	int rc = log_filter_copy(&next, filter);
	if (rc < 0)
		return err_sys(err, rc, "log filter");
	rc = add_all(&next, text, strict, err);
	if (rc < 0) {
		log_filter_done(&next);
		return rc;
	}
	refresh_max(&next);
	log_filter_done(filter);
	*filter = next;
	return 0;
}

bool log_filter_passes(const struct log_filter *filter, enum log_level level, const char *target)
{
	if (level > filter->max_level || level == LOG_OFF)
		return false;
	for (size_t i = 0; i < filter->cnt; i++) {
		const struct log_directive *d = &filter->directives[i];
		if (!d->target || strncmp(target, d->target, strlen(d->target)) == 0)
			return level <= d->level;
	}
	return false;
}
