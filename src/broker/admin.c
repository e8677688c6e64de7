/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Endpoints; see admin.h. */
#include "broker/admin.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "broker/broker.h"
#include "broker/dump.h"
#include "broker/warden.h"
#include "broker/web.h"

/* Connections that wait to be accepted. */
#define BACKLOG 128
/* A killed predecessor's socket is closed by the kernel a little after its death: tries, and the pause
 * between them, ms. */
#define BIND_TRIES 50
#define BIND_PAUSE_MS 20
/* Room for the names of what is pending. */
#define PENDING_MAX 256
/* Most bytes of the list of pods: LIMIT_PODS rows of names. */
#define PODS_MAX (16u << 20)

#define GET_ONLY (1u << HTTP_GET)
#define POST_ONLY (1u << HTTP_POST)

/* --- readiness ----------------------------------------------------------- */

static void serve_ready(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct broker *broker = ctx;
	char pending[PENDING_MAX];
	char body[PENDING_MAX + 32];
	(void)request;
	broker_pending_text(broker, pending, sizeof(pending));
	if (!pending[0]) {
		web_reply_text(conn, 200, "text/plain", "ready\n");
		return;
	}
	snprintf(body, sizeof(body), "not ready, pending: %s\n", pending);
	web_reply_text(conn, 500, "text/plain", body);
}

static const struct web_route READY_ROUTES[] = {
        {"/healthz/ready", GET_ONLY, serve_ready},
};

/* --- admin --------------------------------------------------------------- */

static void put_pod(struct json *json, const struct pod *pod)
{
	json_obj(json);
	json_kv_str(json, "name", pod->name);
	json_kv_str(json, "namespace", pod->ns);
	json_kv_u64(json, "netnsInode", pod->netns_ino);
	json_kv_u64(json, "pid", pod->pid > 0 ? (uint64_t)pod->pid : 0);
	json_kv_str(json, "reason", pod->reason);
	json_kv_u64(json, "restarts", pod->restarts);
	json_kv_str(json, "serviceAccount", pod->service_account);
	json_kv_str(json, "state", pod->is_up ? "Up" : "Pending");
	json_kv_str(json, "uid", pod->uid);
	json_obj_end(json);
}

static void serve_pods(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct broker *broker = ctx;
	struct buf body;
	struct json json;
	(void)request;
	buf_init(&body, PODS_MAX);
	json_init(&json, &body, true);
	json_arr(&json);
	list_for_each(it, &broker->pods) put_pod(&json, list_entry(it, struct pod, node));
	json_arr_end(&json);
	if (body.err)
		web_reply_text(conn, 500, "text/plain", "the list of pods is too large\n");
	else
		web_reply(conn, 200, "application/json", body.data, body.len);
	buf_done(&body);
}

static void serve_dump(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	(void)request;
	dump_serve(ctx, conn);
}

static void serve_quit(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct broker *broker = ctx;
	(void)request;
	web_reply_text(conn, 200, "text/plain", "shutdown now\n");
	warden_ask_stop(broker->warden);
}

static const struct web_route ADMIN_ROUTES[] = {
        {"/culvert/pods", GET_ONLY, serve_pods},
        {"/config_dump", 0, serve_dump},
        {"/quitquitquit", POST_ONLY, serve_quit},
};

/* --- life ---------------------------------------------------------------- */

/* Listens on every address: dual stack where there is IPv6. */
static int listen_tcp(uint16_t port, bool has_v6, int *ret_fd)
{
	const int on = 1;
	struct addr any = {.ip = {.family = 4}, .port = port};
	struct sockaddr_storage sa;
	int fd = has_v6 ? socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
	if (fd >= 0)
		any.ip.family = 6;
	else
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	socklen_t len = addr_to_sockaddr(&any, &sa);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	        bind(fd, (const struct sockaddr *)&sa, len) < 0 || listen(fd, BACKLOG) < 0) {
		int r = -errno;
		fd_close(&fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static int start_readiness(struct broker *broker)
{
	const struct timespec pause = {.tv_nsec = BIND_PAUSE_MS * 1000000l};
	int fd;
	int r = listen_tcp(ADMIN_READINESS_PORT, broker->settings.ipv6_enabled, &fd);
	for (int i = 0; i < BIND_TRIES && r == -EADDRINUSE; i++) {
		nanosleep(&pause, NULL);
		r = listen_tcp(ADMIN_READINESS_PORT, broker->settings.ipv6_enabled, &fd);
	}
	if (r < 0)
		return r;
	r = web_new(broker->io, fd, READY_ROUTES, sizeof(READY_ROUTES) / sizeof(READY_ROUTES[0]), broker,
	        &broker->readiness_web);
	if (r < 0)
		fd_close(&fd);
	return r;
}

static int start_admin(struct broker *broker)
{
	char path[64];
	int fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/" ADMIN_SOCKET, broker->run_fd);
	int r = fd_unix_listen(path, SOCK_STREAM, BACKLOG, &fd);
	if (r < 0)
		return r;
	r = web_new(broker->io, fd, ADMIN_ROUTES, sizeof(ADMIN_ROUTES) / sizeof(ADMIN_ROUTES[0]), broker,
	        &broker->admin_web);
	if (r < 0)
		fd_close(&fd);
	return r;
}

int admin_start(struct broker *broker, struct err *err)
{
	int r = start_readiness(broker);
	if (r < 0)
		return err_sys(err, r, "readiness server starts");
	r = start_admin(broker);
	if (r < 0)
		return err_sys(err, r, "admin socket");
	return 0;
}

void admin_stop(struct broker *broker)
{
	web_free(broker->readiness_web);
	broker->readiness_web = NULL;
	web_free(broker->admin_web);
	broker->admin_web = NULL;
}
