/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the node is ready, and what is missing (reference control.md 11.2). */
#include <stdio.h>

#include "broker/broker.h"

/* Appends a task's name, names being given in order. */
static void add(char *dst, size_t cap, size_t *len, const char *name)
{
	int n = snprintf(dst + *len, cap - *len, "%s%s", *len ? ", " : "", name);
	if (n > 0 && (size_t)n < cap - *len)
		*len += (size_t)n;
}

void broker_pending_text(struct broker *broker, char *dst, size_t cap)
{
	struct readiness *ready = &broker->ready;
	size_t len = 0;
	bool agent_ok = ready->warden_up && ready->node_connected && ready->node_snapshot;
	/* Once the node was ready, one workload that cannot start does not take the others' node away. */
	if (!ready->was_ready)
		agent_ok = agent_ok && ready->node_pending == 0;
	dst[0] = '\0';
	if (!ready->warden_up && !ready->was_ready)
		add(dst, cap, &len, "proxy");
	if (!ready->mesh_complete)
		add(dst, cap, &len, "state manager");
	if (!broker->settings.dedicated && !agent_ok)
		add(dst, cap, &len, "workload proxy manager");
	if (len == 0)
		ready->was_ready = true;
}
