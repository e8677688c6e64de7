/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A config dump, of a daemon or from a file, ours or ztunnel's, with the
 * look-ups that the tables need (reference istiod-istioctl.md A.4). Whatever
 * is not of the type it should be counts as absent.
 */
#ifndef CULVERT_CTL_DUMP_H
#define CULVERT_CTL_DUMP_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "base/map.h"
#include "ctl/client.h"
#include "ctl/ctl.h"

/* Records of one kind, in the order of the dump. */
struct records {
	const cJSON **all; /* objects; the array is owned */
	size_t cnt;
};

/* A dump; all strings and values are borrowed from it. */
struct dump {
	struct answer answer;
	struct records workloads, services, policies, certificates;
	struct records states; /* of workloadState */
	struct map named;      /* what a name or address means; private */
};

/* Reads the file of --file, else asks the daemon. 0, or a negative code with text. */
int dump_open(const struct ctl *ctl, struct dump *ret_dump, struct err *err);

/* Reads one from text, which is copied. -EPROTO, -ENOMEM with text. */
int dump_parse(const char *text, size_t len, struct dump *ret_dump, struct err *err);

/* Frees it. */
void dump_done(struct dump *dump);

/* A string member; "" when it is absent or none. */
const char *dump_str(const cJSON *object, const char *key);

/* The service that a gateway's destination names: by namespace/hostname, or one of its virtual addresses.
 * NULL if there is none. */
const cJSON *dump_service_of(const struct dump *dump, const char *destination);

/* The service whose first virtual address this is, or NULL; text of an address, whatever the network. */
const cJSON *dump_service_at(const struct dump *dump, const char *ip);

/* The workload whose first address this is, or NULL. */
const cJSON *dump_workload_at(const struct dump *dump, const char *ip);

/* Whether exactly one workload has the uid, and is healthy. */
bool dump_is_healthy(const struct dump *dump, const char *uid);

#endif
