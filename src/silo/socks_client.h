/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client on 15080: negotiates by SOCKS5, finds the address of a name, then
 * goes on as an outbound connection like any captured one (reference
 * dataplane.md 18). Knows nothing of routes.
 */
#ifndef CULVERT_SILO_SOCKS_CLIENT_H
#define CULVERT_SILO_SOCKS_CLIENT_H

struct silo;

/* Takes an accepted descriptor over. */
void socks_accept(struct silo *silo, int fd);

#endif
