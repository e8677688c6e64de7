/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links against each other over loopback TCP with real TLS. */
#include "lab_tls.h"

static struct tunnel tunnel;

static int setup(void **state)
{
	tunnel_setup(&tunnel);
	*state = &tunnel;
	return 0;
}

static int teardown(void **state)
{
	tunnel_teardown(*state);
	return 0;
}

static void shakes_hands(void **state)
{
	struct tunnel *t = *state;
	tunnel_start(t);
	assert_string_equal(link_peer_identity(t->client.link), SERVER_ID);
	assert_string_equal(link_peer_identity(t->server.link), CLIENT_ID);
	assert_string_equal(link_tls_version(t->client.link), "TLSv1.3");
	assert_true(link_is_ready(t->client.link));
	assert_true(link_can_open(t->client.link));
	assert_int_equal(link_peer_max_streams(t->client.link), 200);
	assert_int_equal(link_streams(t->client.link), 0);
	assert_int_equal(t->client.ready, 1);
	assert_int_equal(t->server.ready, 1);
}

static void refuses_strangers(void **state)
{
	struct tunnel *t = *state;
	static const char *const accept[] = {"spiffe://cluster.local/ns/x/sa/y"};
	struct link_opts opts = client_opts(t);
	int fd[2];
	opts.accept = accept;
	lab_tcp(fd);
	end_start(t, &t->client, lab_sock(&t->lab, fd[0]), opts);
	end_start(t, &t->server, lab_sock(&t->lab, fd[1]), server_opts(t));
	lab_until(&t->lab, t->client.closed);
	assert_int_equal(t->client.code, ERR_TLS_SAN);
	assert_false(link_can_open(t->client.link));
	/* Freed at once: the alert still gets there. */
	link_free(t->client.link);
	t->client.link = NULL;
	lab_until(&t->lab, t->server.closed);
	assert_int_equal(t->server.code, ERR_TLS_HANDSHAKE);
	assert_non_null(strstr(t->server.text, "alert"));
	assert_int_equal(t->client.ready + t->server.ready, 0);
}

