/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of culvertctl share: the words of a call, the tables of
 * subcommands and options, exit codes. A subcommand is one function of that
 * table. Knows no HTTP and no run directory.
 */
#ifndef CULVERT_CTL_CTL_H
#define CULVERT_CTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Exit codes of culvertctl. */
enum ctl_exit {
	CTL_EXIT_OK = 0,
	CTL_EXIT_FAILED = 1,    /* the call made sense and did not succeed */
	CTL_EXIT_USAGE = 2,     /* the call makes no sense */
	CTL_EXIT_NO_DAEMON = 3, /* no culvertd is running, or it does not answer */
	CTL_EXIT_DENIED = 4,    /* we may not ask it */
	CTL_EXIT_NOT_FOUND = 5, /* what the call names is not there */
};

/* How a result is printed. */
enum ctl_output {
	CTL_OUTPUT_SHORT, /* a table or lines for people */
	CTL_OUTPUT_JSON,
	CTL_OUTPUT_YAML,
};

/* Options; bits of ctl_command.options. Those up to CTL_OPT_VERSION may stand with every subcommand. */
enum ctl_opt {
	CTL_OPT_RUN_DIR,
	CTL_OPT_INSTANCE,
	CTL_OPT_HELP,
	CTL_OPT_VERSION,
	CTL_OPT_OUTPUT,
	CTL_OPT_POD,
	CTL_OPT_NAMESPACE,
	CTL_OPT_NODE,
	CTL_OPT_ADDRESS,
	CTL_OPT_DIRECTION,
	CTL_OPT_RAW,
	CTL_OPT_HEADERS,
	CTL_OPT_FILE,
	CTL_OPT_RESET,
	CTL_OPT_ONCE,
	CTL_OPT_ITERATIONS,
	CTL_OPT_INTERVAL,
	CTL_OPT_JSON,
	CTL_OPT_CNT,
};

/* Most words after a subcommand. */
#define CTL_WORDS_MAX 2

/* A call; strings are those of argv or of the environment, NULL = not given. */
struct ctl {
	const char *words[CTL_WORDS_MAX]; /* after the subcommand */
	size_t word_cnt;
	const char *options[CTL_OPT_CNT]; /* values; "" for one without argument */
	enum ctl_output output;           /* -o, --json */
	unsigned iterations;              /* of top; 0 = until it is stopped */
	unsigned interval_ms;             /* between two looks */
	FILE *out;                        /* results */
	FILE *notes;                      /* remarks that are no result */
};

/*
 * Runs a subcommand. 0, or a negative code with text. The exit code follows from it: -EINVAL usage,
 * -EHOSTDOWN and -ECONNREFUSED no daemon, -EACCES and -EPERM denied, -ESRCH not found.
 */
typedef int ctl_command_fn(const struct ctl *ctl, struct err *err);

/* A row of the table of subcommands. */
struct ctl_command {
	const char *name;
	const char *alias;     /* istioctl's short form; NULL = none */
	const char *arguments; /* words for the usage line; "" = none */
	const char *sentence;  /* what it does */
	const char *outputs;   /* values of -o, "" = takes none */
	size_t words_min;
	size_t words_max;
	unsigned options; /* bits of enum ctl_opt beyond the common ones */
	ctl_command_fn *run;
};

/* A row of the table of options. */
struct ctl_option {
	const char *name;     /* behind "--" */
	char letter;          /* behind "-"; 0 = none */
	const char *argument; /* what it takes; NULL = nothing */
	const char *sentence;
};

/* The table's row of that name or alias, NULL if there is none. */
const struct ctl_command *ctl_command_find(const char *name);

/* The row whose name is at most two slips of the keyboard away from what was typed, NULL if there is none. */
const struct ctl_command *ctl_command_nearest(const char *typed);

/* Row i of the table; NULL behind the last one. */
const struct ctl_command *ctl_command_at(size_t i);

/* Row of an option. */
const struct ctl_option *ctl_option_at(enum ctl_opt opt);

/* Whether the subcommand takes the option. */
bool ctl_command_takes(const struct ctl_command *command, enum ctl_opt opt);

/* Letters to add, drop or change to get from one word to the other (Levenshtein); UINT_MAX if one is longer
 * than 64 bytes. */
unsigned ctl_slips(const char *from, const char *to);

/* Prints the usage of one subcommand. */
void ctl_command_usage(FILE *to, const struct ctl_command *command);

/* Prints the usage of the program. */
void ctl_usage(FILE *to);

/* The exit code of a subcommand's outcome. */
enum ctl_exit ctl_exit_of(int code);

/* Reads a positive duration such as 2, 0.5 or 500ms (seconds without a unit) of at most an hour. 0 or
 * -EINVAL. */
int ctl_read_interval(const char *text, unsigned *ret_ms);

ctl_command_fn cmd_all, cmd_certificate, cmd_completion, cmd_connections, cmd_drain, cmd_dump, cmd_explain,
        cmd_help, cmd_log, cmd_metrics, cmd_pods, cmd_policy, cmd_service, cmd_top, cmd_trace, cmd_version,
        cmd_workload;

#endif
