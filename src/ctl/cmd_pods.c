/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl pods`: the workloads of the node as the broker lists them at /culvert/pods. */
#include <string.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/dump.h"
#include "ctl/emit.h"
#include "ctl/listing.h"
#include "ctl/near.h"
#include "ctl/print.h"

static const struct column COLUMNS[] = {
        {"NAMESPACE", "namespace", false},
        {"NAME", "name", false},
        {"SERVICEACCOUNT", "serviceAccount", false},
        {"STATE", "state", false},
        {"PID", "pid", true},
        {"RESTARTS", "restarts", false},
        {"UID", "uid", false},
        {"REASON", "reason", false},
};

static bool is_wanted(const struct ctl *ctl, const cJSON *row)
{
	const char *pod = ctl->options[CTL_OPT_POD];
	const char *ns = ctl->options[CTL_OPT_NAMESPACE];
	return (!ns || strcmp(ns, dump_str(row, "namespace")) == 0) &&
	       (!pod || strcmp(pod, dump_str(row, "uid")) == 0 ||
	               listing_is_pod(pod, dump_str(row, "name"), dump_str(row, "namespace")));
}

/* Takes out what the call does not want. -ESRCH when it names a pod that is not there. */
static int filter(const struct ctl *ctl, cJSON *rows, struct err *err)
{
	struct near near;
	const char *pod = ctl->options[CTL_OPT_POD];
	near_init(&near, pod ? pod : "");
	for (cJSON *row = rows->child, *next; row; row = next) {
		next = row->next;
		near_offer(&near, dump_str(row, "name"), dump_str(row, "namespace"));
		if (!is_wanted(ctl, row))
			cJSON_Delete(cJSON_DetachItemViaPointer(rows, row));
	}
	return pod && !rows->child ? near_fail(&near, "pod on this node", err) : 0;
}

static int print(const struct ctl *ctl, const struct answer *answer, bool is_whole, struct err *err)
{
	if (ctl->output == CTL_OUTPUT_JSON && is_whole)
		return print_json(ctl->out, &answer->body, err);
	if (ctl->output != CTL_OUTPUT_SHORT)
		return emit(ctl->out, answer->json, ctl->output, err);
	return print_table(ctl->out, answer->json, COLUMNS, sizeof(COLUMNS) / sizeof(COLUMNS[0]), err);
}

int cmd_pods(const struct ctl *ctl, struct err *err)
{
	struct answer answer;
	bool is_whole = !ctl->options[CTL_OPT_POD] && !ctl->options[CTL_OPT_NAMESPACE];
	int r = client_get(ctl, "/culvert/pods", &answer, err);
	if (r < 0)
		return r;
	if (!is_whole && cJSON_IsArray(answer.json))
		r = filter(ctl, answer.json, err);
	if (r == 0)
		r = print(ctl, &answer, is_whole, err);
	answer_done(&answer);
	return r;
}
