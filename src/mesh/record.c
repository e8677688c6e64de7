/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies and compares records field by field. A field added to records.h for
 * services or policies needs a line in both halves here.
 */
#include "mesh/record.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* A copy under way; the first failure sticks. */
struct copier {
	struct arena *arena;
	bool failed;
};

static void *dup_bytes(struct copier *c, const void *p, size_t cnt, size_t size)
{
	if (cnt == 0 || c->failed)
		return NULL;
	void *copy = cnt <= SIZE_MAX / size ? arena_alloc(c->arena, cnt * size) : NULL;
	if (copy)
		memcpy(copy, p, cnt * size);
	else
		c->failed = true;
	return copy;
}

/* Copies the array of a field; elements with pointers are fixed up by the caller. */
#define DUP(c, array, cnt) dup_bytes(c, array, cnt, sizeof(*(array)))

static const char *dup_str(struct copier *c, const char *s)
{
	if (s[0] == 0 || c->failed)
		return "";
	const char *copy = arena_strdup(c->arena, s);
	if (!copy)
		c->failed = true;
	return copy ? copy : "";
}

static void fix_gateway(struct copier *c, struct gateway_ref *ref)
{
	ref->addr.network = dup_str(c, ref->is_host ? "" : ref->addr.network);
	ref->ns = dup_str(c, ref->is_host ? ref->ns : "");
	ref->host = dup_str(c, ref->is_host ? ref->host : "");
}

static const char *const *dup_strings(struct copier *c, const char *const *list, size_t cnt)
{
	const char **copy = DUP(c, list, cnt);
	for (size_t i = 0; copy && i < cnt; i++)
		copy[i] = dup_str(c, list[i]);
	return (const char *const *)copy;
}

static const struct net_addr *dup_vips(struct copier *c, const struct net_addr *list, size_t cnt)
{
	struct net_addr *copy = DUP(c, list, cnt);
	for (size_t i = 0; copy && i < cnt; i++)
		copy[i].network = dup_str(c, list[i].network);
	return copy;
}

static const struct net_cidr *dup_cidrs(struct copier *c, const struct net_cidr *list, size_t cnt)
{
	struct net_cidr *copy = DUP(c, list, cnt);
	for (size_t i = 0; copy && i < cnt; i++)
		copy[i].network = dup_str(c, list[i].network);
	return copy;
}

static const struct weighted_waypoint *dup_weighted(
        struct copier *c, const struct weighted_waypoint *list, size_t cnt)
{
	struct weighted_waypoint *copy = DUP(c, list, cnt);
	for (size_t i = 0; copy && i < cnt; i++)
		fix_gateway(c, &copy[i].ref);
	return copy;
}

int record_copy_service(
        struct arena *arena, const struct service *service, const struct service **ret_service)
{
	struct copier c = {.arena = arena};
	struct service *s = DUP(&c, service, 1);

	if (!s)
		return -ENOMEM;
	s->name = dup_str(&c, service->name);
	s->ns = dup_str(&c, service->ns);
	s->hostname = dup_str(&c, service->hostname);
	s->vips = dup_vips(&c, service->vips, service->vip_cnt);
	s->cidrs = dup_cidrs(&c, service->cidrs, service->cidr_cnt);
	s->ports = DUP(&c, service->ports, service->port_cnt);
	s->sans = dup_strings(&c, service->sans, service->san_cnt);
	if (service->has_waypoint)
		fix_gateway(&c, &s->waypoint);
	else
		s->waypoint = (struct gateway_ref){.addr.network = "", .ns = "", .host = ""};
	s->weighted = dup_weighted(&c, service->weighted, service->weighted_cnt);
	s->scopes = DUP(&c, service->scopes, service->scope_cnt);
	if (c.failed)
		return -ENOMEM;
	*ret_service = s;
	return 0;
}

static const struct string_match *dup_matches(struct copier *c, const struct string_match *list, size_t cnt)
{
	struct string_match *copy = DUP(c, list, cnt);
	for (size_t i = 0; copy && i < cnt; i++)
		copy[i].value = dup_str(c, list[i].value);
	return copy;
}

static const struct sa_match *dup_accounts(struct copier *c, const struct sa_match *list, size_t cnt)
{
	struct sa_match *copy = DUP(c, list, cnt);
	for (size_t i = 0; copy && i < cnt; i++) {
		copy[i].ns = dup_str(c, list[i].ns);
		copy[i].service_account = dup_str(c, list[i].service_account);
	}
	return copy;
}

