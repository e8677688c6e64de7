/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `culvertctl explain FROM TO:PORT`: what would become of a connection, as /culvert/explain tells it. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/dump.h"
#include "ctl/emit.h"
#include "ctl/print.h"
#include "ctl/table.h"

/* Bytes of the question and of one line of the answer. */
#define URL_MAX 4000
#define LINE_MAX_LEN 2048

/* TO:PORT; the port is behind the last colon, brackets around an IPv6 address are taken off. */
static int make_path(const struct ctl *ctl, struct buf *path, struct err *err)
{
	const char *to = ctl->words[1];
	const char *colon = strrchr(to, ':');
	char host[512];
	size_t len = colon ? (size_t)(colon - to) : 0;
	bool has_brackets = len >= 2 && to[0] == '[' && colon[-1] == ']';
	if (len == 0 || len >= sizeof(host) || !colon[1] || (!has_brackets && memchr(to, ':', len)))
		return err_set(err, -EINVAL,
		        "TO:PORT is for example echo.shop:80, 10.0.0.1:80 or [fd00::1]:80, not %s", to);
	len -= has_brackets ? 2 : 0;
	memcpy(host, to + has_brackets, len);
	host[len] = '\0';
	buf_add_str(path, "/culvert/explain?from=");
	client_escape(path, ctl->words[0]);
	buf_add_str(path, "&to=");
	client_escape(path, host);
	buf_add_str(path, "&port=");
	client_escape(path, colon + 1);
	return buf_cstr(path) ? 0 : err_set(err, -EINVAL, "the names are too long");
}

/* A line of the answer: a word, and what is said of it. */
static void put(const struct ctl *ctl, const char *word, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void put(const struct ctl *ctl, const char *word, const char *fmt, ...)
{
	char text[LINE_MAX_LEN];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_make_printable(text);
	fprintf(ctl->out, "%-9s %s\n", word, text);
}

static bool is_true(const cJSON *object, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItem(object, key));
}

static void put_from(const struct ctl *ctl, const cJSON *from)
{
	put(ctl, "from", "%s.%s %s, %s%s", dump_str(from, "name"), dump_str(from, "namespace"),
	        dump_str(from, "address"),
	        is_true(from, "isCaptured") ? dump_str(from, "identity") : "not captured by the mesh",
	        is_true(from, "isLocal") ? "" : " (not on this node)");
}

static void put_to(const struct ctl *ctl, const cJSON *to)
{
	const char *service = dump_str(to, "service");
	const char *workload = dump_str(to, "workload");
	put(ctl, "to", "%s%s%s%s", dump_str(to, "address"),
	        service[0]    ? ", service "
	        : workload[0] ? ", workload "
	                      : ", nothing that the mesh knows",
	        service[0] ? service : workload, "");
}

static void put_identities(const struct ctl *ctl, const char *word, const cJSON *list)
{
	const cJSON *identity;
	cJSON_ArrayForEach(identity, list) if (cJSON_IsString(identity))
	        put(ctl, word, "must show %s", identity->valuestring);
}

static void put_route(const struct ctl *ctl, const cJSON *route)
{
	const char *kind = dump_str(route, "kind");
	const char *connect_to = dump_str(route, "connectTo");
	const char *authority = dump_str(route, "authority");
	const cJSON *endpoints = cJSON_GetObjectItem(route, "endpoints");
	if (strcmp(kind, "hbone") == 0)
		put(ctl, "route", "HBONE tunnel to %s, CONNECT %s", connect_to, authority);
	else if (strcmp(kind, "doublehbone") == 0)
		put(ctl, "route", "HBONE tunnel to the gateway %s, in it one to the destination, CONNECT %s",
		        connect_to, authority);
	else
		put(ctl, "route", "plain TCP to %s%s", connect_to,
		        strcmp(kind, "passthrough") == 0 ? ", because the mesh does not know it" : "");
	if (dump_str(route, "workload")[0])
		put(ctl, "peer", "%s%s", is_true(route, "isWaypoint") ? "waypoint " : "",
		        dump_str(route, "workload"));
	put_identities(ctl, "peer", cJSON_GetObjectItem(route, "peerIdentities"));
	put_identities(ctl, "inner", cJSON_GetObjectItem(route, "innerIdentities"));
	if (cJSON_IsNumber(endpoints) && endpoints->valuedouble > 1)
		put(ctl, "choice", "one of %.0f endpoints, chosen anew for each connection",
		        endpoints->valuedouble);
}

static void put_policy(const struct ctl *ctl, const cJSON *policy)
{
	const char *decided_by = dump_str(policy, "decidedBy");
	const char *reason = dump_str(policy, "reason");
	const cJSON *checked = cJSON_GetObjectItem(policy, "checked");
	if (!is_true(policy, "isJudged")) {
		put(ctl, "policy", "%s", reason);
		return;
	}
	put(ctl, "policy", "%s%s%s: %s (%.0f policies apply there)",
	        is_true(policy, "isAllowed") ? "allowed" : "denied", decided_by[0] ? " by " : "", decided_by,
	        reason, cJSON_IsNumber(checked) ? checked->valuedouble : 0);
}

static int print(const struct ctl *ctl, const struct answer *answer, struct err *err)
{
	const cJSON *json = answer->json;
	const cJSON *route = cJSON_GetObjectItem(json, "route");
	if (ctl->output == CTL_OUTPUT_JSON)
		return print_json(ctl->out, &answer->body, err);
	if (ctl->output == CTL_OUTPUT_YAML)
		return emit(ctl->out, json, ctl->output, err);
	if (!cJSON_IsObject(json))
		return err_set(err, -EPROTO, "culvertd's answer is no object");
	put_from(ctl, cJSON_GetObjectItem(json, "from"));
	put_to(ctl, cJSON_GetObjectItem(json, "to"));
	if (cJSON_IsObject(route))
		put_route(ctl, route);
	else
		put(ctl, "route", "refused: %s", dump_str(json, "error"));
	put_policy(ctl, cJSON_GetObjectItem(json, "policy"));
	put(ctl, "observer", "sees %s", dump_str(json, "observer"));
	return 0;
}

int cmd_explain(const struct ctl *ctl, struct err *err)
{
	struct answer answer;
	struct buf path;
	buf_init(&path, URL_MAX);
	int r = make_path(ctl, &path, err);
	if (r == 0)
		r = client_get(ctl, buf_cstr(&path), &answer, err);
	buf_done(&path);
	if (r < 0)
		return r;
	r = print(ctl, &answer, err);
	answer_done(&answer);
	return r;
}
