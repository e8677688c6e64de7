/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One question from its words to its answer; see explain.h. Changes nothing and asks no silo. */
#include "broker/explain.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/rand.h"
#include "broker/broker.h"
#include "broker/resolv_send.h"
#include "conn/web.h"
#include "dns/names.h"
#include "mesh/rbac.h"
#include "mesh/route.h"

/* Memory of one question: two records, and the policies of one of them. */
#define ARENA_MAX (8u << 20)
/* Bytes of an answer. */
#define BODY_MAX (1u << 20)
/* Room for a name of the question, and for a sentence of the answer. */
#define NAME_MAX_LEN 512
#define TEXT_MAX 1024

/* A question and what is known of its answer. */
struct explain {
	struct broker *broker;
	struct arena *arena;
	struct store_asker asker;
	char from[NAME_MAX_LEN], to[NAME_MAX_LEN];
	uint16_t port;
	const struct workload *self; /* who connects */
	bool is_local;               /* it is a pod of this node */
	bool is_captured;            /* and has a silo */
	struct addr dst;             /* what it connects to */
	struct view *dst_view;       /* what is there; NULL = nothing was looked up */
	bool has_route;
	struct route route;
	struct err refusal; /* code != 0: routing refuses */
	const struct workload *target;
	bool is_judged;
	struct rbac_result verdict;
	size_t checked_cnt;
	char reason[TEXT_MAX]; /* of the verdict, or of its absence */
};

/* --- who ----------------------------------------------------------------- */

static bool is_named(const char *text, const char *name, const char *ns)
{
	size_t name_len = strlen(name);
	size_t ns_len = strlen(ns);
	if (strcmp(text, name) == 0)
		return true;
	if (strncmp(text, name, name_len) == 0 && text[name_len] == '.' &&
	        strcmp(text + name_len + 1, ns) == 0)
		return true;
	return strncmp(text, ns, ns_len) == 0 && text[ns_len] == '/' && strcmp(text + ns_len + 1, name) == 0;
}

/* A search for a workload by what people call it. */
struct search {
	const char *text;
	struct ip ip; /* family 0 = text is no address */
	struct arena *arena;
	char *uid;    /* of the first hit; in the arena */
	unsigned cnt; /* hits */
};

static bool is_hit(const struct search *search, const struct workload *workload)
{
	for (size_t i = 0; search->ip.family && i < workload->ip_cnt; i++)
		if (ip_eq(&workload->ips[i], &search->ip))
			return true;
	return is_named(search->text, workload->name, workload->ns) ||
	       strcmp(search->text, workload->uid) == 0;
}

static bool look_at(void *ctx, const struct workload *workload)
{
	struct search *search = ctx;
	if (is_hit(search, workload) && search->cnt++ == 0)
		search->uid = arena_strdup(search->arena, workload->uid);
	return search->cnt < 2;
}

