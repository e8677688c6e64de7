/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * culvertd: looks at its name and first word, reads the settings, runs one of
 * the two roles. Everything else is theirs.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "base/param.h"
#include "warden/child.h"
#include "warden/config.h"
#include "warden/first.h"
#include "warden/version.h"
#include "warden/warden.h"

/* A filter that does not parse ends upstream with a panic (reference control.md 16). */
#define EXIT_PANIC SETTINGS_EXIT_PANIC

extern char **environ;

static int print_version(void)
{
	char line[VERSION_LINE_MAX];
	return puts(version_line(line)) < 0 ? 1 : 0;
}

static int print_help(int status)
{
	version_print_help();
	return status;
}

static int fail(const struct err *err, int status)
{
	fprintf(stderr, "Error: %s\n", err->text);
	return status;
}

static int run_role(const struct settings *settings, struct log *log, int argc, char **argv)
{
	uint64_t first_pid = 0;
	if (strcmp(argv[0], CHILD_WARDEN_NAME) != 0) {
		char line[VERSION_LINE_MAX];
		log_msg(log, LOG_INFO, "ztunnel", "version: %s", version_line(line));
		return first_run(settings, log, argc > 1 ? argv + 1 : argv + argc);
	}
	if (argc < 2 || num_parse(argv[1], strlen(argv[1]), INT32_MAX, &first_pid) < 0) {
		fprintf(stderr, "Error: this program is started by culvertd\n");
		return FIRST_EXIT_FATAL;
	}
	return warden_run(settings, log, (pid_t)first_pid);
}

static int run(int argc, char **argv)
{
	struct err err = {0};
	struct settings settings;
	struct log log;
	int rc = settings_check_env(environ, &err);
	/* The warden inherits what the first process has put into the environment. */
	if (rc == 0 && strcmp(argv[0], CHILD_WARDEN_NAME) != 0)
		rc = config_apply(&err);
	if (rc == -ECANCELED)
		return FIRST_EXIT_FATAL;
	if (rc == 0)
		rc = settings_load(&settings, environ, PARAM_W, &err);
	if (rc < 0)
		return fail(&err, settings_exit_status(rc));
	int status = EXIT_PANIC;
	if (log_init(&log, settings.rust_log, settings.log_json, log_write_fd,
	            (void *)(intptr_t)STDOUT_FILENO, &err) < 0) {
		err_wrap(&err, "invalid env var RUST_LOG");
		fail(&err, status);
	} else {
		/* A reader of stdout or of a channel that goes away must not end anybody; programs that are
		 * executed inherit it. */
		signal(SIGPIPE, SIG_IGN);
		status = run_role(&settings, &log, argc, argv);
		log_done(&log);
	}
	settings_done(&settings);
	return status;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "proxy";
	if (argc < 1)
		return FIRST_EXIT_FATAL;
	if (strcmp(argv[0], CHILD_WARDEN_NAME) == 0 || strcmp(word, "proxy") == 0)
		return run(argc, argv);
	if (strcmp(word, "version") == 0 || strcmp(word, "--version") == 0)
		return print_version();
	if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return print_help(0);
	fprintf(stderr, "unknown command: %s\n", word);
	return print_help(1);
}
