/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pods of the node by the names that people type, and the sockets of their silos. */
#ifndef CULVERT_CTL_PODS_H
#define CULVERT_CTL_PODS_H

#include <stdint.h>

#include "base/err.h"
#include "ctl/client.h"

/* Room for a name or uid with terminator, and for the file name of a socket. */
#define PODS_NAME_MAX 256
#define PODS_SOCKET_MAX 128

/* A pod. */
struct pod_ref {
	char uid[PODS_NAME_MAX];
	char name[PODS_NAME_MAX];
	char ns[PODS_NAME_MAX];
	char socket[PODS_SOCKET_MAX]; /* of its silo, in the instance's folder */
	uint32_t pid;                 /* of its silo; 0 = none */
};

/* Reads one row of /culvert/pods. False when it is none. */
bool pods_read(const cJSON *row, struct pod_ref *ret_pod);

/*
 * Finds the pod that text names: name, name.namespace, namespace/name or uid. -ESRCH with the nearest names,
 * -EINVAL when several have the name; codes of client_json.
 */
int pods_find(const struct client *client, const char *text, struct pod_ref *ret_pod, struct err *err);

/* client_open, and the pod of --pod if there is one (*ret_socket then is its socket's name, else the
 * broker's); the caller ends it with client_done. */
int pods_open(const struct ctl *ctl, const char *text, struct client *ret_client, struct pod_ref *ret_pod,
        const char **ret_socket, struct err *err);

#endif
