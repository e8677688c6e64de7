/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dedicated mode without PROXY_WORKLOAD_INFO: the one workload is the one
 * that has an address of this network namespace, which the broker shares with
 * it. Knows no silo.
 */
#ifndef CULVERT_BROKER_INFER_H
#define CULVERT_BROKER_INFER_H

#include "base/arena.h"
#include "mesh/store.h"

/*
 * The workload, local to our node, that has one of the addresses on our
 * interfaces (the first that is found, in the kernel's order; neither
 * loopback nor link-local) in `network`. Copied into `arena`. 0, -ENOENT,
 * -ENOMEM, or -errno of reading the interfaces.
 */
int infer_workload(const struct store *store, const char *network, struct arena *arena,
        const struct workload **ret_workload);

#endif
