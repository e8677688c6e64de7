/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The driver: pod_step looks at what is wanted and starts the next thing to
 * do; whatever ends comes back to it. A pod does one thing at a time, so a
 * change of mind in between simply waits for the next step.
 */
#include "pods.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "state.h"

#define TARGET "cni_agent::pods"

static void pod_step(struct pod *pod);
static void pod_add(struct pod *pod);
static void pod_delete(struct pod *pod);

const char *pod_state_str(enum pod_state state)
{
	static const char *const names[] = {
	        [POD_NEW] = "new",
	        [POD_APPLYING] = "applying",
	        [POD_CLEANING] = "cleaning",
	        [POD_RENAMING] = "renaming",
	        [POD_ADDING] = "adding",
	        [POD_PENDING] = "pending",
	        [POD_ENROLLED] = "enrolled",
	        [POD_UNDOING] = "undoing",
	        [POD_DELETING] = "deleting",
	};
	return names[state];
}

static bool is_busy(const struct pod *pod)
{
	return pod->state != POD_NEW && pod->state != POD_PENDING && pod->state != POD_ENROLLED;
}

/* --- telling -------------------------------------------------------------- */

static void log_pod(const struct pod *pod, enum log_level level, const char *message, const char *error)
{
	struct log_line line;
	if (!log_begin(&line, pod->pods->log, level, TARGET, message))
		return;
	log_str(&line, "uid", pod->uid);
	if (pod->want) {
		log_str(&line, "name", pod->want->info.name);
		log_str(&line, "namespace", pod->want->info.ns);
	}
	log_str(&line, "error", error);
	log_end(&line);
}

static void answer(struct pod *pod, enum pod_outcome outcome, const char *error)
{
	struct list waiters = LIST_INIT(waiters);
	list_move_all(&waiters, &pod->waiters);
	for (struct list *it = list_pop(&waiters); it; it = list_pop(&waiters)) {
		struct pod_waiter *waiter = list_entry(it, struct pod_waiter, node);
		waiter->done(waiter, outcome, error);
	}
}

static void remember(struct pod *pod, enum log_level level, const char *error)
{
	/* A retry that fails as before is no news. */
	if (strcmp(pod->error, error) != 0)
		log_pod(pod, level, "pod is not in the mesh", error);
	snprintf(pod->error, sizeof(pod->error), "%s", error);
}

static void settle(struct pod *pod)
{
	struct pods *pods = pod->pods;
	if (pod->is_settled)
		return;
	pod->is_settled = true;
	if (--pods->unsettled > 0 || !pods->settled)
		return;
	void (*settled)(void *ctx) = pods->settled;
	pods->settled = NULL;
	settled(pods->settled_ctx);
}

static void retry_later(struct pod *pod)
{
	loop_after(pod->pods->loop, &pod->retry, pod->delay_ms);
	pod->delay_ms = pod->delay_ms * 2 > PODS_RETRY_MAX_MS ? PODS_RETRY_MAX_MS : pod->delay_ms * 2;
}

static void pod_free(struct pod *pod)
{
	settle(pod);
	map_del_str(&pod->pods->by_uid, pod->uid);
	list_del(&pod->node);
	loop_cancel(pod->pods->loop, &pod->retry);
	job_cancel(&pod->job);
	offer_unref(pod->offer);
	offer_unref(pod->next);
	offer_unref(pod->old);
	pod_spec_unref(pod->want);
	mem_free((char *)(uintptr_t)pod->uid);
	mem_free(pod);
}

/* Gone for good: nobody finds it again after a restart. */
static void pod_forget(struct pod *pod)
{
	if (pod->origin != POD_OF_FILE && pod->pods->config.state_dir)
		state_drop(pod->pods->config.state_dir, pod->uid);
	pod_free(pod);
}

/* --- into the mesh -------------------------------------------------------- */

