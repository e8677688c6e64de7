/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl version`: this program's version and, where one runs, that of the daemon. */
#include <errno.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/dump.h"
#include "ctl/emit.h"

static int print_json(const struct ctl *ctl, const cJSON *daemon, struct err *err)
{
	cJSON *all = cJSON_CreateObject();
	cJSON *copy = daemon ? cJSON_Duplicate(daemon, true) : cJSON_CreateNull();
	int r = -ENOMEM;
	if (all && copy && cJSON_AddStringToObject(all, "client", CULVERT_VERSION) &&
	        cJSON_AddItemToObject(all, "daemon", copy)) {
		copy = NULL;
		r = emit(ctl->out, all, ctl->output, err);
	} else {
		err_sys(err, r, "the answer");
	}
	cJSON_Delete(copy);
	cJSON_Delete(all);
	return r;
}

static void print_daemon(const struct ctl *ctl, const cJSON *daemon)
{
	const cJSON *member;
	cJSON_ArrayForEach(member, daemon)
	{
		if (cJSON_IsString(member) && member->valuestring[0]) {
			fprintf(ctl->out, "  %s: ", member->string);
			emit_line(ctl->out, member);
			fputc('\n', ctl->out);
		}
	}
}

int cmd_version(const struct ctl *ctl, struct err *err)
{
	struct answer answer = {0};
	struct err why = {0};
	/* Without a daemon there is still an answer. */
	int r = client_get(ctl, "/culvert/version", &answer, &why);
	const cJSON *daemon = r == 0 ? answer.json : NULL;
	if (ctl->output == CTL_OUTPUT_JSON) {
		r = print_json(ctl, daemon, err);
	} else {
		fputs("culvertctl " CULVERT_VERSION "\n", ctl->out);
		if (daemon) {
			fprintf(ctl->out, "culvertd:\n");
			print_daemon(ctl, daemon);
		} else {
			fprintf(ctl->notes, "culvertctl: no version of the daemon: %s\n", why.text);
		}
		r = 0;
	}
	answer_done(&answer);
	return r;
}
