/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output pieces: what is copied and what is not, sizes, fairness, and the
 * back-pressure of a transport or a reader that does not take.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

static struct seen seen[4096];
static struct wire wire;

/* A client stream in front of a peer by hand that has granted a large window. */
static void open_wide(struct end *end, struct rec *a)
{
	static const uint8_t settings[6] = {0, 4, 0x7f, 0xff, 0xff, 0xff};

	memset(end, 0, sizeof(*end));
	memset(a, 0, sizeof(*a));
	h2_config_init(&end->config, false);
	end_open(end, 0);
	wire_frame(&wire, F_SETTINGS, 0, 0, settings, 6);
	wire_frame(&wire, F_WINDOW, 0, 0, "\77\0\0\0", 4);
	assert_int_equal(wire_feed(&wire, end, 0), 0);
	assert_int_equal(h2_connect(end->session, "a:1", NULL, 0, &rec_ops, a, &a->stream), 0);
	end_frames(end, seen, 16);
}

static struct chunk *chunk_of(struct chunk_pool *pool, size_t len)
{
	struct chunk *c = chunk_new(pool, len);

	for (size_t i = 0; i < len; i++)
		chunk_bytes(c)[i] = (uint8_t)(i % 251);
	c->len = (uint32_t)len;
	return c;
}

static void write_chunk(struct rec *a, struct chunk *c, int want)
{
	struct chain chain = {0};

	chain_append(&chain, c);
	assert_int_equal(h2_stream_write(a->stream, &chain), want);
}

static void assert_pattern(const uint8_t *piece, size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(piece[9 + i], (at + i) % 251);
}

static void full_frames_are_not_copied(void **state)
{
	struct chunk_pool pool;
	struct end end;
	struct rec a;
	const uint8_t *piece;
	size_t len;
	const size_t bulk = 16 * H2_DATA_MAX;
	struct chunk *c;
	uint8_t *base;

	chunk_pool_init(&pool, 64u << 20);
	open_wide(&end, &a);
	c = chunk_of(&pool, bulk);
	base = chunk_bytes(c);
	write_chunk(&a, c, 0);
	for (size_t i = 0; i < 16; i++) {
		assert_int_equal(h2_pull(end.session, &piece, &len), 1);
		/* One frame, one record, in place: the header lies over what went before. */
		assert_int_equal(len, 16384);
		assert_ptr_equal(piece, base + i * H2_DATA_MAX - 9);
		assert_int_equal(be32(piece) >> 8, H2_DATA_MAX);
		assert_int_equal(be32(piece + 5), 1);
		assert_pattern(piece, i * H2_DATA_MAX, H2_DATA_MAX);
	}
	assert_int_equal(h2_pull(end.session, &piece, &len), 0);
	assert_int_equal(pool.used, 0);
	end_close(&end);
	chunk_pool_done(&pool);
}

static void small_writes_are_gathered(void **state)
{
	struct chunk_pool pool;
	struct end end;
	struct rec a;
	const uint8_t *piece;
	size_t len;

	chunk_pool_init(&pool, 64u << 20);
	open_wide(&end, &a);
	for (int i = 0; i < 10; i++)
		write_chunk(&a, chunk_of(&pool, 1000), 0);
	/* A control frame joins them. */
	wire_frame(&wire, F_PING, 0, 0, "12345678", 8);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	assert_int_equal(h2_pull(end.session, &piece, &len), 1);
	assert_int_equal(len, 17 + 9 + 10000);
	assert_int_equal(piece[3], F_PING);
	assert_int_equal(piece[17 + 3], F_DATA);
	assert_int_equal(h2_pull(end.session, &piece, &len), 0);
	assert_int_equal(pool.used, 0);
	end_close(&end);
	chunk_pool_done(&pool);
}

