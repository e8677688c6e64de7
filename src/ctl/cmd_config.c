/* SPDX-License-Identifier: GPL-2.0-or-later */
/* istioctl's lists of a config dump: `workload`, `service`, `policy`, `certificate`, `connections`, `all`. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/ctl.h"
#include "ctl/dump.h"
#include "ctl/emit.h"
#include "ctl/listing.h"

#define US_PER_S 1000000

static int64_t now_s(void)
{
	return (int64_t)(clock_wall_us() / US_PER_S);
}

static int print_one(const struct ctl *ctl, enum listing listing, struct err *err)
{
	struct dump dump;
	int r = dump_open(ctl, &dump, err);
	if (r < 0)
		return r;
	r = listing_print(&dump, ctl, listing, now_s(), err);
	dump_done(&dump);
	return r;
}

int cmd_workload(const struct ctl *ctl, struct err *err)
{
	return print_one(ctl, LISTING_WORKLOAD, err);
}

int cmd_service(const struct ctl *ctl, struct err *err)
{
	return print_one(ctl, LISTING_SERVICE, err);
}

int cmd_policy(const struct ctl *ctl, struct err *err)
{
	return print_one(ctl, LISTING_POLICY, err);
}

int cmd_certificate(const struct ctl *ctl, struct err *err)
{
	return print_one(ctl, LISTING_CERTIFICATE, err);
}

int cmd_connections(const struct ctl *ctl, struct err *err)
{
	const char *direction = ctl->options[CTL_OPT_DIRECTION];
	if (direction && strcmp(direction, "inbound") != 0 && strcmp(direction, "outbound") != 0)
		return err_set(err, -EINVAL, "--direction is inbound or outbound, not %s", direction);
	return print_one(ctl, LISTING_CONNECTIONS, err);
}

int cmd_all(const struct ctl *ctl, struct err *err)
{
	struct dump dump;
	int r = dump_open(ctl, &dump, err);
	if (r < 0)
		return r;
	if (ctl->output != CTL_OUTPUT_SHORT)
		r = emit(ctl->out, dump.answer.json, ctl->output, err);
	for (int i = 0; i < LISTING_CNT && r == 0 && ctl->output == CTL_OUTPUT_SHORT; i++) {
		fputc('\n', ctl->out);
		if (ctl->options[CTL_OPT_HEADERS])
			listing_heading(ctl->out, (enum listing)i);
		r = listing_print(&dump, ctl, (enum listing)i, now_s(), err);
	}
	dump_done(&dump);
	return r;
}
