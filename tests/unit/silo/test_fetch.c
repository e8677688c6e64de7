/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Awaitable values and the view cache over them, on a real ring for the deadlines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "silo/cache.h"
#include "silo/fetch.h"

/* A counted value. */
struct value {
	int refs;
	int number;
};

static void value_ref(void *v)
{
	((struct value *)v)->refs++;
}

static void value_unref(void *v)
{
	struct value *value = v;
	if (--value->refs == 0)
		free(value);
}

static const struct fetch_kind KIND = {value_ref, value_unref};

static struct value *value_new(int number)
{
	struct value *value = calloc(1, sizeof(*value));
	value->refs = 1;
	value->number = number;
	return value;
}

/* A getter that notes how its wait ended. */
struct getter {
	struct fetch_wait wait;
	int calls;
	int code;
	int number;
	struct getter *cancels; /* another one to cancel from the callback */
};

static void got(struct fetch_wait *wait, int code, void *v)
{
	struct getter *getter = list_entry(wait, struct getter, wait);
	getter->calls++;
	getter->code = code;
	getter->number = v ? ((struct value *)v)->number : -1;
	if (getter->cancels)
		fetch_wait_cancel(&getter->cancels->wait);
}

static int set_up(void **state)
{
	struct io *io;
	struct err err;
	const struct io_opts opts = {0};
	if (io_new(&opts, &io, &err) < 0)
		return -1;
	*state = io;
	return 0;
}

static int tear_down(void **state)
{
	io_free(*state);
	return 0;
}

static void all_waiters_get_the_value(void **state)
{
	struct fetch fetch;
	struct getter a = {0}, b = {0};
	fetch_init(&fetch, *state, &KIND);
	assert_null(fetch_peek(&fetch));
	fetch_wait_start(&fetch, &a.wait, 60000, got);
	fetch_wait_start(&fetch, &b.wait, 60000, got);
	assert_true(fetch_is_awaited(&fetch));
	fetch_set(&fetch, value_new(7));
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 1);
	assert_int_equal(a.number, 7);
	assert_int_equal(b.code, 0);
	assert_false(fetch_is_awaited(&fetch));
	fetch_done(&fetch);
}

static void a_holder_keeps_the_older_value(void **state)
{
	struct fetch fetch;
	fetch_init(&fetch, *state, &KIND);
	fetch_set(&fetch, value_new(1));
	struct value *held = fetch_hold(&fetch);
	fetch_set(&fetch, value_new(2));
	assert_int_equal(held->number, 1);
	assert_int_equal(((struct value *)fetch_peek(&fetch))->number, 2);
	value_unref(held);
	fetch_done(&fetch);
}

static void a_failure_wakes_and_keeps_the_value(void **state)
{
	struct fetch fetch;
	struct getter a = {0};
	fetch_init(&fetch, *state, &KIND);
	fetch_wait_start(&fetch, &a.wait, 60000, got);
	fetch_fail(&fetch, -EIO, "no luck");
	assert_int_equal(a.code, -EIO);
	assert_string_equal(fetch.text, "no luck");
	fetch_set(&fetch, value_new(3));
	fetch_fail(&fetch, -EIO, NULL);
	assert_non_null(fetch_peek(&fetch));
	assert_int_equal(fetch.code, -EIO);
	fetch_done(&fetch);
}

static void a_callback_may_cancel_another_waiter(void **state)
{
	struct fetch fetch;
	struct getter a = {0}, b = {0};
	fetch_init(&fetch, *state, &KIND);
	fetch_wait_start(&fetch, &a.wait, 60000, got);
	fetch_wait_start(&fetch, &b.wait, 60000, got);
	a.cancels = &b;
	fetch_set(&fetch, value_new(1));
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 0);
	fetch_done(&fetch);
}

