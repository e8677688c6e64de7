/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of culvertctl share: the words of a call, the table of
 * subcommands, exit codes. A subcommand is one file that exports one function.
 * Knows no HTTP and no run directory.
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
	CTL_EXIT_FAILED = 1, /* the call made sense and did not succeed */
	CTL_EXIT_USAGE = 2,  /* the call makes no sense */
};

/* How a list is printed. */
enum ctl_output {
	CTL_OUTPUT_SHORT, /* a table for people */
	CTL_OUTPUT_JSON,  /* what the daemon sent */
};

/* A call; strings are those of argv or of the environment. */
struct ctl {
	const char *run_dir;    /* --run-dir or CULVERT_RUN_DIR; NULL = the usual folders */
	const char *instance;   /* --instance; NULL = the live one */
	const char *word;       /* word after the subcommand; NULL = none */
	enum ctl_output output; /* -o */
	FILE *out;              /* results */
	FILE *notes;            /* remarks that are no result */
};

/* Runs a subcommand. 0, or a negative code with text. */
typedef int ctl_command_fn(const struct ctl *ctl, struct err *err);

/* A row of the table. */
struct ctl_command {
	const char *name;
	const char *arguments; /* for the usage line; "" = none */
	const char *sentence;  /* what it does */
	bool has_output;       /* takes -o */
	bool has_word;         /* takes one more word */
	ctl_command_fn *run;
};

/* The table's row of that name, NULL if there is none. */
const struct ctl_command *ctl_command_find(const char *name);

/* The row whose name is at most two slips of the keyboard away from what was typed, NULL if there is none. */
const struct ctl_command *ctl_command_nearest(const char *typed);

/* Prints the usage of one subcommand. */
void ctl_command_usage(FILE *to, const struct ctl_command *command);

/* Prints the usage of the program. */
void ctl_usage(FILE *to);

ctl_command_fn cmd_dump, cmd_help, cmd_pods, cmd_version;

#endif
