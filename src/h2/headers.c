/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A received header list in one buffer. Knows nothing of what may stand in a
 * header: message.c checks before it adds.
 */
#include "h2/headers.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

/* First allocation: HBONE's requests have 200 to 600 bytes. */
#define HEADERS_CAP_MIN 512u

void h2_headers_init(struct h2_headers *headers, size_t max)
{
	*headers = (struct h2_headers){.max = max};
}

void h2_headers_done(struct h2_headers *headers)
{
	mem_free(headers->bytes);
	*headers = (struct h2_headers){.max = headers->max};
}

static int headers_grow(struct h2_headers *headers, size_t need)
{
	size_t cap = headers->cap ? headers->cap : HEADERS_CAP_MIN;
	char *bytes;

	while (cap < need)
		cap *= 2;
	if (cap == headers->cap)
		return 0;
	bytes = mem_realloc(headers->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	headers->bytes = bytes;
	headers->cap = cap;
	return 0;
}

static void headers_put(struct h2_headers *headers, const char *s, size_t len)
{
	memcpy(headers->bytes + headers->len, s, len);
	headers->bytes[headers->len + len] = '\0';
	headers->len += len + 1;
}

int h2_headers_add(
        struct h2_headers *headers, const char *name, size_t name_len, const char *value, size_t value_len)
{
	size_t left = headers->max - headers->len;

	if (name_len >= left || value_len >= left - name_len || left - name_len - value_len < 2)
		return -E2BIG;
	if (headers_grow(headers, headers->len + name_len + value_len + 2) < 0)
		return -ENOMEM;
	headers_put(headers, name, name_len);
	headers_put(headers, value, value_len);
	headers->count++;
	return 0;
}

bool h2_headers_next(const struct h2_headers *headers, const char *name, struct h2_headers_it *it)
{
	while (it->pos < headers->len) {
		it->name = headers->bytes + it->pos;
		it->value = it->name + strlen(it->name) + 1;
		it->value_len = strlen(it->value);
		it->pos = (size_t)(it->value + it->value_len + 1 - headers->bytes);
		if (!name || strcmp(name, it->name) == 0)
			return true;
	}
	return false;
}

const char *h2_headers_get(const struct h2_headers *headers, const char *name)
{
	struct h2_headers_it it = {0};

	return h2_headers_next(headers, name, &it) ? it.value : NULL;
}
