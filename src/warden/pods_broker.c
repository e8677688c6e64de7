/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the broker is told of pods: a debt per pod, paid while the broker reads.
 * A pod that is gone stays as its own last word until that is said. Must not
 * start or end anything.
 */
#include "warden/pods.h"

#include "base/fd.h"
#include "warden/pods_int.h"

static enum ipc_silo_phase phase_of(const struct pod *pod)
{
	if (pod->is_gone)
		return IPC_SILO_GONE;
	return pod->state == POD_UP ? IPC_SILO_UP : IPC_SILO_PENDING;
}

static void tell(struct pod *pod)
{
	struct broker_link *broker = pod->pods->broker;
	struct ward *ward = pod->ward;
	struct ipc_silo_state state = {.uid = pod->uid,
	        .info = pod->info,
	        .state = phase_of(pod),
	        .reason = pod->reason,
	        .restarts = pod->restart_cnt,
	        .netns_ino = pod->netns.ino,
	        .pid = ward ? (int32_t)ward->pid : 0};
	int silo_fd = -1;
	broker_link_silo_state(broker, &state);
	pod->is_told = true;
	if (ward && !ward->has_broker && broker_link_pair(broker, &silo_fd, &pod->broker_fd) == 0)
		ward_attach_broker(ward, silo_fd);
	if (ward && pod->broker_fd >= 0) {
		broker_link_attach(broker, pod->uid, &pod->info, ward->pid, pod->broker_fd);
		pod->broker_fd = -1;
	}
}

void pods_tell_broker(struct pods *pods)
{
	while (!list_empty(&pods->dirty) && broker_link_has_room(pods->broker)) {
		struct pod *pod = list_entry(list_pop(&pods->dirty), struct pod, dirty);
		tell(pod);
		if (pod->is_gone)
			pod_free(pod);
	}
}

void pods_mark(struct pod *pod)
{
	if (list_empty(&pod->dirty))
		list_add_tail(&pod->pods->dirty, &pod->dirty);
	pods_tell_broker(pod->pods);
}

void pods_drop_tombstones(struct pods *pods)
{
	list_for_each_safe(it, &pods->dirty)
	{
		struct pod *pod = list_entry(it, struct pod, dirty);
		if (pod->is_gone)
			pod_free(pod);
	}
}

void pods_broker_opened(struct pods *pods)
{
	size_t cursor = 0;
	for (struct pod *pod = map_next(&pods->map, &cursor); pod; pod = map_next(&pods->map, &cursor))
		if (list_empty(&pod->dirty))
			list_add_tail(&pods->dirty, &pod->dirty);
	pods_tell_broker(pods);
}

void pods_broker_lost(struct pods *pods)
{
	size_t cursor = 0;
	/* The next broker starts with nothing, so nothing has to be taken back from it. */
	pods_drop_tombstones(pods);
	for (struct pod *pod = map_next(&pods->map, &cursor); pod; pod = map_next(&pods->map, &cursor)) {
		pod->is_told = false;
		fd_close(&pod->broker_fd);
		if (pod->ward)
			pod->ward->has_broker = false;
	}
}