static void fix_match(struct copier *c, struct policy_match *m)
{
	m->namespaces = dup_matches(c, m->namespaces, m->namespace_cnt);
	m->not_namespaces = dup_matches(c, m->not_namespaces, m->not_namespace_cnt);
	m->principals = dup_matches(c, m->principals, m->principal_cnt);
	m->not_principals = dup_matches(c, m->not_principals, m->not_principal_cnt);
	m->accounts = dup_accounts(c, m->accounts, m->account_cnt);
	m->not_accounts = dup_accounts(c, m->not_accounts, m->not_account_cnt);
	m->source_ips = DUP(c, m->source_ips, m->source_ip_cnt);
	m->not_source_ips = DUP(c, m->not_source_ips, m->not_source_ip_cnt);
	m->dest_ips = DUP(c, m->dest_ips, m->dest_ip_cnt);
	m->not_dest_ips = DUP(c, m->not_dest_ips, m->not_dest_ip_cnt);
	m->dest_ports = DUP(c, m->dest_ports, m->dest_port_cnt);
	m->not_dest_ports = DUP(c, m->not_dest_ports, m->not_dest_port_cnt);
}

static const struct policy_clause *dup_clauses(struct copier *c, const struct policy_clause *list, size_t cnt)
{
	struct policy_clause *copy = DUP(c, list, cnt);
	for (size_t i = 0; copy && i < cnt; i++) {
		struct policy_match *matches = DUP(c, list[i].matches, list[i].match_cnt);
		for (size_t k = 0; matches && k < list[i].match_cnt; k++)
			fix_match(c, &matches[k]);
		copy[i].matches = matches;
	}
	return copy;
}

int record_copy_policy(struct arena *arena, const struct policy *policy, const struct policy **ret_policy)
{
	struct copier c = {.arena = arena};
	struct policy *p = DUP(&c, policy, 1);
	struct policy_rule *rules = DUP(&c, policy->rules, policy->rule_cnt);

	if (!p)
		return -ENOMEM;
	p->name = dup_str(&c, policy->name);
	p->ns = dup_str(&c, policy->ns);
	p->rules = rules;
	for (size_t i = 0; rules && i < policy->rule_cnt; i++)
		rules[i].clauses = dup_clauses(&c, rules[i].clauses, rules[i].clause_cnt);
	if (c.failed)
		return -ENOMEM;
	*ret_policy = p;
	return 0;
}

int record_copy_endpoints(struct arena *arena, const struct service_endpoint *endpoints, size_t cnt,
        const struct service_endpoint **ret_endpoints)
{
	struct copier c = {.arena = arena};
	struct service_endpoint *copy = DUP(&c, endpoints, cnt);

	for (size_t i = 0; copy && i < cnt; i++) {
		copy[i].workload_uid = dup_str(&c, endpoints[i].workload_uid);
		copy[i].ports = DUP(&c, endpoints[i].ports, endpoints[i].port_cnt);
	}
	if (c.failed)
		return -ENOMEM;
	*ret_endpoints = copy;
	return 0;
}

