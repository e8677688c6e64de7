/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Made-up meshes for the figures: services with a virtual address each,
 * workloads that are spread over them. Knows no control plane and no silo.
 */
#ifndef TESTS_COST_MESHES_H
#define TESTS_COST_MESHES_H

#include "base/addr.h"
#include "mesh/store.h"

/* Room for a text made here. */
#define MESHES_TEXT_MAX 96

/* The texts of one workload; the record borrows them. */
struct meshes_workload {
	char uid[MESHES_TEXT_MAX];
	char name[MESHES_TEXT_MAX];
	char host[MESHES_TEXT_MAX]; /* of its service */
	struct ip ip;
	struct port_map port;
	struct workload_service member;
	struct workload record;
};

/* Virtual address of service i. */
struct ip meshes_vip(unsigned i);

/* Host name of service i. */
void meshes_host(unsigned i, char dst[MESHES_TEXT_MAX]);

/* Puts services 0 to cnt - 1 into the store, port 80 each. */
void meshes_put_services(struct store *store, unsigned cnt);

/* Makes workload i of one of `services`, whose port 80 it has at `port`. HBONE. */
void meshes_workload(unsigned i, unsigned services, uint16_t port, struct meshes_workload *ret_workload);

#endif
