/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Taking over silos that a former warden left: every control socket in the
 * instance folder is called, every Hello checked. Comes before the node agent
 * is dialled, so that no pod gets a second silo. Knows no ZDS.
 */
#ifndef CULVERT_WARDEN_ADOPT_H
#define CULVERT_WARDEN_ADOPT_H

#include <stdbool.h>

#include "base/list.h"
#include "warden/netns.h"
#include "warden/pods.h"
#include "warden/ward.h"

/* The call in progress. Private but for is_done. */
struct adopt {
	bool is_done;
	const struct ward_env *env;
	const struct netns_guard *guard;
	struct pods *pods;
	void (*done)(struct adopt *adopt); /* every socket has answered or failed */
	struct list calls;                 /* of struct adopt_call */
};

/* Calls all sockets in the folder. done follows, possibly before this returns. Arguments are borrowed. */
void adopt_init(struct adopt *adopt, const struct ward_env *env, const struct netns_guard *guard,
        struct pods *pods, void (*done)(struct adopt *adopt));

/* Drops the calls in progress; done is not called any more. */
void adopt_done(struct adopt *adopt);

#endif
