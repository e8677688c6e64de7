/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log levels at run time (reference control.md 11.6), in the broker and in all silos. */
#ifndef CULVERT_BROKER_LOGGING_H
#define CULVERT_BROKER_LOGGING_H

#include "http/request.h"

struct broker;
struct web_conn;

/* Bytes of a filter's text, as one record to a silo has room for (proto/ipc.options). */
#define LOGGING_TEXT_MAX 4096

/* Answers a request to /logging. */
void logging_serve(struct broker *broker, struct web_conn *conn, const struct http_request *request);

#endif
