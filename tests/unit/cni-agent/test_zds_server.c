/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ZDS server against peers on socket pairs, packet by packet. Deadlines of
 * five seconds are not waited for: the timers are fired by hand.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "zds_conn.h"

#define OFFERS_MAX 8

struct update {
	struct zds_call call;
	int done_cnt;
	bool is_refused;
	char error[256];
};

struct fixture {
	struct loop loop;
	struct zds_server server;
	struct offer *offers[OFFERS_MAX]; /* the snapshot */
	size_t offer_cnt;
	char answers[512]; /* "uid=error;" of answered */
};

static int snapshot(void *ctx, struct offer ***ret_offers, size_t *ret_cnt)
{
	struct fixture *f = ctx;
	struct offer **offers = mem_zalloc(f->offer_cnt + 1, sizeof(struct offer *));
	for (size_t i = 0; i < f->offer_cnt; i++)
		offers[i] = offer_ref(f->offers[i]);
	*ret_offers = offers;
	*ret_cnt = f->offer_cnt;
	return 0;
}

static void answered(void *ctx, const struct offer *offer, const char *error)
{
	struct fixture *f = ctx;
	size_t len = strlen(f->answers);
	snprintf(
	        f->answers + len, sizeof(f->answers) - len, "%s=%s;", offer->spec->uid, error ? error : "ok");
}

static void on_done(struct zds_call *call, const char *error)
{
	struct update *update = list_entry(call, struct update, call);
	update->done_cnt++;
	update->is_refused = call->is_refused;
	snprintf(update->error, sizeof(update->error), "%s", error ? error : "");
}

/* An offer whose "namespace" is a file, or none. */
static struct offer *offer_of(const char *uid, bool has_netns)
{
	const struct pod_spec *spec = small_spec(uid);
	struct offer *offer = offer_new(spec, has_netns ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1, NULL);
	pod_spec_unref(spec);
	assert_non_null(offer);
	return offer;
}

static int setup(void **state)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	assert_int_equal(loop_init(&f->loop), 0);
	zds_server_init(&f->server, &f->loop, NULL,
	        (struct zds_source){.ctx = f, .snapshot = snapshot, .answered = answered});
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	zds_server_done(&f->server);
	loop_done(&f->loop);
	for (size_t i = 0; i < f->offer_cnt; i++)
		offer_unref(f->offers[i]);
	mem_free(f);
	return 0;
}

/* Lets everything happen that can happen without waiting. */
static void turn(struct fixture *f)
{
	for (int i = 0; i < 10; i++)
		assert_int_equal(loop_step(&f->loop, 0), 0);
}

/* A peer of the server; returns its end. */
static int connect_peer(struct fixture *f)
{
	int fds[2];
	assert_int_equal(fd_pair(fds), 0);
	assert_int_equal(zds_server_adopt(&f->server, fds[0]), 0);
	return fds[1];
}

static struct zds_conn *newest(struct fixture *f)
{
	return list_entry(f->server.conns.prev, struct zds_conn, node);
}

static void say(struct fixture *f, int peer, const char *bytes, size_t len)
{
	assert_int_equal(fd_send(peer, bytes, len, -1), 0);
	turn(f);
}

static void hello(struct fixture *f, int peer)
{
	say(f, peer, "\x08\x01", 2);
}

static void ack(struct fixture *f, int peer)
{
	say(f, peer, "\x0a\x00", 2);
}

static void nack(struct fixture *f, int peer)
{
	say(f, peer, "\x0a\x03\x0a\x01x", 5);
}

/* That the next packet is `type` for uid, with a descriptor exactly for Add. */
static void expect(int peer, enum zds_request_type type, const char *uid)
{
	struct zds_request req;
	struct err err;
	int fd = -1;
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	assert_ok(zds_recv_request(peer, arena, &req, &fd, &err));
	assert_int_equal(req.type, type);
	assert_string_equal(req.uid, uid);
	assert_true((fd >= 0) == (type == ZDS_ADD));
	if (type == ZDS_ADD)
		assert_string_equal(req.info.ns, "ns");
	fd_close(&fd);
	arena_unref(arena);
}

