/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decisions from files: <case>.yaml is a mesh file, <case>.in a list of
 * questions, <case>.ok what must come out. A question per line, see
 * tests/golden/mesh/README.md. With CULVERT_GOLDEN_UPDATE set the answers are
 * written instead of compared: read the difference before you keep it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"
#include "mesh/lb.h"
#include "mesh/rbac.h"
#include "mesh_fixture.h"

#define ARGS_MAX 8
#define DRAWS 4000

struct golden {
	struct fixture f;
	const char *dir;
	const char *avoid[ARGS_MAX]; /* what f.env.avoid points to */
	struct buf out;
};

static void load(struct golden *g, const char *name)
{
	char path[1024];
	struct buf text;

	snprintf(path, sizeof(path), "%s/%s", g->dir, name);
	buf_init(&text, 1 << 20);
	if (file_read(path, &text) < 0) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(2);
	}
	fixture_load(&g->f, name, buf_cstr(&text));
	buf_done(&text);
	if (g->f.self)
		fixture_self(&g->f, g->f.self->uid);
}

static void print_identities(struct golden *g, const char *name, const struct route_identities *ids)
{
	for (size_t i = 0; i < ids->cnt; i++)
		buf_printf(&g->out, " %s=%s", name, ids->texts[i]);
}

static void answer_out(struct golden *g, const char *dst)
{
	static const char *const kinds[] = {"PASSTHROUGH", "TCP", "HBONE", "DOUBLEHBONE"};
	char text[ADDR_STR_MAX];
	struct route r;
	struct err err = {0};

	if (fixture_outbound(&g->f, dst, &r, &err) < 0) {
		buf_printf(&g->out, "deny: %s\n", err.text);
		return;
	}
	buf_printf(&g->out, "%s %s", kinds[r.kind], addr_format(&r.tcp_dst, text));
	if (r.authority[0])
		buf_printf(&g->out, " authority=%s", r.authority);
	buf_printf(&g->out, " workload=%s service=%s%s", r.workload ? r.workload->name : "-",
	        r.service ? r.service->hostname : "-", r.is_waypoint ? " waypoint" : "");
	print_identities(g, "peer", &r.identities);
	print_identities(g, "inner", &r.inner);
	buf_add_str(&g->out, "\n");
	route_done(&r);
}

/* A count for one destination among many draws. */
struct tally {
	char text[ADDR_STR_MAX];
	unsigned cnt;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct tally *)a)->text, ((const struct tally *)b)->text);
}

/* Shares in percent, rounded to 5, so that any fair generator gives the same. */
static void answer_spread(struct golden *g, const char *dst)
{
	struct tally tallies[16] = {0};
	size_t n = 0, denied = 0;

	for (unsigned i = 0; i < DRAWS; i++) {
		struct route r;
		char text[ADDR_STR_MAX];
		g->f.env.random = lb_mix(42, i);
		if (fixture_outbound(&g->f, dst, &r, NULL) < 0) {
			denied++;
			continue;
		}
		addr_format(&r.tcp_dst, text);
		route_done(&r);
		size_t at = 0;
		while (at < n && strcmp(tallies[at].text, text) != 0)
			at++;
		if (at == n)
			strcpy(tallies[n++].text, text);
		tallies[at].cnt++;
	}
	qsort(tallies, n, sizeof(*tallies), by_text);
	for (size_t i = 0; i < n; i++)
		buf_printf(&g->out, "%s~%u%% ", tallies[i].text,
		        (tallies[i].cnt * 100 + DRAWS * 5 / 2) / DRAWS / 5 * 5);
	buf_printf(&g->out, "denied~%zu%%\n", (denied * 100 + DRAWS * 5 / 2) / DRAWS / 5 * 5);
	g->f.env.random = 1;
}

static void print_inbound(struct golden *g, struct route_inbound *r)
{
	char text[ADDR_STR_MAX];

	buf_printf(&g->out, "to %s", addr_format(&r->upstream, text));
	buf_printf(&g->out, " rbac=%s", addr_format(&r->rbac_dst, text));
	if (r->is_loopback)
		buf_add_str(&g->out, " loopback");
	if (r->has_proxy_header)
		buf_printf(&g->out, " proxy=%s", addr_format(&r->proxy_dst, text));
	buf_printf(&g->out, " service=%s\n", r->service ? r->service->hostname : "-");
	route_inbound_done(r);
}

static void answer_in(struct golden *g, const char *local, const char *authority, const char *host)
{
	struct route_inbound r;
	struct err err = {0};
	int status = 0;

	if (fixture_inbound(&g->f, local, authority, host, &r, &status, &err) < 0)
		buf_printf(&g->out, "%d: %s\n", status, err.text);
	else
		print_inbound(g, &r);
}

static void answer_plain(struct golden *g, const char *dst)
{
	struct route_inbound r;
	struct err err = {0};

	if (fixture_plaintext(&g->f, dst, &r, &err) < 0)
		buf_printf(&g->out, "deny: %s\n", err.text);
	else
		print_inbound(g, &r);
}

static void on_event(void *ctx, enum rbac_event event, const struct policy *policy)
{
	struct golden *g = ctx;
	buf_printf(
	        &g->out, " [%s%s%s]", rbac_event_text(event), policy ? " " : "", policy ? policy->name : "");
}

static void on_missing(void *ctx, const char *key)
{
	struct golden *g = ctx;
	buf_printf(&g->out, "missing %s, ", key);
}

