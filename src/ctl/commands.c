/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of subcommands and options and the texts made from them; see ctl.h. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

/* Letters that a typed word may be away from a name. */
#define SLIPS_MAX 2

/* Longest words that are compared: names of subcommands and of pods. */
#define WORD_MAX 64

/* Longest interval, ms. */
#define INTERVAL_MAX_MS 3600000.0

#define BIT(opt) (1u << CTL_OPT_##opt)
#define COMMON (BIT(RUN_DIR) | BIT(INSTANCE) | BIT(HELP) | BIT(VERSION))

static const struct ctl_option OPTIONS[CTL_OPT_CNT] = {
        [CTL_OPT_RUN_DIR] = {"run-dir", 0, "DIR", "folder of culvertd's instances"},
        [CTL_OPT_INSTANCE] = {"instance", 0, "NAME", "which instance, where several are live"},
        [CTL_OPT_HELP] = {"help", 'h', NULL, "explain the subcommand"},
        [CTL_OPT_VERSION] = {"version", 0, NULL, "the same as version"},
        [CTL_OPT_OUTPUT] = {"output", 'o', "FORMAT", "how to print it"},
        [CTL_OPT_POD] = {"pod", 'p', "NAME[.NS]", "this pod only; its uid will do, too"},
        [CTL_OPT_NAMESPACE] = {"namespace", 'n', "NS", "this namespace only"},
        [CTL_OPT_NODE] = {"node", 0, "NAME", "workloads of this node only"},
        [CTL_OPT_ADDRESS] = {"address", 0, "IP", "workloads with this address only"},
        [CTL_OPT_DIRECTION] = {"direction", 0, "WAY", "inbound or outbound connections only"},
        [CTL_OPT_RAW] = {"raw", 0, NULL, "addresses, not the names that belong to them"},
        [CTL_OPT_HEADERS] = {"with-headers", 0, NULL, "a heading above each table"},
        [CTL_OPT_FILE] = {"file", 'f', "FILE", "read a saved config dump, - is the standard input"},
        [CTL_OPT_RESET] = {"reset", 'r', NULL, "go back to the filter of the start first"},
        [CTL_OPT_ONCE] = {"once", 0, NULL, "look once and end"},
        [CTL_OPT_ITERATIONS] = {"iterations", 'n', "N", "end after so many looks"},
        [CTL_OPT_INTERVAL] = {"interval", 'i', "TIME", "time between two looks: 2, 0.5, 500ms"},
        [CTL_OPT_JSON] = {"json", 0, NULL, "the same as -o json"},
};

#define LISTS "short|json|yaml"
#define DAEMON_OR_FILE (BIT(OUTPUT) | BIT(FILE))

/* clang-format off */
static const struct ctl_command COMMANDS[] = {
	{"pods", NULL, "", "list the pods of this node and their silos", LISTS, 0, 0,
		BIT(OUTPUT) | BIT(JSON) | BIT(POD) | BIT(NAMESPACE), cmd_pods},
	{"dump", NULL, "[POD]", "print the state of the daemon, or of one pod's silo", "json|yaml", 0, 1,
		DAEMON_OR_FILE | BIT(POD), cmd_dump},
	{"all", NULL, "", "the five tables below", LISTS, 0, 0, DAEMON_OR_FILE | BIT(HEADERS), cmd_all},
	{"workload", "w", "", "list the workloads of the mesh", LISTS, 0, 0,
		DAEMON_OR_FILE | BIT(POD) | BIT(NAMESPACE) | BIT(NODE) | BIT(ADDRESS), cmd_workload},
	{"service", "svc", "", "list the services of the mesh", LISTS, 0, 0,
		DAEMON_OR_FILE | BIT(NAMESPACE), cmd_service},
	{"policy", "pol", "", "list the authorization policies", LISTS, 0, 0,
		DAEMON_OR_FILE | BIT(NAMESPACE), cmd_policy},
	{"certificate", "cert", "", "list the certificates of this node's pods", LISTS, 0, 0,
		DAEMON_OR_FILE | BIT(POD) | BIT(NAMESPACE), cmd_certificate},
	{"connections", "cons", "", "list the open connections of this node's pods", LISTS, 0, 0,
		DAEMON_OR_FILE | BIT(POD) | BIT(NAMESPACE) | BIT(NODE) | BIT(DIRECTION) | BIT(RAW), cmd_connections},
	{"log", "o", "[[TARGET:]LEVEL]", "show or change the log levels of the node, or of one pod", "", 0, 1,
		BIT(POD) | BIT(RESET), cmd_log},
	{"metrics", NULL, "", "print the metrics of the node, or of one pod", "", 0, 0, BIT(POD), cmd_metrics},
	{"top", NULL, "", "watch rates, connections, processor time and memory of the pods", "short", 0, 0,
		BIT(OUTPUT) | BIT(POD) | BIT(ONCE) | BIT(ITERATIONS) | BIT(INTERVAL), cmd_top},
	{"trace", NULL, "POD", "follow a pod's connections as they end", "short|json", 1, 1,
		BIT(OUTPUT) | BIT(JSON) | BIT(ONCE), cmd_trace},
	{"explain", NULL, "FROM TO:PORT", "tell what would become of a connection", LISTS, 2, 2,
		BIT(OUTPUT) | BIT(JSON), cmd_explain},
	{"drain", NULL, "POD", "end a pod's tunnels gracefully; its proxy goes on", "", 1, 1, 0, cmd_drain},
	{"version", NULL, "", "print the versions of culvertctl and of the daemon", "short|json", 0, 0,
		BIT(OUTPUT) | BIT(JSON), cmd_version},
	{"help", NULL, "[COMMAND]", "explain culvertctl, or one command", "", 0, 1, 0, cmd_help},
	{"completion", NULL, "bash|zsh", "print a completion script for a shell", "", 1, 1, 0, cmd_completion},
};
/* clang-format on */

