/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The JSON of istioctl's subcommands: records with its keys in its order,
 * others left out, absent ones filled in as Go would (reference
 * istiod-istioctl.md A.4, A.5). Tables only; knows no file and no daemon.
 */
#ifndef CULVERT_CTL_SHAPE_H
#define CULVERT_CTL_SHAPE_H

#include <cjson/cJSON.h>

/* The records that have a shape. */
enum shape { SHAPE_WORKLOAD, SHAPE_SERVICE, SHAPE_POLICY, SHAPE_CERTIFICATE, SHAPE_STATE };

/* The record in its shape; caller frees with cJSON_Delete. NULL without memory. */
cJSON *shape_make(enum shape shape, const cJSON *record);

#endif
