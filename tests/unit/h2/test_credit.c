/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive windows in action: growth with use, the shared budget, stalled
 * streams beside running ones, and giving everything back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

static size_t used(struct pair *pair)
{
	return h2_env_budget(pair->server.env)->used;
}

/* Sends `len` bytes through the stream as its owners would, in `step_ms` of time per 64 KB. */
static void transfer(struct pair *pair, struct rec *a, size_t len, uint64_t step_ms)
{
	for (size_t done = 0; done < len; done += 65536) {
		assert_int_equal(rec_write(pair, a, 65536, 0, 0), 0);
		pair_pump(pair);
		pair->now += step_ms;
	}
}

/* Bytes that arrive at a reader that stops consuming: the window it has. */
static size_t probe_window(struct pair *pair, struct rec *a, struct rec *b)
{
	size_t before = b->data_len;

	b->is_lazy = true;
	while (rec_write(pair, a, 65536, 0, 0) == 0)
		pair_pump(pair);
	pair_pump(pair);
	return b->data_len - before;
}

static void window_grows_with_use(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};
	struct rec *b = &pair->server.recs[0];

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	assert_int_equal(h2_window(pair->server.session), 1u << 20);
	transfer(pair, &a, 64u << 20, 0);
	/* One stream needs no more than twice its own window. */
	assert_int_equal(h2_window(pair->server.session), 8u << 20);
	assert_int_equal(used(pair), 8u << 20);
	/* What was consumed and not yet announced is missing from it: under a half. */
	assert_in_range(probe_window(pair, &a, b), 2u << 20, 4u << 20);
	pair_free(pair);
}

static void slow_stream_keeps_small_window(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};
	struct rec *b = &pair->server.recs[0];

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	transfer(pair, &a, 16u << 20, 100);
	assert_int_equal(h2_window(pair->server.session), 1u << 20);
	assert_in_range(probe_window(pair, &a, b), 128u << 10, 256u << 10);
	pair_free(pair);
}

static void window_shrinks_again(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	transfer(pair, &a, 64u << 20, 0);
	assert_int_equal(used(pair), 8u << 20);
	/* A trickle over minutes: the budget comes back as promised credit is used up. */
	transfer(pair, &a, 32u << 20, 2000);
	assert_int_equal(h2_window(pair->server.session), 1u << 20);
	assert_int_equal(used(pair), 1u << 20);
	/* And it grows anew. */
	transfer(pair, &a, 64u << 20, 0);
	assert_int_equal(used(pair), 8u << 20);
	pair_free(pair);
}

static void stalled_streams_do_not_block_others(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec stalled[8] = {0};
	struct rec a = {0};

	pair->server.is_lazy = true;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pair_connect(pair, &stalled[i], "a:1"), 0);
		pair_pump(pair);
		rec_write(pair, &stalled[i], 300000, 0, 0);
	}
	pair_pump(pair);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pair->server.recs[i].data_len, 262144);
	pair->server.is_lazy = false;
	assert_int_equal(pair_connect(pair, &a, "b:1"), 0);
	pair_pump(pair);
	transfer(pair, &a, 1u << 20, 1000);
	assert_int_equal(pair->server.recs[8].data_len, 1u << 20);
	/* The connection never promised more than the ceiling. */
	assert_true(h2_window(pair->server.session) <= 16u << 20);
	pair_free(pair);
}

static void stalled_memory_is_bounded(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec *recs = calloc(190, sizeof(*recs));
	size_t total = 0;

	pair->server.is_lazy = true;
	pair_pump(pair);
	for (int i = 0; i < 190; i++) {
		assert_int_equal(pair_connect(pair, &recs[i], "a:1"), 0);
		rec_write(pair, &recs[i], 300000, 0, 0);
		pair_pump(pair);
	}
	for (int i = 0; i < 190; i++)
		total += pair->server.recs[i].data_len;
	assert_int_equal(total, 16u << 20);
	assert_int_equal(used(pair), 16u << 20);
	free(recs);
	pair_free(pair);
}

