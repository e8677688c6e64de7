/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of subcommands and the texts made from it; see ctl.h. */
#include <limits.h>
#include <string.h>

#include "ctl/ctl.h"

/* Letters that a typed word may be away from a name. */
#define SLIPS_MAX 2

/* Longest word that is compared; our names are shorter by far. */
#define WORD_MAX 16

static const struct ctl_command COMMANDS[] = {
        {"pods", "[-o short|json]", "list the pods of this node and their silos", true, false, cmd_pods},
        {"dump", "", "print the state of the daemon as JSON", false, false, cmd_dump},
        {"version", "", "print the version of culvertctl", false, false, cmd_version},
        {"help", "[COMMAND]", "explain culvertctl, or one command", false, true, cmd_help},
};

#define COMMAND_CNT (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

const struct ctl_command *ctl_command_find(const char *name)
{
	for (size_t i = 0; i < COMMAND_CNT; i++)
		if (strcmp(COMMANDS[i].name, name) == 0)
			return &COMMANDS[i];
	return NULL;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;
	return least < c ? least : c;
}

/* Letters to add, drop or change to get from one word to the other (Levenshtein), one row of the matrix at a
 * time. */
static unsigned slips(const char *from, const char *to)
{
	unsigned row[WORD_MAX + 1];
	size_t to_len = strlen(to);
	if (strlen(from) > WORD_MAX || to_len > WORD_MAX)
		return UINT_MAX;
	for (size_t j = 0; j <= to_len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 0; from[i]; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i + 1;
		for (size_t j = 0; j < to_len; j++) {
			unsigned above = row[j + 1];
			row[j + 1] = min3(above + 1, row[j] + 1, diagonal + (from[i] != to[j]));
			diagonal = above;
		}
	}
	return row[to_len];
}

const struct ctl_command *ctl_command_nearest(const char *typed)
{
	const struct ctl_command *best = NULL;
	unsigned least = SLIPS_MAX + 1;
	for (size_t i = 0; i < COMMAND_CNT; i++) {
		unsigned away = slips(typed, COMMANDS[i].name);
		if (away < least) {
			least = away;
			best = &COMMANDS[i];
		}
	}
	return best;
}

void ctl_command_usage(FILE *to, const struct ctl_command *command)
{
	fprintf(to, "usage: culvertctl [--run-dir DIR] [--instance NAME] %s%s%s\n\n%s\n", command->name,
	        command->arguments[0] ? " " : "", command->arguments, command->sentence);
}

void ctl_usage(FILE *to)
{
	fputs("usage: culvertctl [--run-dir DIR] [--instance NAME] COMMAND\n\n"
	      "Asks the culvertd of this node. Needs the rights of its user, root as a rule.\n\n",
	        to);
	for (size_t i = 0; i < COMMAND_CNT; i++)
		fprintf(to, "  %-8s %-16s %s\n", COMMANDS[i].name, COMMANDS[i].arguments,
		        COMMANDS[i].sentence);
	fputs("\n"
	      "  --run-dir DIR    folder of the instances (default: CULVERT_RUN_DIR,\n"
	      "                   else /var/run/ztunnel/culvert, else /tmp/culvert)\n"
	      "  --instance NAME  which instance, where several are live\n"
	      "  -h, --help       this text, or that of a command\n"
	      "  --version        the same as version\n\n"
	      "Exit status: 0, 1 when it failed, 2 when the call makes no sense.\n",
	        to);
}
