/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SPIFFE identities: see spiffe.h. Pure text; must not know certificates.
 */
#include "tls/spiffe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SPIFFE_PREFIX "spiffe://"

/* The next part up to a slash or the end; moves *at behind the slash, to NULL at the end. */
static const char *part(const char **at, const char *end, size_t *ret_len)
{
	const char *start = *at;
	const char *slash = memchr(start, '/', (size_t)(end - start));
	*ret_len = (size_t)((slash ? slash : end) - start);
	*at = slash ? slash + 1 : NULL;
	return start;
}

static bool is_word(const char *p, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(p, word, len) == 0;
}

int spiffe_parse(const char *text, size_t len, struct spiffe *ret_id)
{
	size_t prefix = strlen(SPIFFE_PREFIX);
	if (len > SPIFFE_MAX || len < prefix || memcmp(text, SPIFFE_PREFIX, prefix) != 0 ||
	        memchr(text, 0, len))
		return -EINVAL;
	const char *parts[5];
	size_t lens[5];
	const char *at = text + prefix;
	for (size_t i = 0; i < 5; i++) {
		if (!at)
			return -EINVAL;
		parts[i] = part(&at, text + len, &lens[i]);
	}
	if (at || !is_word(parts[1], lens[1], "ns") || !is_word(parts[3], lens[3], "sa"))
		return -EINVAL;
	*ret_id = (struct spiffe){.td = parts[0],
	        .td_len = lens[0],
	        .ns = parts[2],
	        .ns_len = lens[2],
	        .sa = parts[4],
	        .sa_len = lens[4]};
	return 0;
}

int spiffe_format(const char *td, const char *ns, const char *sa, char *buf, size_t cap)
{
	if (strchr(td, '/') || strchr(ns, '/') || strchr(sa, '/'))
		return -EINVAL;
	/* Its own bound first: what is made here must also parse. */
	size_t len = strlen(SPIFFE_PREFIX "/ns//sa/") + strlen(td) + strlen(ns) + strlen(sa);
	if (len > SPIFFE_MAX || len >= cap)
		return -ENAMETOOLONG;
	return snprintf(buf, cap, SPIFFE_PREFIX "%s/ns/%s/sa/%s", td, ns, sa);
}

bool spiffe_same_td(const struct spiffe *a, const struct spiffe *b)
{
	return a->td_len == b->td_len && memcmp(a->td, b->td, a->td_len) == 0;
}
