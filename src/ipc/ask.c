/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Outstanding asks: a slot each; an id is the slot and a round number, so that
 * a late answer does not meet the next ask in its slot. Knows no socket and no
 * clock.
 */
#include "ipc/ask.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "ipc/guard.h"

/* An id: slot in the low bits, round (never 0) above. */
#define SLOT_BITS 12
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
#define ROUND_MAX ((1u << (32 - SLOT_BITS)) - 1)

_Static_assert(ASK_TABLE_MAX == 1u << SLOT_BITS, "ids have room for every slot");

void ask_table_init(struct ask_table *table, size_t max)
{
	ASSERT(max <= ASK_TABLE_MAX);
	*table = (struct ask_table){.max = max, .next_ms = UINT64_MAX};
}

void ask_table_done(struct ask_table *table)
{
	for (size_t i = 0; i < table->cap; i++) {
		if (table->slots[i])
			table->slots[i]->id = 0;
	}
	mem_free(table->slots);
	ask_table_init(table, table->max);
}

/* A free slot, making more when there is none. */
static int take_slot(struct ask_table *table, size_t *ret_slot)
{
	for (size_t i = 0; i < table->cap; i++) {
		size_t slot = (table->hint + i) % table->cap;
		if (!table->slots[slot]) {
			*ret_slot = slot;
			return 0;
		}
	}
	if (table->cap >= table->max)
		return -ENOBUFS;
	size_t cap = table->cap ? table->cap * 2 : 16;
	if (cap > table->max)
		cap = table->max;
	struct ask **slots = mem_realloc(table->slots, cap * sizeof(struct ask *));
	if (!slots)
		return -ENOMEM;
	memset(slots + table->cap, 0, (cap - table->cap) * sizeof(struct ask *));
	*ret_slot = table->cap;
	table->slots = slots;
	table->cap = cap;
	return 0;
}

int ask_start(struct ask_table *table, struct ask *ask, enum ipc_type type, uint64_t deadline_ms)
{
	enum ipc_type answer = guard_answer_of(type);
	size_t slot;
	ASSERT(ask->id == 0 && answer != IPC_NONE);
	int rc = take_slot(table, &slot);
	if (rc < 0)
		return rc;
	table->round = table->round < ROUND_MAX ? table->round + 1 : 1;
	table->slots[slot] = ask;
	table->cnt++;
	table->hint = slot + 1;
	ask->id = table->round << SLOT_BITS | (uint32_t)slot;
	ask->answer = answer;
	ask->deadline_ms = deadline_ms;
	ask->is_failing = false;
	if (deadline_ms && deadline_ms < table->next_ms)
		table->next_ms = deadline_ms;
	return 0;
}

static struct ask *find(const struct ask_table *table, uint32_t id)
{
	size_t slot = id & SLOT_MASK;
	struct ask *ask = slot < table->cap ? table->slots[slot] : NULL;
	return ask && ask->id == id ? ask : NULL;
}

void ask_cancel(struct ask_table *table, struct ask *ask)
{
	if (ask->id && find(table, ask->id) == ask) {
		table->slots[ask->id & SLOT_MASK] = NULL;
		table->cnt--;
	}
	ask->id = 0;
}

static void fail(struct ask_table *table, struct ask *ask, int rc)
{
	ask_cancel(table, ask);
	ask->done(ask, rc, NULL, true);
}

int ask_answer(struct ask_table *table, const struct ipc_record *rec)
{
	struct ask *ask = find(table, rec->id);
	if (!ask)
		return -ENOENT;
	if (rec->type == IPC_UNSUPPORTED) {
		fail(table, ask, ERR_UNSUPPORTED);
		return 0;
	}
	if (rec->type != ask->answer) {
		fail(table, ask, ERR_PROTOCOL);
		return ERR_PROTOCOL;
	}
	bool is_last = ipc_is_last(rec);
	if (is_last)
		ask_cancel(table, ask);
	ask->done(ask, 0, rec, is_last);
	return 0;
}

size_t ask_expire(struct ask_table *table, uint64_t now_ms)
{
	size_t cnt = 0;
	if (now_ms < table->next_ms)
		return 0;
	/* Asks that the calls start take part: those write a lower next_ms themselves. */
	table->next_ms = UINT64_MAX;
	for (size_t i = 0; i < table->cap; i++) {
		struct ask *ask = table->slots[i];
		if (!ask || !ask->deadline_ms)
			continue;
		if (ask->deadline_ms <= now_ms) {
			cnt++;
			fail(table, ask, ERR_TIMEOUT_FETCH);
		} else if (ask->deadline_ms < table->next_ms) {
			table->next_ms = ask->deadline_ms;
		}
	}
	return cnt;
}

uint64_t ask_next_ms(const struct ask_table *table)
{
	return table->cnt ? table->next_ms : UINT64_MAX;
}

void ask_fail_all(struct ask_table *table, int rc)
{
	for (size_t i = 0; i < table->cap; i++) {
		if (table->slots[i])
			table->slots[i]->is_failing = true;
	}
	for (size_t i = 0; i < table->cap; i++) {
		if (table->slots[i] && table->slots[i]->is_failing)
			fail(table, table->slots[i], rc);
	}
}