/* Whoever waits goes on waiting: the trouble may pass before they lose patience. */
static void pod_pend(struct pod *pod, const char *error)
{
	pod->state = POD_PENDING;
	remember(pod, LOG_WARN, error);
	retry_later(pod);
}

/* The data plane said why not: no need to wait for that. */
static void pod_refused(struct pod *pod, const char *error)
{
	pod_pend(pod, error);
	answer(pod, POD_WAITS, error);
}

static void pod_enrolled(struct pod *pod)
{
	if (pod->state != POD_ENROLLED)
		log_pod(pod, LOG_INFO, "pod is in the mesh", NULL);
	pod->state = POD_ENROLLED;
	pod->delay_ms = PODS_RETRY_MIN_MS;
	pod->error[0] = 0;
	loop_cancel(pod->pods->loop, &pod->retry);
	answer(pod, POD_DONE, NULL);
}

/* Whether what is wanted is not what the namespace has. */
static bool must_apply(const struct pod *pod)
{
	return !pod->offer || pod->offer->netns_fd < 0 || pod->offer->spec != pod->want;
}

/* Open, check or rules failed: not a matter of the data plane, so not retried for a caller who waits (1.7).
 */
static void apply_failed(struct pod *pod, const char *error)
{
	settle(pod);
	if (pod->origin != POD_OF_SOCKET) {
		pod_pend(pod, error);
		answer(pod, POD_WAITS, error);
		return;
	}
	log_pod(pod, LOG_WARN, "pod is refused", error);
	char text[ERR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", error);
	answer(pod, POD_REFUSED, text);
	if (!pod->offer || pod->offer->netns_fd < 0) {
		pod_forget(pod);
		return;
	}
	/* It stays as it was. */
	pod_spec_unref(pod->want);
	pod->want = pod_spec_ref(pod->offer->spec);
	pod->state = POD_PENDING;
	pod_step(pod);
}

/* Another pod with the same namespace, or NULL. */
static const struct pod *holder_of(const struct pod *self, const struct netns_id *id)
{
	list_for_each(it, &self->pods->all)
	{
		const struct pod *pod = list_entry(it, struct pod, node);
		if (pod == self)
			continue;
		if (pod->offer && pod->offer->netns_fd >= 0 && netns_eq(&pod->offer->netns_id, id))
			return pod;
		if (pod->next && netns_eq(&pod->next->netns_id, id))
			return pod;
	}
	return NULL;
}

/* Makes pod->next out of what is wanted. -errno with text. */
static int open_next(struct pod *pod, struct err *err)
{
	struct netns_id id;
	int fd = -1;
	int rc = netns_open(pod->want->netns, pod->want->pid, &fd, &id, err);
	if (rc < 0) {
		/* A pod that we cannot reach may still be served by a daemon that has it: Keep (1.4). */
		if (!pod->offer && pod->origin != POD_OF_SOCKET)
			pod->offer = offer_new(pod->want, -1, NULL);
		return rc;
	}
	pod->next = offer_new(pod->want, fd, &id);
	if (!pod->next)
		return err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
	const struct pod *holder = holder_of(pod, &id);
	return holder ? err_set(err, -EBUSY, "the network namespace is that of pod %.*s already", 128,
	                        holder->uid)
	              : 0;
}

static void pod_apply(struct pod *pod)
{
	const struct pods_config *config = &pod->pods->config;
	const struct pod_spec *want = pod->want;
	struct err err = {0};
	if (open_next(pod, &err) < 0) {
		offer_unref(pod->next);
		pod->next = NULL;
		apply_failed(pod, err.text);
		return;
	}
	pod->state = POD_APPLYING;
	pod->job.kind = JOB_APPLY;
	pod->job.must_apply = !config->no_rules;
	pod->job.netns_fd = pod->next->netns_fd;
	pod->job.ips = want->ips;
	pod->job.ip_cnt = want->ip_cnt;
	pod->job.rules = (struct rules){.dns = want->dns == POD_DEFAULT ? config->dns : want->dns == POD_ON,
	        .is_ingress = want->is_ingress,
	        .ipv6 = config->ipv6,
	        .probe4 = config->probe4,
	        .probe6 = config->probe6,
	        .ifs = want->ifs,
	        .if_cnt = want->if_cnt};
	job_start(&pod->job);
}

static void start_undo_job(struct pod *pod, const struct offer *offer)
{
	pod->job.kind = JOB_UNDO;
	pod->job.netns_fd = offer->netns_fd;
	job_start(&pod->job);
}

static void save_state(const struct pod *pod)
{
	struct err err = {0};
	if (pod->origin == POD_OF_FILE || !pod->pods->config.state_dir)
		return;
	if (state_save(pod->pods->config.state_dir, pod->offer->spec, &err) < 0)
		log_pod(pod, LOG_ERROR, "pod would not survive a restart of the agent", err.text);
}

static void applied(struct pod *pod, const char *error)
{
	struct offer *prev = pod->offer;
	struct offer *next = pod->next;
	pod->next = NULL;
	pod->state = POD_PENDING;
	if (error && next->spec != pod->want) {
		offer_unref(next);
		pod_step(pod);
		return;
	}
	if (error) {
		/* Only a namespace that cannot be opened is kept; this one was looked at. */
		if (prev && prev->netns_fd < 0) {
			offer_unref(prev);
			pod->offer = NULL;
		}
		offer_unref(next);
		apply_failed(pod, error);
		return;
	}
	pod->offer = next;
	save_state(pod);
	settle(pod);
	pod->must_rename |= prev && !pod_info_eq(&prev->spec->info, &next->spec->info);
	if (prev && prev->netns_fd >= 0 && !netns_eq(&prev->netns_id, &next->netns_id) &&
	        !pod->pods->config.no_rules) {
		pod->old = prev;
		pod->state = POD_CLEANING;
		start_undo_job(pod, prev);
		return;
	}
	offer_unref(prev);
	pod_step(pod);
}

static void cleaned(struct pod *pod, const char *error)
{
	/* The old namespace is usually dying; what stays in it harms nobody. */
	if (error)
		log_pod(pod, LOG_DEBUG, "rules of the former namespace were not removed", error);
	offer_unref(pod->old);
	pod->old = NULL;
	pod->state = POD_PENDING;
	pod_step(pod);
}

/* Del first when the data plane knows it by another name: Add alone would not change that (1.5). */
static bool pod_rename(struct pod *pod)
{
	int rc = zds_server_del(pod->pods->zds, &pod->call, pod->offer);
	if (rc == 0)
		return false;
	if (rc > 0)
		pod->state = POD_RENAMING;
	else
		pod_pend(pod, err_str(rc));
	return true;
}

static void pod_add(struct pod *pod)
{
	if (pod->must_rename && pod_rename(pod))
		return;
	int rc = zds_server_add(pod->pods->zds, &pod->call, pod->offer);
	if (rc == 0) {
		pod->state = POD_ADDING;
	} else if (rc == -ENOTCONN) {
		/* Nothing to try again for: the snapshot of the next connection has it. Not worth a warning
		 * for each pod of a start. */
		pod->state = POD_PENDING;
		remember(pod, LOG_DEBUG, "no ztunnel connection");
	} else {
		pod_pend(pod, rc == -ENOBUFS ? "the queue of the ztunnel connection is full" : err_str(rc));
	}
}

static void added(struct pod *pod, const char *error)
{
	pod->state = POD_PENDING;
	if (pod->want != pod->offer->spec)
		pod_step(pod);
	else if (error && pod->call.is_refused)
		pod_refused(pod, error);
	else if (error)
		pod_pend(pod, error);
	else
		pod_enrolled(pod);
}

static void renamed(struct pod *pod, const char *error)
{
	pod->state = POD_PENDING;
	pod->must_rename = error != NULL;
	if (error)
		pod_pend(pod, error);
	else
		pod_step(pod);
}

/* --- out of the mesh ------------------------------------------------------ */

static void pod_undo(struct pod *pod)
{
	if (!pod->is_undone && pod->offer->netns_fd >= 0 && !pod->pods->config.no_rules) {
		pod->state = POD_UNDOING;
		start_undo_job(pod, pod->offer);
		return;
	}
	pod_delete(pod);
}

static void removed(struct pod *pod)
{
	log_pod(pod, LOG_INFO, "pod is out of the mesh", pod->error[0] ? pod->error : NULL);
	offer_unref(pod->offer);
	pod->offer = NULL;
	pod->is_undone = false;
	pod->state = POD_NEW;
	pod->delay_ms = PODS_RETRY_MIN_MS;
	if (pod->want) {
		pod->error[0] = 0;
		pod_step(pod);
		return;
	}
	char text[ERR_TEXT_MAX + 64];
	snprintf(text, sizeof(text), "the pod is out of the mesh, but its rules were not removed: %s",
	        pod->error);
	answer(pod, pod->error[0] ? POD_REFUSED : POD_DONE, pod->error[0] ? text : NULL);
	pod_forget(pod);
}

static void undone(struct pod *pod, const char *error)
{
	pod->is_undone = true;
	snprintf(pod->error, sizeof(pod->error), "%s", error ? error : "");
	pod_delete(pod);
}

static void pod_delete(struct pod *pod)
{
	int rc = zds_server_del(pod->pods->zds, &pod->call, pod->offer);
	pod->is_undone = true;
	pod->state = POD_DELETING;
	if (rc == 0)
		removed(pod);
	else if (rc < 0)
		retry_later(pod);
}

static void deleted(struct pod *pod, const char *error)
{
	/* A connection was lost or full; the others know. Once all that are left have acknowledged, it is
	 * gone. */
	if (error)
		retry_later(pod);
	else
		removed(pod);
}

/* --- the driver ----------------------------------------------------------- */

static void pod_step(struct pod *pod)
{
	loop_cancel(pod->pods->loop, &pod->retry);
	if (!pod->want && !pod->offer) {
		answer(pod, POD_DONE, NULL);
		pod_forget(pod);
	} else if (!pod->want) {
		pod->error[0] = 0;
		pod_undo(pod);
	} else if (must_apply(pod)) {
		pod_apply(pod);
	} else {
		pod_add(pod);
	}
}

static void on_job(struct job *job, const char *error)
{
	struct pod *pod = list_entry(job, struct pod, job);
	if (pod->state == POD_APPLYING)
		applied(pod, error);
	else if (pod->state == POD_CLEANING)
		cleaned(pod, error);
	else
		undone(pod, error);
}

static void on_call(struct zds_call *call, const char *error)
{
	struct pod *pod = list_entry(call, struct pod, call);
	if (pod->state == POD_ADDING)
		added(pod, error);
	else if (pod->state == POD_RENAMING)
		renamed(pod, error);
	else
		deleted(pod, error);
}

static void on_retry(struct timer *timer, uint64_t now)
{
	struct pod *pod = list_entry(timer, struct pod, retry);
	if (pod->state == POD_DELETING)
		pod_delete(pod);
	else
		pod_step(pod);
}

static struct map_key uid_of(const void *item)
{
	const struct pod *pod = item;
	return map_key_str(pod->uid);
}

static int pod_new(struct pods *pods, const char *uid, struct pod **ret_pod)
{
	struct pod *pod = mem_zalloc(1, sizeof(*pod));
	char *copy = mem_strdup(uid);
	int rc = -ENOMEM;
	if (pod && copy) {
		*pod = (struct pod){.pods = pods,
		        .uid = copy,
		        .state = POD_NEW,
		        .delay_ms = PODS_RETRY_MIN_MS,
		        .call = {.done = on_call}};
		rc = map_put(&pods->by_uid, pod, NULL);
	}
	if (rc < 0) {
		mem_free(copy);
		mem_free(pod);
		return rc;
	}
	job_init(&pod->job, &pods->jobs, on_job);
	timer_init(&pod->retry, on_retry);
	list_init(&pod->waiters);
	list_init(&pod->node);
	list_add_tail(&pods->all, &pod->node);
	pods->unsettled++;
	*ret_pod = pod;
	return 0;
}

/* Sets what is wanted and lets the pod move, now or when it has finished what it does. */
static void pod_want(
        struct pod *pod, const struct pod_spec *spec, enum pod_origin origin, struct pod_waiter *waiter)
{
	answer(pod, POD_REFUSED, "overtaken by a later request for the same pod");
	pod_spec_unref(pod->want);
	pod->want = spec ? pod_spec_ref(spec) : NULL;
	if (origin == POD_OF_FILE && pod->origin != POD_OF_FILE && pod->pods->config.state_dir)
		state_drop(pod->pods->config.state_dir, pod->uid);
	pod->origin = origin;
	pod->delay_ms = PODS_RETRY_MIN_MS;
	if (waiter)
		list_add_tail(&pod->waiters, &waiter->node);
	if (!is_busy(pod))
		pod_step(pod);
}

static int want_new(
        struct pods *pods, const struct pod_spec *spec, enum pod_origin origin, struct pod_waiter *waiter)
{
	struct pod *pod = map_get_str(&pods->by_uid, spec->uid);
	int rc = pod ? 0 : pod_new(pods, spec->uid, &pod);
	if (rc < 0)
		return rc;
	pod->is_listed = origin == POD_OF_FILE;
	pod_want(pod, spec, origin, waiter);
	return 0;
}

/* --- public --------------------------------------------------------------- */

void pods_init(struct pods *pods, struct loop *loop, struct log *log, const struct pods_config *config,
        struct zds_server *zds)
{
	*pods = (struct pods){.loop = loop, .log = log, .config = *config, .zds = zds};
	jobs_init(&pods->jobs, loop);
	map_init(&pods->by_uid, LIMIT_PODS, uid_of);
	list_init(&pods->all);
}

void pods_done(struct pods *pods)
{
	pods->settled = NULL;
	jobs_done(&pods->jobs);
	list_for_each_safe(it, &pods->all)
	{
		struct pod *pod = list_entry(it, struct pod, node);
		answer(pod, POD_WAITS, "the agent is ending");
		pod_free(pod);
	}
	map_done(&pods->by_uid);
}

void pods_sync(struct pods *pods, const struct list *entries)
{
	list_for_each(it, &pods->all) list_entry(it, struct pod, node)->is_listed = false;
	for (const struct list *it = entries->next; it != entries; it = it->next) {
		const struct pod_spec *spec = list_entry(it, struct pod_entry, node)->spec;
		struct pod *pod = map_get_str(&pods->by_uid, spec->uid);
		if (pod && pod->want && pod->origin == POD_OF_FILE && pod_spec_eq(pod->want, spec)) {
			pod->is_listed = true;
			continue;
		}
		int rc = want_new(pods, spec, POD_OF_FILE, NULL);
		if (rc < 0)
			log_msg(pods->log, LOG_ERROR, TARGET, "pod %.*s: %s", 128, spec->uid, err_str(rc));
	}
	list_for_each_safe(it, &pods->all)
	{
		struct pod *pod = list_entry(it, struct pod, node);
		if (pod->origin == POD_OF_FILE && pod->want && !pod->is_listed)
			pod_want(pod, NULL, POD_OF_FILE, NULL);
	}
}

void pods_restore(struct pods *pods, const struct list *entries)
{
	for (const struct list *it = entries->next; it != entries; it = it->next) {
		const struct pod_spec *spec = list_entry(it, struct pod_entry, node)->spec;
		int rc = want_new(pods, spec, POD_OF_STATE, NULL);
		if (rc < 0)
			log_msg(pods->log, LOG_ERROR, TARGET, "pod %.*s: %s", 128, spec->uid, err_str(rc));
	}
}

void pods_when_settled(struct pods *pods, void (*settled)(void *ctx), void *ctx)
{
	pods->settled = settled;
	pods->settled_ctx = ctx;
	if (pods->unsettled > 0)
		return;
	pods->settled = NULL;
	settled(ctx);
}

void pods_add(struct pods *pods, const struct pod_spec *spec, struct pod_waiter *waiter)
{
	const struct pod *pod = map_get_str(&pods->by_uid, spec->uid);
	if (pod && pod->want && pod->origin == POD_OF_FILE) {
		waiter->done(waiter, POD_REFUSED, "the pod is listed in a pods file: change it there");
		return;
	}
	int rc = want_new(pods, spec, POD_OF_SOCKET, waiter);
	if (rc < 0)
		waiter->done(waiter, POD_REFUSED, rc == -ENOSPC ? "there are too many pods" : err_str(rc));
}

void pods_del(struct pods *pods, const char *uid, struct pod_waiter *waiter)
{
	struct pod *pod = map_get_str(&pods->by_uid, uid);
	if (!pod || (!pod->want && pod->origin == POD_OF_FILE))
		waiter->done(waiter, POD_REFUSED, "there is no such pod");
	else if (pod->want && pod->origin == POD_OF_FILE)
		waiter->done(waiter, POD_REFUSED, "the pod is listed in a pods file: remove it there");
	else
		pod_want(pod, NULL, pod->origin, waiter);
}

const char *pods_trouble(const struct pods *pods, const char *uid)
{
	const struct pod *pod = map_get_str(&pods->by_uid, uid);
	return pod && pod->error[0] ? pod->error : "it takes its time";
}

static int snapshot(void *ctx, struct offer ***ret_offers, size_t *ret_cnt)
{
	struct pods *pods = ctx;
	size_t cnt = 0;
	struct offer **offers = mem_zalloc(map_cnt(&pods->by_uid) + 1, sizeof(struct offer *));
	if (!offers)
		return -ENOMEM;
	list_for_each(it, &pods->all)
	{
		struct pod *pod = list_entry(it, struct pod, node);
		if (pod->offer && pod->want && pod->state != POD_UNDOING && pod->state != POD_DELETING)
			offers[cnt++] = offer_ref(pod->offer);
	}
	*ret_offers = offers;
	*ret_cnt = cnt;
	return 0;
}

static void answered(void *ctx, const struct offer *offer, const char *error)
{
	struct pods *pods = ctx;
	struct pod *pod = map_get_str(&pods->by_uid, offer->spec->uid);
	if (!pod || pod->offer != offer || pod->want != offer->spec || is_busy(pod))
		return;
	if (!error && pod->must_rename)
		pod_step(pod);
	else if (!error)
		pod_enrolled(pod);
	else
		pod_refused(pod, error);
}

struct zds_source pods_source(struct pods *pods)
{
	return (struct zds_source){.ctx = pods, .snapshot = snapshot, .answered = answered};
}

void pods_write(const struct pods *pods, struct json *json)
{
	static const char *const origins[] = {
	        [POD_OF_FILE] = "file", [POD_OF_STATE] = "socket", [POD_OF_SOCKET] = "socket"};
	json_arr(json);
	for (const struct list *it = pods->all.next; it != &pods->all; it = it->next) {
		const struct pod *pod = list_entry(it, struct pod, node);
		const struct pod_spec *spec = pod->want ? pod->want : pod->offer ? pod->offer->spec : NULL;
		if (!spec)
			continue;
		json_obj(json);
		pod_spec_members(spec, json);
		json_kv_str(json, "origin", origins[pod->origin]);
		json_kv_str(json, "state", pod_state_str(pod->state));
		if (pod->error[0])
			json_kv_str(json, "error", pod->error);
		json_obj_end(json);
	}
	json_arr_end(json);
}
