/* SPDX-License-Identifier: GPL-2.0-only */
/* culvert-cni-agent: the reference node agent. Parses, then serves or asks. */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "client.h"
#include "request.h"

#define NAME "culvert-cni-agent"
#define EXIT_FAILED 1
#define EXIT_USAGE 2

static int fail(const struct err *err, int status)
{
	fprintf(stderr, NAME ": %s\n", err->text);
	return status;
}

static int print(const struct buf *text)
{
	bool is_out = fwrite(text->data, 1, text->len, stdout) == text->len && fflush(stdout) == 0;
	return is_out ? 0 : EXIT_FAILED;
}

static int show_list(const struct options *options, const struct buf *answer, struct err *err)
{
	struct buf table;
	int status;
	/* A list begins as a JSON array does; anything else is a refusal. */
	if (options->json && answer->data[0] == '[')
		return print(answer);
	buf_init(&table, ANSWER_MAX);
	status = client_table(answer, &table, err) < 0 ? fail(err, EXIT_FAILED) : print(&table);
	buf_done(&table);
	return status;
}

static int ask(const struct options *options)
{
	struct err err = {0};
	struct buf answer;
	int status = 0;
	buf_init(&answer, ANSWER_MAX);
	if (client_ask(options->socket, &options->request, &answer, &err) < 0)
		status = fail(&err, EXIT_FAILED);
	else if (options->command == COMMAND_LIST)
		status = show_list(options, &answer, &err);
	else if (client_outcome(&answer, &err) < 0)
		status = fail(&err, EXIT_FAILED);
	buf_done(&answer);
	return status;
}

static int serve(const struct options *options)
{
	struct err err = {0};
	return agent_run(options, &err) < 0 ? fail(&err, EXIT_FAILED) : 0;
}

static int run(const struct options *options)
{
	switch (options->command) {
	case COMMAND_HELP:
		fputs(options_help(), stdout);
		return 0;
	case COMMAND_VERSION:
		puts(NAME " " CULVERT_VERSION);
		return 0;
	case COMMAND_SERVE:
		return serve(options);
	default:
		return ask(options);
	}
}

int main(int argc, char **argv)
{
	struct options options;
	struct err err = {0};
	int status = options_parse(&options, argc, argv, &err) < 0 ? fail(&err, EXIT_USAGE) : run(&options);
	options_done(&options);
	return status;
}
