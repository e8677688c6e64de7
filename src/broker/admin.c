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
#include "broker/dashboard.h"
#include "broker/dump.h"
#include "broker/dump_config.h"
#include "broker/explain.h"
#include "broker/logging.h"
#include "broker/metrics.h"
#include "broker/warden.h"
#include "conn/web.h"

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

/* Bytes of the versions. */
#define VERSION_MAX 4096

/* Bytes of the index page: a row of some 150 bytes a path. */
#define INDEX_MAX 8192

static const char TARGET[] = "ztunnel::hyper_util";

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

static void serve_state(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	(void)request;
	dump_serve_state(ctx, conn);
}

static void serve_metrics(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	metrics_serve(ctx, conn, request);
}

static void serve_quit(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct broker *broker = ctx;
	(void)request;
	web_reply_text(conn, 200, "text/plain", "shutdown now\n");
	warden_ask_stop(broker->warden);
}

static void serve_logging(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	logging_serve(ctx, conn, request);
}

/* Upstream samples itself; a profile of several small processes is taken from outside. */
static void serve_profile(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	(void)ctx;
	(void)request;
	web_reply_text(conn, 501, "text/plain",
	        "culvert does not profile itself. Take a CPU profile with perf(1) on the node, for instance\n"
	        "    perf record -F 99 -g -p $(pgrep -d, culvert-) -- sleep 10\n");
}

static void serve_heap(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	(void)ctx;
	(void)request;
	web_reply_text(conn, 501, "text/plain",
	        "culvert has no heap profiler. What each process holds is in /proc/PID/smaps_rollup; the pods' processes\n"
	        "are named by /culvert/pods.\n");
}

static void serve_explain(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	explain_serve(ctx, conn, request);
}

static void serve_version(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	const struct broker *broker = ctx;
	struct buf body;
	struct json json;
	(void)request;
	buf_init(&body, VERSION_MAX);
	json_init(&json, &body, true);
	json_obj(&json);
	dump_version(&json, &broker->settings);
	json_obj_end(&json);
	web_reply(conn, 200, "application/json", body.data, body.len);
	buf_done(&body);
}

static void serve_index(void *ctx, struct web_conn *conn, const struct http_request *request);

static const struct web_route ADMIN_ROUTES[] = {
        {"/", 0, serve_index},
        {"/config_dump", 0, serve_dump},
        {"/logging", 0, serve_logging},
        {"/quitquitquit", POST_ONLY, serve_quit},
        {"/debug/pprof/profile", 0, serve_profile},
        {"/debug/pprof/heap", 0, serve_heap},
        {"/debug/pprof/heap/profiling", 0, serve_heap},
        {"/culvert/", GET_ONLY, dashboard_serve},
        {"/culvert/metrics", GET_ONLY, serve_metrics},
        {"/culvert/pods", GET_ONLY, serve_pods},
        {EXPLAIN_PATH, GET_ONLY, serve_explain},
        {"/culvert/version", GET_ONLY, serve_version},
        {"/culvert/state", GET_ONLY, serve_state},
        {"/culvert/dashboard.css", GET_ONLY, dashboard_serve},
        {"/culvert/dashboard.js", GET_ONLY, dashboard_serve},
};
#define ADMIN_ROUTE_CNT (sizeof(ADMIN_ROUTES) / sizeof(ADMIN_ROUTES[0]))

/* What the index says of each path, in its order; NULL = it has no row. */
static const char *const ADMIN_TEXTS[] = {
        NULL,
        "mesh, pods, certificates and settings as JSON",
        "log levels: show or change (POST)",
        "shut down gracefully (POST)",
        "CPU profile: says how to take one",
        "heap profile: says where to look",
        "heap profile: says where to look",
        "the pods of this node, live",
        "the metrics of 15020",
        "the pods of this node and their processes",
        "what would become of a connection: ?from=POD&amp;to=NAME&amp;port=N",
        "the version of this daemon",
        "connections, certificates and health as JSON",
        NULL,
        NULL,
};
_Static_assert(sizeof(ADMIN_TEXTS) / sizeof(ADMIN_TEXTS[0]) == ADMIN_ROUTE_CNT, "a text for each path");

static void serve_index(void *ctx, struct web_conn *conn, const struct http_request *request)
{
	struct buf body;
	(void)ctx;
	(void)request;
	buf_init(&body, INDEX_MAX);
	buf_add_str(&body, "<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>Ztunnel Admin</title></head>\n"
	                   "<body>\n<h1>Ztunnel Admin</h1>\n<table>\n");
	for (size_t i = 0; i < ADMIN_ROUTE_CNT; i++)
		if (ADMIN_TEXTS[i])
			buf_printf(&body, "<tr><td><a href=\"%s\">%s</a></td><td>%s</td></tr>\n",
			        ADMIN_ROUTES[i].path + 1, ADMIN_ROUTES[i].path + 1, ADMIN_TEXTS[i]);
	buf_add_str(&body, "</table>\n</body>\n</html>\n");
	web_reply(conn, 200, "text/html; charset=utf-8", body.data, body.len);
	buf_done(&body);
}

/* --- life ---------------------------------------------------------------- */

