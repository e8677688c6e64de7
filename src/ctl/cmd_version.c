/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl version`: this program's own version; that of a running daemon is in its dump. */
#include "ctl/ctl.h"

int cmd_version(const struct ctl *ctl, struct err *err)
{
	(void)err;
	fputs("culvertctl " CULVERT_VERSION "\n", ctl->out);
	return 0;
}