/* The one workload of that name, NULL with -ESRCH, -ENOTUNIQ or -ENOMEM. */
static int find_workload(
        struct explain *x, const char *text, const struct workload **ret_workload, struct err *err)
{
	struct search search = {.text = text, .arena = x->arena};
	if (ip_parse(text, strlen(text), &search.ip) < 0)
		search.ip.family = 0;
	int r = store_each_workload(x->broker->store, look_at, &search);
	if (r < 0)
		return err_set(err, r, "out of memory");
	if (search.cnt == 0)
		return err_set(err, -ESRCH, "there is no workload %s in the mesh", text);
	if (search.cnt > 1)
		return err_set(err, -EINVAL, "several workloads are called %s: say NAME.NAMESPACE", text);
	r = search.uid ? store_workload(x->broker->store, search.uid, x->arena, ret_workload) : -ENOMEM;
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

/* A pod of this node comes first: its silo is whom the question is about. */
static int find_local(struct explain *x)
{
	list_for_each(it, &x->broker->pods)
	{
		const struct pod *pod = list_entry(it, struct pod, node);
		const struct workload_info info = {
		        .name = pod->name, .ns = pod->ns, .service_account = pod->service_account};
		if (!is_named(x->from, pod->name, pod->ns) && strcmp(x->from, pod->uid) != 0)
			continue;
		if (store_own_workload(x->broker->store, &info, x->arena, &x->self) < 0)
			continue;
		struct hash_seed seed = {0};
		x->is_captured = pod->is_up;
		x->asker.seed = hash_bytes(&seed, pod->uid, strlen(pod->uid));
		return 0;
	}
	return -ESRCH;
}

static int find_from(struct explain *x, struct err *err)
{
	x->is_local = find_local(x) == 0;
	if (!x->is_local) {
		int r = find_workload(x, x->from, &x->self, err);
		if (r < 0)
			return r;
		x->is_captured = x->self->protocol == WORKLOAD_HBONE;
	}
	x->asker.workload = x->self;
	return 0;
}

/* --- to what ------------------------------------------------------------- */

/* For the walk over names. */
struct names {
	const struct store *store;
	const struct store_asker *asker;
	struct store_dns dns;
};

static bool accept_name(void *ctx, const char *host)
{
	const struct names *names = ctx;
	return store_has_name(names->store, names->asker, &names->dns, host);
}

/* The service that DNS of the workload answers with. NULL = none. */
static struct view *view_of_name(struct explain *x)
{
	const struct settings *settings = &x->broker->settings;
	struct names source = {.store = x->broker->store,
	        .asker = &x->asker,
	        .dns = {.domain = settings->cluster_domain, .preferred = settings->prefered_namespace}};
	struct dns_names names = {.ns = x->self->ns, .domain = settings->cluster_domain};
	const struct view_key key = view_key_name(x->to);
	struct resolv_search search;
	struct dns_match match;
	struct view *view = NULL;
	if (settings->dedicated)
		resolv_search(&search, &names);
	if (!dns_names_walk(&names, x->to, accept_name, &source, &match) ||
	        store_view_name(source.store, &x->asker, &source.dns, &key, match.host, &view) < 0)
		return NULL;
	return view;
}

/* An address that DNS would give for the service: a virtual one of our network, else an endpoint's. */
static bool address_of(const struct explain *x, const struct view *view, struct ip *ret_ip)
{
	const struct service *service = view->service;
	for (size_t i = 0; service && i < service->vip_cnt; i++) {
		if (strcmp(service->vips[i].network, x->self->network) == 0) {
			*ret_ip = service->vips[i].ip;
			return true;
		}
	}
	for (size_t i = 0; i < view->endpoint_cnt; i++) {
		if (view->endpoints[i].workload->ip_cnt > 0) {
			*ret_ip = view->endpoints[i].workload->ips[0];
			return true;
		}
	}
	return false;
}

static int find_to(struct explain *x, struct err *err)
{
	const struct workload *workload;
	x->dst.port = x->port;
	if (ip_parse(x->to, strlen(x->to), &x->dst.ip) == 0)
		return 0;
	struct view *view = view_of_name(x);
	bool has_address = view && address_of(x, view, &x->dst.ip);
	bool is_service = view && view->service;
	view_unref(view);
	if (has_address)
		return 0;
	if (is_service)
		return err_set(err, -ESRCH, "service %s has neither an address nor an endpoint", x->to);
	int r = find_workload(x, x->to, &workload, err);
	if (r == -ESRCH)
		return err_set(err, r,
		        "nothing in the mesh is called %s; outside names are not resolved here", x->to);
	if (r == 0 && workload->ip_cnt == 0)
		return err_set(err, -ESRCH, "workload %s has no address", x->to);
	if (r == 0)
		x->dst.ip = workload->ips[0];
	return r;
}

/* --- the way ------------------------------------------------------------- */

static int source_view(void *ctx, const struct view_key *key, struct view **ret_view)
{
	const struct explain *x = ctx;
	return store_view(x->broker->store, &x->asker, key, ret_view);
}

static void find_route(struct explain *x)
{
	const struct settings *settings = &x->broker->settings;
	const struct mesh_source source = {.ctx = x, .view = source_view};
	struct route_env env = {
	        .network = settings->network,
	        .has_socks = settings->socks5,
	        .local_app_tunnel = settings->localhost_app_tunnel,
	        .random = rand_u64(),
	};
	if (x->self->ip_cnt > 0)
		env.source_ip = x->self->ips[0];
	(void)store_view_address(x->broker->store, &x->asker, x->self->network, &x->dst.ip, &x->dst_view);
	int r = route_outbound(&env, &source, x->self, &x->dst, &x->route, &x->refusal);
	if (r < 0 && x->refusal.code == 0)
		err_set(&x->refusal, r, "%s", err_str(r));
	x->has_route = r == 0;
}

/* --- the verdict --------------------------------------------------------- */

static void cannot_judge(struct explain *x, const char *why)
{
	snprintf(x->reason, sizeof(x->reason), "%s", why);
}

/* Who decides on the connection, if it is known here. */
static bool find_target(struct explain *x)
{
	const struct route *route = &x->route;
	if (!x->has_route)
		cannot_judge(x, "the connection is refused before anything is dialled");
	else if (route->kind == ROUTE_DOUBLE_HBONE)
		cannot_judge(x, "the destination is in another network; its own node judges");
	else if (route->is_waypoint)
		cannot_judge(x, "the waypoint judges, by policies that are not on this node");
	else if (!route->workload)
		cannot_judge(x, "nothing is known of the destination: no proxy of the mesh judges");
	else if (route->workload->protocol != WORKLOAD_HBONE)
		cannot_judge(x, "the destination has no proxy of the mesh: nobody judges");
	else if (store_workload(x->broker->store, route->workload->uid, x->arena, &x->target) < 0)
		cannot_judge(x, "out of memory");
	else
		return true;
	return false;
}

/* The destination that policies there see: inside of a tunnel it is the authority. */
static struct addr judged_dst(const struct route *route)
{
	struct route_authority authority;
	if (route->kind == ROUTE_HBONE &&
	        route_authority_parse(route->authority, strlen(route->authority), &authority) == 0 &&
	        !authority.is_host)
		return (struct addr){.ip = authority.ip, .port = authority.port};
	return route->tcp_dst;
}

static void judge(struct explain *x)
{
	const struct policy *const *policies;
	struct rbac_conn conn = {.destination = judged_dst(&x->route)};
	if (store_policies(x->broker->store, x->target, x->arena, &policies, &x->checked_cnt, NULL, NULL) <
	        0) {
		cannot_judge(x, "out of memory");
		return;
	}
	if (x->self->ip_cnt > 0)
		conn.source = x->self->ips[0];
	conn.has_identity = x->route.kind == ROUTE_HBONE && x->is_captured;
	if (conn.has_identity)
		conn.identity = identity_of(x->self);
	x->verdict = rbac_check(policies, x->checked_cnt, &conn, NULL);
	x->is_judged = true;
	if (!x->verdict.is_allowed)
		rbac_reason(&x->verdict, x->reason, sizeof(x->reason));
	else if (x->verdict.policy)
		cannot_judge(x, "an allow policy matches");
	else
		cannot_judge(x, "no allow policy applies, and no deny policy matches");
}

/* --- the answer ---------------------------------------------------------- */

static const char *pair(struct explain *x, const char *first, char between, const char *second)
{
	const char *text = arena_printf(x->arena, "%s%c%s", first, between, second);
	return text ? text : "";
}

static void put_from(struct json *json, struct explain *x)
{
	char text[IDENTITY_STR_MAX];
	char ip[IP_STR_MAX];
	const struct identity identity = identity_of(x->self);
	json_key(json, "from");
	json_obj(json);
	json_kv_str(json, "address", x->self->ip_cnt ? ip_format(&x->self->ips[0], ip) : NULL);
	json_kv_str(json, "identity", identity_format(&identity, text, sizeof(text)) > 0 ? text : NULL);
	json_kv_bool(json, "isCaptured", x->is_captured);
	json_kv_bool(json, "isLocal", x->is_local);
	json_kv_str(json, "name", x->self->name);
	json_kv_str(json, "namespace", x->self->ns);
	json_kv_str(json, "node", x->self->node);
	json_obj_end(json);
}

static void put_to(struct json *json, struct explain *x)
{
	char text[ADDR_STR_MAX];
	const struct view *view = x->dst_view;
	const struct service *service = view ? view->service : NULL;
	const struct workload *workload = view ? view->workload : NULL;
	json_key(json, "to");
	json_obj(json);
	json_kv_str(json, "address", addr_format(&x->dst, text));
	json_kv_str(json, "asked", x->to);
	json_kv_str(json, "service", service ? pair(x, service->ns, '/', service->hostname) : NULL);
	json_kv_str(json, "workload", workload ? pair(x, workload->name, '.', workload->ns) : NULL);
	json_obj_end(json);
}

static void put_identities(struct json *json, const char *key, const struct route_identities *identities)
{
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < identities->cnt; i++)
		json_str(json, identities->texts[i]);
	json_arr_end(json);
}

