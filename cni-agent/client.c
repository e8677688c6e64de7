/* SPDX-License-Identifier: GPL-2.0-only */
/* Asks a serving agent, blocking. Must not know pods beyond what a table shows. */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "request.h"
#include "yaml/yaml.h"

/* Nodes of a list of LIMIT_PODS pods: keys, values, addresses, interfaces. */
#define LIST_NODES_MAX (LIMIT_PODS * 96)

/* How long a busy agent is waited for, ms: it drops those who ask nothing after 5 s. */
#define BUSY_MS 15000
/* Between two looks at a full backlog, ms: connect() of a unix socket has no event for it. */
#define BUSY_STEP_MS 20

/* Connects, waiting while the agent's backlog is full. */
static int connect_to(const char *path, int *ret_fd)
{
	const uint64_t until = clock_ms() + BUSY_MS;
	int rc;
	while ((rc = fd_unix_connect(path, SOCK_STREAM, ret_fd)) == -EAGAIN && clock_ms() < until)
		poll(NULL, 0, BUSY_STEP_MS);
	return rc;
}

static int wait_for(int fd, short events)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};
	while (poll(&poll_fd, 1, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int send_all(int fd, const struct buf *request)
{
	size_t at = 0;
	while (at < request->len) {
		ssize_t n = send(fd, request->data + at, request->len - at, MSG_NOSIGNAL);
		int rc = n < 0 && errno == EAGAIN ? wait_for(fd, POLLOUT) : n < 0 ? -errno : 0;
		if (rc < 0)
			return rc;
		at += n > 0 ? (size_t)n : 0;
	}
	return shutdown(fd, SHUT_WR) < 0 ? -errno : 0;
}

static int receive_all(int fd, struct buf *answer)
{
	for (;;) {
		char bytes[16384];
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
		int rc = 0;
		if (n == 0)
			return answer->len > 0 ? 0 : -ECONNRESET;
		if (n < 0)
			rc = errno == EAGAIN ? wait_for(fd, POLLIN) : -errno;
		else
			rc = buf_add(answer, bytes, (size_t)n);
		if (rc < 0)
			return rc;
	}
}

int client_ask(const char *path, const struct buf *request, struct buf *answer, struct err *err)
{
	int fd = -1;
	int rc = connect_to(path, &fd);
	if (rc < 0)
		return err_sys(err, rc, "no agent at %s", path);
	rc = send_all(fd, request);
	/* Refused early, it has answered although it did not read all. */
	if (rc == 0 || rc == -EPIPE)
		rc = receive_all(fd, answer);
	fd_close(&fd);
	return rc < 0 ? err_sys(err, rc, "the agent at %s did not answer", path) : 0;
}

static int parse(const struct buf *answer, struct yaml_doc **ret_doc, struct err *err)
{
	const struct yaml_limits limits = {
	        .text_max = ANSWER_MAX, .node_max = LIST_NODES_MAX, .depth_max = 8};
	return yaml_parse("answer", (const char *)answer->data, answer->len, &limits, ret_doc, err);
}

/* The text under a key, "" when it is absent. */
static const char *text_of(const struct yaml_node *map, const char *key)
{
	const char *text = "";
	const struct yaml_node *node = yaml_get(map, key);
	if (node)
		(void)yaml_str(node, &text, NULL);
	return text;
}

static int refusal(const struct yaml_node *root, struct err *err)
{
	const char *outcome = text_of(root, "outcome");
	if (strcmp(outcome, "done") == 0)
		return 0;
	if (strcmp(outcome, "pending") == 0)
		return err_set(
		        err, -ECANCELED, "%s; the pod is pending and tried again", text_of(root, "error"));
	if (strcmp(outcome, "refused") == 0)
		return err_set(err, -ECANCELED, "%s", text_of(root, "error"));
	return err_set(err, -EINVAL, "the agent's answer is not understood");
}

int client_outcome(const struct buf *answer, struct err *err)
{
	struct yaml_doc *doc;
	int rc = parse(answer, &doc, err);
	if (rc < 0)
		return rc;
	rc = refusal(yaml_root(doc), err);
	yaml_doc_free(doc);
	return rc;
}

static void put_row(const struct yaml_node *pod, struct buf *out)
{
	char ips[256] = "";
	size_t at = 0;
	const struct yaml_node *list = yaml_get(pod, "ips");
	for (const struct yaml_node *ip = list ? yaml_first(list) : NULL; ip && at < sizeof(ips);
	        ip = yaml_next(ip)) {
		const char *text = "";
		(void)yaml_str(ip, &text, NULL);
		int n = snprintf(ips + at, sizeof(ips) - at, "%s%s", at ? "," : "", text);
		at += n > 0 ? (size_t)n : 0;
	}
	buf_printf(out, "%-36s  %-16s  %-24s  %-9s  %-30s  %s\n", text_of(pod, "uid"),
	        text_of(pod, "namespace"), text_of(pod, "name"), text_of(pod, "state"), ips,
	        text_of(pod, "error"));
}

int client_table(const struct buf *answer, struct buf *out, struct err *err)
{
	struct yaml_doc *doc;
	int rc = parse(answer, &doc, err);
	if (rc < 0)
		return rc;
	const struct yaml_node *root = yaml_root(doc);
	if (yaml_kind(root) != YAML_LIST) {
		rc = refusal(root, err);
	} else {
		buf_printf(out, "%-36s  %-16s  %-24s  %-9s  %-30s  %s\n", "UID", "NAMESPACE", "NAME", "STATE",
		        "IPS", "ERROR");
		for (const struct yaml_node *pod = yaml_first(root); pod; pod = yaml_next(pod))
			put_row(pod, out);
		rc = out->err ? err_sys(err, out->err, "table") : 0;
	}
	yaml_doc_free(doc);
	return rc;
}
