/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of known names; see known.h. A tag is 61 bits of the name's keyed
 * hash with three bits of state: with 100,000 names two of them share a tag
 * once in 10^9 tables, and then one resource is sent again.
 */
#include "xds/known.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* State in a tag. */
#define MARK 1u
#define FORM_SHIFT 1
#define FORM_MASK 6u
#define STATE_MASK 7u

/* How a slot's version is kept. */
enum form {
	FORM_EMPTY = 0, /* "" */
	FORM_HEX = 1,   /* lower-case hex digits without leading zero, as istiod writes them */
	FORM_ODD = 2,   /* the name is in the map, with its version */
};

/* A name kept as text. */
struct odd {
	char *version; /* behind name in the same block */
	bool is_marked;
	char name[];
};

static struct map_key odd_key(const void *item)
{
	return map_key_str(((const struct odd *)item)->name);
}

void xds_known_init(struct xds_known *known)
{
	*known = (struct xds_known){.seed = hash_seed_random()};
	map_init(&known->odd, XDS_KNOWN_MAX, odd_key);
}

void xds_known_done(struct xds_known *known)
{
	void *item;
	while ((item = map_pop(&known->odd)))
		mem_free(item);
	map_done(&known->odd);
	mem_free(known->slots);
	known->slots = NULL;
	known->cap = known->cnt = 0;
}

size_t xds_known_cnt(const struct xds_known *known)
{
	return known->cnt;
}

static uint64_t hash_of(const struct xds_known *known, const char *name)
{
	uint64_t hash = hash_bytes(&known->seed, name, strlen(name)) & ~(uint64_t)STATE_MASK;
	return hash ? hash : STATE_MASK + 1;
}

static size_t home(const struct xds_known *known, uint64_t tag)
{
	return (size_t)(tag >> 3) & (known->cap - 1);
}

/* The slot of a hash, or the free one where it would go. cap must not be 0. */
static struct xds_slot *find(const struct xds_known *known, uint64_t hash)
{
	size_t at = home(known, hash);
	while (known->slots[at].tag && ((known->slots[at].tag ^ hash) & ~(uint64_t)STATE_MASK))
		at = (at + 1) & (known->cap - 1);
	return &known->slots[at];
}

/* The slot of a name, or NULL. */
static struct xds_slot *lookup(const struct xds_known *known, const char *name)
{
	if (known->cnt == 0)
		return NULL;
	struct xds_slot *slot = find(known, hash_of(known, name));
	return slot->tag ? slot : NULL;
}

static enum form form_of(const struct xds_slot *slot)
{
	return (enum form)((slot->tag & FORM_MASK) >> FORM_SHIFT);
}

static int resize(struct xds_known *known, size_t cap)
{
	struct xds_known old = *known;
	known->slots = mem_zalloc(cap, sizeof(*known->slots));
	if (!known->slots) {
		known->slots = old.slots;
		return -ENOMEM;
	}
	known->cap = cap;
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].tag)
			*find(known, old.slots[i].tag) = old.slots[i];
	mem_free(old.slots);
	return 0;
}

/* Room for one more below 7/8. */
static int grow(struct xds_known *known)
{
	if (known->cnt >= XDS_KNOWN_MAX)
		return -ENOSPC;
	if (known->cap && known->cnt + 1 <= known->cap - known->cap / 8)
		return 0;
	return resize(known, known->cap ? known->cap * 2 : 64);
}

/* Empties a slot and moves up what had to pass it. */
static void clear(struct xds_known *known, struct xds_slot *slot)
{
	size_t mask = known->cap - 1;
	size_t hole = (size_t)(slot - known->slots), at = hole;
	for (;;) {
		at = (at + 1) & mask;
		if (!known->slots[at].tag)
			break;
		if (((at - home(known, known->slots[at].tag)) & mask) >= ((at - hole) & mask)) {
			known->slots[hole] = known->slots[at];
			hole = at;
		}
	}
	known->slots[hole] = (struct xds_slot){0};
	known->cnt--;
}

static bool parse_hex(const char *text, uint64_t *ret_v)
{
	uint64_t v = 0;
	size_t len = strlen(text);
	if (len == 0 || len > 16 || text[0] == '0')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] >= '0' && text[i] <= '9')
			v = v << 4 | (uint64_t)(text[i] - '0');
		else if (text[i] >= 'a' && text[i] <= 'f')
			v = v << 4 | (uint64_t)(text[i] - 'a' + 10);
		else
			return false;
	}
	*ret_v = v;
	return true;
}

/* Drops the text of a name, if it has one. */
static void drop_odd(struct xds_known *known, const char *name)
{
	mem_free(map_del_str(&known->odd, name));
}

