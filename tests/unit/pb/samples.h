/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One or more records of every type with every field set: for round trips, for
 * the stored records of each release, as fuzzing seeds. Once a release is out
 * its samples stay as they are; new fields get samples of their own.
 */
#ifndef CULVERT_TESTS_UNIT_PB_SAMPLES_H
#define CULVERT_TESTS_UNIT_PB_SAMPLES_H

#include "pb/ipc.h"

struct sample {
	const char *name; /* of its file */
	struct ipc_record rec;
};

extern const struct sample samples[];
extern const size_t sample_cnt;

/* A workload, service and policy in which every field is set. */
extern const struct workload sample_workload;
extern const struct service sample_service;
extern const struct policy sample_policy;

#endif
