/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl log`: shows or changes the log filter of the node, or of one pod's silo. */
#include <errno.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/pods.h"

/* Bytes of a URL, and of an answer: the daemon's own ceiling of a filter's text is below. */
#define URL_MAX 4096
#define ANSWER_MAX 65536

/* istioctl's names of two levels. */
static const char *level_of(const char *word)
{
	if (strcmp(word, "warning") == 0)
		return "warn";
	return strcmp(word, "critical") == 0 ? "error" : word;
}

static void make_path(const struct ctl *ctl, struct buf *path)
{
	bool is_reset = ctl->options[CTL_OPT_RESET] != NULL;
	buf_add_str(path, "/logging?level=");
	if (ctl->word_cnt > 0)
		client_escape(path, level_of(ctl->words[0]));
	if (is_reset)
		buf_add_str(path, "&reset");
}

static int print(const struct ctl *ctl, const struct pod_ref *pod, const struct buf *body)
{
	if (ctl->options[CTL_OPT_POD])
		fprintf(ctl->out, "%s.%s:\n", pod->name, pod->ns);
	fwrite(body->data, 1, body->len, ctl->out);
	return 0;
}

int cmd_log(const struct ctl *ctl, struct err *err)
{
	struct client client;
	struct pod_ref pod;
	const char *socket;
	struct buf path, body;
	int r = pods_open(ctl, ctl->options[CTL_OPT_POD], &client, &pod, &socket, err);
	if (r < 0)
		return r;
	buf_init(&path, URL_MAX);
	buf_init(&body, ANSWER_MAX);
	make_path(ctl, &path);
	if (!buf_cstr(&path))
		r = err_set(err, -EINVAL, "the level is too long");
	else
		r = client_ask(&client, socket, buf_cstr(&path), true, &body, err);
	if (r == 0)
		r = print(ctl, &pod, &body);
	buf_done(&path);
	buf_done(&body);
	client_done(&client);
	return r;
}
