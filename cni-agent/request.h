/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control protocol: over a stream socket the client writes one JSON
 * object and shuts its side, the server answers with one JSON value and
 * closes. Requests {"add": POD}, {"del": {"uid": U}}, {"list": {}}; answers
 * {"outcome": "done"|"pending"|"refused", "error": TEXT} or, to a list, an
 * array of pods. Pure: texts only.
 */
#ifndef CULVERT_CNI_AGENT_REQUEST_H
#define CULVERT_CNI_AGENT_REQUEST_H

#include "base/buf.h"
#include "pods.h"

/* Bytes of a request: one pod with long names and a long path. */
#define REQUEST_MAX 32768
/* Bytes of an answer: LIMIT_PODS pods with errors, of 2 KiB on average. */
#define ANSWER_MAX (16u << 20)

/* What is asked. */
enum request_kind { REQUEST_ADD, REQUEST_DEL, REQUEST_LIST };

/* A request. */
struct request {
	enum request_kind kind;
	const struct pod_spec *spec; /* REQUEST_ADD: one reference */
	char *uid;                   /* REQUEST_DEL: owned */
};

/* Reads a request. -EINVAL and others with text naming the key. */
int request_parse(const char *text, size_t len, struct request *ret_req, struct err *err);

/* Frees what a request holds. */
void request_done(struct request *req);

/* Appends the answer to add and del; error may be NULL. */
void answer_write(enum pod_outcome outcome, const char *error, struct buf *out);

#endif
