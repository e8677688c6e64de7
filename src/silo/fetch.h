/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An awaitable value (design 2, WorkloadContext and Fetch). A getter completes
 * at once when the value is known; otherwise it waits, with a deadline, until
 * the value arrives, fails or the silo ends. Values are immutable, counted
 * snapshots: a connection keeps the one it started with, the next one sees
 * the newer. Knows neither what the values are nor where they come from.
 */
#ifndef CULVERT_SILO_FETCH_H
#define CULVERT_SILO_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/wheel.h"
#include "io/ring.h"

/* Bytes of a failure's text, terminator included; identity errors carry the CA's words. */
#define FETCH_TEXT_MAX 256

/* How values of a fetch are counted. */
struct fetch_kind {
	void (*ref)(void *value);   /* one more reference */
	void (*unref)(void *value); /* one less; the last frees */
};

/* Somebody who counts how long waits take; embed it. */
struct fetch_observer {
	void (*waited)(struct fetch_observer *observer, uint64_t ms);
};

/* An awaitable value; embed it. */
struct fetch {
	struct io *io;                 /* for deadlines; borrowed */
	const struct fetch_kind *kind; /* borrowed */
	void *value;                   /* current snapshot, one reference of ours; NULL = none yet */
	int code; /* 0, or why the last attempt failed (negative); kept beside an older value */
	char text[FETCH_TEXT_MAX];       /* words for code */
	struct list waiters;             /* struct fetch_wait, in order of arrival */
	struct list watchers;            /* struct fetch_watch */
	struct fetch_observer *observer; /* borrowed; NULL = nobody */
	unsigned telling; /* calls under way that tell of it, whose callbacks may do anything */
};

/* One getter that waits; embed it in whoever waits. */
struct fetch_wait {
	struct list node;   /* on the fetch, or detached */
	struct timer timer; /* the deadline */
	struct fetch *from; /* what is awaited; NULL = not waiting */
	uint64_t since_ms;  /* when the wait began */
	/*
	 * The end of the wait, once, unless cancelled: 0 and the value (borrowed; take a reference to
	 * keep it), or a negative code: what the fetch failed with, or -ETIMEDOUT. May free the waiter's
	 * owner.
	 */
	void (*done)(struct fetch_wait *wait, int code, void *value);
};

/* Somebody who wants every new value; embed it. */
struct fetch_watch {
	struct list node;
	/* A new value was set (borrowed). Must not end the fetch. */
	void (*changed)(struct fetch_watch *watch, void *value);
};

/* Prepares a fetch without a value. */
void fetch_init(struct fetch *fetch, struct io *io, const struct fetch_kind *kind);

/* Ends it: waiters get -ECANCELED, the value's reference is dropped. */
void fetch_done(struct fetch *fetch);

/* The current value, borrowed, or NULL. */
void *fetch_peek(const struct fetch *fetch);

/* The current value with a reference for the caller, or NULL. */
void *fetch_hold(const struct fetch *fetch);

/* Sets a new value, taking over the caller's reference; wakes waiters, then watchers. */
void fetch_set(struct fetch *fetch, void *value);

/* The last attempt failed: waiters get `code`; an older value stays. `text` may be NULL. */
void fetch_fail(struct fetch *fetch, int code, const char *text);

/* Forgets the value (it is no longer true) without telling anybody; waiters go on waiting. */
void fetch_forget(struct fetch *fetch);

/*
 * Waits for a value at most `deadline_ms` from now. Only when fetch_peek() is
 * NULL; `done` comes later, never from inside this call.
 */
void fetch_wait_start(struct fetch *fetch, struct fetch_wait *wait, uint64_t deadline_ms,
        void (*done)(struct fetch_wait *wait, int code, void *value));

/* Gives up waiting; fine when not waiting. */
void fetch_wait_cancel(struct fetch_wait *wait);

/* Whether somebody waits. */
bool fetch_is_awaited(const struct fetch *fetch);

/* Whether somebody waits or is being told: such a fetch must not be evicted. */
bool fetch_is_busy(const struct fetch *fetch);

/* Adds a watcher, told from the next value on. */
void fetch_watch_add(struct fetch *fetch, struct fetch_watch *watch,
        void (*changed)(struct fetch_watch *watch, void *value));

#endif
