/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inbound connections under policy: judged when they are opened and again
 * whenever the policies change (reference dataplane.md 10, 11).
 */
#ifndef CULVERT_SILO_TRACK_H
#define CULVERT_SILO_TRACK_H

#include "base/list.h"
#include "mesh/rbac.h"

struct silo;

/* One tracked connection; embed it. */
struct track {
	struct list node;      /* in silo.tracked, or detached */
	struct rbac_conn conn; /* what policies see; its identity borrows from the owner */
	/* Our record as it was when the connection came; borrowed. Its list of policies stays the
	 * connection's. */
	const struct workload *own;
	/* Policies no longer allow it: the owner ends the connection (and may free itself). */
	void (*denied)(struct track *track);
};

/* Enters a connection before it is judged, so that a change meanwhile is not missed. */
void track_add(struct silo *silo, struct track *track, void (*denied)(struct track *track));

/* Takes it out; fine when it is not in. */
void track_del(struct track *track);

/*
 * Judges by the present policies. True = allowed; otherwise `reason` (of
 * `cap` bytes) holds the words of the access log.
 */
bool track_is_allowed(struct silo *silo, const struct track *track, char *reason, size_t cap);

/* The policies changed: ends what is no longer allowed. Not during a drain (dataplane 14). */
void track_recheck(struct silo *silo);

#endif