static void expect_silence(int peer)
{
	uint8_t packet[ZDS_PACKET_MAX];
	size_t len;
	int fd;
	assert_int_equal(zds_recv(peer, packet, &len, &fd, NULL), -EAGAIN);
}

static void expect_closed(int peer)
{
	uint8_t packet[ZDS_PACKET_MAX];
	size_t len = 1;
	int fd;
	/* What was still in the socket when it closed makes it a reset. */
	int rc = zds_recv(peer, packet, &len, &fd, NULL);
	assert_true((rc == 0 && len == 0) || rc == -ECONNRESET);
}

/* A peer that has said hello and acknowledged an empty snapshot. */
static int ready_peer(struct fixture *f)
{
	int peer = connect_peer(f);
	hello(f, peer);
	expect(peer, ZDS_SNAPSHOT_SENT, "");
	ack(f, peer);
	return peer;
}

static void test_nothing_before_the_hello(void **state)
{
	struct fixture *f = *state;
	int peer = connect_peer(f);
	turn(f);
	expect_silence(peer);
	close(peer);
	turn(f);
	assert_int_equal(f->server.conn_cnt, 0);
}

static void test_snapshot_one_at_a_time(void **state)
{
	struct fixture *f = *state;
	f->offers[f->offer_cnt++] = offer_of("a", true);
	f->offers[f->offer_cnt++] = offer_of("b", false);
	f->offers[f->offer_cnt++] = offer_of("c", true);
	int peer = connect_peer(f);
	hello(f, peer);
	expect(peer, ZDS_ADD, "a");
	expect_silence(peer);
	ack(f, peer);
	expect(peer, ZDS_KEEP, "b");
	ack(f, peer);
	expect(peer, ZDS_ADD, "c");
	nack(f, peer);
	expect(peer, ZDS_SNAPSHOT_SENT, "");
	expect_silence(peer);
	ack(f, peer);
	expect_silence(peer);
	assert_string_equal(f->answers, "a=ok;c=got ack error: x;");
	assert_int_equal(f->server.conn_cnt, 1);
	close(peer);
}

static void test_updates_wait_for_the_snapshot(void **state)
{
	struct fixture *f = *state;
	struct update update = {.call.done = on_done};
	struct offer *offer = offer_of("late", true);
	f->offers[f->offer_cnt++] = offer_of("a", true);
	int peer = connect_peer(f);
	assert_int_equal(zds_server_add(&f->server, &update.call, offer), 0);
	turn(f);
	expect_silence(peer);
	hello(f, peer);
	expect(peer, ZDS_ADD, "a");
	ack(f, peer);
	expect(peer, ZDS_SNAPSHOT_SENT, "");
	ack(f, peer);
	expect(peer, ZDS_ADD, "late");
	assert_int_equal(update.done_cnt, 0);
	ack(f, peer);
	assert_int_equal(update.done_cnt, 1);
	assert_string_equal(update.error, "");
	offer_unref(offer);
	close(peer);
}

static void test_nack_of_an_add(void **state)
{
	struct fixture *f = *state;
	struct update update = {.call.done = on_done};
	struct offer *offer = offer_of("u", true);
	int peer = ready_peer(f);
	assert_int_equal(zds_server_add(&f->server, &update.call, offer), 0);
	turn(f);
	expect(peer, ZDS_ADD, "u");
	nack(f, peer);
	assert_string_equal(update.error, "got ack error: x");
	assert_true(update.is_refused);
	assert_int_equal(f->server.conn_cnt, 1);
	offer_unref(offer);
	close(peer);
}

static void test_add_to_the_newest_del_to_all(void **state)
{
	struct fixture *f = *state;
	struct update add = {.call.done = on_done}, del = {.call.done = on_done};
	struct offer *offer = offer_of("u", true);
	int old = ready_peer(f), new = ready_peer(f);
	assert_int_equal(zds_server_add(&f->server, &add.call, offer), 0);
	turn(f);
	expect_silence(old);
	expect(new, ZDS_ADD, "u");
	ack(f, new);
	assert_int_equal(zds_server_del(&f->server, &del.call, offer), 1);
	turn(f);
	expect(old, ZDS_DEL, "u");
	expect(new, ZDS_DEL, "u");
	ack(f, new);
	assert_int_equal(del.done_cnt, 0);
	/* A refused Del is done all the same. */
	nack(f, old);
	assert_int_equal(del.done_cnt, 1);
	assert_string_equal(del.error, "");
	offer_unref(offer);
	close(old);
	close(new);
}

