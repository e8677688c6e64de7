/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PROXY protocol header, version 2, by which an application behind a
 * tunnel of its own learns who the client is (reference dataplane.md 8.4).
 * Bytes only.
 */
#ifndef CULVERT_SILO_PROXY_PROTOCOL_H
#define CULVERT_SILO_PROXY_PROTOCOL_H

#include "base/addr.h"
#include "base/buf.h"

/* Type of the entry that holds the client's SPIFFE id. */
#define PROXY_TLV_IDENTITY 0xd0
/* Longest header: fixed part, two IPv6 addresses with ports, one entry of the longest identity. */
#define PROXY_HEADER_MAX 4096

/*
 * Appends the header of a TCP connection from `src` to `dst` by a client with `identity` ("" = no entry).
 * Addresses of different families cannot be said: none are then. Returns 0 or the error of `out`, of which
 * PROXY_HEADER_MAX bytes are enough for every SPIFFE id.
 */
int proxy_header_encode(
        const struct addr *src, const struct addr *dst, const char *identity, struct buf *out);

#endif
