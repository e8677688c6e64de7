/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Outstanding asks of one channel: which answer belongs to whom, until when it
 * may come, and how many may be open. The owner embeds a struct ask, sends the
 * record itself, and hands in what it receives. Knows no socket and no clock.
 */
#ifndef CULVERT_IPC_ASK_H
#define CULVERT_IPC_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pb/ipc.h"

/* Ceiling of open asks that any table may be given: fits the id layout. */
#define ASK_TABLE_MAX 4096

/* One open ask, embedded in its owner. Zero it and set done; the rest is set by ask_start. */
struct ask {
	uint32_t id;          /* to be put into the record; 0 = not open */
	enum ipc_type answer; /* the type that answers it */
	uint64_t deadline_ms; /* on the caller's clock; 0 = none */
	bool is_failing;      /* private: ask_fail_all is about to close it */
	/*
	 * Called with each answering record (rc 0, is_last says whether more pages
	 * follow), or once with rc < 0 and rec NULL: ERR_TIMEOUT_FETCH, ERR_UNSUPPORTED,
	 * ERR_PROTOCOL (answer of the wrong type) or the code given to
	 * ask_fail_all. When rc < 0 or is_last, the ask is closed already and may
	 * be freed or started again. rec is borrowed until the call returns.
	 */
	void (*done)(struct ask *ask, int rc, const struct ipc_record *rec, bool is_last);
};

/* The table. Fields are private. */
struct ask_table {
	struct ask **slots; /* array of cap */
	size_t cap;         /* grows up to max */
	size_t max;
	size_t cnt;       /* open asks */
	size_t hint;      /* where to look for a free slot first */
	uint32_t round;   /* makes ids differ when a slot is used again */
	uint64_t next_ms; /* no deadline is earlier; UINT64_MAX = none */
};

/* Prepares a table for at most max (<= ASK_TABLE_MAX) open asks; allocates nothing yet. */
void ask_table_init(struct ask_table *table, size_t max);

/* Frees the table. Open asks are closed without a call. */
void ask_table_done(struct ask_table *table);

/* Opens an ask of `type` (one that has an answer; ask->done is set by the caller) and gives it an id.
 * -ENOBUFS at the ceiling, -ENOMEM. */
int ask_start(struct ask_table *table, struct ask *ask, enum ipc_type type, uint64_t deadline_ms);

/* Closes an ask without a call; a later answer is ignored. Harmless when it is not open. */
void ask_cancel(struct ask_table *table, struct ask *ask);

/*
 * Hands in a received record with id != 0. 0 = it answered an ask (its done
 * was called); -ENOENT = nobody waits for it (late or cancelled: ignore it);
 * ERR_PROTOCOL = wrong type for that ask (its done was called; the channel
 * must be closed).
 */
int ask_answer(struct ask_table *table, const struct ipc_record *rec);

/* Ends every ask whose deadline is <= now_ms with ERR_TIMEOUT_FETCH. Returns how many. */
size_t ask_expire(struct ask_table *table, uint64_t now_ms);

/* When ask_expire should be called next (may be early, never late), UINT64_MAX = no need. */
uint64_t ask_next_ms(const struct ask_table *table);

/* Ends every ask with rc (< 0), for a lost channel. Asks started from within the calls stay open. */
void ask_fail_all(struct ask_table *table, int rc);

#endif
