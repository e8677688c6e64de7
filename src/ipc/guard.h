/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Permits of the conversation between processes: which record may come from
 * whom, in which phase, how large, with or without a descriptor, with or
 * without an id. Asked after a cheap look at the record and before anything
 * in it is decoded. Knows no handler and no socket.
 */
#ifndef CULVERT_IPC_GUARD_H
#define CULVERT_IPC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "pb/ipc.h"

/* Phase of a channel, seen from the receiver. */
enum guard_phase {
	GUARD_GREETING = 0, /* only Hello may come */
	GUARD_SETUP = 1, /* only Heritage (silo's birth channel), or LogPipe (broker's side of a silo channel)
	                    may come */
	GUARD_OPEN = 2,  /* normal traffic */
	GUARD_CLOSING = 3, /* Drain has been received or sent: no new asks, only reports and answers */
};

/* Permit state of one channel. Embedded in struct chan. */
struct guard {
	enum ipc_role self; /* who receives here */
	enum ipc_role peer; /* who sends; IPC_ROLE_NONE until Hello where several are possible */
	enum guard_phase phase;
	bool expects_setup; /* GREETING leads to SETUP instead of OPEN */
	uint64_t seen;      /* bit per record type received: for those that come once */
};

/*
 * Prepares the permit state. peer may be IPC_ROLE_NONE: then the Hello decides
 * and guard_greeted must be told. expects_setup: see GUARD_SETUP.
 */
void guard_init(struct guard *guard, enum ipc_role self, enum ipc_role peer, bool expects_setup);

/*
 * Judges a received record and notes it as seen. 0 = permitted and known.
 * ERR_UNSUPPORTED = unknown type in a phase where asks may come: to be answered
 * with Unsupported (id != 0) or ignored (id 0), its descriptor closed.
 * ERR_BAD_SENDER, ERR_BAD_PHASE, ERR_TOO_LARGE, ERR_BAD_FD, ERR_PROTOCOL (id
 * rule): a violation with its text; the channel must be closed.
 */
int guard_check(struct guard *guard, const struct ipc_peek *peek, bool has_fd, struct err *err);

/* Judges a record that we are about to send (role, descriptor, id, size). Errors as above: our own mistake.
 */
int guard_check_send(const struct guard *guard, const struct ipc_peek *peek, bool has_fd, struct err *err);

/*
 * Judges a decoded Hello: role as expected (or one that may talk to self),
 * protocol ranges overlap. Sets guard->peer. ERR_BAD_SENDER, ERR_BAD_VERSION.
 * *ret_proto = highest version both speak.
 */
int guard_greeted(struct guard *guard, const struct ipc_hello *hello, uint32_t *ret_proto, struct err *err);

/* Largest record that a peer may send of this type, 0 for unknown types. */
uint32_t guard_size_max(enum ipc_type type);

#endif
