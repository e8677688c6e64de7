/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `/connections` of the pod's admin socket: what is open, with TCP and TLS of both legs. Written piece by
 * piece as the client reads, so that their number is no limit and others are not held up.
 */
#ifndef CULVERT_SILO_ADMIN_CONNS_H
#define CULVERT_SILO_ADMIN_CONNS_H

struct silo;
struct web_conn;

/* Answers one request. */
void admin_conns_serve(struct silo *silo, struct web_conn *conn);

#endif