/* Listens on one address; the wildcard of IPv6 takes IPv4 too. */
static int listen_addr(const struct addr *addr, int *ret_fd)
{
	const int on = 1;
	const int v6_only = addr->ip.family == 6 && !ip_is_unspecified(&addr->ip);
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(addr, &sa);
	int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	        (addr->ip.family == 6 &&
	                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only)) < 0) ||
	        bind(fd, (const struct sockaddr *)&sa, len) < 0 || listen(fd, BACKLOG) < 0) {
		int r = -errno;
		fd_close(&fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* The same, waiting for a predecessor's socket to go. */
static int listen_patiently(const struct addr *addr, int *ret_fd)
{
	const struct timespec pause = {.tv_nsec = BIND_PAUSE_MS * 1000000l};
	int r = listen_addr(addr, ret_fd);
	for (int i = 0; i < BIND_TRIES && r == -EADDRINUSE; i++) {
		nanosleep(&pause, NULL);
		r = listen_addr(addr, ret_fd);
	}
	return r;
}

int admin_listen(uint16_t port, bool has_v6, int *ret_fd)
{
	const struct addr v4 = {.ip = {.family = 4}, .port = port};
	const struct addr v6 = {.ip = {.family = 6}, .port = port};
	int r = has_v6 ? listen_patiently(&v6, ret_fd) : -EAFNOSUPPORT;
	return r == -EAFNOSUPPORT ? listen_patiently(&v4, ret_fd) : r;
}

/* Where a socket listens, as text; "" for a unix socket. */
static const char *addr_of(int fd, char dst[ADDR_STR_MAX])
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct addr addr;
	dst[0] = '\0';
	if (getsockname(fd, (struct sockaddr *)&sa, &len) == 0 &&
	        addr_from_sockaddr((const struct sockaddr *)&sa, len, &addr) == 0)
		addr_format(&addr, dst);
	return dst;
}

/* What happens to a listener, in upstream's words; a unix socket is nobody's business. */
static void tell_listener(struct broker *broker, const char *event, int fd, const char *component)
{
	char addr[ADDR_STR_MAX];
	struct log_line line;
	if (!addr_of(fd, addr)[0] || !log_begin(&line, &broker->log, LOG_INFO, TARGET, event))
		return;
	log_bare(&line, "address", addr);
	log_str(&line, "component", component);
	log_end(&line);
}

int admin_serve(struct broker *broker, int fd, const char *component, const struct web_route *routes,
        size_t cnt, struct web **ret_web)
{
	int r = web_new(broker->io, fd, routes, cnt, broker, ret_web);
	if (r < 0)
		fd_close(&fd);
	else
		tell_listener(broker, "listener established", fd, component);
	return r;
}

void admin_end(struct broker *broker, struct web *web, const char *component)
{
	if (web)
		tell_listener(broker, "listener drained", web_fd(web), component);
	web_drain(web);
}

static int start_readiness(struct broker *broker)
{
	int fd;
	int r = admin_listen(ADMIN_READINESS_PORT, broker->settings.ipv6_enabled, &fd);
	if (r < 0)
		return r;
	return admin_serve(broker, fd, "readiness", READY_ROUTES,
	        sizeof(READY_ROUTES) / sizeof(READY_ROUTES[0]), &broker->readiness_web);
}

static int start_socket(struct broker *broker)
{
	char path[64];
	int fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/" ADMIN_SOCKET, broker->run_fd);
	int r = fd_unix_listen(path, SOCK_STREAM, BACKLOG, &fd);
	if (r < 0)
		return r;
	return admin_serve(broker, fd, "admin", ADMIN_ROUTES, ADMIN_ROUTE_CNT, &broker->admin_web);
}

/* The loopback addresses; the one of IPv6 where there is one (reference control.md 3.8). */
static int start_ports(struct broker *broker)
{
	const struct addr v4 = {
	        .ip = {.family = 4, .b = {127, 0, 0, 1}}, .port = broker->settings.admin_port};
	const struct addr v6 = {.ip = {.family = 6, .b = {[15] = 1}}, .port = broker->settings.admin_port};
	int fd;
	int r = listen_patiently(&v4, &fd);
	if (r == 0)
		r = admin_serve(broker, fd, "admin", ADMIN_ROUTES, ADMIN_ROUTE_CNT, &broker->admin_v4_web);
	if (r < 0 || !broker->settings.ipv6_enabled)
		return r;
	r = listen_patiently(&v6, &fd);
	if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT)
		return 0;
	return r < 0 ? r
	             : admin_serve(broker, fd, "admin", ADMIN_ROUTES, ADMIN_ROUTE_CNT, &broker->admin_v6_web);
}

int admin_start(struct broker *broker, struct err *err)
{
	int r = start_readiness(broker);
	if (r < 0)
		return err_sys(err, r, "readiness server starts");
	r = start_ports(broker);
	if (r < 0)
		return err_sys(err, r, "admin server starts");
	r = start_socket(broker);
	if (r < 0)
		return err_sys(err, r, "admin socket");
	return 0;
}

void admin_drain(struct broker *broker)
{
	admin_end(broker, broker->readiness_web, "readiness");
	admin_end(broker, broker->admin_v4_web, "admin");
	admin_end(broker, broker->admin_v6_web, "admin");
	admin_end(broker, broker->admin_web, "admin");
}

void admin_stop(struct broker *broker)
{
	struct web **const all[] = {
	        &broker->readiness_web, &broker->admin_v4_web, &broker->admin_v6_web, &broker->admin_web};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		web_free(*all[i]);
		*all[i] = NULL;
	}
}
