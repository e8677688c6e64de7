/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines, names, labels, values; see samples.h. */
#include "ctl/samples.h"

#include <stdlib.h>
#include <string.h>

/* Letters of a number. */
#define NUMBER_MAX 40

/* Where the labels end: behind the brace that is in no quotes. NULL = nowhere. */
static const char *labels_end(const char *at, const char *end)
{
	bool is_quoted = false;
	for (; at < end; at++) {
		if (is_quoted && *at == '\\' && at + 1 < end)
			at++;
		else if (*at == '"')
			is_quoted = !is_quoted;
		else if (!is_quoted && *at == '}')
			return at + 1;
	}
	return NULL;
}

static bool read_value(const char *at, const char *end, double *ret_value)
{
	char text[NUMBER_MAX];
	char *stop;
	if (at >= end || *at != ' ')
		return false;
	at++;
	size_t len = (size_t)(end - at);
	const char *blank = memchr(at, ' ', len);
	if (blank)
		len = (size_t)(blank - at);
	if (len == 0 || len >= sizeof(text))
		return false;
	memcpy(text, at, len);
	text[len] = '\0';
	*ret_value = strtod(text, &stop);
	return !*stop;
}

bool samples_next(const char **at, struct sample *ret_sample)
{
	const char *line = *at;
	if (!*line)
		return false;
	size_t len = strcspn(line, "\n");
	const char *end = line + len;
	*at = end + (*end == '\n');
	*ret_sample = (struct sample){.line = line, .len = len, .is_comment = true};
	size_t name_len = strcspn(line, "{ \n");
	const char *rest = line + name_len;
	if (line[0] == '#' || name_len == 0 || rest >= end)
		return true;
	if (*rest == '{')
		rest = labels_end(rest, end);
	if (!rest || !read_value(rest, end, &ret_sample->value))
		return true;
	ret_sample->is_comment = false;
	ret_sample->name_len = name_len;
	return true;
}

bool samples_is(const struct sample *sample, const char *name)
{
	return !sample->is_comment && strlen(name) == sample->name_len &&
	       memcmp(sample->line, name, sample->name_len) == 0;
}

/* Copies a quoted value that begins at `at`; returns what is behind its closing quote, NULL if there is none.
 */
static const char *unquote(const char *at, const char *end, char *dst, size_t cap, bool *ret_fits)
{
	size_t len = 0;
	*ret_fits = true;
	for (; at < end && *at != '"'; at++) {
		char c = *at;
		if (c == '\\' && at + 1 < end)
			c = *++at == 'n' ? '\n' : *at;
		if (len + 1 < cap)
			dst[len++] = c;
		else
			*ret_fits = false;
	}
	dst[len] = '\0';
	return at < end ? at + 1 : NULL;
}

bool samples_label(const struct sample *sample, const char *label, char *dst, size_t cap)
{
	const char *end = sample->line + sample->len;
	const char *at = sample->line + sample->name_len;
	size_t label_len = strlen(label);
	if (sample->is_comment || at >= end || *at != '{')
		return false;
	for (at++; at && at < end && *at != '}';) {
		bool fits;
		const char *equals = memchr(at, '=', (size_t)(end - at));
		if (!equals || end - equals < 2 || equals[1] != '"')
			return false;
		bool is_it = (size_t)(equals - at) == label_len && memcmp(at, label, label_len) == 0;
		at = unquote(equals + 2, end, dst, cap, &fits);
		if (is_it)
			return at && fits;
		if (at && at < end && *at == ',')
			at++;
	}
	return false;
}
