/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The broker's end of xDS: joins the channel to the control plane, the client
 * state machine (src/xds) and the store; decides when to try again. Knows no
 * field of any resource.
 */
#ifndef CULVERT_BROKER_XDS_H
#define CULVERT_BROKER_XDS_H

#include <stdbool.h>

#include "base/err.h"

struct broker;
struct view_key;
struct xds;

/*
 * Starts the client if the settings name a control plane; *ret_xds is NULL
 * otherwise. The mesh is complete once both types have been answered without
 * rejection (reference control.md 4.7). -ENOMEM, or what the channel says of
 * the settings.
 */
int xds_new(struct broker *broker, struct xds **ret_xds, struct err *err);

/* Ends it. NULL is fine. */
void xds_free(struct xds *xds);

/*
 * On demand only, for a key that the store knows nothing of: true while the
 * control plane has not said that there is nothing (it is asked, once), and
 * then "not known" must not be said. Once it has, silo_peers_recheck() is
 * called. NULL: false.
 */
bool xds_must_wait(struct xds *xds, const struct view_key *key);

#endif
