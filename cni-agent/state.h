/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pods that came over the control socket, one small YAML file (0600) each in
 * a directory, so that a killed agent finds them again. Holds descriptions
 * only: descriptors, rules and acknowledgements are made anew.
 */
#ifndef CULVERT_CNI_AGENT_STATE_H
#define CULVERT_CNI_AGENT_STATE_H

#include "base/list.h"
#include "base/log.h"
#include "pod.h"

/* Makes the directory (0700) if it is missing and checks that it belongs to this user. -errno with text. */
int state_open(const char *dir, struct err *err);

/* Appends a pod_entry for each readable file to pods; those that are not are logged and passed over. -errno
 * with text. */
int state_load(const char *dir, struct log *log, struct list *pods, struct err *err);

/* Writes the pod's file, replacing an older one. -errno with text. */
int state_save(const char *dir, const struct pod_spec *spec, struct err *err);

/* Removes the pod's file if there is one. */
void state_drop(const char *dir, const char *uid);

#endif
