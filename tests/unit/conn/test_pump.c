/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pump over streams that only note what is asked of them: ends, reasons, counters, pauses. */
#include "lab.h"

#include "base/err.h"
#include "conn/pump.h"

/* A stream without anything below. */
struct fake {
	struct stream stream;
	struct chain queue;
	bool is_reading;
	bool is_shutdown;
	bool is_freed;
	bool is_aborted;
	bool is_reset;
	bool is_broken;
};

static struct fake *fake_of(const struct stream *stream)
{
	return list_entry(stream, struct fake, stream);
}

static void fake_start(struct stream *stream)
{
	fake_of(stream)->is_reading = true;
}

static void fake_stop(struct stream *stream)
{
	fake_of(stream)->is_reading = false;
}

static int fake_write(struct stream *stream, struct chain *data)
{
	struct fake *f = fake_of(stream);
	if (f->is_broken || f->is_shutdown) {
		chain_clear(data);
		return -EPIPE;
	}
	stream_absorb(&f->queue, data);
	return 0;
}

static size_t fake_queued(const struct stream *stream)
{
	return fake_of(stream)->queue.len;
}

static void fake_shutdown(struct stream *stream)
{
	fake_of(stream)->is_shutdown = true;
}

static void fake_free(struct stream *stream, enum stream_end end)
{
	struct fake *f = fake_of(stream);
	assert_false(f->is_freed);
	f->is_freed = true;
	f->is_aborted = end == STREAM_END_ABORT;
	f->is_reset = end == STREAM_END_RESET;
	chain_clear(&f->queue);
}

static const struct stream_ops fake_ops = {
        .read_start = fake_start,
        .read_stop = fake_stop,
        .write = fake_write,
        .queued = fake_queued,
        .unsent = fake_queued,
        .shutdown = fake_shutdown,
        .free = fake_free,
};

struct copy {
	struct chunk_pool pool;
	struct fake down;
	struct fake up;
	struct pump *pump;
	int done;
	int code;
	char text[200];
};

static void on_done(void *ctx, int code, const char *text)
{
	struct copy *c = ctx;
	c->done++;
	c->code = code;
	(void)snprintf(c->text, sizeof(c->text), "%s", text ? text : "(none)");
}

static const struct pump_events events = {.on_done = on_done};

static void copy_start(struct copy *c, const char *early)
{
	struct chain data = {0};
	memset(c, 0, sizeof(*c));
	chunk_pool_init(&c->pool, 64u << 20);
	c->down.stream = c->up.stream =
	        (struct stream){.ops = &fake_ops, .high = STREAM_HIGH_LEN, .low = STREAM_LOW_LEN};
	if (early)
		assert_int_equal(chain_write(&data, &c->pool, early, strlen(early)), 0);
	assert_int_equal(
	        pump_start(&c->down.stream, &c->up.stream, early ? &data : NULL, &events, c, &c->pump), 0);
	assert_true(c->down.is_reading && c->up.is_reading);
}

static void copy_stop(struct copy *c)
{
	pump_free(c->pump);
	assert_true(c->down.is_freed && c->up.is_freed && !c->down.is_aborted && !c->up.is_aborted);
	chunk_pool_done(&c->pool);
}

static void arrive(struct copy *c, struct fake *f, size_t len)
{
	static const uint8_t zeros[65536];
	struct chain data = {0};
	for (size_t n; len; len -= n) {
		n = len < sizeof(zeros) ? len : sizeof(zeros);
		assert_int_equal(chain_write(&data, &c->pool, zeros, n), 0);
	}
	f->stream.events->on_data(f->stream.ctx, &data);
	chain_clear(&data);
}

/* The transport takes what is queued. */
static void flow(struct fake *f)
{
	f->stream.taken += f->queue.len;
	bool was_high = stream_is_high(&f->stream);
	chain_clear(&f->queue);
	if (was_high)
		f->stream.events->on_drained(f->stream.ctx);
	if (f->is_shutdown)
		f->stream.events->on_finished(f->stream.ctx);
}