static void the_deadline_comes(void **state)
{
	struct io *io = *state;
	struct fetch fetch;
	struct getter a = {0};
	fetch_init(&fetch, io, &KIND);
	fetch_wait_start(&fetch, &a.wait, 20, got);
	for (int i = 0; i < 100 && a.calls == 0; i++)
		assert_int_equal(io_turn(io, true), 0);
	assert_int_equal(a.code, -ETIMEDOUT);
	assert_false(fetch_is_awaited(&fetch));
	fetch_done(&fetch);
}

static void the_end_wakes_waiters(void **state)
{
	struct fetch fetch;
	struct getter a = {0};
	fetch_init(&fetch, *state, &KIND);
	fetch_wait_start(&fetch, &a.wait, 60000, got);
	fetch_done(&fetch);
	assert_int_equal(a.code, -ECANCELED);
}

/* --- cache --------------------------------------------------------------- */

struct broker {
	int asks, evicts;
	bool refuses;
};

static bool ask(void *ctx, const struct view_key *key)
{
	struct broker *broker = ctx;
	(void)key;
	broker->asks += !broker->refuses;
	return !broker->refuses;
}

static void evict(void *ctx, const struct view_key *key)
{
	(void)key;
	((struct broker *)ctx)->evicts++;
}

static const struct cache_ops OPS = {ask, evict};

static struct view_key key_of(uint8_t last)
{
	struct ip ip = ip_v4(10, 0, 0, last);
	return view_key_address("", &ip);
}

static struct view *view_of(const struct view_key *key)
{
	struct view *view;
	struct arena *arena = arena_new(65536);
	assert_int_equal(view_new(arena, key, 1, NULL, NULL, NULL, 0, &view), 0);
	return view;
}

static void a_view_is_asked_once_and_kept(void **state)
{
	struct cache cache;
	struct broker broker = {0};
	struct view *view;
	struct fetch *fetch = NULL;
	struct view_key key = key_of(1);
	cache_init(&cache, *state, 4, &OPS, &broker);
	assert_int_equal(cache_view(&cache, &key, &view, &fetch), -EAGAIN);
	assert_int_equal(cache_view(&cache, &key, &view, &fetch), -EAGAIN);
	assert_int_equal(broker.asks, 1);
	cache_answer(&cache, view_of(&key));
	assert_int_equal(cache_view(&cache, &key, &view, &fetch), 0);
	assert_false(view->known);
	view_unref(view);
	cache_done(&cache);
}

static void the_least_recently_used_goes_and_is_told(void **state)
{
	struct cache cache;
	struct broker broker = {0};
	struct view *view;
	struct fetch *fetch;
	cache_init(&cache, *state, 3, &OPS, &broker);
	for (uint8_t i = 1; i <= 3; i++) {
		struct view_key key = key_of(i);
		assert_int_equal(cache_view(&cache, &key, &view, &fetch), -EAGAIN);
		cache_answer(&cache, view_of(&key));
	}
	struct view_key first = key_of(1);
	assert_int_equal(cache_view(&cache, &first, &view, &fetch), 0);
	view_unref(view);
	struct view_key fourth = key_of(4);
	assert_int_equal(cache_view(&cache, &fourth, &view, &fetch), -EAGAIN);
	assert_int_equal(broker.evicts, 1);
	assert_int_equal(cache_cnt(&cache), 3);
	/* The second was the oldest; the first had been used since. */
	assert_int_equal(cache_view(&cache, &first, &view, &fetch), 0);
	view_unref(view);
	cache_done(&cache);
}

static void awaited_entries_are_not_evicted(void **state)
{
	struct cache cache;
	struct broker broker = {0};
	struct view *view;
	struct fetch *fetch;
	struct getter getter = {0};
	struct view_key one = key_of(1), two = key_of(2);
	cache_init(&cache, *state, 1, &OPS, &broker);
	assert_int_equal(cache_view(&cache, &one, &view, &fetch), -EAGAIN);
	fetch_wait_start(fetch, &getter.wait, 60000, got);
	assert_int_equal(cache_view(&cache, &two, &view, &fetch), -ENOSPC);
	fetch_wait_cancel(&getter.wait);
	assert_int_equal(cache_view(&cache, &two, &view, &fetch), -EAGAIN);
	cache_done(&cache);
}

