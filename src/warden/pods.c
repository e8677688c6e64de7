/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of each pod. A start that fails leaves nothing behind but the entry
 * that is tried again; a silo that is not wanted any more is detached at once
 * and watched until it is dead. Must not know messages of the node agent.
 */
#include "warden/pods.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "culvert/limits.h"
#include "warden/pods_int.h"

#define TARGET "ztunnel::inpod::statemanager"

static const struct ward_events ward_events;
static const struct ward_events dismissed_events;

static struct map_key pod_key(const void *item)
{
	return map_key_str(((const struct pod *)item)->uid);
}

void pods_init(struct pods *pods, const struct ward_env *env, struct broker_link *broker,
        const struct netns_guard *guard, const struct pods_events *events, void *ctx)
{
	*pods = (struct pods){.env = env, .broker = broker, .guard = guard, .events = events, .ctx = ctx};
	map_init(&pods->map, LIMIT_PODS, pod_key);
	list_init(&pods->dirty);
	list_init(&pods->ending);
}

struct pod *pods_find(const struct pods *pods, const char *uid)
{
	return map_get_str(&pods->map, uid);
}

size_t pods_failed_cnt(const struct pods *pods)
{
	return pods->failed_cnt;
}

/* --- a pod's memory --- */

static void free_info(struct workload_info *info)
{
	mem_free((void *)(uintptr_t)info->name);
	mem_free((void *)(uintptr_t)info->ns);
	mem_free((void *)(uintptr_t)info->service_account);
	*info = (struct workload_info){0};
}

static int copy_info(const struct workload_info *src, struct workload_info *ret_info)
{
	struct workload_info info = {.name = mem_strdup(src->name),
	        .ns = mem_strdup(src->ns),
	        .service_account = mem_strdup(src->service_account)};
	if (!info.name || !info.ns || !info.service_account) {
		free_info(&info);
		return -ENOMEM;
	}
	free_info(ret_info);
	*ret_info = info;
	return 0;
}

void pod_free(struct pod *pod)
{
	list_del(&pod->dirty);
	loop_cancel(pod->pods->env->loop, &pod->timer);
	fd_close(&pod->netns_fd);
	fd_close(&pod->broker_fd);
	free_info(&pod->info);
	mem_free(pod->uid);
	mem_free(pod);
}

static void on_restart_due(struct timer *timer, uint64_t now);

static struct pod *pod_new(struct pods *pods, const char *uid)
{
	struct pod *pod = mem_zalloc(1, sizeof(*pod));
	if (!pod)
		return NULL;
	pod->pods = pods;
	pod->netns_fd = -1;
	pod->broker_fd = -1;
	pod->backoff = BACKOFF_RESTART;
	list_init(&pod->dirty);
	timer_init(&pod->timer, on_restart_due);
	rundir_pod_name(uid, pod->name);
	pod->uid = mem_strdup(uid);
	if (!pod->uid || map_put(&pods->map, pod, NULL) < 0) {
		pod_free(pod);
		return NULL;
	}
	return pod;
}

/* --- start and end of silos --- */

static void set_state(struct pod *pod, enum pod_state state, const char *reason)
{
	pod->state = state;
	snprintf(pod->reason, sizeof(pod->reason), "%s", reason);
	pods_mark(pod);
}

static void set_failed(struct pod *pod, bool has_failed)
{
	struct pods *pods = pod->pods;
	if (pod->has_failed == has_failed)
		return;
	pod->has_failed = has_failed;
	pods->failed_cnt += has_failed ? 1 : (size_t)-1;
}

/* Lets go of the pod's silo, whatever becomes of it. */
static void forget_ward(struct pod *pod)
{
	fd_close(&pod->broker_fd);
	rundir_forget(pod->pods->env->run->fd, pod->socket);
	pod->ward = NULL;
}

/* The silo gets its farewell without a pod. */
static void dismiss_ward(struct pod *pod, bool is_graceful, uint64_t deadline_ms)
{
	struct ward *ward = pod->ward;
	if (!ward)
		return;
	ward->owner = pod->pods;
	ward->events = &dismissed_events;
	list_add_tail(&pod->pods->ending, &ward->node);
	forget_ward(pod);
	ward_end(ward, is_graceful, deadline_ms);
}

