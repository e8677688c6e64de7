/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pods.c and pods_broker.c share; for nobody else. */
#ifndef CULVERT_WARDEN_PODS_INT_H
#define CULVERT_WARDEN_PODS_INT_H

#include "warden/pods.h"

/* Frees a pod that is out of the map; its silo, if any, must have been let go. */
void pod_free(struct pod *pod);

/* The pod's state has changed: the broker is told now, or as soon as it reads. Frees a pod that is gone once
 * that is said. */
void pods_mark(struct pod *pod);

/* Frees the pods that are gone, untold. */
void pods_drop_tombstones(struct pods *pods);

#endif
