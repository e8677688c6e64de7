/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a mesh file. What is accepted goes into a store twice (the
 * second time must change nothing), is walked, and every workload of it routes
 * to and receives for every address there is.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/local_file.h"
#include "mesh/rbac.h"
#include "mesh/route.h"
#include "mesh/store.h"

#define TARGETS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Everything that routing may be asked for. */
struct run {
	struct store *store;
	const struct workload *self;
	struct addr targets[TARGETS_MAX];
	size_t target_cnt;
};

static int view(void *ctx, const struct view_key *key, struct view **ret_view)
{
	struct run *run = ctx;
	struct store_asker asker = {.workload = run->self};
	return store_view(run->store, &asker, key, ret_view);
}

static void add_target(struct run *run, const struct ip *ip, uint16_t port)
{
	if (run->target_cnt < TARGETS_MAX)
		run->targets[run->target_cnt++] = (struct addr){.ip = *ip, .port = port};
}

static bool collect_workload(void *ctx, const struct workload *w)
{
	for (size_t i = 0; i < w->ip_cnt; i++)
		add_target(ctx, &w->ips[i], 80);
	return true;
}

static bool collect_service(
        void *ctx, const struct service *s, const struct service_endpoint *eps, size_t cnt)
{
	for (size_t i = 0; i < s->vip_cnt; i++)
		add_target(ctx, &s->vips[i].ip, s->port_cnt ? s->ports[0].service_port : 80);
	return true;
}

static void judge(struct run *run, const struct addr *dst)
{
	struct arena *arena = arena_new(1 << 24);
	struct rbac_conn conn = {.source = dst->ip, .destination = *dst, .has_identity = true};
	const struct policy *const *policies;
	size_t cnt;

	if (!arena)
		abort();
	conn.identity = identity_of(run->self);
	if (store_policies(run->store, run->self, arena, &policies, &cnt, NULL, NULL) == 0)
		(void)rbac_check(policies, cnt, &conn, NULL);
	arena_unref(arena);
}

static bool route_all(void *ctx, const struct workload *self)
{
	struct run *run = ctx;
	struct mesh_source source = {.ctx = run, .view = view};
	struct route_env env = {.network = self->network, .random = 12345, .local_app_tunnel = true};

	run->self = self;
	for (size_t i = 0; i < run->target_cnt; i++) {
		struct route out;
		struct route_inbound in;
		int status;
		char text[ADDR_STR_MAX];
		struct route_request request = {.local = run->targets[0], .forwarded_host = self->hostname};
		env.source_ip = run->targets[i].ip;
		if (route_outbound(&env, &source, self, &run->targets[i], &out, NULL) == 0)
			route_done(&out);
		request.authority = addr_format(&run->targets[i], text);
		request.authority_len = strlen(text);
		if (route_inbound(&env, &source, self, &request, &in, &status, NULL) == 0)
			route_inbound_done(&in);
		judge(run, &run->targets[i]);
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct local_file *file;
	struct err err = {0};
	struct run run = {.store = store_new("")};

	if (!run.store)
		abort();
	if (local_file_parse("fuzz", (const char *)data, len, &file, &err) < 0) {
		if (err.code >= 0 || err.text[0] == 0)
			abort();
		store_free(run.store);
		return 0;
	}
	if (local_file_apply(file, run.store, &err) == 0) {
		struct store_counts before = store_counts(run.store), after;
		if (local_file_apply(file, run.store, &err) < 0)
			abort();
		after = store_counts(run.store);
		if (memcmp(&before, &after, sizeof(before)) != 0)
			abort();
		(void)store_each_workload(run.store, collect_workload, &run);
		(void)store_each_service(run.store, collect_service, &run);
		(void)store_each_workload(run.store, route_all, &run);
	}
	local_file_free(file);
	store_free(run.store);
	return 0;
}
