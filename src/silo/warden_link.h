/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The silo's side of the channel to the warden: heritage in, reports out, a
 * broker's channel now and then. A later warden connects to the control
 * socket and takes the place of the former (design 2, Attachment).
 */
#ifndef CULVERT_SILO_WARDEN_LINK_H
#define CULVERT_SILO_WARDEN_LINK_H

#include <stdbool.h>

struct silo;
struct warden_link;

/* Takes over the channel that the silo was born with and says Hello; Heritage starts the rest. 0 or -ENOMEM.
 */
int warden_link_new(struct silo *silo, int fd, struct warden_link **ret_link);

/* Closes and frees. NULL is fine. */
void warden_link_free(struct warden_link *link);

/* Reports the end of the drain, if a warden is there. */
void warden_link_drained(struct warden_link *link, bool is_forced);

#endif
