/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inbound HBONE, 15008: mutual TLS, HTTP/2, one CONNECT request a stream, each
 * checked in upstream's order and delivered to the application (reference
 * dataplane.md 8).
 */
#ifndef CULVERT_SILO_INBOUND_H
#define CULVERT_SILO_INBOUND_H

struct silo;

/* Takes an accepted descriptor over. */
void inbound_accept(struct silo *silo, int fd);

#endif
