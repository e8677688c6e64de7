/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl pods`: the workloads of the node as the broker lists them at /culvert/pods. */
#include "ctl/client.h"
#include "ctl/ctl.h"
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

int cmd_pods(const struct ctl *ctl, struct err *err)
{
	struct answer answer;
	int r = client_get(ctl, "/culvert/pods", &answer, err);
	if (r < 0)
		return r;
	if (ctl->output == CTL_OUTPUT_JSON)
		r = print_json(ctl->out, &answer.body, err);
	else
		r = print_table(ctl->out, answer.json, COLUMNS, sizeof(COLUMNS) / sizeof(COLUMNS[0]), err);
	answer_done(&answer);
	return r;
}
