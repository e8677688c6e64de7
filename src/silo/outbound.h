/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connection that the workload opens, captured on 15001: find out where it
 * was going, decide the way, go it, copy, log (reference dataplane.md 4).
 */
#ifndef CULVERT_SILO_OUTBOUND_H
#define CULVERT_SILO_OUTBOUND_H

#include "pb/ipc.h"

struct arena;
struct chain;
struct list;
struct pump;
struct silo;
struct stream;

/*
 * Sees a connection through to its access-log line: `down` is the application's, whose address is `src` and
 * who wants `dst`. Takes over the stream, which must not have been read to its end, and the bytes in `early`
 * that were read of it already.
 */
void outbound_begin(struct silo *silo, struct stream *down, const struct addr *src, const struct addr *dst,
        struct chain *early);

/* The same for a descriptor accepted on 15001. */
void outbound_accept(struct silo *silo, int fd);

/* One outbound connection for observers; everything borrowed for the call. */
struct outbound_view {
	struct addr src;           /* the application's address */
	struct addr original_dst;  /* what it dialled */
	struct addr actual_dst;    /* where its way leads */
	const char *protocol;      /* "TCP", "HBONE", "DOUBLEHBONE" */
	const char *peer_identity; /* at the end of the tunnel; "" = none */
	unsigned tunnels;          /* HTTP/2 connections that the up side lies in: 0, 1, 2 */
	uint64_t start_ms;         /* on the loop's clock */
	const struct pump *pump;   /* NULL = nothing is copied yet */
};

/* Describes the connection at an entry of silo.outbounds; false while its way is not known. */
bool outbound_view(const struct list *entry, struct outbound_view *ret_view);

/* Describes all present outbound connections in `arena`; returns how many, *ret_all is NULL when memory is
 * short. */
size_t outbound_dump(struct silo *silo, struct arena *arena, struct ipc_connection **ret_all);

#endif