static void copies_and_ends(void **state)
{
	struct copy c;
	copy_start(&c, "early");
	arrive(&c, &c.down, 1000);
	arrive(&c, &c.up, 70000);
	assert_int_equal(c.up.queue.len, 1005);
	/* Counted when taken. */
	assert_int_equal(pump_received(c.pump), 0);
	flow(&c.up);
	flow(&c.down);
	assert_int_equal(pump_received(c.pump), 1005);
	assert_int_equal(pump_sent(c.pump), 70000);
	c.down.stream.events->on_eof(c.down.stream.ctx);
	assert_true(c.up.is_shutdown);
	assert_false(c.down.is_shutdown);
	flow(&c.up);
	/* The other way goes on. */
	arrive(&c, &c.up, 5);
	assert_int_equal(c.done, 0);
	c.up.stream.events->on_eof(c.up.stream.ctx);
	assert_int_equal(c.done, 0);
	flow(&c.down);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.code, 0);
	assert_string_equal(c.text, "(none)");
	assert_int_equal(pump_sent(c.pump), 70005);
	copy_stop(&c);
}

static void pauses(void **state)
{
	struct copy c;
	copy_start(&c, NULL);
	arrive(&c, &c.down, STREAM_HIGH_LEN - 1);
	assert_true(c.down.is_reading);
	arrive(&c, &c.down, 1);
	assert_false(c.down.is_reading);
	assert_true(c.up.is_reading);
	flow(&c.up);
	assert_true(c.down.is_reading);
	/* Not woken once it has ended. */
	arrive(&c, &c.down, STREAM_HIGH_LEN);
	c.down.stream.events->on_eof(c.down.stream.ctx);
	flow(&c.up);
	assert_false(c.down.is_reading);
	copy_stop(&c);
}

static void goodbyes_are_no_errors(void **state)
{
	static const int codes[] = {-ECONNRESET, -EPIPE, -ENOTCONN};
	for (size_t i = 0; i < 3; i++) {
		struct copy c;
		copy_start(&c, NULL);
		arrive(&c, &c.down, 10);
		c.down.stream.events->on_error(c.down.stream.ctx, codes[i], "x");
		/* A reset becomes an end for the other side, after what came before it. */
		assert_true(c.up.is_shutdown);
		assert_false(c.up.is_reading);
		assert_int_equal(c.done, 0);
		flow(&c.up);
		assert_int_equal(c.done, 1);
		assert_int_equal(c.code, 0);
		assert_int_equal(pump_received(c.pump), 10);
		copy_stop(&c);
	}
	/* A writer that takes nothing any more ends that direction only. */
	struct copy c;
	copy_start(&c, NULL);
	c.up.is_broken = true;
	arrive(&c, &c.down, 10);
	assert_false(c.down.is_reading);
	assert_int_equal(c.done, 0);
	arrive(&c, &c.up, 20);
	c.up.stream.events->on_eof(c.up.stream.ctx);
	flow(&c.down);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.code, 0);
	assert_int_equal(pump_sent(c.pump), 20);
	copy_stop(&c);
}