static void odd_tail_goes_alone(void **state)
{
	struct chunk_pool pool;
	struct end end;
	struct rec a;

	chunk_pool_init(&pool, 64u << 20);
	open_wide(&end, &a);
	write_chunk(&a, chunk_of(&pool, H2_DATA_MAX + 100), 0);
	write_chunk(&a, chunk_of(&pool, H2_DATA_MAX), 0);
	write_chunk(&a, chunk_of(&pool, 50), 0);
	h2_stream_end(a.stream);
	/* The tail does not pull the next chunk into a copy. */
	assert_int_equal(end_frames(&end, seen, 16), 4);
	assert_int_equal(seen[0].len, H2_DATA_MAX);
	assert_int_equal(seen[1].len, 100);
	assert_int_equal(seen[2].len, H2_DATA_MAX);
	assert_int_equal(seen[3].len, 50);
	assert_int_equal(seen[2].flags, 0);
	assert_int_equal(seen[3].flags, FLAG_END);
	end_close(&end);
	chunk_pool_done(&pool);
}

static void end_alone_is_an_empty_frame(void **state)
{
	struct end end;
	struct rec a;

	open_wide(&end, &a);
	h2_stream_end(a.stream);
	assert_int_equal(end_frames(&end, seen, 16), 1);
	assert_int_equal(seen[0].type, F_DATA);
	assert_int_equal(seen[0].len, 0);
	assert_int_equal(seen[0].flags, FLAG_END);
	/* Told by the pull after. */
	assert_int_equal(a.drains, 1);
	assert_false(h2_wants_pull(end.session));
	end_close(&end);
}

static void chunk_without_headroom_is_copied(void **state)
{
	struct chunk_pool pool;
	struct end end;
	struct rec a;
	const uint8_t *piece;
	size_t len;
	struct chunk *c;

	chunk_pool_init(&pool, 64u << 20);
	open_wide(&end, &a);
	c = chunk_of(&pool, H2_DATA_MAX);
	memmove(c->data + 8, chunk_bytes(c), c->len);
	c->off = 8;
	write_chunk(&a, c, 0);
	assert_int_equal(h2_pull(end.session, &piece, &len), 1);
	assert_int_equal(len, 16384);
	assert_pattern(piece, 0, H2_DATA_MAX);
	assert_int_equal(pool.used, 0);
	end_close(&end);
	chunk_pool_done(&pool);
}

static void long_headers_are_cut_into_pieces(void **state)
{
	struct end end;
	struct rec a;
	struct h2_header lines[2] = {{"baggage", NULL, true}, {"forwarded", NULL, true}};
	char *value = calloc(1, 8001);
	size_t total = 0;
	const uint8_t *piece;
	size_t len;

	/* Bytes that Huffman coding makes longer, so that two messages pass 16,384. */
	memset(value, '\\', 8000);
	lines[0].value = lines[1].value = value;
	open_wide(&end, &a);
	for (int i = 0; i < 3; i++) {
		struct h2_stream *stream;

		assert_int_equal(h2_connect(end.session, "a:1", lines, 2, &rec_ops, &a, &stream), 0);
	}
	while (h2_pull(end.session, &piece, &len) == 1) {
		assert_true(len <= H2_PIECE_MAX);
		total += len;
	}
	assert_true(total > 3 * 16000);
	free(value);
	end_close(&end);
}

static void reader_that_does_not_consume(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};
	struct rec *b = &pair->server.recs[0];
	size_t before;

	pair->server.is_lazy = true;
	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	while (rec_write(pair, &a, 50000, 0, 0) == 0)
		pair_pump(pair);
	/* What was sent is the window; what waits is the mark. */
	pair_pump(pair);
	assert_int_equal(b->data_len, 262144);
	assert_int_equal(h2_stream_unconsumed(b->stream), 262144);
	assert_in_range(h2_stream_queued(a.stream), 256 * 1024, 256 * 1024 + 50000);
	assert_int_equal(a.writables, 0);
	assert_int_equal(rec_write(pair, &a, 10, 0, 0), 1);
	/* A trickle of credit is not announced bytewise. */
	before = pair->server.sent;
	for (int i = 0; i < 100; i++) {
		h2_stream_consume(b->stream, 100);
		pair_pump(pair);
	}
	assert_int_equal(pair->server.sent, before);
	/* Consuming moves the rest, and the writer is told below the low mark. */
	while (a.writables == 0) {
		h2_stream_consume(b->stream, h2_stream_unconsumed(b->stream));
		pair_pump(pair);
		assert_true(a.writables == 0 || h2_stream_queued(a.stream) <= 64 * 1024);
	}
	assert_int_equal(a.writables, 1);
	assert_int_equal(rec_write(pair, &a, 10, 0, 0), 0);
	pair_free(pair);
}

