/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judges silos by what cannot be forged: the namespace's descriptor, the
 * process's start time, the uid of the socket's owner. One of another release
 * is sent home gracefully; the agent's Add starts its successor.
 */
#include "warden/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "culvert/limits.h"

#define TARGET "culvert::warden"

/* One socket called. */
struct adopt_call {
	struct adopt *adopt;
	struct list node; /* on adopt.calls */
	struct ward *ward;
	char socket[RUNDIR_SOCKET_MAX];
};

static void finish(struct adopt *adopt)
{
	if (!list_empty(&adopt->calls) || adopt->is_done)
		return;
	adopt->is_done = true;
	adopt->done(adopt);
}

static void call_free(struct adopt_call *call)
{
	list_del(&call->node);
	mem_free(call);
}

/* What a silo is for, by what this daemon has silos for. */
static enum ipc_silo_mode mode_of(const struct adopt *adopt, const struct ipc_hello *hello)
{
	if (adopt->env->settings->dedicated)
		return IPC_SILO_DEDICATED;
	return strcmp(hello->uid, IPC_SELF_UID) == 0 ? IPC_SILO_SELF : IPC_SILO_POD;
}

/* The daemon's own silo must be in our namespace: that of a predecessor's is of no use to anybody. */
static int check_self(const struct adopt *adopt, const struct netns_id *id, struct err *err)
{
	if (!settings_has_self(adopt->env->settings))
		return err_set(err, -EINVAL, "HBONE for our own pod is off");
	if (!netns_eq(id, &adopt->guard->own))
		return err_set(err, -EINVAL, "network namespace is not culvertd's own");
	return 0;
}

static int check_netns(const struct adopt *adopt, const struct ipc_hello *hello, enum ipc_silo_mode mode,
        int netns_fd, struct err *err)
{
	struct netns_id id;
	struct netns_id said = {.dev = hello->netns_dev, .ino = hello->netns_ino};
	int rc = netns_id_of(netns_fd, &id);
	if (rc < 0)
		return err_sys(err, rc, "network namespace");
	if (!netns_eq(&id, &said))
		return err_set(err, -EINVAL, "network namespace is not the one that the silo names");
	switch (mode) {
	case IPC_SILO_DEDICATED:
		return 0;
	case IPC_SILO_SELF:
		return check_self(adopt, &id, err);
	default:
		return netns_check(adopt->guard, netns_fd, err);
	}
}

static int check(struct adopt_call *call, const struct ipc_hello *hello, int netns_fd, struct err *err)
{
	if (strcmp(hello->release, CULVERT_VERSION) != 0)
		return err_set(err, -EINVAL, "silo is of release %s", hello->release);
	enum ipc_silo_mode mode = mode_of(call->adopt, hello);
	int rc = check_netns(call->adopt, hello, mode, netns_fd, err);
	if (rc == 0)
		rc = ward_keep(call->ward, hello, err);
	if (rc == 0) {
		rc = pods_adopt(call->adopt->pods, call->ward, hello, call->socket, netns_fd, mode);
		if (rc < 0)
			err_sys(err, rc, "pod %s", hello->uid);
	}
	return rc;
}

static void on_greeted(struct ward *ward, const struct ipc_hello *hello, int netns_fd)
{
	struct adopt_call *call = ward->owner;
	struct adopt *adopt = call->adopt;
	struct err err = {0};
	if (check(call, hello, netns_fd, &err) == 0) {
		log_msg(adopt->env->log, LOG_INFO, TARGET, "adopted the silo of %s/%s (%s), pid %d",
		        hello->info.ns, hello->info.name, hello->uid, (int)ward->pid);
	} else {
		log_msg(adopt->env->log, LOG_WARN, TARGET, "not adopting the silo behind %s: %s",
		        call->socket, err.text);
		fd_close(&netns_fd);
		rundir_forget(adopt->env->run->fd, call->socket);
		ward_refuse(ward, true, adopt->env->settings->drain_ms);
	}
	call_free(call);
	finish(adopt);
}

static void on_ended(struct ward *ward)
{
	struct adopt_call *call = ward->owner;
	struct adopt *adopt = call->adopt;
	log_msg(adopt->env->log, LOG_WARN, TARGET, "no silo behind %s: %s", call->socket, ward->reason);
	rundir_forget(adopt->env->run->fd, call->socket);
	ward_free(ward);
	call_free(call);
	finish(adopt);
}

static const struct ward_events call_events = {.greeted = on_greeted, .ended = on_ended};

static void call_socket(struct adopt *adopt, const char *file)
{
	struct err err = {0};
	struct adopt_call *call = mem_zalloc(1, sizeof(*call));
	if (!call)
		return;
	call->adopt = adopt;
	snprintf(call->socket, sizeof(call->socket), "%s", file);
	list_init(&call->node);
	list_add_tail(&adopt->calls, &call->node);
	int rc = ward_call(adopt->env, file, &call_events, call, &call->ward, &err);
	if (rc == 0)
		return;
	log_msg(adopt->env->log, LOG_DEBUG, TARGET, "%s", err.text);
	if (rc == -ECONNREFUSED)
		rundir_forget(adopt->env->run->fd, file);
	call_free(call);
}

void adopt_init(struct adopt *adopt, const struct ward_env *env, const struct netns_guard *guard,
        struct pods *pods, void (*done)(struct adopt *adopt))
{
	*adopt = (struct adopt){.env = env, .guard = guard, .pods = pods, .done = done};
	list_init(&adopt->calls);
	int fd = openat(env->run->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t cnt = 0;
	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && cnt < LIMIT_PODS;
	        entry = readdir(dir)) {
		if (!rundir_is_socket_name(entry->d_name))
			continue;
		call_socket(adopt, entry->d_name);
		cnt++;
	}
	if (dir)
		closedir(dir);
	else
		fd_close(&fd);
	finish(adopt);
}

void adopt_done(struct adopt *adopt)
{
	adopt->is_done = true;
	while (!list_empty(&adopt->calls)) {
		struct adopt_call *call = list_entry(adopt->calls.next, struct adopt_call, node);
		ward_free(call->ward);
		call_free(call);
	}
}