static void test_falls_back_to_the_previous(void **state)
{
	struct fixture *f = *state;
	struct update first = {.call.done = on_done}, second = {.call.done = on_done};
	struct offer *offer = offer_of("u", true);
	int old = ready_peer(f), new = ready_peer(f);
	assert_int_equal(zds_server_add(&f->server, &first.call, offer), 0);
	turn(f);
	close(new);
	turn(f);
	assert_int_equal(first.done_cnt, 1);
	assert_string_equal(first.error, "connection closed before the request was acknowledged");
	assert_false(first.is_refused);
	assert_int_equal(zds_server_add(&f->server, &second.call, offer), 0);
	turn(f);
	expect(old, ZDS_ADD, "u");
	ack(f, old);
	assert_int_equal(second.done_cnt, 1);
	assert_string_equal(second.error, "");
	offer_unref(offer);
	close(old);
}

static void test_del_with_a_dying_connection(void **state)
{
	struct fixture *f = *state;
	struct update del = {.call.done = on_done};
	struct offer *offer = offer_of("u", true);
	int dying = ready_peer(f), alive = ready_peer(f);
	close(dying);
	assert_int_equal(zds_server_del(&f->server, &del.call, offer), 1);
	turn(f);
	expect(alive, ZDS_DEL, "u");
	ack(f, alive);
	assert_int_equal(del.done_cnt, 1);
	assert_string_not_equal(del.error, "");
	assert_int_equal(f->server.conn_cnt, 1);
	offer_unref(offer);
	close(alive);
}

static void test_nobody(void **state)
{
	struct fixture *f = *state;
	struct update update = {.call.done = on_done};
	struct offer *offer = offer_of("u", true);
	assert_int_equal(zds_server_add(&f->server, &update.call, offer), -ENOTCONN);
	assert_int_equal(zds_server_del(&f->server, &update.call, offer), 0);
	turn(f);
	assert_int_equal(update.done_cnt, 0);
	offer_unref(offer);
}

static void test_queue_is_bounded(void **state)
{
	struct fixture *f = *state;
	static struct update updates[ZDS_QUEUE_MAX + 1];
	struct offer *offer = offer_of("u", true);
	int peer = connect_peer(f);
	for (size_t i = 0; i < ZDS_QUEUE_MAX; i++) {
		updates[i] = (struct update){.call.done = on_done};
		assert_int_equal(zds_server_add(&f->server, &updates[i].call, offer), 0);
	}
	updates[ZDS_QUEUE_MAX] = (struct update){.call.done = on_done};
	assert_int_equal(zds_server_add(&f->server, &updates[ZDS_QUEUE_MAX].call, offer), -ENOBUFS);
	assert_int_equal(zds_server_del(&f->server, &updates[ZDS_QUEUE_MAX].call, offer), -ENOBUFS);
	close(peer);
	turn(f);
	for (size_t i = 0; i < ZDS_QUEUE_MAX; i++)
		assert_int_equal(updates[i].done_cnt, 1);
	offer_unref(offer);
}

/* Each is the end of the connection: what a peer may say too much or wrongly. */
static void test_violations(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} hellos[] = {{"\xff\xff", 2}, {"", 0}, {"\x0a\x00\x08", 3}};
	struct fixture *f = *state;
	for (size_t i = 0; i < CNT(hellos); i++) {
		int peer = connect_peer(f);
		/* An empty packet cannot be told from the end of the stream. */
		say(f, peer, hellos[i].bytes, hellos[i].len);
		expect_closed(peer);
		close(peer);
	}
	int unasked = ready_peer(f);
	ack(f, unasked);
	expect_closed(unasked);
	close(unasked);
	int garbage = connect_peer(f);
	hello(f, garbage);
	say(f, garbage, "\xff\xff\xff", 3);
	expect(garbage, ZDS_SNAPSHOT_SENT, "");
	expect_closed(garbage);
	close(garbage);
	int two = connect_peer(f);
	hello(f, two);
	assert_int_equal(fd_send(two, "\x0a\x00", 2, -1), 0);
	ack(f, two);
	expect(two, ZDS_SNAPSHOT_SENT, "");
	expect_closed(two);
	close(two);
	assert_int_equal(f->server.conn_cnt, 0);
}