static void put_route(struct json *json, struct explain *x)
{
	static const char *const kinds[] = {"passthrough", "tcp", "hbone", "doublehbone"};
	const struct route *route = &x->route;
	char text[ADDR_STR_MAX];
	json_key(json, "route");
	if (!x->has_route) {
		json_null(json);
		return;
	}
	json_obj(json);
	json_kv_str(json, "authority", route->authority[0] ? route->authority : NULL);
	json_kv_str(json, "connectTo", addr_format(&route->tcp_dst, text));
	json_kv_u64(json, "endpoints", x->dst_view && x->dst_view->service ? x->dst_view->endpoint_cnt : 0);
	put_identities(json, "innerIdentities", &route->inner);
	json_kv_bool(json, "isWaypoint", route->is_waypoint);
	json_kv_str(json, "kind", kinds[route->kind]);
	put_identities(json, "peerIdentities", &route->identities);
	json_kv_str(json, "service",
	        route->service ? pair(x, route->service->ns, '/', route->service->hostname) : NULL);
	json_kv_str(json, "workload",
	        route->workload ? pair(x, route->workload->name, '.', route->workload->ns) : NULL);
	json_obj_end(json);
}

static void put_policy(struct json *json, struct explain *x)
{
	const struct policy *policy = x->verdict.policy;
	json_key(json, "policy");
	json_obj(json);
	json_kv_u64(json, "checked", x->checked_cnt);
	json_kv_str(json, "decidedBy", policy ? pair(x, policy->ns, '/', policy->name) : NULL);
	json_key(json, "isAllowed");
	if (x->is_judged)
		json_bool(json, x->verdict.is_allowed);
	else
		json_null(json);
	json_kv_bool(json, "isJudged", x->is_judged);
	json_kv_str(json, "reason", x->reason);
	json_obj_end(json);
}

