/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resources and JSON metadata as the control plane and the environment give
 * them. The first byte chooses. A refusal has words; what is accepted holds
 * what the rest of the program relies on.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "culvert/limits.h"
#include "pb/xds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void want(bool holds)
{
	if (!holds)
		abort();
}

static void check_gateway(bool has, const struct gateway_ref *ref)
{
	if (has)
		want(ref->ns && ref->host && ref->addr.network && (ref->is_host || ref->addr.ip.family));
}

static void check_workload(const struct workload *w)
{
	want(w->uid && w->name && w->ns && w->network && w->node && w->hostname);
	want(w->trust_domain[0] && w->service_account[0] && w->cluster_id[0] && w->workload_type[0]);
	want(w->protocol <= WORKLOAD_HBONE && w->status <= WORKLOAD_UNHEALTHY);
	for (size_t i = 0; i < w->ip_cnt; i++)
		want(w->ips[i].family == 4 || w->ips[i].family == 6);
	for (size_t i = 0; i < w->service_cnt; i++)
		want(w->services[i].ns && w->services[i].hostname);
	check_gateway(w->has_waypoint, &w->waypoint);
	check_gateway(w->has_network_gateway, &w->network_gateway);
}

static void check_service(const struct service *s)
{
	want(s->name && s->ns && s->hostname && s->lb_mode <= LB_MODE_PASSTHROUGH);
	for (size_t i = 0; i < s->vip_cnt; i++)
		want(s->vips[i].ip.family && s->vips[i].network);
	for (size_t i = 0; i < s->cidr_cnt; i++)
		want(s->cidrs[i].cidr.len < ip_len(&s->cidrs[i].cidr.ip) * 8);
	for (size_t i = 0; i < s->scope_cnt; i++)
		want(s->scopes[i] >= LB_SCOPE_REGION && s->scopes[i] <= LB_SCOPE_NETWORK);
	for (size_t i = 0; i < s->weighted_cnt; i++)
		check_gateway(true, &s->weighted[i].ref);
	for (size_t i = 1; i < s->port_cnt; i++)
		want(s->ports[i].service_port != s->ports[i - 1].service_port);
	check_gateway(s->has_waypoint, &s->waypoint);
}

static void check_policy(const struct policy *p)
{
	want(p->name && p->ns && p->scope <= POLICY_SELECTOR && p->action <= POLICY_DENY);
	for (size_t r = 0; r < p->rule_cnt; r++)
		for (size_t c = 0; c < p->rules[r].clause_cnt; c++)
			for (size_t m = 0; m < p->rules[r].clauses[c].match_cnt; m++) {
				const struct policy_match *match = &p->rules[r].clauses[c].matches[m];
				for (size_t i = 0; i < match->source_ip_cnt; i++)
					want(match->source_ips[i].len <=
					        ip_len(&match->source_ips[i].ip) * 8);
				for (size_t i = 0; i < match->principal_cnt; i++)
					want(match->principals[i].value &&
					        match->principals[i].kind <= MATCH_PRESENCE);
			}
}

static void resource(enum xds_type type, const uint8_t *data, size_t len)
{
	struct xds_record record;
	struct err err = {0};
	struct arena *arena = arena_new(LIMIT_RECORD_ARENA);
	if (!arena)
		return;
	int rc = xds_decode(type, data, len, arena, &record, &err);
	if (rc < 0)
		want(err.text[0] && err.code == rc);
	else if (record.kind == XDS_WORKLOAD)
		check_workload(record.workload);
	else if (record.kind == XDS_SERVICE)
		check_service(record.service);
	else
		check_policy(record.policy);
	arena_unref(arena);
}

static void json(const uint8_t *data, size_t len)
{
	struct buf out;
	struct err err = {0};
	buf_init(&out, 1u << 20);
	if (xds_json_write(&out, (const char *)data, len, &err) == -EINVAL)
		want(err.text[0]);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	if (data[0] == 'a')
		resource(XDS_TYPE_ADDRESS, data + 1, len - 1);
	else if (data[0] == 'p')
		resource(XDS_TYPE_POLICY, data + 1, len - 1);
	else
		json(data + 1, len - 1);
	return 0;
}