static void test_descriptor_from_the_peer(void **state)
{
	struct fixture *f = *state;
	int peer = connect_peer(f);
	int extra = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int lowest_free = dup(extra);
	close(lowest_free);
	assert_int_equal(fd_send(peer, "\x08\x01", 2, extra), 0);
	turn(f);
	expect_closed(peer);
	/* Nothing stays open: the server's end is gone and the descriptor with it. */
	int again = dup(extra);
	assert_true(again <= lowest_free);
	close(again);
	close(extra);
	close(peer);
}

static void fire_deadline(struct fixture *f, struct zds_conn *conn)
{
	assert_true(timer_is_set(&conn->deadline));
	assert_true(conn->deadline.due <= clock_ms() + ZDS_DEADLINE_MS);
	loop_cancel(&f->loop, &conn->deadline);
	conn->deadline.fire(&conn->deadline, 0);
	turn(f);
}

static void test_no_hello(void **state)
{
	struct fixture *f = *state;
	int peer = connect_peer(f);
	fire_deadline(f, newest(f));
	expect_closed(peer);
	close(peer);
}

static void test_late_ack(void **state)
{
	struct fixture *f = *state;
	struct update update = {.call.done = on_done};
	struct offer *offer = offer_of("u", true);
	int peer = ready_peer(f);
	assert_false(timer_is_set(&newest(f)->deadline));
	assert_int_equal(zds_server_add(&f->server, &update.call, offer), 0);
	turn(f);
	fire_deadline(f, newest(f));
	assert_int_equal(update.done_cnt, 1);
	assert_string_not_equal(update.error, "");
	expect(peer, ZDS_ADD, "u");
	expect_closed(peer);
	offer_unref(offer);
	close(peer);
}

/* A peer whose socket buffer is full: the request waits, under a deadline, and goes out when there is room.
 */
static void test_full_socket(void **state)
{
	struct fixture *f = *state;
	struct update update = {.call.done = on_done};
	struct offer *offer = offer_of("u", true);
	int peer = ready_peer(f);
	int own = newest(f)->fd;
	size_t filled = 0;
	while (fd_send(own, "\x2a\x03\x0a\x01z", 5, -1) == 0)
		filled++;
	assert_int_equal(zds_server_add(&f->server, &update.call, offer), 0);
	turn(f);
	assert_int_equal(newest(f)->phase, ZDS_PHASE_WRITE);
	assert_true(timer_is_set(&newest(f)->deadline));
	for (size_t i = 0; i < filled; i++)
		expect(peer, ZDS_KEEP, "z");
	turn(f);
	assert_int_equal(newest(f)->phase, ZDS_PHASE_ANSWER);
	expect(peer, ZDS_ADD, "u");
	ack(f, peer);
	assert_int_equal(update.done_cnt, 1);
	offer_unref(offer);
	close(peer);
}

static void test_too_many_connections(void **state)
{
	struct fixture *f = *state;
	int peers[ZDS_CONN_MAX];
	int fds[2];
	for (size_t i = 0; i < ZDS_CONN_MAX; i++)
		peers[i] = connect_peer(f);
	assert_int_equal(fd_pair(fds), 0);
	assert_int_equal(zds_server_adopt(&f->server, fds[0]), -EMFILE);
	expect_closed(fds[1]);
	close(fds[1]);
	for (size_t i = 0; i < ZDS_CONN_MAX; i++)
		close(peers[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_nothing_before_the_hello),
	        TEST(test_snapshot_one_at_a_time),
	        TEST(test_updates_wait_for_the_snapshot),
	        TEST(test_nack_of_an_add),
	        TEST(test_add_to_the_newest_del_to_all),
	        TEST(test_falls_back_to_the_previous),
	        TEST(test_del_with_a_dying_connection),
	        TEST(test_nobody),
	        TEST(test_queue_is_bounded),
	        TEST(test_violations),
	        TEST(test_descriptor_from_the_peer),
	        TEST(test_no_hello),
	        TEST(test_late_ack),
	        TEST(test_full_socket),
	        TEST(test_too_many_connections),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