/* What somebody sees who can read the wire between the two nodes. */
static void put_observer(struct json *json, struct explain *x)
{
	char to[ADDR_STR_MAX], from[IP_STR_MAX] = "the workload", text[TEXT_MAX];
	addr_format(&x->route.tcp_dst, to);
	if (x->self->ip_cnt > 0)
		ip_format(&x->self->ips[0], from);
	if (!x->has_route)
		snprintf(text, sizeof(text), "nothing: no packet leaves the pod");
	else if (x->route.kind == ROUTE_HBONE || x->route.kind == ROUTE_DOUBLE_HBONE)
		snprintf(text, sizeof(text),
		        "TLS between %s and %s: addresses of both, sizes and times; neither the port behind the tunnel, nor names, identities or bytes%s",
		        from, to,
		        x->route.kind == ROUTE_DOUBLE_HBONE ? ", nor does the gateway see the bytes" : "");
	else
		snprintf(text, sizeof(text), "the application's bytes as they are, between %s and %s", from,
		        to);
	json_kv_str(json, "observer", text);
}

static void reply(struct explain *x, struct web_conn *conn)
{
	struct buf body;
	struct json json;
	buf_init(&body, BODY_MAX);
	json_init(&json, &body, true);
	json_obj(&json);
	json_kv_str(&json, "error", x->has_route ? NULL : x->refusal.text);
	put_from(&json, x);
	put_observer(&json, x);
	put_policy(&json, x);
	put_route(&json, x);
	put_to(&json, x);
	json_obj_end(&json);
	buf_add_u8(&body, '\n');
	if (body.err)
		web_reply_text(conn, 500, "text/plain", "the answer is too large\n");
	else
		web_reply(conn, 200, "application/json", body.data, body.len);
	buf_done(&body);
}

/* --- the question -------------------------------------------------------- */

static int read_question(const struct http_request *request, struct explain *x, struct err *err)
{
	char port[8] = "";
	char *end;
	if (http_query_get(request, "from", x->from, sizeof(x->from)) != 1 || !x->from[0] ||
	        http_query_get(request, "to", x->to, sizeof(x->to)) != 1 || !x->to[0] ||
	        http_query_get(request, "port", port, sizeof(port)) != 1)
		return err_set(err, -EINVAL, "ask with from=POD&to=NAME-OR-IP&port=N");
	unsigned long number = strtoul(port, &end, 10);
	if (port[0] < '0' || port[0] > '9' || *end || number == 0 || number > UINT16_MAX)
		return err_set(err, -EINVAL, "a port is a number from 1 to 65535");
	x->port = (uint16_t)number;
	/* DNS knows no case, and a final dot says only that nothing is to be searched. */
	for (char *at = x->to; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	size_t len = strlen(x->to);
	if (len > 1 && x->to[len - 1] == '.')
		x->to[len - 1] = '\0';
	return 0;
}

static int answer(struct explain *x, const struct http_request *request, struct err *err)
{
	int r = read_question(request, x, err);
	if (r == 0)
		r = x->arena ? find_from(x, err) : err_set(err, -ENOMEM, "out of memory");
	if (r == 0)
		r = find_to(x, err);
	if (r < 0)
		return r;
	find_route(x);
	if (find_target(x))
		judge(x);
	return 0;
}

void explain_serve(struct broker *broker, struct web_conn *conn, const struct http_request *request)
{
	struct explain x = {.broker = broker, .arena = arena_new(ARENA_MAX)};
	struct err err = {0};
	int r = answer(&x, request, &err);
	if (r == 0) {
		reply(&x, conn);
	} else {
		char text[ERR_TEXT_MAX + 1];
		snprintf(text, sizeof(text), "%.*s\n", ERR_TEXT_MAX - 1, err.text);
		web_reply_text(conn, r == -ESRCH ? 404 : r == -EINVAL ? 400 : 500, "text/plain", text);
	}
	route_done(&x.route);
	view_unref(x.dst_view);
	arena_unref(x.arena);
}
