/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the node is ready, and what is missing (reference control.md 11.2). */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "broker/broker.h"

static const char TARGET[] = "ztunnel::readiness";

/* Tasks by their bit, sorted by name as they are shown. */
enum task { TASK_DNS, TASK_PROXY, TASK_STATE, TASK_AGENT, TASK_CNT };

static const char *const NAMES[TASK_CNT] = {"dns proxy", "proxy", "state manager", "workload proxy manager"};

/* Proxies are started: by a warden that is there, or, of one workload, by its silo that is. */
static bool is_started(const struct broker *broker)
{
	if (!broker->settings.dedicated)
		return broker->ready.warden_up;
	list_for_each(it, &broker->pods)
	{
		if (list_entry(it, struct pod, node)->is_up)
			return true;
	}
	return false;
}

/* A lost connection to the node agent always counts; a workload that cannot start only until the node was
 * ready once, so that it does not take the others' node away. */
static bool is_agent_done(const struct broker *broker)
{
	const struct readiness *ready = &broker->ready;
	bool counts = broker->settings.strict_readiness || !(ready->was_ready || ready->node_settled);
	return ready->warden_up && ready->node_connected && ready->node_snapshot &&
	       (!counts || ready->node_pending == 0);
}

static unsigned pending_tasks(const struct broker *broker)
{
	const struct settings *settings = &broker->settings;
	unsigned pending = 0;
	if (settings->dns_enabled && !broker->ready.was_up)
		pending |= 1u << TASK_DNS;
	if (settings->enable_proxy && !broker->ready.was_up)
		pending |= 1u << TASK_PROXY;
	if (!broker->ready.mesh_complete)
		pending |= 1u << TASK_STATE;
	if (!settings->dedicated && !is_agent_done(broker))
		pending |= 1u << TASK_AGENT;
	return pending;
}

/* Says what is done since the last time, in upstream's words (reference control.md 13). */
static void tell_done(struct broker *broker, unsigned pending)
{
	struct readiness *ready = &broker->ready;
	uint64_t now = clock_us();
	unsigned left = ready->awaited;
	if (!ready->since_us)
		ready->since_us = now;
	for (unsigned i = 0; i < TASK_CNT; i++) {
		uint64_t us = now - ready->since_us;
		if (!(ready->awaited & ~pending & 1u << i))
			continue;
		left &= ~(1u << i);
		if (left)
			log_msg(&broker->log, LOG_INFO, TARGET,
			        "Task '%s' complete (%" PRIu64 ".%03ums), still awaiting %d tasks", NAMES[i],
			        us / 1000, (unsigned)(us % 1000), __builtin_popcount(left));
		else
			log_msg(&broker->log, LOG_INFO, TARGET,
			        "Task '%s' complete (%" PRIu64 ".%03ums), marking server ready", NAMES[i],
			        us / 1000, (unsigned)(us % 1000));
	}
	ready->awaited = pending;
}

void broker_ready_note(struct broker *broker)
{
	/* Started once is done: a silo that crashes comes back, and the node is not its only user. */
	broker->ready.was_up = broker->ready.was_up || is_started(broker);
	broker->ready.was_ready = broker->ready.was_ready || pending_tasks(broker) == 0;
	tell_done(broker, pending_tasks(broker));
}

void broker_pending_text(struct broker *broker, char *dst, size_t cap)
{
	unsigned pending = pending_tasks(broker);
	size_t len = 0;
	dst[0] = '\0';
	for (unsigned i = 0; i < TASK_CNT; i++) {
		int n = pending & 1u << i ? snprintf(dst + len, cap - len, "%s%s", len ? ", " : "", NAMES[i])
		                          : 0;
		if (n > 0 && (size_t)n < cap - len)
			len += (size_t)n;
	}
}
