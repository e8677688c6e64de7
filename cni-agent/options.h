/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line, as a server and as a client. Reads the environment, writes nothing. */
#ifndef CULVERT_CNI_AGENT_OPTIONS_H
#define CULVERT_CNI_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "pods.h"

/* Defaults: upstream's socket, and our own beside it in /run. */
#define OPTIONS_ZDS_SOCKET "/var/run/ztunnel/ztunnel.sock"
#define OPTIONS_SOCKET "/var/run/culvert-cni-agent.sock"

/* What to do. */
enum command { COMMAND_SERVE, COMMAND_ADD, COMMAND_DEL, COMMAND_LIST, COMMAND_HELP, COMMAND_VERSION };

/* The parsed command line; strings are those of argv and the environment. */
struct options {
	enum command command;
	const char *zds_socket; /* where the data plane connects */
	const char *socket;     /* control socket, of the server and for a client */
	const char *pods;       /* pods file or directory, NULL = none */
	const char *log_level;  /* RUST_LOG syntax */
	bool log_json;
	struct pods_config config;
	bool json;          /* COMMAND_LIST: as JSON */
	struct buf request; /* COMMAND_ADD, COMMAND_DEL, COMMAND_LIST: what to send */
};

/* Parses. -EINVAL with text: the use is wrong. options must be freed with options_done either way. */
int options_parse(struct options *options, int argc, char **argv, struct err *err);

/* Frees the request. */
void options_done(struct options *options);

/* The text of --help. */
const char *options_help(void);

#endif
