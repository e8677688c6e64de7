/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workloads, services and policies as JSON in upstream's schema (reference control.md 11.5), keys in
 * alphabetical order. Callbacks for the walks of mesh/store.h; they always return true. */
#ifndef CULVERT_BROKER_DUMP_MESH_H
#define CULVERT_BROKER_DUMP_MESH_H

#include "base/json.h"
#include "mesh/store.h"

/* Endpoints written in one go: some 3 MB; a service with more comes in several slices, and each of them costs
 * the sorting of all. */
#define DUMP_ENDPOINTS_SLICE 16384

/* A workload record as an element; ctx is the struct json. */
bool dump_workload(void *ctx, const struct workload *workload);

/* The same as the mesh file has it: `services` is a map with ports. */
bool dump_static_workload(void *ctx, const struct workload *workload);

/* A policy record as an element; ctx is the struct json. */
bool dump_policy(void *ctx, const char *key, const struct policy *policy);

/* The writing of a service, which may take several slices. Start with {.json = ...}. */
struct dump_service {
	struct json *json;
	bool is_open;   /* not complete: the same service has to be shown again */
	bool is_cut;    /* out of memory: endpoints are missing */
	char *last_uid; /* of the last endpoint written; owned; NULL = none */
};

/* A service record as an element, or the next slice of it; ctx is a struct dump_service. */
bool dump_service(
        void *ctx, const struct service *service, const struct service_endpoint *endpoints, size_t cnt);

/* The service went away between two slices: ends what was begun. */
void dump_service_gone(struct dump_service *dump);

/* The same for a service without a record: a member "namespace/hostname" of `stagedServices`. */
bool dump_staged(
        void *ctx, const struct service *service, const struct service_endpoint *endpoints, size_t cnt);
void dump_staged_gone(struct dump_service *dump);

#endif
