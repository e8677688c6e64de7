/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who wants to hear of which changes: an index from what a change of the
 * store concerns to the silos and keys that have asked about it, so that a
 * change costs as much as there are interested ones. Knows no channel and
 * sends nothing. Bounded by what is entered: LIMIT_PODS owners, and for each
 * the keys that its silo may have open.
 */
#ifndef CULVERT_BROKER_INTEREST_H
#define CULVERT_BROKER_INTEREST_H

#include "base/list.h"
#include "base/map.h"
#include "mesh/multi.h"
#include "mesh/store.h"

/* One open key of a silo; embedded. */
struct interest_view {
	struct multi multi;         /* first; in addresses or hosts */
	const struct view_key *key; /* borrowed; must not change while entered. NULL = not entered */
};

/* One silo; embedded. */
struct interest_owner {
	struct multi own;                 /* first; in owners */
	struct list in_space;             /* on the list of its namespace */
	struct list in_all;               /* in interest.all */
	const struct workload_info *info; /* borrowed likewise; NULL = not entered */
};

/* The index. Fields are private. */
struct interest {
	struct map addresses; /* struct interest_view by network and ip, multi */
	struct map hosts;     /* struct interest_view by host name, multi */
	struct map names;     /* those of VIEW_NAME, by the first label of the name, multi */
	struct map owners;    /* struct interest_owner by name, namespace and account, multi */
	struct map spaces;    /* silos by namespace */
	struct list all;      /* struct interest_owner */
};

/* What interest_tell calls. May mark things, must not enter or leave. */
struct interest_events {
	/* The answer to this key may differ. */
	void (*view)(void *ctx, struct interest_view *view);
	/* The silo's own record may differ, and with it all that hangs from it. */
	void (*own)(void *ctx, struct interest_owner *owner);
	/* The policies in force for the silo may differ. */
	void (*policies)(void *ctx, struct interest_owner *owner);
};

/* Prepares an empty index. */
void interest_init(struct interest *interest);

/* Frees the index; everybody must have left. */
void interest_done(struct interest *interest);

/* Enters a zeroed view under its key. 0, -ENOMEM. */
int interest_view_enter(struct interest *interest, struct interest_view *view, const struct view_key *key);

/* Takes a view out; fine when it is not in. */
void interest_view_leave(struct interest *interest, struct interest_view *view);

/* Enters a zeroed owner. 0, -ENOMEM. */
int interest_owner_enter(
        struct interest *interest, struct interest_owner *owner, const struct workload_info *info);

/* Takes an owner out; fine when it is not in. */
void interest_owner_leave(struct interest *interest, struct interest_owner *owner);

/*
 * Calls the events of everyone whom the change concerns, once each. All but
 * STORE_CIDR go straight to the interested ones; a range, which changes
 * seldom, looks at every address that is open.
 */
void interest_tell(const struct interest *interest, const struct store_change *change,
        const struct interest_events *events, void *ctx);

#endif
