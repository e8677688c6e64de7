/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the settings say of one channel to the control plane: where it is,
 * whom to trust there, what we show (reference control.md 3.2, 3.4, 4.1,
 * 4.2). Reads files when asked to; makes no connection.
 */
#ifndef CULVERT_BROKER_CONTROL_AUTH_H
#define CULVERT_BROKER_CONTROL_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/param.h"
#include "broker/control_channel.h"
#include "h2/headers.h"

struct tls_trust;

/* Bytes of a host name or address in a URI, terminator included. */
#define CONTROL_HOST_MAX 256

/* Where roots come from. */
enum control_roots { CONTROL_ROOTS_FILE, CONTROL_ROOTS_SYSTEM, CONTROL_ROOTS_TEXT };

/* Where the token comes from. */
enum control_token {
	CONTROL_TOKEN_FILE,     /* a file that has to be there */
	CONTROL_TOKEN_OPTIONAL, /* the default file: no token while it is missing */
	CONTROL_TOKEN_STATIC,   /* the setting itself */
	CONTROL_TOKEN_NONE,     /* none is wanted */
};

/* All texts are borrowed from the settings unless said otherwise. */
struct control_auth {
	const struct settings *settings;
	char host[CONTROL_HOST_MAX];          /* name or IP literal without brackets */
	char authority[CONTROL_HOST_MAX + 8]; /* as the URI has it */
	uint16_t port;
	bool is_plain; /* http://, which is refused at every connect as upstream does */
	enum control_roots roots_kind;
	const char *roots; /* path or PEM text by kind */
	const char *alt_name;
	enum control_token token_kind;
	const char *token; /* path or the token itself */
	const char *cluster_id;
	const struct setting_pairs *custom;
};

/* Fills it for a purpose. 0, or -EINVAL with the variable's name in the text. `log` gets warnings. */
int control_auth_init(struct control_auth *auth, const struct settings *settings,
        enum control_purpose purpose, struct log *log, struct err *err);

/* Reads the roots and makes the trust, one reference. Negative code with text. */
int control_auth_trust(const struct control_auth *auth, struct tls_trust **ret_trust, struct err *err);

/* Header lines of one call. */
struct control_lines {
	struct h2_header lines[32]; /* H2_SEND_LINES_MAX */
	size_t cnt;
	struct buf bearer; /* owned */
};

/* Reads the token and collects the lines; control_lines_done() also after a failure. Negative code with text.
 */
int control_lines_make(const struct control_auth *auth, struct control_lines *ret_lines, struct err *err);

/* Frees and wipes the token. */
void control_lines_done(struct control_lines *lines);

#endif
