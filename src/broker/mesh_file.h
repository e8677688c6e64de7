/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The local mesh state (LOCAL_XDS_PATH or LOCAL_XDS): loaded at start, loaded
 * again when the file changes. A bad file leaves the running state and says
 * which key is wrong.
 */
#ifndef CULVERT_BROKER_MESH_FILE_H
#define CULVERT_BROKER_MESH_FILE_H

#include "base/err.h"

struct broker;
struct mesh_file;

/* Loads what the settings name into the store and watches the file's folder; *ret_file is NULL when nothing
 * is named. A code with text on a bad start. */
int mesh_file_new(struct broker *broker, struct mesh_file **ret_file, struct err *err);

/* Ends the watch. NULL is fine. */
void mesh_file_free(struct mesh_file *file);

#endif
