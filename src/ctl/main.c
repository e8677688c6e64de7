/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * culvertctl: reads the words of the call, runs the subcommand, turns its
 * outcome into an exit code. Options may stand before or after the subcommand.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

/* Values of options without a letter. */
enum option_value {
	OPTION_RUN_DIR = 256,
	OPTION_INSTANCE,
	OPTION_VERSION,
};

/* What the options said beside struct ctl. */
struct wishes {
	bool help;
	bool version;
	bool output; /* -o was given */
};

static int read_output(const char *text, struct ctl *ctl)
{
	if (strcmp(text, "json") == 0)
		ctl->output = CTL_OUTPUT_JSON;
	else if (strcmp(text, "short") == 0)
		ctl->output = CTL_OUTPUT_SHORT;
	else
		return -EINVAL;
	return 0;
}

static int read_options(int argc, char **argv, struct ctl *ctl, struct wishes *wishes)
{
	static const struct option options[] = {
	        {"run-dir", required_argument, NULL, OPTION_RUN_DIR},
	        {"instance", required_argument, NULL, OPTION_INSTANCE},
	        {"output", required_argument, NULL, 'o'},
	        {"help", no_argument, NULL, 'h'},
	        {"version", no_argument, NULL, OPTION_VERSION},
	        {NULL, 0, NULL, 0},
	};
	for (int option; (option = getopt_long(argc, argv, "ho:", options, NULL)) != -1;) {
		if (option == OPTION_RUN_DIR)
			ctl->run_dir = optarg;
		else if (option == OPTION_INSTANCE)
			ctl->instance = optarg;
		else if (option == OPTION_VERSION)
			wishes->version = true;
		else if (option == 'h')
			wishes->help = true;
		else if (option != 'o')
			return -EINVAL;
		else if (wishes->output = true, read_output(optarg, ctl) < 0) {
			fprintf(stderr, "culvertctl: -o is short or json, not %s\n", optarg);
			return -EINVAL;
		}
	}
	return 0;
}

static int usage_error(void)
{
	fputs("culvertctl: see culvertctl --help\n", stderr);
	return CTL_EXIT_USAGE;
}

static int unknown(const char *typed)
{
	const struct ctl_command *nearest = ctl_command_nearest(typed);
	if (nearest)
		fprintf(stderr, "culvertctl: unknown command %s; did you mean %s?\n", typed, nearest->name);
	else
		fprintf(stderr, "culvertctl: unknown command %s\n", typed);
	return usage_error();
}

/* Whether the words and options fit the subcommand. */
static int check_call(
        const struct ctl_command *command, const struct wishes *wishes, int word_cnt, const char *extra)
{
	if (wishes->output && !command->has_output) {
		fprintf(stderr, "culvertctl: %s takes no -o\n", command->name);
		return usage_error();
	}
	if (word_cnt > (command->has_word ? 1 : 0)) {
		fprintf(stderr, "culvertctl: %s: unexpected argument %s\n", command->name, extra);
		return usage_error();
	}
	return CTL_EXIT_OK;
}

static int run(const struct ctl_command *command, const struct ctl *ctl)
{
	struct err err = {0};
	int r = command->run(ctl, &err);
	if (r == 0 && fflush(ctl->out) != 0)
		r = err_sys(&err, -errno, "writing the output");
	if (r == 0)
		return CTL_EXIT_OK;
	fprintf(stderr, "culvertctl: %s\n", err.text);
	return r == -EINVAL ? CTL_EXIT_USAGE : CTL_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	struct ctl ctl = {.run_dir = getenv("CULVERT_RUN_DIR"), .out = stdout, .notes = stderr};
	struct wishes wishes = {0};
	/* A reader such as head that has had enough must give an error, not a death by signal half way. */
	signal(SIGPIPE, SIG_IGN);
	if (read_options(argc, argv, &ctl, &wishes) < 0)
		return usage_error();
	if (ctl.run_dir && !ctl.run_dir[0])
		ctl.run_dir = NULL;
	const char *name = optind < argc ? argv[optind++] : NULL;
	if (!name && !wishes.help && !wishes.version) {
		ctl_usage(stderr);
		return CTL_EXIT_USAGE;
	}
	if (!name)
		name = wishes.version ? "version" : "help";
	const struct ctl_command *command = ctl_command_find(name);
	if (!command)
		return unknown(name);
	int word_cnt = argc - optind;
	ctl.word = word_cnt > 0 ? argv[optind] : NULL;
	if (wishes.help && !ctl.word) {
		ctl.word = strcmp(name, "help") == 0 ? NULL : name;
		return run(ctl_command_find("help"), &ctl);
	}
	int status = check_call(command, &wishes, word_cnt, word_cnt > 0 ? argv[argc - 1] : "");
	return status == CTL_EXIT_OK ? run(command, &ctl) : status;
}
