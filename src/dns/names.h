/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which host names of the mesh a queried name may mean: Kubernetes'
 * expansions, search domains taken off, wildcards, in upstream's order
 * (control.md 10.3, 1-4). Pure; knows no mesh: the caller says what exists.
 */
#ifndef CULVERT_DNS_NAMES_H
#define CULVERT_DNS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Room for a name as text with its terminator; longer candidates don't exist. */
#define DNS_NAMES_TEXT 256

/* Who asks. */
struct dns_names {
	const char *ns;     /* the client's namespace */
	const char *domain; /* of the cluster, e.g. cluster.local */
	/* Search domains, lower case, no dot at the end; NULL = those of a pod, made of the two above. */
	const char *const *search;
	size_t search_cnt; /* entries in search */
};

/* How a queried name was understood. */
struct dns_match {
	char host[DNS_NAMES_TEXT];     /* the host name that was accepted */
	char stripped[DNS_NAMES_TEXT]; /* the queried name without its search domain, if that led to `host`;
	                                  else "" */
	bool is_wildcard;              /* `host` stands for more than one name */
};

/*
 * Offers every host name that `query` (lower case, no dot at the end) may mean
 * to `accept`, best first, until it says true. Returns whether it did; then *ret_match is set.
 */
bool dns_names_walk(const struct dns_names *names, const char *query,
        bool (*accept)(void *ctx, const char *host), void *ctx, struct dns_match *ret_match);

#endif
