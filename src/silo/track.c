/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Policy over time; see track.h. */
#include "silo/track.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "silo/silo.h"

void track_add(struct silo *silo, struct track *track, void (*denied)(struct track *track))
{
	track->denied = denied;
	list_init(&track->node);
	list_add_tail(&silo->tracked, &track->node);
}

void track_del(struct track *track)
{
	/* A zeroed track was never added. */
	if (track->node.next)
		list_del(&track->node);
}

/* The decision log (dataplane.md 10.6). */
static void log_event(void *ctx, enum rbac_event event, const struct policy *policy)
{
	struct silo *silo = ctx;
	struct log_line line;
	enum log_level level = silo->settings.authz_info_logging ? LOG_INFO : LOG_DEBUG;
	if (!log_begin(&line, &silo->log, level, "ztunnel::state", rbac_event_text(event)))
		return;
	if (policy) {
		char name[512];
		snprintf(name, sizeof(name), "%s/%s", policy->ns, policy->name);
		log_str(&line, "policy", name);
	}
	log_end(&line);
}

static struct rbac_result judge(
        struct silo *silo, const struct track *track, const struct policy *const *policies, size_t cnt)
{
	const struct rbac_observer observer = {.ctx = silo, .event = log_event};
	return rbac_check(policies, cnt, &track->conn, &observer);
}

static bool is_bound(const struct workload *own, const struct policy *policy)
{
	size_t ns_len = strlen(policy->ns);
	if (policy->scope != POLICY_SELECTOR)
		return true;
	for (size_t i = 0; i < own->policy_cnt; i++) {
		const char *key = own->policies[i];
		if (strncmp(key, policy->ns, ns_len) == 0 && key[ns_len] == '/' &&
		        strcmp(key + ns_len + 1, policy->name) == 0)
			return true;
	}
	return false;
}

/* By the present policies as far as the record that the connection came under names them: a change of that
 * list closes nothing (dataplane 11). */
static bool is_still_allowed(struct silo *silo, const struct track *track)
{
	const struct policy_set *set = context_policies(silo);
	const struct policy **bound = mem_alloc((set->cnt ? set->cnt : 1) * sizeof(const struct policy *));
	size_t cnt = 0;
	/* Without memory all of them count. */
	if (!bound || !track->own) {
		mem_free(bound);
		return judge(silo, track, set->policies, set->cnt).is_allowed;
	}
	for (size_t i = 0; i < set->cnt; i++)
		if (is_bound(track->own, set->policies[i]))
			bound[cnt++] = set->policies[i];
	bool is_allowed = judge(silo, track, bound, cnt).is_allowed;
	mem_free(bound);
	return is_allowed;
}

bool track_is_allowed(struct silo *silo, const struct track *track, char *reason, size_t cap)
{
	/* Without policies nothing is known of what is forbidden: never open. */
	if (!context_policies(silo)) {
		snprintf(reason, cap, "%s", err_str(ERR_TIMEOUT_FETCH));
		return false;
	}
	const struct policy_set *set = context_policies(silo);
	struct rbac_result result = judge(silo, track, set->policies, set->cnt);
	if (result.is_allowed)
		return true;
	int len = snprintf(reason, cap, "connection closed due to policy rejection: ");
	if (len >= 0 && (size_t)len < cap)
		rbac_reason(&result, reason + len, cap - (size_t)len);
	return false;
}

void track_recheck(struct silo *silo)
{
	struct list all;
	if (silo->phase != SILO_SERVING || !context_policies(silo))
		return;
	/* Ending one connection may end others: each is put back before it is judged, so the walk never holds
	 * a stale node. */
	list_init(&all);
	list_move_all(&all, &silo->tracked);
	while (!list_empty(&all)) {
		struct track *track = list_entry(all.next, struct track, node);
		list_del(&track->node);
		list_add_tail(&silo->tracked, &track->node);
		if (!is_still_allowed(silo, track))
			track->denied(track);
	}
}
