/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The codec tables of proto/ipc.proto, for the files that encode and decode records. Private to pb. */
#ifndef CULVERT_PB_IPC_TABLE_H
#define CULVERT_PB_IPC_TABLE_H

#include "pb/codec.h"
#include "pb/ipc.h"

/* Field number of Record.id. */
#define IPC_ID_TAG 1

/* Tables of what is sized, copied or paged by itself. */
extern const struct codec_msg *const ipc_table_workload;
extern const struct codec_msg *const ipc_table_service;
extern const struct codec_msg *const ipc_table_endpoint;
extern const struct codec_msg *const ipc_table_policy;
extern const struct codec_msg *const ipc_table_key;
extern const struct codec_msg *const ipc_table_connection;
extern const struct codec_msg *const ipc_table_certificate;
extern const struct codec_msg *const ipc_table_metric;

/* Table of a body, NULL for an unknown type. The struct is any member of ipc_record's union: all begin at the
 * same place. */
const struct codec_msg *ipc_table_body(uint32_t type);

#endif
