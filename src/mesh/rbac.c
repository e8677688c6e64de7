/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The policy engine, reference dataplane.md 10.2 and 10.3. Knows no store:
 * the caller hands in the policies that apply.
 */
#include "mesh/rbac.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* The connection with what every match needs of it. */
struct subject {
	const struct rbac_conn *conn;
	const char *ns; /* "" without identity */
	size_t ns_len;
	char principal[IDENTITY_STR_MAX]; /* without "spiffe://" */
	size_t principal_len;
	bool has_principal;
};

static void subject_init(struct subject *s, const struct rbac_conn *conn)
{
	size_t scheme_len = strlen("spiffe://");

	s->conn = conn;
	s->ns = conn->has_identity ? conn->identity.ns : "";
	s->ns_len = conn->has_identity ? conn->identity.ns_len : 0;
	s->principal_len = 0;
	s->has_principal = false;
	if (!conn->has_identity)
		return;
	char text[IDENTITY_STR_MAX];
	int len = identity_format(&conn->identity, text, sizeof(text));
	if (len < 0)
		return;
	s->principal_len = (size_t)len - scheme_len;
	memcpy(s->principal, text + scheme_len, s->principal_len + 1);
	s->has_principal = true;
}

static bool string_matches(const struct string_match *m, const char *text, size_t len)
{
	size_t want = strlen(m->value);

	switch (m->kind) {
	case MATCH_EXACT:
		return want == len && memcmp(text, m->value, len) == 0;
	case MATCH_PREFIX:
		return want <= len && memcmp(text, m->value, want) == 0;
	case MATCH_SUFFIX:
		return want <= len && memcmp(text + len - want, m->value, want) == 0;
	case MATCH_PRESENCE:
		return len > 0;
	}
	return false;
}

static bool any_string(const struct string_match *list, size_t cnt, const char *text, size_t len)
{
	for (size_t i = 0; i < cnt; i++) {
		if (string_matches(&list[i], text, len))
			return true;
	}
	return false;
}

static bool any_principal(const struct string_match *list, size_t cnt, const struct subject *s)
{
	return s->has_principal && any_string(list, cnt, s->principal, s->principal_len);
}

static bool any_account(const struct sa_match *list, size_t cnt, const struct rbac_conn *conn)
{
	const struct identity *id = &conn->identity;

	for (size_t i = 0; conn->has_identity && i < cnt; i++) {
		struct identity want = {
		        .td = id->td,
		        .td_len = id->td_len,
		        .ns = list[i].ns,
		        .ns_len = strlen(list[i].ns),
		        .sa = list[i].service_account,
		        .sa_len = strlen(list[i].service_account),
		};
		if (identity_eq(&want, id))
			return true;
	}
	return false;
}

static bool any_cidr(const struct cidr *list, size_t cnt, const struct ip *ip)
{
	for (size_t i = 0; i < cnt; i++) {
		if (cidr_contains(&list[i], ip))
			return true;
	}
	return false;
}

static bool any_port(const uint16_t *list, size_t cnt, uint16_t port)
{
	for (size_t i = 0; i < cnt; i++) {
		if (list[i] == port)
			return true;
	}
	return false;
}

static bool is_empty(const struct policy_match *m)
{
	return m->namespace_cnt + m->not_namespace_cnt + m->principal_cnt + m->not_principal_cnt +
	               m->account_cnt + m->not_account_cnt + m->source_ip_cnt + m->not_source_ip_cnt +
	               m->dest_ip_cnt + m->not_dest_ip_cnt + m->dest_port_cnt + m->not_dest_port_cnt ==
	       0;
}

/* A field holds when a positive value matches or there is none, and no negative one matches. */
#define FIELD(any, list, cnt, not_list, not_cnt, ...)                                                        \
	(((cnt) == 0 || any(list, cnt, __VA_ARGS__)) &&                                                      \
	        !((not_cnt) > 0 && any(not_list, not_cnt, __VA_ARGS__)))

static bool match_holds(const struct policy_match *m, const struct subject *s)
{
	const struct rbac_conn *c = s->conn;

	if (is_empty(m))
		return false;
	return FIELD(any_cidr, m->dest_ips, m->dest_ip_cnt, m->not_dest_ips, m->not_dest_ip_cnt,
	               &c->destination.ip) &&
	       FIELD(any_cidr, m->source_ips, m->source_ip_cnt, m->not_source_ips, m->not_source_ip_cnt,
	               &c->source) &&
	       FIELD(any_port, m->dest_ports, m->dest_port_cnt, m->not_dest_ports, m->not_dest_port_cnt,
	               c->destination.port) &&
	       FIELD(any_string, m->namespaces, m->namespace_cnt, m->not_namespaces, m->not_namespace_cnt,
	               s->ns, s->ns_len) &&
	       FIELD(any_account, m->accounts, m->account_cnt, m->not_accounts, m->not_account_cnt, c) &&
	       FIELD(any_principal, m->principals, m->principal_cnt, m->not_principals, m->not_principal_cnt,
	               s);
}