static void answer_rbac(struct golden *g, const char *source, const char *identity, const char *dst)
{
	struct rbac_conn conn = {.source = fixture_ip(source), .destination = fixture_addr(dst)};
	struct rbac_observer observer = {.ctx = g, .event = on_event};
	const struct policy *const *policies;
	size_t cnt;
	char reason[256];
	struct arena *arena = arena_new(1 << 20);

	conn.has_identity = identity_parse(identity, strlen(identity), &conn.identity) == 0;
	if (!arena || store_policies(g->f.store, g->f.self, arena, &policies, &cnt, on_missing, g) < 0)
		exit(2);
	buf_printf(&g->out, "%zu policies:", cnt);
	struct rbac_result result = rbac_check(policies, cnt, &conn, &observer);
	rbac_reason(&result, reason, sizeof(reason));
	buf_printf(&g->out, " %s%s%s\n", result.is_allowed ? "allow" : "deny", reason[0] ? ": " : "", reason);
	arena_unref(arena);
}

static void set_dns(struct golden *g, char **args, size_t cnt)
{
	size_t n = g->f.name_cnt++;

	g->f.names[n].name = arena_strdup(g->f.arena, args[1]);
	g->f.names[n].cnt = 0;
	for (size_t i = 2; i < cnt && i < 6; i++) {
		if (strcmp(args[i], "fail") == 0)
			g->f.names[n].rc = -113;
		else
			g->f.names[n].ips[g->f.names[n].cnt++] = fixture_ip(args[i]);
	}
}

static void set_avoid(struct golden *g, char **args, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++)
		g->avoid[i - 1] = arena_strdup(g->f.arena, args[i]);
	g->f.env.avoid = g->avoid;
	g->f.env.avoid_cnt = cnt - 1;
}

static bool set(struct golden *g, char **args, size_t cnt)
{
	const char *value = cnt > 1 ? args[1] : "";

	if (strcmp(args[0], "self") == 0)
		fixture_self(&g->f, value);
	else if (strcmp(args[0], "network") == 0)
		g->f.env.network = arena_strdup(g->f.arena, value);
	else if (strcmp(args[0], "socks") == 0)
		g->f.env.has_socks = strcmp(value, "on") == 0;
	else if (strcmp(args[0], "local-tunnel") == 0)
		g->f.env.local_app_tunnel = strcmp(value, "on") == 0;
	else if (strcmp(args[0], "source") == 0)
		g->f.env.source_ip = fixture_ip(value);
	else if (strcmp(args[0], "load") == 0)
		load(g, value);
	else if (strcmp(args[0], "dns") == 0)
		set_dns(g, args, cnt);
	else if (strcmp(args[0], "avoid") == 0)
		set_avoid(g, args, cnt);
	else
		return false;
	return true;
}

static void answer(struct golden *g, char **args, size_t cnt)
{
	if (set(g, args, cnt))
		return;
	if (strcmp(args[0], "out") == 0 && cnt == 2)
		answer_out(g, args[1]);
	else if (strcmp(args[0], "spread") == 0 && cnt == 2)
		answer_spread(g, args[1]);
	else if (strcmp(args[0], "in") == 0 && cnt >= 3)
		answer_in(g, args[1], args[2], cnt > 3 ? args[3] : "");
	else if (strcmp(args[0], "plain") == 0 && cnt == 2)
		answer_plain(g, args[1]);
	else if (strcmp(args[0], "rbac") == 0 && cnt == 4)
		answer_rbac(g, args[1], args[2], args[3]);
	else
		buf_add_str(&g->out, "unknown question\n");
}

static void run(struct golden *g, char *text)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *args[ARGS_MAX], *save_arg = NULL;
		size_t cnt = 0;
		buf_printf(&g->out, "%s%s\n", line[0] == '#' ? "" : "> ", line);
		if (line[0] == '#')
			continue;
		for (char *a = strtok_r(line, " ", &save_arg); a && cnt < ARGS_MAX;
		        a = strtok_r(NULL, " ", &save_arg))
			args[cnt++] = a;
		if (cnt)
			answer(g, args, cnt);
	}
}

static int compare(const char *path, struct buf *got)
{
	struct buf want;
	int rc = 0;

	if (getenv("CULVERT_GOLDEN_UPDATE"))
		return file_write(path, got->data, got->len, 0644) < 0 ? 2 : 0;
	buf_init(&want, 1 << 20);
	if (file_read(path, &want) < 0 || want.len != got->len ||
	        memcmp(want.data, got->data, got->len) != 0) {
		fprintf(stderr, "%s differs; got:\n%s", path, buf_cstr(got));
		rc = 1;
	}
	buf_done(&want);
	return rc;
}

int main(int argc, char **argv)
{
	struct golden g = {.dir = argc > 2 ? argv[1] : "."};
	char name[256], path[1024];
	struct buf questions;

	if (argc != 3)
		return 2;
	fixture_init(&g.f);
	buf_init(&g.out, 1 << 20);
	buf_init(&questions, 1 << 20);
	snprintf(name, sizeof(name), "%s.yaml", argv[2]);
	load(&g, name);
	snprintf(path, sizeof(path), "%s/%s.in", argv[1], argv[2]);
	if (file_read(path, &questions) < 0)
		return 2;
	run(&g, (char *)(uintptr_t)buf_cstr(&questions));
	snprintf(path, sizeof(path), "%s/%s.ok", argv[1], argv[2]);
	int rc = compare(path, &g.out);
	buf_done(&questions);
	buf_done(&g.out);
	fixture_done(&g.f);
	return rc;
}
