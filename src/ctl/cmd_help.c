/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl help [COMMAND]`. */
#include <errno.h>

#include "ctl/ctl.h"

int cmd_help(const struct ctl *ctl, struct err *err)
{
	const struct ctl_command *command = ctl->word_cnt > 0 ? ctl_command_find(ctl->words[0]) : NULL;
	if (ctl->word_cnt > 0 && !command)
		return err_set(err, -EINVAL, "there is no command %s", ctl->words[0]);
	if (command)
		ctl_command_usage(ctl->out, command);
	else
		ctl_usage(ctl->out);
	return 0;
}
