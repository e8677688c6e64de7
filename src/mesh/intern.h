/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counted strings that occur many times in the mesh (namespaces, nodes,
 * service accounts ...), named by 32-bit numbers. Number 0 is "" and is not
 * counted. Knows nothing of records.
 */
#ifndef CULVERT_MESH_INTERN_H
#define CULVERT_MESH_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* Ceiling of distinct strings: more than one per workload cannot be shared ones. */
#define INTERN_MAX 4000000

struct intern_entry; /* private */

/* The table. Fields are private. */
struct intern {
	struct map by_text;
	struct intern_entry **entries; /* by number; NULL = free */
	uint32_t cap;                  /* of entries */
	uint32_t next;                 /* numbers below were handed out once */
	uint32_t *spare;               /* numbers that are free again; as large as entries */
	uint32_t spare_cnt;
};

/* Prepares an empty table. */
void intern_init(struct intern *t);

/* Frees all strings, whoever still counts them. */
void intern_done(struct intern *t);

/* The number of `s`, counted once more; give back with intern_put. 0, -ENOMEM or -ENOSPC. */
int intern_get(struct intern *t, const char *s, uint32_t *ret_id);

/* Counts an existing number once more and returns it. */
uint32_t intern_ref(struct intern *t, uint32_t id);

/* Gives a number back; the last time frees the string. */
void intern_put(struct intern *t, uint32_t id);

/* The number of a string that is in the table, not counted; -ENOENT when it is not. */
int intern_find(const struct intern *t, const char *s, uint32_t *ret_id);

/* The string; valid while the number is counted. */
const char *intern_text(const struct intern *t, uint32_t id);

#endif
