/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Awaitable values; see fetch.h. Waiters may free themselves and each other from their callbacks. */
#include "silo/fetch.h"

#include <errno.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"

void fetch_init(struct fetch *fetch, struct io *io, const struct fetch_kind *kind)
{
	*fetch = (struct fetch){.io = io, .kind = kind};
	list_init(&fetch->waiters);
	list_init(&fetch->watchers);
}

void *fetch_peek(const struct fetch *fetch)
{
	return fetch->value;
}

void *fetch_hold(const struct fetch *fetch)
{
	if (fetch->value)
		fetch->kind->ref(fetch->value);
	return fetch->value;
}

void fetch_wait_cancel(struct fetch_wait *wait)
{
	if (!wait->from)
		return;
	io_timer_stop(wait->from->io, &wait->timer);
	list_del(&wait->node);
	wait->from = NULL;
}

/* A wait is over, by an answer or by its deadline. */
static void observe(const struct fetch *fetch, const struct fetch_wait *wait)
{
	if (fetch->observer)
		fetch->observer->waited(fetch->observer, io_now_ms(fetch->io) - wait->since_ms);
}

/*
 * Tells all waiters of now; those that start to wait meanwhile are left. The list is taken over
 * first and popped one by one, so that a callback may cancel any other waiter.
 */
static void wake(struct fetch *fetch, int code, void *value)
{
	struct list woken;
	fetch->telling++;
	list_init(&woken);
	list_move_all(&woken, &fetch->waiters);
	while (!list_empty(&woken)) {
		struct fetch_wait *wait = list_entry(woken.next, struct fetch_wait, node);
		observe(fetch, wait);
		fetch_wait_cancel(wait);
		wait->done(wait, code, value);
	}
	fetch->telling--;
}

void fetch_done(struct fetch *fetch)
{
	wake(fetch, -ECANCELED, NULL);
	fetch_forget(fetch);
}

void fetch_forget(struct fetch *fetch)
{
	void *old = fetch->value;
	fetch->value = NULL;
	if (old)
		fetch->kind->unref(old);
}

void fetch_set(struct fetch *fetch, void *value)
{
	void *old = fetch->value;
	fetch->value = value;
	fetch->code = 0;
	fetch->text[0] = '\0';
	/* A callback may set a newer value: this one must live until all have seen it. */
	fetch->kind->ref(value);
	fetch->telling++;
	wake(fetch, 0, value);
	list_for_each_safe(it, &fetch->watchers)
	{
		struct fetch_watch *watch = list_entry(it, struct fetch_watch, node);
		watch->changed(watch, value);
	}
	fetch->telling--;
	fetch->kind->unref(value);
	if (old)
		fetch->kind->unref(old);
}

void fetch_fail(struct fetch *fetch, int code, const char *text)
{
	fetch->code = code;
	snprintf(fetch->text, sizeof(fetch->text), "%s", text ? text : err_str(code));
	wake(fetch, code, NULL);
}

static void wait_expired(struct timer *timer, uint64_t now)
{
	(void)now;
	struct fetch_wait *wait = list_entry(timer, struct fetch_wait, timer);
	list_del(&wait->node);
	observe(wait->from, wait);
	wait->from = NULL;
	wait->done(wait, -ETIMEDOUT, NULL);
}

void fetch_wait_start(struct fetch *fetch, struct fetch_wait *wait, uint64_t deadline_ms,
        void (*done)(struct fetch_wait *wait, int code, void *value))
{
	ASSERT(!fetch->value);
	wait->from = fetch;
	wait->done = done;
	wait->since_ms = io_now_ms(fetch->io);
	list_init(&wait->node);
	list_add_tail(&fetch->waiters, &wait->node);
	timer_init(&wait->timer, wait_expired);
	io_timer_start(fetch->io, &wait->timer, deadline_ms);
}

bool fetch_is_awaited(const struct fetch *fetch)
{
	return !list_empty(&fetch->waiters);
}

bool fetch_is_busy(const struct fetch *fetch)
{
	return fetch->telling > 0 || fetch_is_awaited(fetch);
}

void fetch_watch_add(struct fetch *fetch, struct fetch_watch *watch,
        void (*changed)(struct fetch_watch *watch, void *value))
{
	watch->changed = changed;
	list_init(&watch->node);
	list_add_tail(&fetch->watchers, &watch->node);
}
