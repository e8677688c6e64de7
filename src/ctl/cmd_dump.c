/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl dump [POD]`: the whole state as /config_dump tells it, the form that istioctl reads; or what
 * one pod's silo tells of itself. */
#include <errno.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/dump.h"
#include "ctl/emit.h"
#include "ctl/pods.h"
#include "ctl/print.h"

static int print(const struct ctl *ctl, const struct answer *answer, struct err *err)
{
	if (ctl->output == CTL_OUTPUT_YAML)
		return emit(ctl->out, answer->json, ctl->output, err);
	return print_json(ctl->out, &answer->body, err);
}

static int from_file(const struct ctl *ctl, struct err *err)
{
	struct dump dump;
	int r = dump_open(ctl, &dump, err);
	if (r < 0)
		return r;
	r = print(ctl, &dump.answer, err);
	dump_done(&dump);
	return r;
}

int cmd_dump(const struct ctl *ctl, struct err *err)
{
	const char *pod = ctl->word_cnt > 0 ? ctl->words[0] : ctl->options[CTL_OPT_POD];
	struct client client;
	struct pod_ref ref;
	const char *socket;
	struct answer answer;
	if (ctl->options[CTL_OPT_FILE] && pod)
		return err_set(err, -EINVAL, "a saved dump is that of a node: leave out the pod");
	if (ctl->options[CTL_OPT_FILE])
		return from_file(ctl, err);
	int r = pods_open(ctl, pod, &client, &ref, &socket, err);
	if (r < 0)
		return r;
	r = client_json(&client, socket, "/config_dump", &answer, err);
	client_done(&client);
	if (r < 0)
		return r;
	r = print(ctl, &answer, err);
	answer_done(&answer);
	return r;
}
