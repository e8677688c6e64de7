/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl dump`: the whole state as /config_dump tells it, the form that istioctl reads. */
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/print.h"

int cmd_dump(const struct ctl *ctl, struct err *err)
{
	struct answer answer;
	int r = client_get(ctl, "/config_dump", &answer, err);
	if (r < 0)
		return r;
	r = print_json(ctl->out, &answer.body, err);
	answer_done(&answer);
	return r;
}
