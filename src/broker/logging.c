/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of the endpoint; the filter's grammar is base/log_filter.c. See logging.h. */
#include "broker/logging.h"

#include <stdio.h>

#include "broker/broker.h"
#include "broker/silo_peer.h"
#include "broker/warden.h"
#include "conn/web.h"

static const char TARGET[] = "ztunnel::admin";

/* What a mistaken client is told. */
static const char USAGE[] =
        "\n"
        "POST /logging                              shows the present filter\n"
        "POST /logging?level=LEVEL                  sets the level of everything without a level of its own\n"
        "POST /logging?level=TARGET=LEVEL,...       sets the level of single targets; TARGET:LEVEL is the same\n"
        "POST /logging?reset                        goes back to the filter of the start\n"
        "POST /logging?reset&level=LEVEL            the same, then sets\n"
        "\n"
        "LEVEL is one of off error warn info debug trace; a TARGET is the name that log lines carry,\n"
        "such as access, dns or ztunnel::xds.\n";

static void reply_filter(struct broker *broker, struct web_conn *conn)
{
	struct buf body;
	buf_init(&body, LOGGING_TEXT_MAX * 2);
	buf_add_str(&body, "current log level is ");
	log_filter_text(&broker->log, &body);
	buf_add_str(&body, "\n");
	web_reply(conn, 200, "text/plain", body.data, body.len);
	buf_done(&body);
}

static void reply_bad(struct web_conn *conn, const char *value)
{
	struct buf body;
	buf_init(&body, 2 * LIMIT_HTTP_HEAD);
	buf_printf(&body, "Invalid level provided: %s\n%s", value, USAGE);
	web_reply(conn, 400, "text/plain", body.data, body.len);
	buf_done(&body);
}

/* Changes the filter and tells the silos; unchanged on failure. */
static int change(struct broker *broker, bool is_reset, const char *clauses)
{
	struct buf before, after;
	struct err err = {0};
	buf_init(&before, LOGGING_TEXT_MAX);
	buf_init(&after, LOGGING_TEXT_MAX - 1);
	log_filter_text(&broker->log, &before);
	int r = log_change(&broker->log, is_reset, clauses, &err);
	if (r == 0) {
		log_filter_text(&broker->log, &after);
		r = after.err;
		if (r < 0)
			log_set(&broker->log, buf_cstr(&before), &err);
	}
	if (r == 0) {
		broker->has_log_filter = true;
		log_msg(&broker->log, LOG_INFO, TARGET, "new log filter is %s", buf_cstr(&after));
		silo_peers_set_log(broker);
		warden_set_log(broker->warden);
	}
	buf_done(&before);
	buf_done(&after);
	return r;
}

void logging_serve(struct broker *broker, struct web_conn *conn, const struct http_request *request)
{
	char level[LIMIT_HTTP_HEAD] = "";
	char ignored[LIMIT_HTTP_HEAD];
	if (request->method != HTTP_POST) {
		web_reply_text(conn, 405, "text/plain", USAGE);
		return;
	}
	int r = http_query_get(request, "level", level, sizeof(level));
	bool is_reset = http_query_get(request, "reset", ignored, sizeof(ignored)) != 0;
	if (r >= 0 && (level[0] || is_reset))
		r = change(broker, is_reset, level);
	if (r < 0)
		reply_bad(conn, level);
	else
		reply_filter(broker, conn);
}