static bool clause_holds(const struct policy_clause *clause, const struct subject *s)
{
	for (size_t i = 0; i < clause->match_cnt; i++) {
		if (match_holds(&clause->matches[i], s))
			return true;
	}
	return clause->match_cnt == 0;
}

static bool rule_holds(const struct policy_rule *rule, const struct subject *s)
{
	for (size_t i = 0; i < rule->clause_cnt; i++) {
		if (!clause_holds(&rule->clauses[i], s))
			return false;
	}
	return true;
}

static bool policy_holds(const struct policy *policy, const struct subject *s)
{
	for (size_t i = 0; i < policy->rule_cnt; i++) {
		if (rule_holds(&policy->rules[i], s))
			return true;
	}
	return false;
}

bool rbac_policy_matches(const struct policy *policy, const struct rbac_conn *conn)
{
	struct subject s;
	subject_init(&s, conn);
	return policy_holds(policy, &s);
}

static void tell(const struct rbac_observer *o, enum rbac_event event, const struct policy *policy)
{
	if (o)
		o->event(o->ctx, event, policy);
}

/* One pass over the policies of one action and dry-run mark. */
struct pass {
	const struct policy *const *policies;
	size_t cnt;
	enum policy_action action;
	bool dry_run;
};

/* The next matching policy of the pass from *at on, or NULL. *seen counts those that belong to the pass. */
static const struct policy *pass_next(const struct pass *p, const struct subject *s, size_t *at, size_t *seen)
{
	while (*at < p->cnt) {
		const struct policy *policy = p->policies[(*at)++];
		if (policy->action != p->action || policy->dry_run != p->dry_run)
			continue;
		(*seen)++;
		if (policy_holds(policy, s))
			return policy;
	}
	return NULL;
}

/* Reports what dry-run policies would have done. */
static void dry_runs(struct pass p, const struct subject *s, const struct rbac_observer *o)
{
	const struct policy *policy;
	size_t at = 0, seen = 0, matched = 0;
	enum rbac_event event = p.action == POLICY_DENY ? RBAC_DRY_DENY_MATCH : RBAC_DRY_ALLOW_MATCH;

	p.dry_run = true;
	while ((policy = pass_next(&p, s, &at, &seen))) {
		matched++;
		tell(o, event, policy);
	}
	if (p.action == POLICY_ALLOW && seen > 0 && matched == 0)
		tell(o, RBAC_DRY_ALLOW_UNMATCHED, NULL);
}

struct rbac_result rbac_check(const struct policy *const *policies, size_t policy_cnt,
        const struct rbac_conn *conn, const struct rbac_observer *observer)
{
	struct subject s;
	struct pass deny = {.policies = policies, .cnt = policy_cnt, .action = POLICY_DENY};
	struct pass allow = {.policies = policies, .cnt = policy_cnt, .action = POLICY_ALLOW};
	const struct policy *policy;
	size_t at = 0, seen = 0;

	subject_init(&s, conn);
	if (observer)
		dry_runs(deny, &s, observer);
	policy = pass_next(&deny, &s, &at, &seen);
	if (policy) {
		tell(observer, RBAC_DENY_MATCH, policy);
		return (struct rbac_result){.is_allowed = false, .code = ERR_DENIED, .policy = policy};
	}
	if (observer)
		dry_runs(allow, &s, observer);
	at = seen = 0;
	policy = pass_next(&allow, &s, &at, &seen);
	if (policy) {
		tell(observer, RBAC_ALLOW_MATCH, policy);
		return (struct rbac_result){.is_allowed = true, .policy = policy};
	}
	if (seen == 0) {
		tell(observer, RBAC_NO_ALLOW_POLICIES, NULL);
		return (struct rbac_result){.is_allowed = true};
	}
	tell(observer, RBAC_ALLOW_UNMATCHED, NULL);
	return (struct rbac_result){.is_allowed = false, .code = ERR_NOT_ALLOWED};
}

void rbac_reason(const struct rbac_result *result, char *dst, size_t cap)
{
	if (result->is_allowed)
		snprintf(dst, cap, "%s", "");
	else if (result->policy)
		snprintf(dst, cap, "explicitly denied by: %s/%s", result->policy->ns, result->policy->name);
	else
		snprintf(dst, cap, "allow policies exist, but none allowed");
}

const char *rbac_event_text(enum rbac_event event)
{
	static const char *const texts[] = {
	        [RBAC_DENY_MATCH] = "deny policy match",
	        [RBAC_ALLOW_MATCH] = "allow policy match",
	        [RBAC_NO_ALLOW_POLICIES] = "no allow policies, allow",
	        [RBAC_ALLOW_UNMATCHED] = "no allow policies matched",
	        [RBAC_DRY_DENY_MATCH] = "dry-run: deny policy match",
	        [RBAC_DRY_ALLOW_MATCH] = "dry-run: allow policy match",
	        [RBAC_DRY_ALLOW_UNMATCHED] = "dry-run: no allow policies match",
	};
	return texts[event];
}
