/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One function per kind of message, in the order of the reference's table.
 * Must not do I/O; what upstream answers with the death of the process, a
 * violation, ends only the connection here.
 */
#include "warden/zds_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "culvert/limits.h"

#define START_PREFIX "failure to start proxy : "

static struct map_key name_key(const void *item)
{
	return map_key_str(item);
}

void zds_session_init(struct zds_session *session, const struct zds_ops *ops, void *ctx)
{
	*session = (struct zds_session){.ops = ops, .ctx = ctx};
	map_init(&session->names, LIMIT_PODS, name_key);
}

static void forget_names(struct zds_session *session)
{
	for (char *name = map_pop(&session->names); name; name = map_pop(&session->names))
		mem_free(name);
}

void zds_session_done(struct zds_session *session)
{
	forget_names(session);
	map_done(&session->names);
}

void zds_session_connected(struct zds_session *session)
{
	session->is_connected = true;
	session->has_snapshot = false;
	session->is_busy = false;
	forget_names(session);
	session->ops->forget_all_pending(session->ctx);
	session->ops->disarm_retry(session->ctx);
}

void zds_session_lost(struct zds_session *session)
{
	session->is_connected = false;
	session->has_snapshot = false;
	session->is_busy = false;
	session->ops->disarm_retry(session->ctx);
}

/* Notes a uid for the reconcile; without memory the pod would be ended by it, so the request must fail. */
static int note(struct zds_session *session, const char *uid)
{
	if (session->has_snapshot || map_get_str(&session->names, uid))
		return 0;
	char *name = mem_strdup(uid);
	if (!name)
		return -ENOMEM;
	int rc = map_put(&session->names, name, NULL);
	if (rc < 0)
		mem_free(name);
	return rc;
}

static void violate(struct zds_session *session, const char *what)
{
	char text[ZDS_ERROR_MAX + 1];
	snprintf(text, sizeof(text), "failure to process message : ProtocolError(\"%s\")", what);
	session->ops->reply(session->ctx, text);
	session->ops->hang_up(session->ctx);
}

/* Ends the request in progress without a violation: the connection stays. */
static void refuse(struct zds_session *session, const char *prefix, const char *why)
{
	char text[ZDS_ERROR_MAX + 1];
	snprintf(text, sizeof(text), "%s%s", prefix, why);
	session->ops->reply(session->ctx, text);
}

static void on_add(struct zds_session *session, const struct zds_request *req, int netns_fd)
{
	const struct zds_ops *ops = session->ops;
	if (!req->has_info) {
		fd_close(&netns_fd);
		violate(session, "workload_info is required but not present");
		return;
	}
	int rc = note(session, req->uid);
	if (rc < 0) {
		fd_close(&netns_fd);
		refuse(session, START_PREFIX, err_str(rc));
		return;
	}
	if (ops->find(session->ctx, req->uid, netns_fd) == ZDS_RUNNING) {
		fd_close(&netns_fd);
		ops->reply(session->ctx, NULL);
		return;
	}
	session->is_busy = true;
	snprintf(session->busy_uid, sizeof(session->busy_uid), "%s", req->uid);
	ops->start(session->ctx, req->uid, &req->info, netns_fd);
}

static void on_keep(struct zds_session *session, const struct zds_request *req)
{
	if (session->has_snapshot) {
		violate(session, "pod keep received after snapshot");
		return;
	}
	int rc = note(session, req->uid);
	if (rc < 0)
		refuse(session, "failure to process message : ", err_str(rc));
	else
		session->ops->reply(session->ctx, NULL);
}

static void on_del(struct zds_session *session, const struct zds_request *req)
{
	if (session->has_snapshot) {
		session->ops->stop(session->ctx, req->uid);
	} else {
		mem_free(map_del_str(&session->names, req->uid));
		session->ops->forget_pending(session->ctx, req->uid);
	}
	session->ops->reply(session->ctx, NULL);
}

static bool is_named(const struct zds_session *session, const char *uid)
{
	return map_get_str(&session->names, uid) != NULL;
}

static void on_snapshot(struct zds_session *session)
{
	if (session->has_snapshot) {
		violate(session, "pod snapshot received already");
		return;
	}
	session->ops->reconcile(session->ctx, is_named, session);
	forget_names(session);
	session->has_snapshot = true;
	session->ops->reply(session->ctx, NULL);
}

void zds_session_request(struct zds_session *session, const struct zds_request *req, int netns_fd)
{
	switch (req->type) {
	case ZDS_ADD:
		on_add(session, req, netns_fd);
		break;
	case ZDS_KEEP:
		on_keep(session, req);
		break;
	case ZDS_DEL:
		on_del(session, req);
		break;
	case ZDS_SNAPSHOT_SENT:
		on_snapshot(session);
		break;
	}
}

/* One timer for all: armed at the first failure and as long as any pod is pending. */
static void watch_pending(struct zds_session *session)
{
	if (session->ops->pending_cnt(session->ctx) == 0)
		session->ops->disarm_retry(session->ctx);
	else if (session->is_connected)
		session->ops->arm_retry(session->ctx);
}

void zds_session_started(struct zds_session *session, const char *uid, const char *error)
{
	if (session->is_busy && strcmp(uid, session->busy_uid) == 0) {
		session->is_busy = false;
		if (error)
			refuse(session, START_PREFIX, error);
		else
			session->ops->reply(session->ctx, NULL);
	}
	watch_pending(session);
}

void zds_session_tick(struct zds_session *session)
{
	if (!session->is_connected)
		return;
	session->ops->retry_pending(session->ctx);
	watch_pending(session);
}
