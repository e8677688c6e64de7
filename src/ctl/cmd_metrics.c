/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl metrics`: the text of 15020, or of it what carries one pod's name. */
#include <errno.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/pods.h"
#include "ctl/samples.h"

static bool has_label(const struct sample *sample, const char *label, const char *wanted)
{
	char text[PODS_NAME_MAX];
	return samples_label(sample, label, text, sizeof(text)) && strcmp(text, wanted) == 0;
}

/* The pod's samples, below the comments of their families. */
static void print_pod(FILE *out, const char *text, const struct pod_ref *pod)
{
	struct sample sample;
	const char *at = text;
	const char *head = NULL; /* comments of the present family that are not printed yet */
	const char *head_end = NULL;
	for (const char *line = at; samples_next(&at, &sample); line = at) {
		if (sample.is_comment) {
			head = head_end == line ? head : line;
			head_end = at;
			continue;
		}
		if (!has_label(&sample, "pod_name", pod->name) ||
		        !has_label(&sample, "pod_namespace", pod->ns))
			continue;
		if (head)
			fwrite(head, 1, (size_t)(head_end - head), out);
		head = NULL;
		fprintf(out, "%.*s\n", (int)sample.len, sample.line);
	}
	fputs("# EOF\n", out);
}

int cmd_metrics(const struct ctl *ctl, struct err *err)
{
	const char *wanted = ctl->options[CTL_OPT_POD];
	struct client client;
	struct pod_ref pod;
	struct buf body;
	int r = client_open(ctl, &client, err);
	if (r < 0)
		return r;
	buf_init(&body, CLIENT_BODY_MAX);
	if (wanted)
		r = pods_find(&client, wanted, &pod, err);
	if (r == 0)
		r = client_ask(&client, CLIENT_ADMIN, "/culvert/metrics", false, &body, err);
	const char *text = r == 0 ? buf_cstr(&body) : NULL;
	if (r == 0 && !text)
		r = err_sys(err, -ENOMEM, "the metrics");
	else if (r == 0 && wanted)
		print_pod(ctl->out, text, &pod);
	else if (r == 0)
		fwrite(body.data, 1, body.len, ctl->out);
	buf_done(&body);
	client_done(&client);
	return r;
}