#define COMMAND_CNT (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

const struct ctl_command *ctl_command_find(const char *name)
{
	for (size_t i = 0; i < COMMAND_CNT; i++)
		if (strcmp(COMMANDS[i].name, name) == 0 ||
		        (COMMANDS[i].alias && strcmp(COMMANDS[i].alias, name) == 0))
			return &COMMANDS[i];
	return NULL;
}

const struct ctl_command *ctl_command_at(size_t i)
{
	return i < COMMAND_CNT ? &COMMANDS[i] : NULL;
}

const struct ctl_option *ctl_option_at(enum ctl_opt opt)
{
	return &OPTIONS[opt];
}

bool ctl_command_takes(const struct ctl_command *command, enum ctl_opt opt)
{
	return (command->options | COMMON) >> opt & 1;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;
	return least < c ? least : c;
}

/* One row of the matrix at a time. */
unsigned ctl_slips(const char *from, const char *to)
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
		unsigned away = ctl_slips(typed, COMMANDS[i].name);
		if (away < least) {
			least = away;
			best = &COMMANDS[i];
		}
	}
	return best;
}

static void put_option(FILE *to, enum ctl_opt opt, const char *outputs)
{
	const struct ctl_option *option = &OPTIONS[opt];
	char text[64];
	const char *argument = opt == CTL_OPT_OUTPUT ? outputs : option->argument;
	snprintf(text, sizeof(text), "--%s%s%s", option->name, argument ? " " : "", argument ? argument : "");
	fprintf(to, "  %c%c%s %-26s %s\n", option->letter ? '-' : ' ', option->letter ? option->letter : ' ',
	        option->letter ? "," : " ", text, option->sentence);
}

void ctl_command_usage(FILE *to, const struct ctl_command *command)
{
	fprintf(to, "usage: culvertctl %s%s%s [OPTION]...\n", command->name, command->arguments[0] ? " " : "",
	        command->arguments);
	if (command->alias)
		fprintf(to, "       culvertctl %s ...\n", command->alias);
	fprintf(to, "\n%s\n\n", command->sentence);
	for (unsigned opt = 0; opt < CTL_OPT_CNT; opt++)
		if (ctl_command_takes(command, opt))
			put_option(to, opt, command->outputs);
}

void ctl_usage(FILE *to)
{
	fputs("usage: culvertctl COMMAND [OPTION]...\n\n"
	      "Asks the culvertd of this node. Needs the rights of its user, root as a rule.\n\n",
	        to);
	for (size_t i = 0; i < COMMAND_CNT; i++)
		fprintf(to, "  %-11s %-17s %s\n", COMMANDS[i].name, COMMANDS[i].arguments,
		        COMMANDS[i].sentence);
	fputs("\n"
	      "  --run-dir DIR    folder of the instances (default: CULVERT_RUN_DIR,\n"
	      "                   else /var/run/ztunnel/culvert, else /tmp/culvert)\n"
	      "  --instance NAME  which instance, where several are live\n"
	      "  -h, --help       this text, or that of a command with its options\n"
	      "  --version        the same as version\n\n"
	      "Exit status: 0; 1 it failed; 2 the call makes no sense; 3 no culvertd answers;\n"
	      "4 permission denied; 5 what the call names is not there.\n",
	        to);
}

enum ctl_exit ctl_exit_of(int code)
{
	switch (code) {
	case 0:
		return CTL_EXIT_OK;
	case -EINVAL:
		return CTL_EXIT_USAGE;
	case -EHOSTDOWN:
	case -ECONNREFUSED:
		return CTL_EXIT_NO_DAEMON;
	case -EACCES:
	case -EPERM:
		return CTL_EXIT_DENIED;
	case -ESRCH:
		return CTL_EXIT_NOT_FOUND;
	default:
		return CTL_EXIT_FAILED;
	}
}

int ctl_read_interval(const char *text, unsigned *ret_ms)
{
	char *end;
	errno = 0;
	double value = strtod(text, &end);
	bool is_ms = strcmp(end, "ms") == 0;
	if (end == text || errno || (*end && !is_ms && strcmp(end, "s") != 0))
		return -EINVAL;
	double ms = is_ms ? value : value * 1000;
	if (!(ms >= 1 && ms <= INTERVAL_MAX_MS))
		return -EINVAL;
	*ret_ms = (unsigned)ms;
	return 0;
}