/* A getter that asks for something else when it is told. */
struct curious {
	struct fetch_wait wait;
	struct cache *cache;
	int code;
};

static void ask_more(struct fetch_wait *wait, int code, void *v)
{
	struct curious *curious = list_entry(wait, struct curious, wait);
	struct view_key two = key_of(2);
	struct view *view;
	struct fetch *fetch;
	assert_int_equal(code, 0);
	assert_non_null(v);
	curious->code = cache_view(curious->cache, &two, &view, &fetch);
}

static void what_is_being_told_is_not_evicted(void **state)
{
	struct cache cache;
	struct broker broker = {0};
	struct view *view;
	struct fetch *fetch;
	struct curious first = {.cache = &cache}, second = {.cache = &cache};
	struct view_key one = key_of(1), two = key_of(2);
	cache_init(&cache, *state, 1, &OPS, &broker);
	assert_int_equal(cache_view(&cache, &one, &view, &fetch), -EAGAIN);
	fetch_wait_start(fetch, &first.wait, 60000, ask_more);
	fetch_wait_start(fetch, &second.wait, 60000, ask_more);
	cache_answer(&cache, view_of(&one));
	assert_int_equal(first.code, -ENOSPC);
	assert_int_equal(second.code, -ENOSPC);
	/* Afterwards it may go. */
	assert_int_equal(cache_view(&cache, &two, &view, &fetch), -EAGAIN);
	cache_done(&cache);
}

static void a_new_broker_is_asked_for_everything(void **state)
{
	struct cache cache;
	struct broker broker = {.refuses = true};
	struct view *view;
	struct fetch *fetch;
	struct view_key one = key_of(1), two = key_of(2);
	cache_init(&cache, *state, 4, &OPS, &broker);
	assert_int_equal(cache_view(&cache, &one, &view, &fetch), -EAGAIN);
	assert_int_equal(cache_view(&cache, &two, &view, &fetch), -EAGAIN);
	assert_int_equal(broker.asks, 0);
	broker.refuses = false;
	cache_ask_pending(&cache);
	assert_int_equal(broker.asks, 2);
	cache_ask_pending(&cache);
	assert_int_equal(broker.asks, 2);
	cache_answer(&cache, view_of(&one));
	cache_forget_asks(&cache);
	/* The value stays valid until the new broker answers. */
	assert_int_equal(cache_view(&cache, &one, &view, &fetch), 0);
	view_unref(view);
	cache_ask_pending(&cache);
	assert_int_equal(broker.asks, 4);
	cache_done(&cache);
}

static void an_answer_nobody_wants_is_dropped(void **state)
{
	struct cache cache;
	struct broker broker = {0};
	struct view_key key = key_of(9);
	cache_init(&cache, *state, 4, &OPS, &broker);
	cache_answer(&cache, view_of(&key));
	assert_int_equal(cache_cnt(&cache), 0);
	cache_done(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(all_waiters_get_the_value),
	        cmocka_unit_test(a_holder_keeps_the_older_value),
	        cmocka_unit_test(a_failure_wakes_and_keeps_the_value),
	        cmocka_unit_test(a_callback_may_cancel_another_waiter),
	        cmocka_unit_test(the_deadline_comes),
	        cmocka_unit_test(the_end_wakes_waiters),
	        cmocka_unit_test(a_view_is_asked_once_and_kept),
	        cmocka_unit_test(the_least_recently_used_goes_and_is_told),
	        cmocka_unit_test(awaited_entries_are_not_evicted),
	        cmocka_unit_test(what_is_being_told_is_not_evicted),
	        cmocka_unit_test(a_new_broker_is_asked_for_everything),
	        cmocka_unit_test(an_answer_nobody_wants_is_dropped),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
