/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ZDS, the conversation between the node agent and the node's data plane
 * (reference node-agent.md 1): one protobuf message per SOCK_SEQPACKET packet,
 * decoded into plain structs. Serves both ends: culvertd (requests in,
 * responses out) and the node agent (the reverse). Keeps no state: sequence,
 * deadlines and the meaning of messages belong to the programs.
 */
#ifndef CULVERT_PB_ZDS_H
#define CULVERT_PB_ZDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "culvert/limits.h"
#include "culvert/records.h"

/* Largest packet either side accepts (node-agent.md 1.1). A longer one arrives truncated and is refused. */
#define ZDS_PACKET_MAX LIMIT_ZDS_PACKET

/* Largest Ack text: what is left of a packet after the tags and lengths around it. Longer texts are cut when
 * encoded. */
#define ZDS_ERROR_MAX (ZDS_PACKET_MAX - 6)

/* Bytes an arena needs at most to decode any packet. */
#define ZDS_ARENA_MAX 4096

/* Protocol version in ZdsHello. */
enum zds_version { ZDS_NOT_USED = 0, ZDS_V1 = 1 };

/* Payload of a request; the numbers are those of the oneof. */
enum zds_request_type { ZDS_ADD = 1, ZDS_DEL = 2, ZDS_SNAPSHOT_SENT = 3, ZDS_KEEP = 5 };

/* A request of the agent (WorkloadRequest). */
struct zds_request {
	enum zds_request_type type;
	const char *uid; /* ZDS_ADD, ZDS_DEL, ZDS_KEEP: opaque name of the pod, "" is legal; "" otherwise */
	bool has_info;   /* ZDS_ADD: workload_info was there (its absence is a violation, 1.5) */
	struct workload_info info; /* ZDS_ADD with has_info; strings "" otherwise */
};

/* Encodes ZdsHello. 0, or -EMSGSIZE when cap is too small. */
int zds_encode_hello(enum zds_version version, uint8_t *dst, size_t cap, size_t *ret_len);

/* Decodes ZdsHello; unknown version numbers are passed on. ERR_PROTOCOL with a text. */
int zds_decode_hello(const uint8_t *bytes, size_t len, enum zds_version *ret_version, struct err *err);

/* Encodes a request. ERR_TOO_LARGE names the field above its ceiling, ERR_BAD_UTF8 the ill-formed one,
 * -EMSGSIZE: cap too small. */
int zds_encode_request(
        const struct zds_request *req, uint8_t *dst, size_t cap, size_t *ret_len, struct err *err);

/*
 * Decodes a request; strings live in arena. ERR_PROTOCOL (malformed, no
 * payload), ERR_TOO_LARGE, ERR_BAD_UTF8, with the field's name in the text;
 * -ENOMEM.
 */
int zds_decode_request(
        const uint8_t *bytes, size_t len, struct arena *arena, struct zds_request *ret_req, struct err *err);

/*
 * Encodes WorkloadResponse{Ack}. error NULL or "" is an OK ack. Text that is
 * too long is cut at a character, ill-formed bytes become '?': an answer must
 * always be possible. -EMSGSIZE: cap too small.
 */
int zds_encode_response(const char *error, uint8_t *dst, size_t cap, size_t *ret_len);

/* Decodes WorkloadResponse; *ret_error is the text of the Ack in arena, "" = OK. Errors as
 * zds_decode_request. */
int zds_decode_response(
        const uint8_t *bytes, size_t len, struct arena *arena, const char **ret_error, struct err *err);

/*
 * The packet calls below serve a non-blocking (or blocking) SEQPACKET socket,
 * never raise SIGPIPE, and return -EAGAIN as the socket does.
 */

/* Sends one packet, with pass_fd beside it when >= 0 (stays the caller's). 0 or -errno. */
int zds_send(int fd, const uint8_t *bytes, size_t len, int pass_fd);

/*
 * Receives one raw packet with the rules of node-agent.md 1.3 up to
 * truncation: all descriptors are taken over; more than one: ERR_BAD_FD
 * "Expected 1 FD, got N", all closed; control messages of other kinds are
 * ignored; truncation: ERR_TRUNCATED "received truncated message". *ret_len 0
 * = the peer has closed. *ret_fd = the descriptor (close-on-exec, the
 * caller's) or -1. dst must hold ZDS_PACKET_MAX bytes.
 */
int zds_recv(int fd, uint8_t *dst, size_t *ret_len, int *ret_fd, struct err *err);

/*
 * zds_recv, decode and pairing in one: culvertd's side. ZDS_ADD without
 * descriptor: ERR_BAD_FD "No control message"; another payload with one:
 * ERR_BAD_FD "Unexpected control message". -EPIPE: the agent has closed. On
 * every error no descriptor is left open. *ret_fd is the caller's for ZDS_ADD,
 * else -1.
 */
int zds_recv_request(int fd, struct arena *arena, struct zds_request *ret_req, int *ret_fd, struct err *err);

#endif