static void budget_limits_all(void **state)
{
	struct h2_env *env;
	struct h2_config config;
	struct h2_session *sessions[6];

	assert_int_equal(h2_env_new(3500000, &env), 0);
	h2_config_init(&config, true);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(h2_session_new(env, &config, &end_ops, NULL, 0, &sessions[i]), 0);
		assert_int_equal(h2_window(sessions[i]), i < 3    ? 1048576
		                                         : i == 3 ? 3500000 - 3 * 1048576
		                                                  : 65535);
	}
	assert_int_equal(h2_env_budget(env)->used, 3500000 + 2 * 65535);
	for (int i = 0; i < 6; i++)
		h2_session_free(sessions[i]);
	assert_int_equal(h2_env_budget(env)->used, 0);
	h2_env_free(env);
}

static void growth_stops_at_the_budget(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct h2_env *env;
	struct h2_session *session;
	struct rec a = {0};

	/* A server whose process has 3 MiB for everyone. */
	assert_int_equal(h2_env_new(3u << 20, &env), 0);
	assert_int_equal(
	        h2_session_new(env, &pair->server.config, &end_ops, &pair->server, pair->now, &session), 0);
	h2_session_free(pair->server.session);
	h2_env_free(pair->server.env);
	pair->server.session = session;
	pair->server.env = env;
	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	transfer(pair, &a, 64u << 20, 0);
	assert_int_equal(used(pair), 3u << 20);
	assert_int_equal(h2_window(session), 3u << 20);
	pair_free(pair);
}

static void credit_of_dropped_streams_returns(void **state)
{
	struct pair *pair = pair_new(NULL);

	pair->server.is_lazy = true;
	/* Far more than the connection window in bytes that nobody consumes. */
	for (int i = 0; i < 200; i++) {
		struct rec a = {0};

		assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
		assert_in_range(rec_write(pair, &a, 260000, 0, 0), 0, 1);
		pair_pump(pair);
		assert_int_equal(pair->server.recs[i].data_len, 260000);
		if (i % 2) {
			h2_stream_release(a.stream);
			pair_pump(pair);
			h2_stream_release(pair->server.recs[i].stream);
		} else {
			h2_stream_release(pair->server.recs[i].stream);
			pair_pump(pair);
			h2_stream_release(a.stream);
		}
		pair_pump(pair);
	}
	assert_true(h2_window(pair->server.session) <= 16u << 20);
	pair_free(pair);
}

static void data_after_reset_is_credited(void **state)
{
	struct pair *pair = pair_new(NULL);

	/* The server drops streams while data is on the way. */
	for (int i = 0; i < 200; i++) {
		struct rec a = {0};

		assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
		pair_pump(pair);
		rec_write(pair, &a, 200000, 0, 0);
		h2_stream_reset(pair->server.recs[i].stream, H2_CANCEL);
		end_pump(&pair->client, &pair->server, pair->now, SIZE_MAX);
		pair_pump(pair);
		assert_int_equal(a.resets, 1);
		assert_int_equal(h2_stream_queued(a.stream), 0);
		h2_stream_release(a.stream);
	}
	pair_free(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(window_grows_with_use),
	        cmocka_unit_test(slow_stream_keeps_small_window),
	        cmocka_unit_test(window_shrinks_again),
	        cmocka_unit_test(stalled_streams_do_not_block_others),
	        cmocka_unit_test(stalled_memory_is_bounded),
	        cmocka_unit_test(budget_limits_all),
	        cmocka_unit_test(growth_stops_at_the_budget),
	        cmocka_unit_test(credit_of_dropped_streams_returns),
	        cmocka_unit_test(data_after_reset_is_credited),
	};
	return cmocka_run_group_tests_name("h2 credit", tests, NULL, NULL);
}