static int put_odd(struct xds_known *known, const char *name, const char *version)
{
	size_t name_len = strlen(name) + 1, version_len = strlen(version) + 1;
	struct odd *odd = mem_alloc(sizeof(*odd) + name_len + version_len);
	void *old = NULL;
	if (!odd)
		return -ENOMEM;
	memcpy(odd->name, name, name_len);
	odd->version = memcpy(odd->name + name_len, version, version_len);
	odd->is_marked = true;
	int rc = map_put(&known->odd, odd, &old);
	mem_free(rc < 0 ? odd : old);
	return rc;
}

int xds_known_put(struct xds_known *known, const char *name, const char *version, bool keeps_name)
{
	uint64_t number = 0;
	enum form form = FORM_EMPTY;
	if (strlen(version) > XDS_VERSION_MAX)
		version = "";
	if (version[0])
		form = parse_hex(version, &number) ? FORM_HEX : FORM_ODD;
	if (!keeps_name)
		form = FORM_ODD;
	struct xds_slot *slot = lookup(known, name);
	int rc = slot ? 0 : grow(known);
	if (rc < 0)
		return rc;
	rc = form == FORM_ODD ? put_odd(known, name, version) : 0;
	if (rc < 0)
		return rc;
	if (slot && form != FORM_ODD && form_of(slot) == FORM_ODD)
		drop_odd(known, name);
	if (!slot) {
		slot = find(known, hash_of(known, name));
		known->cnt++;
	}
	slot->tag = hash_of(known, name) | (uint64_t)form << FORM_SHIFT | MARK;
	slot->version = form == FORM_HEX ? number : 0;
	return 0;
}

bool xds_known_del(struct xds_known *known, const char *name)
{
	struct xds_slot *slot = lookup(known, name);
	if (!slot)
		return false;
	if (form_of(slot) == FORM_ODD)
		drop_odd(known, name);
	clear(known, slot);
	if (known->cnt == 0) {
		mem_free(known->slots);
		known->slots = NULL;
		known->cap = 0;
	}
	return true;
}

bool xds_known_get(const struct xds_known *known, const char *name, char *ret_version)
{
	const struct xds_slot *slot = lookup(known, name);
	if (!slot || !ret_version)
		return slot != NULL;
	ret_version[0] = 0;
	if (form_of(slot) == FORM_HEX) {
		snprintf(ret_version, XDS_VERSION_MAX + 1, "%llx", (unsigned long long)slot->version);
	} else if (form_of(slot) == FORM_ODD) {
		const struct odd *odd = map_get_str(&known->odd, name);
		if (odd)
			memcpy(ret_version, odd->version, strlen(odd->version) + 1);
	}
	return true;
}

void xds_known_unmark(struct xds_known *known)
{
	size_t cursor = 0;
	struct odd *odd;
	for (size_t i = 0; i < known->cap; i++)
		known->slots[i].tag &= ~(uint64_t)MARK;
	while ((odd = map_next(&known->odd, &cursor)))
		odd->is_marked = false;
}

void xds_known_mark(struct xds_known *known, const char *name)
{
	struct xds_slot *slot = lookup(known, name);
	if (!slot)
		return;
	slot->tag |= MARK;
	struct odd *odd = form_of(slot) == FORM_ODD ? map_get_str(&known->odd, name) : NULL;
	if (odd)
		odd->is_marked = true;
}

bool xds_known_is_stale(const struct xds_known *known, const char *name)
{
	const struct xds_slot *slot = lookup(known, name);
	return slot && !(slot->tag & MARK);
}

bool xds_known_is_odd(const struct xds_known *known, const char *name)
{
	const struct xds_slot *slot = lookup(known, name);
	return slot && form_of(slot) == FORM_ODD;
}

void xds_known_each_odd(const struct xds_known *known, xds_known_fn *fn, void *ctx)
{
	size_t cursor = 0;
	const struct odd *odd;
	while ((odd = map_next(&known->odd, &cursor)))
		if (!fn(ctx, odd->name, odd->version, !odd->is_marked))
			return;
}

static bool drop_unmarked(void *item, void *ctx)
{
	struct odd *odd = item;
	(void)ctx;
	if (odd->is_marked)
		return false;
	mem_free(odd);
	return true;
}

void xds_known_sweep(struct xds_known *known)
{
	size_t left = 0;
	map_sweep(&known->odd, drop_unmarked, NULL);
	for (size_t i = 0; i < known->cap; i++) {
		if (known->slots[i].tag & MARK)
			left++;
		else
			known->slots[i] = (struct xds_slot){0};
	}
	known->cnt = left;
	/* Chains are broken by the holes: everything goes to its place anew, into less room where that will
	 * do. */
	size_t cap = 64;
	while (left + 1 > cap - cap / 8)
		cap *= 2;
	if (known->cap == 0 || resize(known, cap) == 0)
		return;
	/* Without memory the names are forgotten: a reconnect asks for everything again. */
	xds_known_done(known);
	map_init(&known->odd, XDS_KNOWN_MAX, odd_key);
}