/* Both orders: what breaks is told to the other side, what only ends is not. */
static void breaks_are_passed_on(void **state)
{
	static const int codes[] = {-ECONNRESET, -EPIPE, -ETIMEDOUT};
	for (size_t i = 0; i < 6; i++) {
		struct copy c;
		copy_start(&c, NULL);
		struct fake *broken = i % 2 ? &c.up : &c.down;
		struct fake *other = i % 2 ? &c.down : &c.up;
		broken->stream.is_broken = true;
		broken->stream.events->on_error(broken->stream.ctx, codes[i / 2], "x");
		assert_int_equal(c.done, 1);
		/* A reset is no error of the connection, a time-out is one. */
		assert_int_equal(c.code, i / 2 < 2 ? 0 : -ETIMEDOUT);
		assert_false(other->is_shutdown);
		pump_free(c.pump);
		assert_true(other->is_reset);
		assert_false(broken->is_reset);
		chunk_pool_done(&c.pool);
	}
	struct copy c;
	copy_start(&c, NULL);
	pump_soften(c.pump);
	c.up.stream.is_broken = true;
	c.up.stream.events->on_error(c.up.stream.ctx, -ECONNRESET, "x");
	assert_true(c.down.is_shutdown);
	flow(&c.down);
	assert_int_equal(c.done, 1);
	copy_stop(&c);
	assert_false(c.down.is_reset);
}

static void names_errors(void **state)
{
	struct copy c;
	copy_start(&c, NULL);
	c.down.stream.events->on_error(c.down.stream.ctx, -ETIMEDOUT, "Connection timed out (os error 110)");
	assert_int_equal(c.code, -ETIMEDOUT);
	assert_string_equal(c.text, "send: io error: Connection timed out (os error 110)");
	/* Once only. */
	c.up.stream.events->on_error(c.up.stream.ctx, -ETIMEDOUT, "x");
	c.up.stream.events->on_eof(c.up.stream.ctx);
	arrive(&c, &c.up, 5);
	assert_int_equal(c.done, 1);
	copy_stop(&c);
	copy_start(&c, NULL);
	c.up.stream.events->on_error(c.up.stream.ctx, -ETIMEDOUT, "x");
	assert_string_equal(c.text, "receive: io error: x");
	copy_stop(&c);
	/* Read to its end already: it broke as a writer. */
	copy_start(&c, NULL);
	c.up.stream.events->on_eof(c.up.stream.ctx);
	c.up.stream.events->on_error(c.up.stream.ctx, -ETIMEDOUT, "x");
	assert_string_equal(c.text, "send: io error: x");
	copy_stop(&c);
	copy_start(&c, NULL);
	c.up.stream.events->on_eof(c.up.stream.ctx);
	c.down.stream.events->on_eof(c.down.stream.ctx);
	c.down.stream.events->on_error(c.down.stream.ctx, -ETIMEDOUT, "x");
	assert_string_equal(c.text, "while closing connection: receive: io error: x");
	copy_stop(&c);
}

static void aborts(void **state)
{
	struct copy c;
	copy_start(&c, NULL);
	arrive(&c, &c.down, 10);
	pump_abort(c.pump);
	assert_true(c.down.is_aborted && c.up.is_aborted);
	assert_int_equal(c.done, 0);
	chunk_pool_done(&c.pool);
	pump_free(NULL);
	pump_abort(NULL);
}

/* Thousands of tiny pieces take few chunks. */
static void absorbs(void **state)
{
	struct chunk_pool pool;
	struct chain to = {0};
	chunk_pool_init(&pool, 64u << 20);
	for (int i = 0; i < 10000; i++) {
		struct chain from = {0};
		uint8_t byte = pattern((size_t)i);
		assert_int_equal(chain_write(&from, &pool, &byte, 1), 0);
		stream_absorb(&to, &from);
		assert_true(chain_empty(&from));
	}
	assert_int_equal(to.len, 10000);
	assert_true(pool.used <= 4 * CHUNK_SMALL);
	for (size_t i = 0; i < to.len; i++) {
		uint8_t byte = 0;
		chain_copy(&to, i, &byte, 1);
		assert_int_equal(byte, pattern(i));
	}
	chain_clear(&to);
	chunk_pool_done(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(copies_and_ends),
	        cmocka_unit_test(pauses),
	        cmocka_unit_test(goodbyes_are_no_errors),
	        cmocka_unit_test(breaks_are_passed_on),
	        cmocka_unit_test(names_errors),
	        cmocka_unit_test(aborts),
	        cmocka_unit_test(absorbs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
