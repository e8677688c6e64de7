/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * culvert-silo: one workload's proxy, executed by the warden inside the pod's
 * network namespace. Wires the parts together and runs the loop; everything
 * else happens elsewhere.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/proc.h"
#include "silo/admin.h"
#include "silo/access.h"
#include "silo/broker_link.h"
#include "silo/metrics.h"
#include "silo/dns.h"
#include "silo/recorder.h"
#include "silo/revocation.h"
#include "silo/sandbox.h"
#include "silo/silo.h"
#include "silo/track.h"
#include "silo/warden_link.h"

/* Descriptor of the channel that the silo is born with. */
#define BIRTH_FD 3
/* Names of the workload: a uid and three Kubernetes names. */
#define NAMES_MAX 8192
/* Receive credit of all tunnels together, bytes: what peers may have in flight towards this workload. */
#define H2_BUDGET_MAX (64u << 20)

extern char **environ;

static bool ask_view(void *ctx, const struct view_key *key)
{
	struct silo *silo = ctx;
	return broker_link_ask_view(silo->broker, key);
}

static void evict_view(void *ctx, const struct view_key *key)
{
	struct silo *silo = ctx;
	broker_link_evict(silo->broker, key);
}

static const struct cache_ops CACHE_OPS = {.ask = ask_view, .evict = evict_view};

static void policies_changed(struct fetch_watch *watch, void *value)
{
	(void)value;
	track_recheck(list_entry(watch, struct silo, policies_watch));
}

/* Everything that needs files or set-up calls comes before the sandbox. */
static int prepare(struct silo *silo, struct err *err)
{
	int r = settings_load(&silo->settings, environ, PARAM_S, err);
	if (r < 0)
		return r;
	r = revocation_init(silo);
	if (r < 0)
		return err_set(err, r, "%s", err_str(r));
	r = log_init(
	        &silo->log, silo->settings.rust_log, silo->settings.log_json, broker_link_log, silo, err);
	if (r < 0)
		return r;
	r = access_limit(&silo->log, silo->settings.access_log, err);
	if (r < 0)
		return r;
	r = proc_start_time(getpid(), &silo->start_time);
	if (r < 0)
		return err_sys(err, r, "/proc/self/stat");
	const struct io_opts opts = {
	        .baseline61 = silo->settings.io_baseline != 0 && silo->settings.io_baseline <= 6001};
	r = io_new(&opts, &silo->io, err);
	if (r < 0)
		return r;
	silo->arena = arena_new(NAMES_MAX);
	if (!silo->arena || h2_env_new(H2_BUDGET_MAX, &silo->h2_env) < 0 ||
	        broker_link_new(silo, &silo->broker) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static void init_parts(struct silo *silo)
{
	silo->uid = "";
	silo->info = (struct workload_info){.name = "", .ns = "", .service_account = ""};
	silo->netns_fd = -1;
	list_init(&silo->conns);
	list_init(&silo->tracked);
	list_init(&silo->outbounds);
	list_init(&silo->deliveries);
	list_init(&silo->walks);
	context_init(silo);
	cache_init(&silo->cache, silo->io, LIMIT_SILO_VIEWS, &CACHE_OPS, silo);
	silo->cache.observer = &silo->context.observer;
	resolver_init(&silo->resolver, silo);
	pool_init(&silo->pool, silo);
	dial_ports_init(&silo->dial_ports);
}

/* Nothing has happened for a while: working memory shrinks to what an idle silo needs. */
static void idle(void *ctx)
{
	struct silo *silo = ctx;
	h2_env_rest(silo->h2_env);
	mem_forget(&silo->scratch, sizeof(silo->scratch));
}

/* Reverse order of making; the kernel would do most of it, a leak checker wants to see it. */
static void dispose(struct silo *silo)
{
	admin_stop(silo);
	warden_link_free(silo->warden);
	dns_stop(silo->dns);
	pool_done(&silo->pool);
	metrics_done(silo);
	recorder_done(silo);
	cache_done(&silo->cache);
	resolver_done(&silo->resolver);
	context_done(silo);
	broker_link_free(silo->broker);
	silo->broker = NULL;
	/* Closes that are still under way end here. */
	for (int i = 0; i < 8 && io_in_flight(silo->io) > 0; i++)
		io_turn(silo->io, false);
	revocation_done(silo);
	h2_env_free(silo->h2_env);
	io_free(silo->io);
	arena_unref(silo->arena);
	log_done(&silo->log);
	settings_done(&silo->settings);
	if (silo->netns_fd >= 0)
		close(silo->netns_fd);
}

static int serve(struct silo *silo, struct err *err)
{
	struct sandbox_state state;
	int r = sandbox_enter(&state, err);
	if (r < 0)
		return r;
	init_parts(silo);
	io_on_idle(silo->io, idle, silo);
	fetch_watch_add(&silo->context.policies, &silo->policies_watch, policies_changed);
	r = warden_link_new(silo, BIRTH_FD, &silo->warden);
	if (r < 0)
		return err_sys(err, r, "channel to the warden");
	log_msg(&silo->log, LOG_DEBUG, "culvert::silo", "sandboxed: landlock %d, seccomp %s",
	        state.landlock_abi, state.has_seccomp ? "on" : "off");
	r = io_run(silo->io);
	return r < 0 ? err_sys(err, r, "ring") : 0;
}

int main(void)
{
	struct err err = {0};
	/* One arena and early return of free memory: a silo is small and must become small again. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, 64 * 1024);
	struct silo *silo = calloc(1, sizeof(*silo));
	if (!silo) {
		fprintf(stderr, "culvert-silo: out of memory\n");
		return 1;
	}
	int r = prepare(silo, &err);
	if (r == 0)
		r = serve(silo, &err);
	if (r < 0) {
		/* The warden reads what a failed start writes here. */
		fprintf(stderr, "culvert-silo: %s\n", err.text);
		return 1;
	}
	dispose(silo);
	free(silo);
	return 0;
}
