/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access-log lines in upstream's words and order (dataplane.md 16). Pure
 * formatting: what is known of a connection in, one line out. Knows no
 * socket and decides nothing.
 */
#ifndef CULVERT_SILO_ACCESS_H
#define CULVERT_SILO_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/log.h"
#include "culvert/records.h"

/* What a line tells of a connection; all pointers are borrowed and may be NULL (the field is then left out).
 */
struct access {
	struct addr src;                     /* who connected */
	struct addr dst;                     /* what was dialled, or where the connection arrived */
	const char *hbone_addr;              /* the CONNECT authority; HBONE only */
	const struct workload *src_workload; /* who that is */
	const struct workload *dst_workload; /* who that is */
	const char *src_identity;            /* SPIFFE id; with mutual TLS only */
	const char *dst_identity;            /* SPIFFE id; with mutual TLS only */
	const char *dst_service;             /* host name of the service addressed */
	bool is_inbound;                     /* direction */
	/* For the metrics. */
	const struct service *service; /* the service addressed */
	bool is_src_derived;           /* src_workload is what baggage says, not a record */
};

/*
 * Holds lines back as CULVERT_ACCESS_LOG says (all, errors, off), after each change of the log's filter: it
 * wins over what the filter lets through. 0 or -ENOMEM, -ENOSPC.
 */
int access_limit(struct log *log, const char *mode, struct err *err);

/* "connection opened", at debug. */
void access_opened(struct log *log, const struct access *access);

/*
 * "connection complete": at info, or at error with `error` when it is not NULL. Byte counts are from
 * the logging side's point of view: bytes_sent = what our workload sent.
 */
void access_complete(struct log *log, const struct access *access, uint64_t bytes_sent, uint64_t bytes_recv,
        uint64_t duration_ms, const char *error);

/* "connection failed", at warn: refused before anything was opened. */
void access_denied(
        struct log *log, const struct addr *src, const struct addr *dst, bool is_inbound, const char *error);

#endif
