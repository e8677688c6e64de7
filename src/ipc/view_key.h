/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A view's key in records and out of them, for both ends. Inline, so that
 * the warden's channels need nothing of the mesh.
 */
#ifndef CULVERT_IPC_VIEW_KEY_H
#define CULVERT_IPC_VIEW_KEY_H

#include "mesh/view.h"
#include "pb/ipc.h"

/* The key as a record carries it; strings are borrowed from `key`. */
static inline struct ipc_key ipc_key_of_view(const struct view_key *key)
{
	if (key->kind != VIEW_ADDRESS)
		return (struct ipc_key){.is_host = true,
		        .addr = {.network = ""},
		        .ns = key->ns,
		        .host = key->hostname,
		        .dns = key->kind == VIEW_NAME};
	return (struct ipc_key){.addr = {.network = key->network, .ip = key->ip},
	        .unfiltered = key->unfiltered,
	        .ns = "",
	        .host = ""};
}

/* The key that a record carries; strings are borrowed from `key`. */
static inline struct view_key view_key_of_ipc(const struct ipc_key *key)
{
	if (key->is_host && key->dns)
		return view_key_name(key->host);
	if (key->is_host)
		return view_key_host(key->ns, key->host);
	struct view_key plain = view_key_address(key->addr.network, &key->addr.ip);
	plain.unfiltered = key->unfiltered;
	return plain;
}

#endif
