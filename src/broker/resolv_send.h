/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a silo's DNS proxy needs to know of the daemon's resolver: resolv.conf
 * and hosts, read anew for every ask, so that a change needs no watching.
 */
#ifndef CULVERT_BROKER_RESOLV_SEND_H
#define CULVERT_BROKER_RESOLV_SEND_H

#include <stdint.h>

#include "ipc/ring_chan.h"

/* Answers the ask `id` of a silo. Without a resolv.conf there are no servers. 0, -ENOMEM, or as
 * ring_chan_send. */
int resolv_send(struct ring_chan *chan, uint32_t id, struct err *err);

#endif