static void writer_that_does_not_stop(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};
	int err;

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	while ((err = rec_write(pair, &a, 500000, 0, 0)) >= 0)
		;
	assert_int_equal(err, -ENOBUFS);
	assert_true(h2_stream_queued(a.stream) <= 256 * 1024 + H2_QUEUE_SLACK);
	pair_free(pair);
}

static void transport_that_does_not_take(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	assert_int_equal(rec_write(pair, &a, 200000, 0, 0), 0);
	/* Pulling stops where the owner stops. */
	assert_in_range(
	        end_pump(&pair->client, &pair->server, pair->now, 20000), 20000, 20000 + H2_PIECE_MAX);
	assert_in_range(h2_stream_queued(a.stream), 200000 - 20000 - H2_PIECE_MAX, 200000 - 16384);
	pair_free(pair);
}

static void streams_take_turns(void **state)
{
	struct chunk_pool pool;
	struct end end;
	struct rec a, b = {0};
	size_t cnt;
	int turns = 0;

	chunk_pool_init(&pool, 64u << 20);
	open_wide(&end, &a);
	assert_int_equal(h2_connect(end.session, "b:1", NULL, 0, &rec_ops, &b, &b.stream), 0);
	end_frames(&end, seen, 16);
	write_chunk(&a, chunk_of(&pool, 15 * H2_DATA_MAX), 0);
	write_chunk(&b, chunk_of(&pool, 15 * H2_DATA_MAX), 0);
	cnt = end_frames(&end, seen, 64);
	assert_int_equal(cnt, 30);
	for (size_t i = 1; i < cnt; i++)
		turns += seen[i].stream != seen[i - 1].stream;
	assert_true(turns > 25);
	end_close(&end);
	chunk_pool_done(&pool);
}

/* A frame header that was built for a stream which then dies must not leave or crash. */
static void stream_dies_while_blocked(void **state)
{
	struct chunk_pool pool;
	struct end end;
	struct rec a, b = {0};
	const uint8_t *piece;
	size_t len;

	chunk_pool_init(&pool, 64u << 20);
	for (int local = 0; local < 2; local++) {
		open_wide(&end, &a);
		assert_int_equal(h2_connect(end.session, "b:1", NULL, 0, &rec_ops, &b, &b.stream), 0);
		end_frames(&end, seen, 16);
		write_chunk(&a, chunk_of(&pool, H2_DATA_MAX), 0);
		wire_frame(&wire, F_PING, 0, 0, "12345678", 8);
		assert_int_equal(wire_feed(&wire, &end, 0), 0);
		/* The PING leaves alone, since the DATA goes in place. */
		assert_int_equal(h2_pull(end.session, &piece, &len), 1);
		assert_int_equal(len, 17);
		if (local) {
			h2_stream_reset(a.stream, H2_CANCEL);
		} else {
			wire_frame(&wire, F_RST, 0, 1, "\0\0\0\10", 4);
			assert_int_equal(wire_feed(&wire, &end, 0), 0);
			assert_int_equal(a.resets, 1);
		}
		end_frames(&end, seen, 16);
		assert_int_equal(h2_streams_in_use(end.session), 1);
		end_close(&end);
	}
	assert_int_equal(pool.used, 0);
	chunk_pool_done(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(full_frames_are_not_copied),
	        cmocka_unit_test(small_writes_are_gathered),
	        cmocka_unit_test(odd_tail_goes_alone),
	        cmocka_unit_test(end_alone_is_an_empty_frame),
	        cmocka_unit_test(chunk_without_headroom_is_copied),
	        cmocka_unit_test(long_headers_are_cut_into_pieces),
	        cmocka_unit_test(reader_that_does_not_consume),
	        cmocka_unit_test(writer_that_does_not_stop),
	        cmocka_unit_test(transport_that_does_not_take),
	        cmocka_unit_test(streams_take_turns),
	        cmocka_unit_test(stream_dies_while_blocked),
	};
	return cmocka_run_group_tests_name("h2 output", tests, NULL, NULL);
}