/* A start has ended: the agent is told if it waits for it. */
static void report(struct pod *pod, const char *error)
{
	struct pods *pods = pod->pods;
	bool was_asked = pod->is_asked;
	pod->is_asked = false;
	set_failed(pod, error != NULL);
	if (was_asked)
		pods->events->started(pods->ctx, pod->uid, error);
	pods->events->changed(pods->ctx);
}

/* The last step of a failed start: asked for by the agent it is his to see and to retry, else it is a crash
 * of its own. */
static void on_start_failed(struct pod *pod, const char *why)
{
	char text[ERR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", why);
	log_msg(pod->pods->env->log, LOG_WARN, TARGET, "starting the proxy of pod %s/%s (%s) failed: %s",
	        pod->info.ns, pod->info.name, pod->uid, text);
	if (pod->is_asked) {
		set_state(pod, POD_PENDING, text);
		report(pod, text);
		return;
	}
	set_state(pod, POD_CRASHED, text);
	loop_after(pod->pods->env->loop, &pod->timer, backoff_take(&pod->backoff));
}

static int start_ward(struct pod *pod, struct err *err)
{
	struct pods *pods = pod->pods;
	int silo_fd = -1;
	int rc = pod->mode == IPC_SILO_POD ? netns_check(pods->guard, pod->netns_fd, err) : 0;
	if (rc < 0)
		return rc;
	rundir_socket_name(pod->name, pod->socket);
	/* Without a broker the silo is given its channel later. */
	(void)broker_link_pair(pods->broker, &silo_fd, &pod->broker_fd);
	struct ward_birth birth = {.uid = pod->uid,
	        .info = &pod->info,
	        .run_name = pod->name,
	        .socket = pod->socket,
	        .netns_fd = pod->netns_fd,
	        .is_first = !pod->has_served,
	        .mode = pod->mode,
	        .broker_fd = silo_fd};
	rc = ward_start(pods->env, &birth, &ward_events, pod, &pod->ward, err);
	fd_close(&silo_fd);
	if (rc < 0)
		fd_close(&pod->broker_fd);
	return rc;
}

static void try_start(struct pod *pod)
{
	struct err err = {0};
	loop_cancel(pod->pods->env->loop, &pod->timer);
	int rc = start_ward(pod, &err);
	if (rc < 0)
		on_start_failed(pod, err.text[0] ? err.text : err_str(rc));
	else
		set_state(pod, POD_STARTING, "");
}

static void on_restart_due(struct timer *timer, uint64_t now)
{
	try_start(list_entry(timer, struct pod, timer));
}

static void on_ready(struct ward *ward)
{
	struct pod *pod = ward->owner;
	pod->has_served = true;
	log_msg(pod->pods->env->log, LOG_INFO, TARGET, "proxy of pod %s/%s (%s) is up, pid %d", pod->info.ns,
	        pod->info.name, pod->uid, (int)ward->pid);
	set_state(pod, POD_UP, "");
	report(pod, NULL);
}

static void on_crash(struct pod *pod, const char *why, uint64_t alive_ms)
{
	uint32_t delay = backoff_after_life(&pod->backoff, alive_ms);
	pod->restart_cnt++;
	log_msg(pod->pods->env->log, LOG_WARN, TARGET,
	        "proxy of pod %s/%s (%s) died (%s), restarting in %u ms", pod->info.ns, pod->info.name,
	        pod->uid, why, (unsigned)delay);
	set_state(pod, POD_CRASHED, why);
	if (delay == 0)
		try_start(pod);
	else
		loop_after(pod->pods->env->loop, &pod->timer, delay);
}

static void on_ended(struct ward *ward)
{
	struct pod *pod = ward->owner;
	char why[ERR_TEXT_MAX];
	bool was_up = pod->state == POD_UP;
	uint64_t alive_ms = was_up ? clock_ms() - ward->up_ms : 0;
	snprintf(why, sizeof(why), "%s", ward->reason);
	forget_ward(pod);
	ward_free(ward);
	if (was_up)
		on_crash(pod, why, alive_ms);
	else
		on_start_failed(pod, why);
}

/* --- what is wanted of pods --- */

bool pods_is_up_in(const struct pods *pods, const char *uid, int netns_fd)
{
	const struct pod *pod = pods_find(pods, uid);
	struct netns_id id;
	return pod && pod->state == POD_UP && netns_id_of(netns_fd, &id) == 0 && netns_eq(&id, &pod->netns);
}

/* The node agent may not name the daemon's own silo. */
static bool is_reserved(const char *uid)
{
	return strcmp(uid, IPC_SELF_UID) == 0;
}

/* Puts a start request into the pod. Returns whether a start under way serves it already. */
static bool accept_request(struct pod *pod, const struct netns_id *id, int netns_fd, enum ipc_silo_mode mode)
{
	bool is_same = pod->netns_fd >= 0 && netns_eq(&pod->netns, id);
	if (!is_same)
		dismiss_ward(pod, false, 0);
	fd_close(&pod->netns_fd);
	pod->netns_fd = netns_fd;
	pod->netns = *id;
	pod->mode = mode;
	pod->is_asked = true;
	return is_same && pod->state == POD_STARTING;
}

void pods_start(struct pods *pods, const char *uid, const struct workload_info *info, int netns_fd,
        enum ipc_silo_mode mode)
{
	struct netns_id id;
	struct pod *pod = pods_find(pods, uid);
	int rc = is_reserved(uid) ? -EINVAL : netns_id_of(netns_fd, &id);
	if (rc == 0 && !pod) {
		pod = pod_new(pods, uid);
		rc = pod ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = copy_info(info, &pod->info);
	if (rc < 0) {
		fd_close(&netns_fd);
		if (pod && pod->netns_fd < 0) {
			map_del_str(&pods->map, uid);
			pod_free(pod);
		}
		pods->events->started(pods->ctx, uid, err_str(rc));
		return;
	}
	if (!accept_request(pod, &id, netns_fd, mode))
		try_start(pod);
}

/* A new pod with its names. -ENOMEM. */
static int pod_new_named(
        struct pods *pods, const char *uid, const struct workload_info *info, struct pod **ret_pod)
{
	struct pod *pod = pod_new(pods, uid);
	if (!pod)
		return -ENOMEM;
	int rc = copy_info(info, &pod->info);
	if (rc < 0) {
		map_del_str(&pods->map, uid);
		pod_free(pod);
		return rc;
	}
	*ret_pod = pod;
	return 0;
}

void pods_start_self(struct pods *pods, const struct workload_info *info, int netns_fd)
{
	struct pod *pod = NULL;
	struct netns_id id;
	if (pods_find(pods, IPC_SELF_UID)) {
		fd_close(&netns_fd);
		return;
	}
	int rc = netns_id_of(netns_fd, &id);
	if (rc == 0)
		rc = pod_new_named(pods, IPC_SELF_UID, info, &pod);
	if (rc < 0) {
		log_msg(pods->env->log, LOG_ERROR, TARGET, "no HBONE for our own pod: %s", err_str(rc));
		fd_close(&netns_fd);
		return;
	}
	pod->netns_fd = netns_fd;
	pod->netns = id;
	pod->mode = IPC_SILO_SELF;
	try_start(pod);
}

int pods_adopt(struct pods *pods, struct ward *ward, const struct ipc_hello *hello, const char *socket,
        int netns_fd, enum ipc_silo_mode mode)
{
	if (pods_find(pods, hello->uid))
		return -EEXIST;
	struct pod *pod = NULL;
	int rc = pod_new_named(pods, hello->uid, &hello->info, &pod);
	if (rc < 0)
		return rc;
	pod->mode = mode;
	pod->netns_fd = netns_fd;
	pod->netns = (struct netns_id){.dev = hello->netns_dev, .ino = hello->netns_ino};
	pod->ward = ward;
	pod->has_served = hello->is_ready;
	snprintf(pod->socket, sizeof(pod->socket), "%s", socket);
	ward->owner = pod;
	ward->events = &ward_events;
	set_state(pod, hello->is_ready ? POD_UP : POD_STARTING, "");
	return 0;
}

/* The pod is out of the map; what is left of it is its last word to the broker. */
static void retire(struct pod *pod, bool is_graceful, uint64_t deadline_ms)
{
	struct pods *pods = pod->pods;
	dismiss_ward(pod, is_graceful, deadline_ms);
	loop_cancel(pods->env->loop, &pod->timer);
	fd_close(&pod->netns_fd);
	set_failed(pod, false);
	pod->is_gone = true;
	if (pods->broker->is_open && pod->is_told)
		pods_mark(pod);
	else
		pod_free(pod);
	pods->events->changed(pods->ctx);
}

void pods_stop(struct pods *pods, const char *uid)
{
	struct pod *pod = is_reserved(uid) ? NULL : map_del_str(&pods->map, uid);
	if (pod)
		retire(pod, false, 0);
}

void pods_forget_pending(struct pods *pods, const char *uid)
{
	struct pod *pod = pods_find(pods, uid);
	if (pod && pod->has_failed)
		pods_stop(pods, uid);
}

/* Whom a sweep spares, and those whom it took out of the map. */
struct sweep {
	bool (*keep)(void *ctx, const char *uid); /* NULL: keep what is not pending */
	void *ctx;
	struct pod *taken; /* list by sweep_next */
};

static bool take_out(void *item, void *ctx)
{
	struct pod *pod = item;
	struct sweep *sweep = ctx;
	if (is_reserved(pod->uid))
		return false;
	if (sweep->keep ? sweep->keep(sweep->ctx, pod->uid) : !pod->has_failed)
		return false;
	pod->sweep_next = sweep->taken;
	sweep->taken = pod;
	return true;
}

static void run_sweep(struct pods *pods, struct sweep *sweep)
{
	map_sweep(&pods->map, take_out, sweep);
	while (sweep->taken) {
		struct pod *pod = sweep->taken;
		sweep->taken = pod->sweep_next;
		retire(pod, false, 0);
	}
}

void pods_sweep(struct pods *pods, bool (*keep)(void *ctx, const char *uid), void *ctx)
{
	struct sweep sweep = {.keep = keep, .ctx = ctx};
	run_sweep(pods, &sweep);
}

void pods_forget_all_pending(struct pods *pods)
{
	struct sweep sweep = {0};
	run_sweep(pods, &sweep);
}

void pods_retry(struct pods *pods)
{
	size_t cursor = 0;
	for (struct pod *pod = map_next(&pods->map, &cursor); pod; pod = map_next(&pods->map, &cursor)) {
		if (pod->state != POD_PENDING)
			continue;
		pod->is_asked = true;
		try_start(pod);
	}
}

/* --- the end --- */

static void check_all_ended(struct pods *pods)
{
	if (pods->is_ending && list_empty(&pods->ending))
		pods->events->all_ended(pods->ctx);
}

static void on_dismissed_ended(struct ward *ward)
{
	struct pods *pods = ward->owner;
	ward_free(ward);
	check_all_ended(pods);
}

void pods_end_all(struct pods *pods, uint64_t deadline_ms)
{
	pods->is_ending = true;
	for (struct pod *pod = map_pop(&pods->map); pod; pod = map_pop(&pods->map))
		retire(pod, true, deadline_ms);
	check_all_ended(pods);
}

void pods_kill_all(struct pods *pods)
{
	pods_end_all(pods, 0);
	list_for_each(it, &pods->ending) ward_kill(list_entry(it, struct ward, node), "killed");
}

void pods_done(struct pods *pods)
{
	pods_drop_tombstones(pods);
	for (struct pod *pod = map_pop(&pods->map); pod; pod = map_pop(&pods->map)) {
		ward_free(pod->ward);
		pod_free(pod);
	}
	for (struct list *node = list_pop(&pods->ending); node; node = list_pop(&pods->ending))
		ward_free(list_entry(node, struct ward, node));
	map_done(&pods->map);
}

static const struct ward_events ward_events = {.ready = on_ready, .ended = on_ended};
static const struct ward_events dismissed_events = {.ended = on_dismissed_ended};