static void gives_up_on_silence(void **state)
{
	struct tunnel *t = *state;
	struct link_opts opts = server_opts(t);
	int fd[2];
	opts.handshake_ms = 50;
	lab_tcp(fd);
	/* The loop's clock, by which the deadline is set: on a slow machine it lags behind. */
	uint64_t start = io_now_ms(t->lab.io);
	end_start(t, &t->server, lab_sock(&t->lab, fd[0]), opts);
	lab_until(&t->lab, t->server.closed);
	assert_int_equal(t->server.code, ERR_TIMEOUT_HANDSHAKE);
	assert_true(clock_ms() - start >= 50);
	tunnel_stop(t);
	close(fd[1]);
	/* One that goes away in the midst, and one that speaks another protocol. */
	lab_tcp(fd);
	end_start(t, &t->server, lab_sock(&t->lab, fd[0]), server_opts(t));
	close(fd[1]);
	lab_until(&t->lab, t->server.closed);
	assert_int_equal(t->server.code, -EPIPE);
	assert_string_equal(t->server.text, "tls handshake eof");
	tunnel_stop(t);
	lab_tcp(fd);
	end_start(t, &t->server, lab_sock(&t->lab, fd[0]), server_opts(t));
	assert_int_equal(write(fd[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
	lab_until(&t->lab, t->server.closed);
	assert_int_equal(t->server.code, ERR_TLS_HANDSHAKE);
	close(fd[1]);
}

static void carries_a_stream(void **state)
{
	struct tunnel *t = *state;
	tunnel_start(t);
	struct tunnel_stream *s = tunnel_connect(t, "10.0.0.1:80");
	assert_ptr_equal(link_of(s->owner.stream), t->client.link);
	lab_until(&t->lab, s->status);
	assert_int_equal(s->status, 200);
	assert_string_equal(s->baggage, "k8s=v");
	assert_string_equal(t->server.streams[0].authority, "10.0.0.1:80");
	assert_int_equal(link_streams(t->client.link), 1);
	assert_int_equal(owner_send(&s->owner, 0, 3000), 0);
	lab_until(&t->lab, s->owner.got == 3000);
	/* Idle meanwhile; then ends by halves. */
	lab_sleep(&t->lab, 30);
	assert_int_equal(s->owner.eofs, 0);
	assert_int_equal(owner_send(&s->owner, 3000, 100000), 0);
	stream_shutdown(s->owner.stream);
	assert_int_equal(owner_send(&s->owner, 0, 1), -EPIPE);
	lab_until(&t->lab, s->owner.eofs && t->server.streams[0].owner.finished);
	assert_int_equal(s->owner.got, 103000);
	assert_false(s->owner.is_wrong);
	assert_int_equal(s->owner.finished, 1);
	assert_int_equal(s->owner.error, 0);
	assert_int_equal(s->owner.stream->taken, 103000);
	assert_int_equal(t->server.streams[0].owner.stream->taken, 103000);
}

static void answers_no(void **state)
{
	struct tunnel *t = *state;
	t->server.serve = SERVE_REFUSE;
	tunnel_start(t);
	struct tunnel_stream *s = tunnel_connect(t, "10.0.0.1:80");
	assert_int_equal(owner_send(&s->owner, 0, 1000), 0);
	lab_until(&t->lab, s->owner.eofs);
	assert_int_equal(s->status, 401);
	lab_until(&t->lab, link_streams(t->server.link) == 0);
	/* A header that HTTP/2 forbids leaves nothing behind. */
	struct stream *stream;
	struct h2_header bad = {.name = "Bad Name", .value = "x"};
	assert_int_equal(
	        link_connect(t->client.link, "a:1", &bad, 1, &answer_events, NULL, &stream), -EINVAL);
}

/* Writes and reads the pattern at the same time. */
static int peer_bulk(int fd, size_t len)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(peer_write(fd, len, 65536) < 0 || shutdown(fd, SHUT_WR) < 0);
	int status = 1;
	int r = peer_read(fd, len, true);
	waitpid(pid, &status, 0);
	return r < 0 ? 1 : status != 0;
}

static int peer_writes(int fd, size_t len)
{
	return peer_write(fd, len, 65536) < 0 || shutdown(fd, SHUT_WR) < 0 || peer_read(fd, 0, true) < 0;
}

static int peer_reads_late(int fd, size_t len)
{
	shutdown(fd, SHUT_WR);
	usleep(500000);
	return peer_read(fd, len, true) < 0;
}

/* Application - pump - link - link - pump - application, full duplex, all streams at once. */
static void run_bulk(struct tunnel *t, int cnt, size_t len)
{
	pid_t pids[2 * TUNNEL_STREAMS];
	int fds[TUNNEL_STREAMS];
	struct tunnel_stream *s[TUNNEL_STREAMS];
	t->server.serve = SERVE_FORWARD;
	for (int i = 0; i < cnt; i++) {
		int fd[2];
		lab_tcp(fd);
		pids[2 * i] = lab_peer(fd, peer_bulk, len);
		fds[i] = fd[0];
		lab_tcp(fd);
		pids[2 * i + 1] = lab_peer(fd, peer_bulk, len);
		t->server.forward_fds[i] = fd[0];
	}
	tunnel_start(t);
	for (int i = 0; i < cnt; i++) {
		s[i] = tunnel_connect(t, "10.0.0.1:80");
		stream_forward(s[i], fds[i], false);
	}
	for (int i = 0; i < cnt; i++) {
		lab_until(&t->lab, s[i]->pump_done && t->server.streams[i].pump_done);
		lab_join(&t->lab, pids[2 * i]);
		lab_join(&t->lab, pids[2 * i + 1]);
		assert_int_equal(s[i]->pump_code, 0);
		assert_int_equal(s[i]->received, len);
		assert_int_equal(s[i]->sent, len);
		assert_int_equal(t->server.streams[i].received, len);
		assert_int_equal(t->server.streams[i].sent, len);
	}
	lab_until(&t->lab, link_streams(t->client.link) == 0);
	assert_int_equal(t->client.closed + t->server.closed, 0);
}

static void carries_bulk(void **state)
{
	run_bulk(*state, 1, 100u << 20);
}

static void carries_many(void **state)
{
	run_bulk(*state, 24, 3u << 20);
}

/* The application at the far end does not read: what waits is bounded, then everything arrives. */
static void holds_back(void **state)
{
	struct tunnel *t = *state;
	size_t len = 60u << 20;
	int fd[2], app;
	lab_tcp(fd);
	pid_t writer = lab_peer(fd, peer_writes, len);
	app = fd[0];
	lab_tcp(fd);
	pid_t reader = lab_peer(fd, peer_reads_late, len);
	t->server.serve = SERVE_FORWARD;
	t->server.forward_fds[0] = fd[0];
	tunnel_start(t);
	struct tunnel_stream *s = tunnel_connect(t, "10.0.0.1:80");
	stream_forward(s, app, false);
	size_t most = 0;
	lab_until(&t->lab, (most = io_pool(t->lab.io)->used > most ? io_pool(t->lab.io)->used : most,
	                           s->pump_done && t->server.streams[0].pump_done));
	lab_join(&t->lab, writer);
	lab_join(&t->lab, reader);
	assert_int_equal(s->received, len);
	assert_true(most < 16u << 20);
}

static void tells_of_resets(void **state)
{
	struct tunnel *t = *state;
	t->server.serve = SERVE_PARK;
	tunnel_start(t);
	struct tunnel_stream *a = tunnel_connect(t, "a:1");
	struct tunnel_stream *b = tunnel_connect(t, "b:1");
	struct tunnel_stream *c = tunnel_connect(t, "c:1");
	lab_until(&t->lab, t->server.stream_cnt == 3);
	struct tunnel_stream *seen = t->server.streams;
	/* Abandoned by the client: known at once, though nobody reads. */
	stream_abort(a->owner.stream);
	a->owner.stream = NULL;
	lab_until(&t->lab, seen[0].owner.error);
	assert_int_equal(seen[0].owner.error, -EPIPE);
	assert_int_equal(link_respond(seen[0].owner.stream, 200, NULL, 0, false), -EPIPE);
	/* By the server, with a reason and without. */
	link_reset(seen[1].owner.stream, H2_INTERNAL_ERROR);
	seen[1].owner.stream = NULL;
	lab_until(&t->lab, b->owner.error);
	assert_int_equal(b->owner.error, -EPROTO);
	assert_string_equal(b->owner.text, "stream error received: INTERNAL_ERROR");
	assert_int_equal(owner_send(&b->owner, 0, 10), -EPIPE);
	stream_free(seen[2].owner.stream);
	seen[2].owner.stream = NULL;
	lab_until(&t->lab, c->owner.error);
	assert_int_equal(c->owner.error, -EPIPE);
	assert_int_equal(t->client.closed + t->server.closed, 0);
	lab_until(&t->lab, link_streams(t->client.link) == 0);
}

/* A connection that broke beyond the tunnel: bytes, then CONNECT_ERROR, which is a reset again. */
static void passes_breaks_on(void **state)
{
	struct tunnel *t = *state;
	t->server.serve = SERVE_PARK;
	tunnel_start(t);
	struct tunnel_stream *a = tunnel_connect(t, "a:1");
	struct tunnel_stream *b = tunnel_connect(t, "b:1");
	lab_until(&t->lab, t->server.stream_cnt == 2);
	struct tunnel_stream *seen = t->server.streams;
	for (int i = 0; i < 2; i++)
		assert_int_equal(link_respond(seen[i].owner.stream, 200, NULL, 0, false), 0);
	/* More than a window, so that the reset has to wait. */
	assert_int_equal(owner_send(&seen[0].owner, 0, 3000000), 0);
	stream_reset(seen[0].owner.stream);
	seen[0].owner.stream = NULL;
	lab_until(&t->lab, a->owner.error);
	assert_int_equal(a->owner.got, 3000000);
	assert_int_equal(a->owner.error, -ECONNRESET);
	assert_true(a->owner.stream->is_broken);
	/* One that was only let go of is not broken. */
	stream_abort(seen[1].owner.stream);
	seen[1].owner.stream = NULL;
	lab_until(&t->lab, b->owner.error);
	assert_int_equal(b->owner.error, -EPIPE);
	assert_false(b->owner.stream->is_broken);
}

static void tells_of_loss(void **state)
{
	struct tunnel *t = *state;
	tunnel_start(t);
	struct tunnel_stream *a = tunnel_connect(t, "a:1");
	struct tunnel_stream *b = tunnel_connect(t, "b:1");
	lab_until(&t->lab, a->status && b->status);
	/* The other side vanishes without a word. */
	struct linger linger = {.l_onoff = 1};
	setsockopt(sock_fd(link_transport(t->server.link)), SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	end_stop(&t->server);
	lab_until(&t->lab, t->client.closed);
	assert_true(t->client.code == -ECONNRESET || t->client.code == -EPIPE);
	assert_int_equal(t->client.streams_told, 2);
	assert_true(a->owner.error < 0);
	assert_int_equal(a->owner.eofs, 0);
	/* Streams survive their link. */
	link_free(t->client.link);
	t->client.link = NULL;
	lab_sleep(&t->lab, 5);
	assert_null(link_of(a->owner.stream));
	assert_int_equal(owner_send(&a->owner, 0, 10), -EPIPE);
	stream_shutdown(a->owner.stream);
}

static void outlived_streams_are_told(void **state)
{
	struct tunnel *t = *state;
	tunnel_start(t);
	struct tunnel_stream *s = tunnel_connect(t, "a:1");
	lab_until(&t->lab, s->status);
	link_free(t->client.link);
	t->client.link = NULL;
	assert_int_equal(s->owner.error, 0);
	lab_until(&t->lab, s->owner.error);
	assert_int_equal(s->owner.error, -EPIPE);
	lab_until(&t->lab, t->server.closed);
}

static void drains(void **state)
{
	struct tunnel *t = *state;
	tunnel_start(t);
	struct tunnel_stream *s = tunnel_connect(t, "a:1");
	lab_until(&t->lab, s->status);
	link_drain(t->server.link);
	lab_until(&t->lab, t->client.goaway >= 2);
	assert_false(link_can_open(t->client.link));
	/* The open stream goes on to its end, then both ends close cleanly. */
	assert_int_equal(owner_send(&s->owner, 0, 50000), 0);
	lab_until(&t->lab, s->owner.got == 50000);
	assert_int_equal(t->client.closed + t->server.closed, 0);
	stream_shutdown(s->owner.stream);
	lab_until(&t->lab, s->owner.eofs);
	stream_free(s->owner.stream);
	s->owner.stream = NULL;
	stream_free(t->server.streams[0].owner.stream);
	t->server.streams[0].owner.stream = NULL;
	lab_until(&t->lab, t->client.closed && t->server.closed);
	assert_int_equal(t->client.code, 0);
	assert_int_equal(t->server.code, 0);
	tunnel_stop(t);
	/* A client's turn: it closes with its last stream, here at once. */
	tunnel_start(t);
	link_drain(t->client.link);
	lab_until(&t->lab, t->client.closed);
	assert_int_equal(t->client.code, 0);
	link_free(t->client.link);
	t->client.link = NULL;
	lab_until(&t->lab, t->server.closed);
	assert_int_equal(t->server.code, 0);
	assert_int_equal(t->server.goaway, 1);
}

static void says_goodbye(void **state)
{
	struct tunnel *t = *state;
	tunnel_start(t);
	struct tunnel_stream *s = tunnel_connect(t, "a:1");
	lab_until(&t->lab, s->status);
	link_goodbye(t->server.link);
	link_free(t->server.link);
	t->server.link = NULL;
	lab_until(&t->lab, t->client.closed);
	assert_int_equal(t->client.goaway, 1);
	assert_int_equal(t->client.code, 0);
	assert_int_equal(s->owner.error, -EPIPE);
}

static void notices_dead_peers(void **state)
{
	struct tunnel *t = *state;
	struct h2_config h2;
	struct link_opts opts = client_opts(t);
	int fd[2];
	h2_config_init(&h2, false);
	h2.ping_interval_ms = 60;
	/* A loaded machine may stop us for longer than a PING takes. */
	h2.ping_timeout_ms = 1000;
	opts.h2 = &h2;
	lab_tcp(fd);
	end_start(t, &t->client, lab_sock(&t->lab, fd[0]), opts);
	end_start(t, &t->server, lab_sock(&t->lab, fd[1]), server_opts(t));
	lab_until(&t->lab, t->client.ready && t->server.ready);
	/* PINGs are answered for a while. */
	lab_sleep(&t->lab, 300);
	assert_int_equal(t->client.closed, 0);
	stream_read_stop(link_transport(t->server.link));
	uint64_t start = clock_ms();
	lab_until(&t->lab, t->client.closed);
	assert_int_equal(t->client.code, ERR_H2_PING_TIMEOUT);
	assert_in_range(clock_ms() - start, 900, 20000);
}

/* Clear text, and a tunnel inside a tunnel (dataplane 4.7). */
static void stacks(void **state)
{
	struct tunnel *t = *state;
	static struct tunnel_end inner_client, inner_server;
	memset(&inner_client, 0, sizeof(inner_client));
	memset(&inner_server, 0, sizeof(inner_server));
	inner_client.lab = inner_server.lab = &t->lab;
	t->server.serve = SERVE_PARK;
	int fd[2];
	lab_unix(fd);
	end_start(t, &t->client, lab_sock(&t->lab, fd[0]), (struct link_opts){0});
	end_start(t, &t->server, lab_sock(&t->lab, fd[1]), (struct link_opts){.is_server = true});
	assert_int_equal(t->client.ready, 0);
	lab_until(&t->lab, t->client.ready && t->server.ready);
	assert_string_equal(link_peer_identity(t->client.link), "");
	struct tunnel_stream *outer = tunnel_connect(t, "gateway:15008");
	lab_until(&t->lab, t->server.stream_cnt == 1);
	struct tunnel_stream *seen = &t->server.streams[0];
	assert_int_equal(link_respond(seen->owner.stream, 200, NULL, 0, false), 0);
	lab_until(&t->lab, outer->status == 200);
	end_start(t, &inner_client, outer->owner.stream, client_opts(t));
	end_start(t, &inner_server, seen->owner.stream, server_opts(t));
	outer->owner.stream = seen->owner.stream = NULL;
	lab_until(&t->lab, inner_client.ready && inner_server.ready);
	assert_string_equal(link_peer_identity(inner_client.link), SERVER_ID);
	struct stream *stream = NULL;
	struct tunnel_stream *s = &inner_client.streams[inner_client.stream_cnt++];
	s->end = &inner_client;
	assert_int_equal(
	        link_connect(inner_client.link, "10.0.0.9:90", NULL, 0, &answer_events, s, &stream), 0);
	owner_init(&s->owner, &t->lab, stream);
	stream_read_start(stream);
	assert_int_equal(owner_send(&s->owner, 0, 5u << 20), 0);
	stream_shutdown(stream);
	lab_until(&t->lab, s->owner.eofs);
	assert_int_equal(s->owner.got, 5u << 20);
	assert_false(s->owner.is_wrong);
	assert_string_equal(inner_server.streams[0].authority, "10.0.0.9:90");
	link_goodbye(inner_server.link);
	lab_until(&t->lab, inner_client.closed && inner_server.closed);
	assert_int_equal(inner_client.code, 0);
	end_stop(&inner_client);
	end_stop(&inner_server);
	lab_until(&t->lab, link_streams(t->client.link) == 0);
}

/* Ends freed at every moment of their lives, in any order, with everything in flight. */
static void lets_go_any_time(void **state)
{
	struct tunnel *t = *state;
	for (int i = 0; i < 150; i++) {
		int fd[2];
		lab_tcp(fd);
		t->server.free_on_ready = i % 29 == 7;
		t->client.free_on_ready = i % 31 == 7;
		t->server.free_on_request = i % 23 == 7;
		end_start(t, &t->client, lab_sock(&t->lab, fd[0]), client_opts(t));
		end_start(t, &t->server, lab_sock(&t->lab, fd[1]), server_opts(t));
		for (int turns = i / 5 % 12; turns > 0; turns--)
			io_turn(t->lab.io, true);
		for (int n = i % 4; n > 0 && t->client.link && link_can_open(t->client.link); n--) {
			struct tunnel_stream *s = tunnel_connect(t, "a:1");
			owner_send(&s->owner, 0, n % 2 ? 100 : 2u << 20);
			if (n % 3)
				stream_shutdown(s->owner.stream);
		}
		for (int turns = i % 7; turns > 0; turns--)
			io_turn(t->lab.io, true);
		if (i % 3 == 0 && t->server.link)
			link_goodbye(t->server.link);
		if (i % 2) {
			link_free(t->client.link);
			t->client.link = NULL;
		}
		for (int turns = i % 5; turns > 0; turns--)
			io_turn(t->lab.io, true);
		tunnel_stop(t);
	}
}

/* What a burst of traffic has needed goes back when it is over. */
static void gives_memory_back(void **state)
{
	struct tunnel *t = *state;
	run_bulk(t, 4, 4u << 20);
	lab_sleep(&t->lab, 2300);
	assert_int_equal(chunk_pool_idle(io_pool(t->lab.io)), 0);
	/* Lent to the kernel for the sockets that are open. */
	assert_true(io_pool(t->lab.io)->used <= IO_SMALL_CNT * CHUNK_SMALL + IO_BULK_CNT * CHUNK_BULK);
	tunnel_stop(t);
	lab_sleep(&t->lab, 2300);
	assert_int_equal(io_pool(t->lab.io)->used, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The outer link breaks: the inner one is told, at whatever stage it is. */
static void breaks_with_the_outer_link(void **state)
{
	struct tunnel *t = *state;
	struct tunnel *inner = mem_zalloc(1, sizeof(*inner));
	assert_non_null(inner);
	inner->client.lab = &t->lab;
	tunnel_start(t);
	t->server.serve = SERVE_PARK;
	struct tunnel_stream *outer = tunnel_connect(t, "gateway:15008");
	lab_until(&t->lab, t->server.stream_cnt == 1);
	assert_int_equal(link_respond(t->server.streams[0].owner.stream, 200, NULL, 0, false), 0);
	lab_until(&t->lab, outer->status);
	end_start(t, &inner->client, outer->owner.stream, client_opts(t));
	outer->owner.stream = NULL;
	link_free(t->client.link);
	t->client.link = NULL;
	lab_until(&t->lab, inner->client.closed);
	assert_true(inner->client.code < 0);
	assert_int_equal(inner->client.ready, 0);
	end_stop(&inner->client);
	io_turn(t->lab.io, false);
	mem_free(inner);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	        T(shakes_hands),
	        T(refuses_strangers),
	        T(gives_up_on_silence),
	        T(carries_a_stream),
	        T(answers_no),
	        T(carries_bulk),
	        T(carries_many),
	        T(holds_back),
	        T(tells_of_resets),
	        T(passes_breaks_on),
	        T(tells_of_loss),
	        T(outlived_streams_are_told),
	        T(drains),
	        T(says_goodbye),
	        T(notices_dead_peers),
	        T(stacks),
	        T(breaks_with_the_outer_link),
	        T(lets_go_any_time),
	        T(gives_memory_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
