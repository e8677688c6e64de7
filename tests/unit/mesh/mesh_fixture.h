/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of the mesh: a store filled from YAML and a source of views over
 * it that answers "not here yet" once for every key, as a silo's cache does.
 */
#ifndef CULVERT_TEST_MESH_FIXTURE_H
#define CULVERT_TEST_MESH_FIXTURE_H

#include "mesh/route.h"
#include "mesh/store.h"

#define FIXTURE_VIEWS_MAX 64
#define FIXTURE_NAMES_MAX 16

/* A store and all that a proxy has. */
struct fixture {
	struct store *store;
	struct arena *arena;         /* of self and names */
	const struct workload *self; /* NULL until fixture_self */
	struct route_env env;
	struct view *views[FIXTURE_VIEWS_MAX];
	size_t view_cnt;
	struct {
		const char *name; /* known to the resolver */
		struct ip ips[4];
		size_t cnt;
		int rc; /* instead of an answer */
		bool was_asked;
	} names[FIXTURE_NAMES_MAX];
	size_t name_cnt;
	unsigned asked; /* how often something was not here yet */
};

/* Fails the test when the YAML is refused. Adds to what is in the store already when `f` was initialised. */
void fixture_init(struct fixture *f);
void fixture_load(struct fixture *f, const char *name, const char *yaml);
void fixture_self(struct fixture *f, const char *uid);
void fixture_done(struct fixture *f);

/* Forgets all views, as after a change. */
void fixture_forget(struct fixture *f);

/* Route functions, called again as long as something is not here yet. */
int fixture_outbound(struct fixture *f, const char *dst, struct route *ret, struct err *err);
int fixture_inbound(struct fixture *f, const char *local, const char *authority, const char *host,
        struct route_inbound *ret, int *status, struct err *err);
int fixture_plaintext(struct fixture *f, const char *dst, struct route_inbound *ret, struct err *err);

/* Parsed literals; fail the test when malformed. */
struct ip fixture_ip(const char *text);
struct addr fixture_addr(const char *text);

#endif
