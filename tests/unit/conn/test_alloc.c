/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each allocation in the life of a tunnel fails once: whatever that breaks is
 * told or retried, nothing hangs, leaks or crashes.
 */
#include "lab_tls.h"

static struct tunnel tunnel;

/* Allocations until the one that fails; negative = none. */
static long countdown = -1;

bool mem_should_fail(size_t len)
{
	return countdown >= 0 && countdown-- == 0;
}

/* A tunnel, a stream, an echo and the end of all; false when something failed before it was over. */
static bool live_once(struct tunnel *t)
{
	struct err err = {0};
	struct link_opts copts = client_opts(t), sopts = server_opts(t);
	struct stream *a = NULL, *b = NULL;
	int fd[2];
	copts.env = sopts.env = t->env;
	lab_tcp(fd);
	if (sock_new(t->lab.io, fd[0], &a) < 0)
		close(fd[0]);
	if (sock_new(t->lab.io, fd[1], &b) < 0)
		close(fd[1]);
	if (a && link_new(t->lab.io, a, &copts, &end_events, &t->client, &t->client.link, &err) == 0)
		a = NULL;
	if (b && link_new(t->lab.io, b, &sopts, &end_events, &t->server, &t->server.link, &err) == 0)
		b = NULL;
	stream_free(a);
	stream_free(b);
	if (!t->client.link || !t->server.link)
		return false;
	lab_until(&t->lab, t->client.ready || t->client.closed || t->server.closed);
	struct tunnel_stream *s = &t->client.streams[0];
	struct stream *stream = NULL;
	if (!link_can_open(t->client.link) ||
	        link_connect(t->client.link, "a:1", NULL, 0, &answer_events, s, &stream) < 0)
		return false;
	t->client.stream_cnt = 1;
	owner_init(&s->owner, &t->lab, stream);
	stream_read_start(stream);
	struct chain data = {0};
	static const uint8_t bytes[50000];
	if (chain_write(&data, io_pool(t->lab.io), bytes, sizeof(bytes)) < 0 ||
	        stream_write(stream, &data) < 0)
		return false;
	stream_shutdown(stream);
	lab_until(&t->lab, s->owner.eofs || s->owner.error || t->client.closed || t->server.closed);
	return s->owner.got == sizeof(bytes) && s->owner.eofs;
}

static void survives_each_failure(void **state)
{
	struct tunnel *t = &tunnel;
	int good = 0, bad = 0;
	tunnel_setup(t);
	/* What is built once per process is not the subject. */
	assert_true(live_once(t));
	tunnel_stop(t);
	for (long n = 0; good < 20 && n < 2000; n++) {
		countdown = n;
		bool is_good = live_once(t);
		tunnel_stop(t);
		lab_sleep(&t->lab, 1);
		/* Twenty runs that did not even get to the failing one: all have been through. */
		good = countdown >= 0 ? good + 1 : 0;
		bad += !is_good;
		countdown = -1;
	}
	assert_int_equal(good, 20);
	assert_true(bad > 10);
	tunnel_teardown(t);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(survives_each_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
