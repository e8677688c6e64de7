/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding a pod; see pods.h. */
#include "ctl/pods.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "ctl/dump.h"
#include "ctl/listing.h"
#include "ctl/near.h"

/* Longest uid that is a file name as it is. */
#define PLAIN_MAX 64

/* A ZDS uid is opaque; one that is not of this form is a file name by its hash (design of the run directory,
 * warden/rundir.c). */
static bool is_plain(const char *uid)
{
	size_t len = strlen(uid);
	for (const char *at = uid; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '-')
			return false;
	return len > 0 && len <= PLAIN_MAX;
}

static void socket_of(const char *uid, char *dst)
{
	const struct hash_seed first = {.k0 = 0, .k1 = 1};
	const struct hash_seed second = {.k0 = 2, .k1 = 3};
	if (is_plain(uid))
		snprintf(dst, PODS_SOCKET_MAX, "admin-%.*s.sock", PLAIN_MAX, uid);
	else
		snprintf(dst, PODS_SOCKET_MAX, "admin-_%016" PRIx64 "%016" PRIx64 ".sock",
		        hash_bytes(&first, uid, strlen(uid)), hash_bytes(&second, uid, strlen(uid)));
}

static bool copy(char *dst, const char *text)
{
	size_t len = strlen(text);
	if (len >= PODS_NAME_MAX)
		return false;
	memcpy(dst, text, len + 1);
	return true;
}

bool pods_read(const cJSON *row, struct pod_ref *ret_pod)
{
	const cJSON *pid = cJSON_GetObjectItem(row, "pid");
	struct pod_ref pod = {.pid = 0};
	if (!cJSON_IsObject(row) || !copy(pod.uid, dump_str(row, "uid")) ||
	        !copy(pod.name, dump_str(row, "name")) || !copy(pod.ns, dump_str(row, "namespace")))
		return false;
	if (cJSON_IsNumber(pid) && pid->valuedouble >= 1 && pid->valuedouble <= INT32_MAX)
		pod.pid = (uint32_t)pid->valuedouble;
	socket_of(pod.uid, pod.socket);
	*ret_pod = pod;
	return true;
}

static int choose(const cJSON *rows, const char *text, struct pod_ref *ret_pod, struct err *err)
{
	struct near near;
	struct pod_ref pod;
	const cJSON *row;
	unsigned cnt = 0;
	near_init(&near, text);
	cJSON_ArrayForEach(row, rows)
	{
		if (!pods_read(row, &pod))
			continue;
		near_offer(&near, pod.name, pod.ns);
		if (strcmp(pod.uid, text) == 0) {
			*ret_pod = pod;
			return 0;
		}
		if (listing_is_pod(text, pod.name, pod.ns)) {
			*ret_pod = pod;
			cnt++;
		}
	}
	if (cnt > 1)
		return err_set(err, -EINVAL,
		        "%u pods on this node are called %s; say NAME.NAMESPACE, or the uid", cnt, text);
	return cnt == 1 ? 0 : near_fail(&near, "pod on this node", err);
}

int pods_find(const struct client *client, const char *text, struct pod_ref *ret_pod, struct err *err)
{
	struct answer answer;
	int r = client_json(client, CLIENT_ADMIN, "/culvert/pods", &answer, err);
	if (r < 0)
		return r;
	if (!cJSON_IsArray(answer.json))
		r = err_set(err, -EPROTO, "culvertd's list of pods is no list");
	else
		r = choose(answer.json, text, ret_pod, err);
	answer_done(&answer);
	return r;
}

int pods_open(const struct ctl *ctl, const char *text, struct client *ret_client, struct pod_ref *ret_pod,
        const char **ret_socket, struct err *err)
{
	int r = client_open(ctl, ret_client, err);
	if (r < 0)
		return r;
	*ret_socket = CLIENT_ADMIN;
	if (!text)
		return 0;
	r = pods_find(ret_client, text, ret_pod, err);
	if (r == 0 && ret_pod->pid == 0)
		r = err_set(err, -ECONNREFUSED, "pod %s.%s has no silo at present (see culvertctl pods)",
		        ret_pod->name, ret_pod->ns);
	*ret_socket = ret_pod->socket;
	if (r < 0)
		client_done(ret_client);
	return r;
}
