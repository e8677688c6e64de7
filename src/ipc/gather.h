/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts the pages of a view or of a policy set together again. Pages of one
 * answer share key and generation and come in order; a newer generation starts
 * over, an older one is ignored while it is being gathered (a new channel counts
 * anew: call gather_done then). Bounded: what does not fit is refused and the
 * owner asks again. Knows no socket.
 */
#ifndef CULVERT_IPC_GATHER_H
#define CULVERT_IPC_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "pb/ipc.h"

/* Most bytes that one view or policy set may take once decoded. */
#define GATHER_MAX (4u << 20)

/* Most pages of one answer. */
#define GATHER_PAGE_MAX 256

/* The assembler of one key (or of the policies). Zero it to begin; fields are private. */
struct gather {
	struct arena *arena;       /* what has come so far; NULL = nothing */
	enum ipc_type type;        /* IPC_ANSWER_VIEW or IPC_ANSWER_POLICIES */
	uint64_t generation;       /* of the pages so far */
	uint32_t next_page;        /* number of the page to come */
	struct ipc_record whole;   /* the answer as it grows, in arena */
	struct gather_part *parts; /* item arrays of the pages, newest first, in arena */
	size_t item_cnt;           /* in all parts */
};

/*
 * Hands in one page: an AnswerView or AnswerPolicies with rec's arena.
 * 0 = complete: *ret_arena (one reference, the caller's) holds *ret_whole;
 * -EAGAIN = more pages to come, or an outdated one ignored; ERR_PROTOCOL (page
 * out of order, other key, second workload or service), ERR_TOO_MANY or
 * ERR_TOO_LARGE: what was gathered is dropped.
 */
int gather_add(struct gather *gather, struct arena *arena, const struct ipc_record *rec,
        struct arena **ret_arena, struct ipc_record *ret_whole, struct err *err);

/* Drops what was gathered. Harmless on a zeroed one. */
void gather_done(struct gather *gather);

#endif
