/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Distances and the best of them; see near.h. */
#include "ctl/near.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/table.h"

void near_init(struct near *near, const char *wanted)
{
	*near = (struct near){.wanted = wanted};
	for (size_t i = 0; i < NEAR_MAX; i++)
		near->away[i] = UINT_MAX;
}

/* The distance to the name, with its namespace if one was typed. What was typed may be the beginning: names
 * of pods end in letters that nobody remembers. */
static unsigned distance(const char *wanted, const char *name, const char *full)
{
	char start[NEAR_NAME_MAX];
	unsigned a = ctl_slips(wanted, name);
	unsigned least = ctl_slips(wanted, full);
	least = a < least ? a : least;
	for (int extra = 0; extra < 2; extra++) {
		snprintf(start, sizeof(start), "%.*s", (int)strnlen(wanted, sizeof(start)) + extra, full);
		a = ctl_slips(wanted, start);
		/* A whole name is better than a beginning. */
		least = a < UINT_MAX && a + 1 < least ? a + 1 : least;
	}
	return least;
}

void near_offer(struct near *near, const char *name, const char *ns)
{
	char full[NEAR_NAME_MAX];
	int len = snprintf(full, sizeof(full), "%s.%s", name, ns);
	unsigned away = len < (int)sizeof(full) ? distance(near->wanted, name, full) : UINT_MAX;
	/* Half of what was typed may be wrong; beyond that it is another name. */
	if (away > 1 + strlen(near->wanted) / 2)
		return;
	for (size_t i = 0; i < NEAR_MAX; i++) {
		if (strcmp(near->names[i], full) == 0)
			return;
		if (away >= near->away[i])
			continue;
		memmove(&near->names[i + 1], &near->names[i], (NEAR_MAX - 1 - i) * sizeof(near->names[0]));
		memmove(&near->away[i + 1], &near->away[i], (NEAR_MAX - 1 - i) * sizeof(near->away[0]));
		memcpy(near->names[i], full, (size_t)len + 1);
		near->away[i] = away;
		return;
	}
}

int near_fail(const struct near *near, const char *kind, struct err *err)
{
	char names[NEAR_MAX * (NEAR_NAME_MAX + 4)] = "";
	for (size_t i = 0; i < NEAR_MAX && near->names[i][0]; i++) {
		size_t len = strlen(names);
		snprintf(names + len, sizeof(names) - len, "%s%s", i > 0 ? ", " : "", near->names[i]);
	}
	table_make_printable(names);
	if (!names[0])
		return err_set(err, -ESRCH, "there is no %s %s", kind, near->wanted);
	return err_set(err, -ESRCH, "there is no %s %s; did you mean %s?", kind, near->wanted, names);
}
