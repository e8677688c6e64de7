/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Candidates are made one after the other in one buffer; a name that comes up
 * twice is offered twice, which changes nothing but costs less than a set.
 */
#include "dns/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A walk under way. */
struct walk {
	const struct dns_names *names;
	bool (*accept)(void *ctx, const char *host);
	void *ctx;
	const char *stripped; /* what was left of the query, "" = all of it */
	struct dns_match *match;
};

static bool offer(struct walk *walk, const char *host, bool is_wildcard)
{
	if (!walk->accept(walk->ctx, host))
		return false;
	snprintf(walk->match->host, sizeof(walk->match->host), "%s", host);
	snprintf(walk->match->stripped, sizeof(walk->match->stripped), "%s", walk->stripped);
	walk->match->is_wildcard = is_wildcard;
	return true;
}

/* The name itself, then a star for its first label, its first two, ... */
static bool offer_alias(struct walk *walk, const char *name)
{
	char wildcard[DNS_NAMES_TEXT + 1] = "*";
	if (offer(walk, name, false))
		return true;
	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
		snprintf(wildcard + 1, sizeof(wildcard) - 1, "%s", dot);
		if (strlen(wildcard) < DNS_NAMES_TEXT && offer(walk, wildcard, true))
			return true;
	}
	return false;
}

/* A candidate from parts; one that is too long for a name is none. */
static bool __attribute__((format(printf, 2, 3))) offer_built(struct walk *walk, const char *fmt, ...)
{
	char name[DNS_NAMES_TEXT];
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	return len > 0 && (size_t)len < sizeof(name) && offer_alias(walk, name);
}

static size_t count_labels(const char *name)
{
	size_t cnt = 1;
	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
		cnt++;
	return cnt;
}

/* A name and its Kubernetes expansions (control.md 10.3, 2). */
static bool offer_name(struct walk *walk, const char *name)
{
	const char *ns = walk->names->ns, *domain = walk->names->domain;
	const char *last = strrchr(name, '.');
	bool is_svc = last && strcmp(last, ".svc") == 0;
	if (offer_alias(walk, name))
		return true;
	switch (count_labels(name)) {
	case 1:
		return offer_built(walk, "%s.%s.svc.%s", name, ns, domain);
	case 2:
		return offer_built(walk, "%s.svc.%s", name, domain) ||
		       offer_built(walk, "%s.%s.svc.%s", name, ns, domain);
	case 3:
		return (is_svc && offer_built(walk, "%s.%s", name, domain)) ||
		       offer_built(walk, "%s.svc.%s", name, domain);
	case 4:
		return is_svc && offer_built(walk, "%s.%s", name, domain);
	default:
		return false;
	}
}

/* The query without a search domain that is a proper suffix of it. */
static bool offer_stripped(struct walk *walk, const char *query, const char *search)
{
	char left[DNS_NAMES_TEXT];
	size_t query_len = strlen(query), search_len = strlen(search);
	if (search_len == 0 || query_len < search_len + 2 || query_len - search_len > sizeof(left))
		return false;
	size_t left_len = query_len - search_len - 1;
	if (query[left_len] != '.' || strcmp(query + left_len + 1, search) != 0)
		return false;
	memcpy(left, query, left_len);
	left[left_len] = '\0';
	walk->stripped = left;
	bool is_found = offer_name(walk, left);
	walk->stripped = "";
	return is_found;
}

/* With the search list of a pod with ClusterFirst, whatever its resolv.conf says. */
static bool offer_as_pod(struct walk *walk, const char *query)
{
	char search[3][DNS_NAMES_TEXT * 2 + 8];
	const struct dns_names *names = walk->names;
	snprintf(search[0], sizeof(search[0]), "%s.svc.%s", names->ns, names->domain);
	snprintf(search[1], sizeof(search[1]), "svc.%s", names->domain);
	snprintf(search[2], sizeof(search[2]), "%s", names->domain);
	for (size_t i = 0; i < 3; i++) {
		if (offer_stripped(walk, query, search[i]))
			return true;
	}
	return false;
}

bool dns_names_walk(const struct dns_names *names, const char *query,
        bool (*accept)(void *ctx, const char *host), void *ctx, struct dns_match *ret_match)
{
	struct walk walk = {.names = names, .accept = accept, .ctx = ctx, .stripped = "", .match = ret_match};
	if (strlen(query) >= DNS_NAMES_TEXT)
		return false;
	if (offer_name(&walk, query))
		return true;
	if (!names->search)
		return offer_as_pod(&walk, query);
	for (size_t i = 0; i < names->search_cnt; i++) {
		if (offer_stripped(&walk, query, names->search[i]))
			return true;
	}
	return false;
}
