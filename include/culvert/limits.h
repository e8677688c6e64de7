/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hard ceilings, the reason beside each number. Everything a peer, a file or
 * another process can make grow is bounded by one of these or by a parameter
 * (params.tbl.h). Types and code have no place here.
 */
#ifndef CULVERT_LIMITS_H
#define CULVERT_LIMITS_H

/* Log: a line fits one atomic pipe write (pipe(7) PIPE_BUF = 4096), newline included. */
#define LIMIT_LOG_LINE 4096
/* Log: directives of one filter; people write a handful. */
#define LIMIT_LOG_DIRECTIVES 64

/* IPC: bytes of one record; far below the default socket buffer (212,992), so several fit in flight. */
#define LIMIT_IPC_RECORD 32768
/* IPC: records waiting in one channel's send queue; a peer that lets more pile up is dead or hostile. */
#define LIMIT_IPC_QUEUE 256
/* IPC: keys that one silo may have open at its broker; the channel of one that asks for more is closed. */
#define LIMIT_IPC_DIRTY 4096

/* ZDS: bytes of one packet; upstream's receive buffer is as large. */
#define LIMIT_ZDS_PACKET 1024
/* ZDS: bytes of a uid; pod uids have 36, opaque ones of other agents may fill a packet. */
#define LIMIT_ZDS_UID 1018
/* ZDS: pods of one node; Kubernetes goes to 110 by default and is known to run with 500. */
#define LIMIT_PODS 4096

/* Mesh: endpoints of one service that a silo is told of; enough for fair balance, small enough to hold many.
 */
#define LIMIT_VIEW_ENDPOINTS 128
/* Mesh: views one silo caches, negative ones included; least recently used go first. */
#define LIMIT_SILO_VIEWS 1024
/* Mesh: bytes of one decoded record (workload, service, policy); xDS resources are a few KB at most. */
#define LIMIT_RECORD_ARENA (1u << 20)
/* Mesh: bytes of a host name, RFC 1035 2.3.4 with the final dot. */
#define LIMIT_HOSTNAME 254

/* HTTP/1: bytes of a request head; upstream answers 431 above 8 KiB. */
#define LIMIT_HTTP_HEAD 8192
/* HTTP/1: bytes of a request body; no request of ours has a meaningful one. */
#define LIMIT_HTTP_BODY 65536
/* HTTP/1: header fields of one request. */
#define LIMIT_HTTP_HEADERS 64
/* HTTP/1: open connections of one server; probes and scrapers are a few. */
#define LIMIT_HTTP_CONNS 128

/* Chunks kept idle per process and class; what idles longer is trimmed by the owner. */
#define LIMIT_CHUNK_IDLE_SMALL 256
#define LIMIT_CHUNK_IDLE_LARGE 64
#define LIMIT_CHUNK_IDLE_BULK 32

/* Files: bytes of a token file; JWTs are 1 to 4 KB. */
#define LIMIT_FILE_TOKEN 65536
/* Files: bytes of a PEM bundle of roots; the system's store has 220 KB. */
#define LIMIT_FILE_ROOTS (1u << 20)
/* Files: bytes of a CRL file. */
#define LIMIT_FILE_CRL (16u << 20)
/* Policies of one workload that no record can hold, as they go to its silo. */
#define LIMIT_FILE_POLICIES (8u << 20)
/* Bytes of the policies of one workload as structs, which are wider. */
#define LIMIT_POLICIES_ARENA (64u << 20)
/* Files: bytes of a local mesh state file; 100,000 workloads have 60 MB. */
#define LIMIT_FILE_MESH (256u << 20)

/* Settings: bytes of all environment strings kept; the kernel's own ceiling for one string is 128 KiB
 * (execve(2)). */
#define LIMIT_SETTINGS_ARENA (4u << 20)
/* Settings: XDS_HEADER_*, CA_HEADER_* or ISTIO_META_* variables. */
#define LIMIT_SETTINGS_PAIRS 256

#endif
