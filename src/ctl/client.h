/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests over the unix sockets of an instance (libcurl): the broker's
 * admin.sock and those of the pods. What comes back is data of unknown
 * making; JSON is parsed, and is otherwise not looked at.
 */
#ifndef CULVERT_CTL_CLIENT_H
#define CULVERT_CTL_CLIENT_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/err.h"
#include "ctl/ctl.h"
#include "ctl/instance.h"

/* Most bytes of an answer: the broker's own ceiling of a dump, and the terminator. */
#define CLIENT_BODY_MAX ((256u << 20) + 1)

/* The broker's socket. */
#define CLIENT_ADMIN "admin.sock"

/* An instance that answers. */
struct client {
	struct instance instance; /* found */
};

/* An answer as JSON. */
struct answer {
	struct buf body; /* as it came */
	cJSON *json;     /* the same, parsed */
};

/*
 * Finds the instance that the call means (a note says which, if several are live). 0; -EHOSTDOWN, -EACCES,
 * -errno with text. The caller ends it with client_done.
 */
int client_open(const struct ctl *ctl, struct client *ret_client, struct err *err);

/* Forgets the instance. */
void client_done(struct client *client);

/*
 * Sends GET (or POST without a body) for path to a socket of the instance and appends the answer to `body`,
 * which has been made with a ceiling. 0; -ETIMEDOUT after 5 s without a byte, -ESRCH for 404 with its text,
 * -EINVAL for 400, -EPROTO for another status, -ECONNREFUSED and other codes with text.
 */
int client_ask(const struct client *client, const char *socket, const char *path, bool is_post,
        struct buf *body, struct err *err);

/* GET of JSON; a freed or zeroed answer is filled. Errors as above, -EPROTO for what is no JSON. The caller
 * frees with answer_done. */
int client_json(const struct client *client, const char *socket, const char *path, struct answer *ret,
        struct err *err);

/* client_open and client_json of the broker in one. */
int client_get(const struct ctl *ctl, const char *path, struct answer *ret, struct err *err);

/* Parses body, which the answer takes over in any case. -EPROTO with text that names `what`. */
int answer_parse(struct answer *answer, struct buf *body, const char *what, struct err *err);

/* Frees the answer; a zeroed one is fine. */
void answer_done(struct answer *answer);

/* Appends text as a value of a query (RFC 3986): what is not unreserved is percent-encoded. */
void client_escape(struct buf *url, const char *text);

#endif