static bool eq_str(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool eq_gateway(const struct gateway_ref *a, const struct gateway_ref *b)
{
	if (a->is_host != b->is_host || a->hbone_port != b->hbone_port)
		return false;
	if (a->is_host)
		return eq_str(a->ns, b->ns) && eq_str(a->host, b->host);
	return ip_eq(&a->addr.ip, &b->addr.ip) && eq_str(a->addr.network, b->addr.network);
}

static bool eq_weighted(const struct weighted_waypoint *a, const struct weighted_waypoint *b)
{
	return a->weight == b->weight && eq_gateway(&a->ref, &b->ref);
}

static bool eq_vip(const struct net_addr *a, const struct net_addr *b)
{
	return ip_eq(&a->ip, &b->ip) && eq_str(a->network, b->network);
}

static bool eq_net_cidr(const struct net_cidr *a, const struct net_cidr *b)
{
	return cidr_eq(&a->cidr, &b->cidr) && eq_str(a->network, b->network);
}

static bool eq_port(const struct port_map *a, const struct port_map *b)
{
	return a->service_port == b->service_port && a->target_port == b->target_port;
}

static bool eq_text(const char *const *a, const char *const *b)
{
	return eq_str(*a, *b);
}

static bool eq_scope(const enum lb_scope *a, const enum lb_scope *b)
{
	return *a == *b;
}

/* Defines eq_<name>s(a, a_cnt, b, b_cnt): two lists element by element. */
#define EQ_LIST(name, type)                                                                                  \
	static bool eq_##name##s(type const *a, size_t a_cnt, type const *b, size_t b_cnt)                   \
	{                                                                                                    \
		for (size_t i = 0; a_cnt == b_cnt && i < a_cnt; i++) {                                       \
			if (!eq_##name(&a[i], &b[i]))                                                        \
				return false;                                                                \
		}                                                                                            \
		return a_cnt == b_cnt;                                                                       \
	}

EQ_LIST(vip, struct net_addr)
EQ_LIST(net_cidr, struct net_cidr)
EQ_LIST(port, struct port_map)
EQ_LIST(text, const char *)
EQ_LIST(scope, enum lb_scope)
EQ_LIST(weighted, struct weighted_waypoint)

bool record_eq_service(const struct service *a, const struct service *b)
{
	return eq_str(a->name, b->name) && eq_str(a->ns, b->ns) && eq_str(a->hostname, b->hostname) &&
	       eq_vips(a->vips, a->vip_cnt, b->vips, b->vip_cnt) &&
	       eq_net_cidrs(a->cidrs, a->cidr_cnt, b->cidrs, b->cidr_cnt) &&
	       eq_ports(a->ports, a->port_cnt, b->ports, b->port_cnt) &&
	       eq_texts(a->sans, a->san_cnt, b->sans, b->san_cnt) && a->has_waypoint == b->has_waypoint &&
	       (!a->has_waypoint || eq_gateway(&a->waypoint, &b->waypoint)) &&
	       eq_weighteds(a->weighted, a->weighted_cnt, b->weighted, b->weighted_cnt) &&
	       a->has_lb == b->has_lb && eq_scopes(a->scopes, a->scope_cnt, b->scopes, b->scope_cnt) &&
	       a->lb_mode == b->lb_mode && a->lb_health == b->lb_health && a->families == b->families &&
	       a->visibility == b->visibility && a->canonical == b->canonical;
}

static bool eq_endpoint(const struct service_endpoint *a, const struct service_endpoint *b)
{
	return a->status == b->status && eq_str(a->workload_uid, b->workload_uid) &&
	       eq_ports(a->ports, a->port_cnt, b->ports, b->port_cnt);
}

static bool eq_string(const struct string_match *a, const struct string_match *b)
{
	return a->kind == b->kind && eq_str(a->value, b->value);
}

static bool eq_account(const struct sa_match *a, const struct sa_match *b)
{
	return eq_str(a->ns, b->ns) && eq_str(a->service_account, b->service_account);
}

static bool eq_number(const uint16_t *a, const uint16_t *b)
{
	return *a == *b;
}

static bool eq_cidr(const struct cidr *a, const struct cidr *b)
{
	return cidr_eq(a, b);
}

EQ_LIST(endpoint, struct service_endpoint)
EQ_LIST(string, struct string_match)
EQ_LIST(account, struct sa_match)
EQ_LIST(number, uint16_t)
EQ_LIST(cidr, struct cidr)

bool record_eq_endpoints(
        const struct service_endpoint *a, size_t a_cnt, const struct service_endpoint *b, size_t b_cnt)
{
	return eq_endpoints(a, a_cnt, b, b_cnt);
}

static bool eq_match(const struct policy_match *a, const struct policy_match *b)
{
#define SAME(list, field, cnt) eq_##list(a->field, a->cnt, b->field, b->cnt)
	return SAME(strings, namespaces, namespace_cnt) && SAME(strings, not_namespaces, not_namespace_cnt) &&
	       SAME(strings, principals, principal_cnt) && SAME(strings, not_principals, not_principal_cnt) &&
	       SAME(accounts, accounts, account_cnt) && SAME(accounts, not_accounts, not_account_cnt) &&
	       SAME(cidrs, source_ips, source_ip_cnt) && SAME(cidrs, not_source_ips, not_source_ip_cnt) &&
	       SAME(cidrs, dest_ips, dest_ip_cnt) && SAME(cidrs, not_dest_ips, not_dest_ip_cnt) &&
	       SAME(numbers, dest_ports, dest_port_cnt) && SAME(numbers, not_dest_ports, not_dest_port_cnt);
#undef SAME
}

EQ_LIST(match, struct policy_match)

static bool eq_clause(const struct policy_clause *a, const struct policy_clause *b)
{
	return eq_matchs(a->matches, a->match_cnt, b->matches, b->match_cnt);
}

EQ_LIST(clause, struct policy_clause)

static bool eq_rule(const struct policy_rule *a, const struct policy_rule *b)
{
	return eq_clauses(a->clauses, a->clause_cnt, b->clauses, b->clause_cnt);
}

EQ_LIST(rule, struct policy_rule)

bool record_eq_policy(const struct policy *a, const struct policy *b)
{
	return eq_str(a->name, b->name) && eq_str(a->ns, b->ns) && a->scope == b->scope &&
	       a->action == b->action && a->dry_run == b->dry_run &&
	       eq_rules(a->rules, a->rule_cnt, b->rules, b->rule_cnt);
}
