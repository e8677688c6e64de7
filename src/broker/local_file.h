/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mesh file (LOCAL_XDS_PATH, LOCAL_XDS): YAML in, records into the store
 * (reference control.md 9). Knows the schema, not when files are read.
 */
#ifndef CULVERT_BROKER_LOCAL_FILE_H
#define CULVERT_BROKER_LOCAL_FILE_H

#include <stddef.h>

#include "base/err.h"
#include "mesh/store.h"

struct local_file; /* a checked mesh file; opaque */

/*
 * Reads and checks a file completely. On failure err names file, line and
 * key, and nothing else has happened: what runs goes on. 0, -errno, -EINVAL,
 * -E2BIG, -ENOMEM. Free with local_file_free.
 */
int local_file_load(const char *path, struct local_file **ret_file, struct err *err);

/* The same for a text in hand; `name` stands for the file in messages. The text is copied. */
int local_file_parse(
        const char *name, const char *text, size_t len, struct local_file **ret_file, struct err *err);

/*
 * Makes the file's records those of origin STORE_FILE: what is gone from the
 * file leaves the store, what did not change is not reported. Fails only for
 * lack of memory or at a ceiling of the store; then nothing was removed.
 */
int local_file_apply(const struct local_file *file, struct store *store, struct err *err);

/* Frees it. NULL is fine. */
void local_file_free(struct local_file *file);

#endif
