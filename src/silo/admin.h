/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pod's own admin socket: what this silo has open and holds, in more
 * detail than the node's dump. A unix socket that only root may open; costs
 * memory while it is asked only.
 */
#ifndef CULVERT_SILO_ADMIN_H
#define CULVERT_SILO_ADMIN_H

struct silo;

/* Serves on listening socket `fd`, which is taken over. 0 or -ENOMEM. */
int admin_serve(struct silo *silo, int fd);

/* Stops. */
void admin_stop(struct silo *silo);

#endif
