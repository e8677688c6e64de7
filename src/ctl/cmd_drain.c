/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl drain POD`: the pod's tunnels end with their last stream; its silo goes on. */
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/pods.h"

/* Bytes of an answer. */
#define ANSWER_MAX 4096

int cmd_drain(const struct ctl *ctl, struct err *err)
{
	struct client client;
	struct pod_ref pod;
	const char *socket;
	struct buf body;
	int r = pods_open(ctl, ctl->words[0], &client, &pod, &socket, err);
	if (r < 0)
		return r;
	buf_init(&body, ANSWER_MAX);
	r = client_ask(&client, socket, "/drain", true, &body, err);
	if (r == 0) {
		fprintf(ctl->out, "%s.%s: ", pod.name, pod.ns);
		fwrite(body.data, 1, body.len, ctl->out);
	}
	buf_done(&body);
	client_done(&client);
	return r;
}
