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

/* Values of options begin here: letters are below. */
#define OPTION_BASE 256

/* Room for the letters of all options, each with a colon. */
#define LETTERS_MAX (2 * CTL_OPT_CNT + 1)

/* Time between two looks when nothing was said, ms. */
#define INTERVAL_MS 2000

static int usage_error(void)
{
	fputs("culvertctl: see culvertctl --help\n", stderr);
	return CTL_EXIT_USAGE;
}

static void make_getopt(struct option *longs, char *letters)
{
	for (int opt = 0; opt < CTL_OPT_CNT; opt++) {
		const struct ctl_option *option = ctl_option_at((enum ctl_opt)opt);
		longs[opt] = (struct option){.name = option->name,
		        .has_arg = option->argument ? required_argument : no_argument,
		        .val = OPTION_BASE + opt};
		/* Of two options with a letter the subcommand decides; the first stands for both meanwhile.
		 */
		if (!option->letter || strchr(letters, option->letter))
			continue;
		size_t len = strlen(letters);
		letters[len] = option->letter;
		letters[len + 1] = option->argument ? ':' : '\0';
	}
}

static int opt_of_letter(int letter)
{
	for (int opt = 0; opt < CTL_OPT_CNT; opt++)
		if (ctl_option_at((enum ctl_opt)opt)->letter == letter)
			return opt;
	return -1;
}

static int read_options(int argc, char **argv, struct ctl *ctl)
{
	struct option longs[CTL_OPT_CNT + 1] = {0};
	char letters[LETTERS_MAX] = "";
	make_getopt(longs, letters);
	for (int value; (value = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
		int opt = value >= OPTION_BASE ? value - OPTION_BASE : opt_of_letter(value);
		if (value == '?' || opt < 0)
			return -EINVAL;
		ctl->options[opt] = optarg ? optarg : "";
	}
	return 0;
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

/* The letter of two options means the one that the subcommand takes. */
static void settle_letters(const struct ctl_command *command, struct ctl *ctl)
{
	if (ctl->options[CTL_OPT_NAMESPACE] && !ctl_command_takes(command, CTL_OPT_NAMESPACE) &&
	        ctl_command_takes(command, CTL_OPT_ITERATIONS)) {
		ctl->options[CTL_OPT_ITERATIONS] = ctl->options[CTL_OPT_NAMESPACE];
		ctl->options[CTL_OPT_NAMESPACE] = NULL;
	}
}

static bool is_listed(const char *list, const char *text)
{
	size_t len = strlen(text);
	for (const char *at = list; *at; at += strcspn(at, "|") + (at[strcspn(at, "|")] == '|'))
		if (strcspn(at, "|") == len && strncmp(at, text, len) == 0)
			return true;
	return false;
}

static int read_output(const struct ctl_command *command, struct ctl *ctl)
{
	const char *text = ctl->options[CTL_OPT_OUTPUT];
	if (ctl->options[CTL_OPT_JSON])
		ctl->output = CTL_OUTPUT_JSON;
	if (!text)
		return 0;
	if (!is_listed(command->outputs, text)) {
		fprintf(stderr, "culvertctl: -o is one of %s, not %s\n", command->outputs, text);
		return -EINVAL;
	}
	ctl->output = strcmp(text, "json") == 0   ? CTL_OUTPUT_JSON
	              : strcmp(text, "yaml") == 0 ? CTL_OUTPUT_YAML
	                                          : CTL_OUTPUT_SHORT;
	return 0;
}

static int read_numbers(struct ctl *ctl)
{
	const char *cnt = ctl->options[CTL_OPT_ITERATIONS];
	const char *interval = ctl->options[CTL_OPT_INTERVAL];
	char *end = NULL;
	unsigned long n = cnt ? strtoul(cnt, &end, 10) : 0;
	if (cnt && (end == cnt || *end || n == 0 || n > 1000000000 || cnt[0] == '-')) {
		fprintf(stderr, "culvertctl: --iterations is a number from 1, not %s\n", cnt);
		return -EINVAL;
	}
	ctl->iterations = ctl->options[CTL_OPT_ONCE] ? 1 : (unsigned)n;
	ctl->interval_ms = INTERVAL_MS;
	if (interval && ctl_read_interval(interval, &ctl->interval_ms) < 0) {
		fprintf(stderr, "culvertctl: --interval is a time such as 2, 0.5 or 500ms, not %s\n",
		        interval);
		return -EINVAL;
	}
	return 0;
}

/* Whether the words and options fit the subcommand. */
static int check_call(const struct ctl_command *command, struct ctl *ctl, int word_cnt, char **words)
{
	for (int opt = 0; opt < CTL_OPT_CNT; opt++) {
		const struct ctl_option *option = ctl_option_at((enum ctl_opt)opt);
		if (!ctl->options[opt] || ctl_command_takes(command, (enum ctl_opt)opt))
			continue;
		if (option->letter)
			fprintf(stderr, "culvertctl: %s takes no -%c\n", command->name, option->letter);
		else
			fprintf(stderr, "culvertctl: %s takes no --%s\n", command->name, option->name);
		return -EINVAL;
	}
	if (word_cnt > (int)command->words_max) {
		fprintf(stderr, "culvertctl: %s: unexpected argument %s\n", command->name,
		        words[command->words_max]);
		return -EINVAL;
	}
	if (word_cnt < (int)command->words_min) {
		fprintf(stderr, "culvertctl: %s needs %s\n", command->name, command->arguments);
		return -EINVAL;
	}
	for (int i = 0; i < word_cnt; i++)
		ctl->words[ctl->word_cnt++] = words[i];
	int r = read_output(command, ctl);
	return r < 0 ? r : read_numbers(ctl);
}

/* A reader such as head that has had enough is no reason for words. */
static int run(const struct ctl_command *command, const struct ctl *ctl)
{
	struct err err = {0};
	int r = command->run(ctl, &err);
	if (r == 0 && fflush(ctl->out) != 0)
		r = err_sys(&err, -errno, "writing the output");
	if (r < 0 && r != -EPIPE)
		fprintf(stderr, "culvertctl: %s\n", err.text[0] ? err.text : err_str(r));
	return ctl_exit_of(r);
}

int main(int argc, char **argv)
{
	struct ctl ctl = {.out = stdout, .notes = stderr};
	const char *run_dir = getenv("CULVERT_RUN_DIR");
	/* Written to, a closed pipe must be an error that ends a walk, not a death half way. */
	signal(SIGPIPE, SIG_IGN);
	if (read_options(argc, argv, &ctl) < 0)
		return usage_error();
	if (!ctl.options[CTL_OPT_RUN_DIR] && run_dir && run_dir[0])
		ctl.options[CTL_OPT_RUN_DIR] = run_dir;
	bool wants_help = ctl.options[CTL_OPT_HELP] != NULL;
	const char *name = optind < argc ? argv[optind++] : NULL;
	if (!name && !wants_help && !ctl.options[CTL_OPT_VERSION]) {
		ctl_usage(stderr);
		return CTL_EXIT_USAGE;
	}
	if (!name)
		name = wants_help ? "help" : "version";
	const struct ctl_command *command = ctl_command_find(name);
	if (!command)
		return unknown(name);
	if (wants_help) {
		if (strcmp(command->name, "help") != 0)
			ctl.words[ctl.word_cnt++] = name;
		return run(ctl_command_find("help"), &ctl);
	}
	settle_letters(command, &ctl);
	if (check_call(command, &ctl, argc - optind, argv + optind) < 0)
		return usage_error();
	return run(command, &ctl);
}
