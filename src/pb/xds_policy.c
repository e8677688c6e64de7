/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Authorization policies: from their wire form to records. Prefixes and string
 * matches that say nothing usable are left out of their lists, as upstream
 * does (reference dataplane.md 10.4); an unknown scope or action refuses all.
 */
#include <errno.h>

#include "base/addr.h"
#include "pb/xds_table.h"

static bool read_match(const struct wire_match *wire, struct string_match *ret_match)
{
	if (wire->presence_cnt)
		*ret_match = (struct string_match){MATCH_PRESENCE, ""};
	else if (wire->suffix_cnt)
		*ret_match = (struct string_match){MATCH_SUFFIX, wire->suffix[wire->suffix_cnt - 1]};
	else if (wire->prefix_cnt)
		*ret_match = (struct string_match){MATCH_PREFIX, wire->prefix[wire->prefix_cnt - 1]};
	else if (wire->exact_cnt)
		*ret_match = (struct string_match){MATCH_EXACT, wire->exact[wire->exact_cnt - 1]};
	else
		return false;
	return true;
}

static int read_matches(struct xds_reader *r, const struct wire_matches *wire,
        const struct string_match **ret_matches, size_t *ret_cnt)
{
	struct string_match *matches = xds_room(r, wire->cnt, sizeof(*matches));
	if (!matches)
		return -ENOMEM;
	*ret_cnt = 0;
	for (size_t i = 0; i < wire->cnt; i++)
		*ret_cnt += read_match(&wire->v[i], &matches[*ret_cnt]);
	*ret_matches = matches;
	return 0;
}

static int read_prefixes(struct xds_reader *r, const struct wire_prefixes *wire,
        const struct cidr **ret_cidrs, size_t *ret_cnt)
{
	struct cidr *cidrs = xds_room(r, wire->cnt, sizeof(*cidrs));
	size_t cnt = 0;
	if (!cidrs)
		return -ENOMEM;
	for (size_t i = 0; i < wire->cnt; i++) {
		const struct wire_prefix *p = &wire->v[i];
		struct cidr *cidr = &cidrs[cnt];
		cidr->len = (uint8_t)p->length;
		if (ip_from_bytes(p->address.p, p->address.len, &cidr->ip) == 0 &&
		        cidr->len <= ip_len(&cidr->ip) * 8)
			cnt++;
	}
	*ret_cidrs = cidrs;
	*ret_cnt = cnt;
	return 0;
}

static int read_ports(
        struct xds_reader *r, const struct wire_numbers *wire, const uint16_t **ret_ports, size_t *ret_cnt)
{
	uint16_t *ports = xds_room(r, wire->cnt, sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	for (size_t i = 0; i < wire->cnt; i++)
		ports[i] = (uint16_t)wire->v[i];
	*ret_ports = ports;
	*ret_cnt = wire->cnt;
	return 0;
}

static int read_accounts(struct xds_reader *r, const struct wire_accounts *wire,
        const struct sa_match **ret_accounts, size_t *ret_cnt)
{
	struct sa_match *accounts = xds_room(r, wire->cnt, sizeof(*accounts));
	if (!accounts)
		return -ENOMEM;
	for (size_t i = 0; i < wire->cnt; i++)
		accounts[i] = (struct sa_match){wire->v[i].ns, wire->v[i].account};
	*ret_accounts = accounts;
	*ret_cnt = wire->cnt;
	return 0;
}

/* One row a kind: the reader, then the positive and the negative list. */
#define BOTH(read, w, m, cnt)                                                                                \
	if (rc == 0)                                                                                         \
		rc = read(r, &wire->w, &ret_match->m, &ret_match->cnt);                                      \
	if (rc == 0)                                                                                         \
	rc = read(r, &wire->not_##w, &ret_match->not_##m, &ret_match->not_##cnt)

static int read_condition(
        struct xds_reader *r, const struct wire_condition *wire, struct policy_match *ret_match)
{
	int rc = 0;
	BOTH(read_matches, namespaces, namespaces, namespace_cnt);
	BOTH(read_matches, principals, principals, principal_cnt);
	BOTH(read_accounts, accounts, accounts, account_cnt);
	BOTH(read_prefixes, source_ips, source_ips, source_ip_cnt);
	BOTH(read_prefixes, dest_ips, dest_ips, dest_ip_cnt);
	BOTH(read_ports, dest_ports, dest_ports, dest_port_cnt);
	return rc;
}

static int read_clause(struct xds_reader *r, const struct wire_clause *wire, struct policy_clause *ret_clause)
{
	struct policy_match *matches = xds_room(r, wire->match_cnt, sizeof(*matches));
	int rc = matches ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < wire->match_cnt; i++)
		rc = read_condition(r, &wire->matches[i], &matches[i]);
	*ret_clause = (struct policy_clause){matches, wire->match_cnt};
	return rc;
}

static int read_rule(struct xds_reader *r, const struct wire_rule *wire, struct policy_rule *ret_rule)
{
	struct policy_clause *clauses = xds_room(r, wire->clause_cnt, sizeof(*clauses));
	int rc = clauses ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < wire->clause_cnt; i++)
		rc = read_clause(r, &wire->clauses[i], &clauses[i]);
	*ret_rule = (struct policy_rule){clauses, wire->clause_cnt};
	return rc;
}

int xds_read_policy(struct xds_reader *r, const struct wire_policy *wire, const struct policy **ret_policy)
{
	struct policy *p = xds_room(r, 1, sizeof(*p));
	struct policy_rule *rules = p ? xds_room(r, wire->rule_cnt, sizeof(*rules)) : NULL;
	if (!rules)
		return -ENOMEM;
	*p = (struct policy){
	        .name = wire->name,
	        .ns = wire->ns,
	        .scope = (enum policy_scope)wire->scope,
	        .action = (enum policy_action)wire->action,
	        .dry_run = wire->dry_run,
	        .rules = rules,
	        .rule_cnt = wire->rule_cnt,
	};
	int rc = xds_read_enum(r, wire->scope, POLICY_SELECTOR);
	if (rc == 0)
		rc = xds_read_enum(r, wire->action, POLICY_DENY);
	for (size_t i = 0; rc == 0 && i < wire->rule_cnt; i++)
		rc = read_rule(r, &wire->rules[i], &rules[i]);
	if (rc == 0)
		*ret_policy = p;
	return rc;
}
