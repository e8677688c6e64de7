/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every allocation of a whole conversation fails once: nothing leaks, nothing
 * crashes, and who is told of failure is told -ENOMEM.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pair.h"

static long countdown = -1;

bool mem_should_fail(size_t len)
{
	if (countdown < 0)
		return false;
	return countdown-- == 0;
}

/* As the pump of pair.h, but an error just ends it. */
static int move(struct end *from, struct end *to)
{
	const uint8_t *piece;
	size_t len;
	int err;

	while ((err = h2_pull(from->session, &piece, &len)) == 1) {
		err = h2_feed(to->session, piece, len, 1000);
		if (err)
			return err;
	}
	return err;
}

static void both(struct end *client, struct end *server, int *ret_err)
{
	for (int i = 0; i < 6 && !*ret_err; i++) {
		*ret_err = move(client, server);
		if (!*ret_err)
			*ret_err = move(server, client);
	}
}

static int conversation(
        struct end *client, struct end *server, struct rec *a, struct chunk *up, struct chunk *down)
{
	struct h2_header line = {"baggage", "k8s.pod.name=a", false};
	struct chain chain = {0};
	int err;

	err = h2_connect(client->session, "10.0.0.1:80", &line, 1, &rec_ops, a, &a->stream);
	if (err)
		goto out;
	chain_append(&chain, up);
	up = NULL;
	err = h2_stream_write(a->stream, &chain);
	chain_clear(&chain);
	if (err)
		goto out;
	both(client, server, &err);
	if (err || server->rec_cnt == 0 || server->recs[0].resets || a->resets)
		goto out;
	chain_append(&chain, down);
	down = NULL;
	err = h2_stream_write(server->recs[0].stream, &chain);
	chain_clear(&chain);
	if (!err)
		err = h2_stream_end(server->recs[0].stream);
	if (!err)
		err = h2_drain(server->session);
	if (!err)
		err = h2_tick(client->session, 20000);
	if (!err)
		both(client, server, &err);
	if (!err)
		h2_stream_reset(a->stream, H2_CANCEL);
	if (!err)
		both(client, server, &err);
	if (!err)
		err = h2_goaway(server->session, H2_INTERNAL_ERROR);
	if (!err)
		both(client, server, &err);
out:
	chunk_free(up);
	chunk_free(down);
	return err;
}

/* Runs it with the nth allocation failing; returns whether that many were made. */
static bool run(struct chunk_pool *pool, long nth)
{
	struct end client = {0};
	struct end server = {.answer = 0};
	struct rec a = {0};
	struct chunk *up = chunk_new(pool, 40000);
	struct chunk *down = chunk_new(pool, 40000);
	bool is_reached;
	int err;

	up->len = down->len = 40000;
	memset(chunk_bytes(up), 1, 40000);
	memset(chunk_bytes(down), 1, 40000);
	h2_config_init(&client.config, false);
	h2_config_init(&server.config, true);
	client.recs = calloc(4, sizeof(struct rec));
	server.recs = calloc(4, sizeof(struct rec));
	client.rec_max = server.rec_max = 4;
	countdown = nth;
	err = h2_env_new(0, &client.env);
	if (!err)
		err = h2_env_new(0, &server.env);
	if (!err)
		err = h2_session_new(client.env, &client.config, &end_ops, &client, 1000, &client.session);
	if (!err)
		err = h2_session_new(server.env, &server.config, &end_ops, &server, 1000, &server.session);
	if (err) {
		chunk_free(up);
		chunk_free(down);
	} else {
		err = conversation(&client, &server, &a, up, down);
	}
	is_reached = countdown < 0;
	countdown = -1;
	if (err)
		assert_int_equal(err, -ENOMEM);
	if (!is_reached)
		assert_int_equal(err, 0);
	if (client.session && server.session) {
		h2_abort(client.session, err);
		h2_abort(server.session, err);
	}
	h2_session_free(client.session);
	h2_session_free(server.session);
	h2_env_free(client.env);
	h2_env_free(server.env);
	free(client.recs);
	free(server.recs);
	return is_reached;
}

static void every_allocation_may_fail(void **state)
{
	struct chunk_pool pool;
	long nth = 0;

	chunk_pool_init(&pool, 1u << 20);
	while (run(&pool, nth))
		nth++;
	assert_true(nth > 50);
	assert_int_equal(pool.used, 0);
	chunk_pool_done(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};

	return cmocka_run_group_tests_name("h2 alloc", tests, NULL, NULL);
}
