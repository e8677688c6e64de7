/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SPIFFE text of workload identities. Pure text, no certificate; the shape is
 * reference control.md 6.1.
 */
#include "mesh/identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SCHEME "spiffe://"

/* Takes the bytes up to the next slash, or to the end when is_last. False when the slash is missing or
 * surplus. */
static bool part(const char **at, const char *end, bool is_last, const char **ret, size_t *ret_len)
{
	const char *slash = memchr(*at, '/', (size_t)(end - *at));
	if (is_last != (slash == NULL))
		return false;
	const char *stop = slash ? slash : end;
	*ret = *at;
	*ret_len = (size_t)(stop - *at);
	*at = slash ? slash + 1 : end;
	return true;
}

static bool word(const char **at, const char *end, const char *expect)
{
	const char *text;
	size_t len;
	return part(at, end, false, &text, &len) && len == strlen(expect) && memcmp(text, expect, len) == 0;
}

int identity_parse(const char *text, size_t len, struct identity *ret_identity)
{
	struct identity id;
	size_t scheme_len = strlen(SCHEME);

	if (len < scheme_len || len >= IDENTITY_STR_MAX || memcmp(text, SCHEME, scheme_len) != 0)
		return -EINVAL;
	if (memchr(text, 0, len))
		return -EINVAL;
	const char *at = text + scheme_len, *end = text + len;
	if (!part(&at, end, false, &id.td, &id.td_len) || !word(&at, end, "ns") ||
	        !part(&at, end, false, &id.ns, &id.ns_len) || !word(&at, end, "sa") ||
	        !part(&at, end, true, &id.sa, &id.sa_len))
		return -EINVAL;
	*ret_identity = id;
	return 0;
}

struct identity identity_of(const struct workload *workload)
{
	return (struct identity){
	        .td = workload->trust_domain,
	        .td_len = strlen(workload->trust_domain),
	        .ns = workload->ns,
	        .ns_len = strlen(workload->ns),
	        .sa = workload->service_account,
	        .sa_len = strlen(workload->service_account),
	};
}

static bool same(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

bool identity_eq(const struct identity *a, const struct identity *b)
{
	return same(a->td, a->td_len, b->td, b->td_len) && same(a->ns, a->ns_len, b->ns, b->ns_len) &&
	       same(a->sa, a->sa_len, b->sa, b->sa_len);
}

int identity_format(const struct identity *identity, char *dst, size_t cap)
{
	/* A precision is an int; longer parts are no identity anyway. */
	if (identity->td_len >= IDENTITY_STR_MAX || identity->ns_len >= IDENTITY_STR_MAX ||
	        identity->sa_len >= IDENTITY_STR_MAX)
		return -ENAMETOOLONG;
	int len = snprintf(dst, cap, SCHEME "%.*s/ns/%.*s/sa/%.*s", (int)identity->td_len, identity->td,
	        (int)identity->ns_len, identity->ns, (int)identity->sa_len, identity->sa);
	if (len < 0 || (size_t)len >= cap || len >= IDENTITY_STR_MAX)
		return -ENAMETOOLONG;
	return len;
}
