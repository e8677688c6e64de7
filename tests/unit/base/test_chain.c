/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chains and their pool: order of bytes under every operation, ceilings, idle memory, failing allocations. */
#include <errno.h>
#include <stdlib.h>

#include "base/chain.h"
#include "culvert/limits.h"
#include "unit.h"

#define BIG 300000

static uint8_t pattern[BIG];

static int fill_pattern(void **state)
{
	for (size_t i = 0; i < BIG; i++)
		pattern[i] = (uint8_t)(i * 2654435761u >> 13);
	return 0;
}

static void assert_chain(const struct chain *ch, size_t from, size_t len)
{
	static uint8_t out[BIG];
	assert_int_equal(ch->len, len);
	assert_int_equal(chain_copy(ch, 0, out, BIG), len);
	assert_memory_equal(out, pattern + from, len);
	size_t sum = 0;
	struct chunk *last = NULL;
	for (struct chunk *c = ch->head; c; c = c->next) {
		assert_true(c->len > 0);
		sum += c->len;
		last = c;
	}
	assert_int_equal(sum, len);
	assert_ptr_equal(ch->tail, last);
}

static void writes_and_consumes(void **state)
{
	struct chunk_pool pool;
	struct chain ch = {0};
	chunk_pool_init(&pool, SIZE_MAX);
	size_t in = 0, out = 0;
	srand(1);
	for (int i = 0; i < 400; i++) {
		size_t n = (size_t)rand() % 9000;
		if (in + n > BIG)
			n = BIG - in;
		assert_int_equal(chain_write(&ch, &pool, pattern + in, n), 0);
		in += n;
		size_t drop = (size_t)rand() % (ch.len + 1);
		chain_consume(&ch, drop);
		out += drop;
		assert_chain(&ch, out, in - out);
	}
	chain_clear(&ch);
	assert_true(chain_empty(&ch));
	assert_int_equal(pool.used, 0);
	chunk_pool_done(&pool);
}

static void fills_the_tail_first(void **state)
{
	struct chunk_pool pool;
	struct chain ch = {0};
	chunk_pool_init(&pool, SIZE_MAX);
	chain_write(&ch, &pool, pattern, 100);
	chain_write(&ch, &pool, pattern + 100, CHUNK_SMALL - 100);
	assert_ptr_equal(ch.head, ch.tail);
	chain_write(&ch, &pool, pattern + CHUNK_SMALL, 1);
	assert_ptr_equal(ch.head->next, ch.tail);
	assert_chain(&ch, 0, CHUNK_SMALL + 1);
	chain_write(&ch, &pool, pattern, 0);
	chain_clear(&ch);
	chunk_pool_done(&pool);
}

static void headroom(void **state)
{
	struct chunk_pool pool;
	struct chain ch = {0};
	chunk_pool_init(&pool, SIZE_MAX);
	struct chunk *c = chunk_new(&pool, 5000);
	assert_int_equal(chunk_room(c), CHUNK_LARGE);
	assert_int_equal((uintptr_t)chunk_bytes(c) % 16, 0);
	memcpy(chunk_bytes(c), pattern + 9, 1000);
	c->len = 1000;
	memcpy(chunk_push_front(c, 9), pattern, 9);
	chain_append(&ch, c);
	assert_chain(&ch, 0, 1009);
	chain_clear(&ch);
	chunk_pool_done(&pool);
}

static void peeks(void **state)
{
	struct chunk_pool pool;
	struct chain ch = {0};
	chunk_pool_init(&pool, SIZE_MAX);
	for (int i = 0; i < 4; i++) {
		struct chunk *c = chunk_new(&pool, 10);
		memcpy(chunk_bytes(c), pattern + 10 * i, 10);
		c->len = 10;
		chain_append(&ch, c);
	}
	struct iovec iov[4];
	size_t bytes;
	assert_int_equal(chain_peek(&ch, iov, 4, 25, &bytes), 3);
	assert_int_equal(bytes, 25);
	assert_int_equal(iov[2].iov_len, 5);
	assert_memory_equal(iov[1].iov_base, pattern + 10, 10);
	assert_int_equal(chain_peek(&ch, iov, 2, SIZE_MAX, &bytes), 2);
	assert_int_equal(bytes, 20);
	assert_int_equal(chain_peek(&ch, iov, 4, 0, NULL), 0);
	uint8_t out[8];
	assert_int_equal(chain_copy(&ch, 36, out, 8), 4);
	assert_memory_equal(out, pattern + 36, 4);
	assert_int_equal(chain_copy(&ch, 40, out, 8), 0);
	chain_clear(&ch);
	chunk_pool_done(&pool);
}

static void reserves(void **state)
{
	struct chunk_pool pool;
	struct chain ch = {0};
	chunk_pool_init(&pool, SIZE_MAX);
	struct chunk *c;
	size_t room;
	uint8_t *p = chain_reserve(&ch, &pool, 100, &room, &c);
	assert_true(room >= 100);
	memcpy(p, pattern, 60);
	chain_commit(&ch, c, 60);
	p = chain_reserve(&ch, &pool, 100, &room, &c);
	assert_ptr_equal(c, ch.tail);
	memcpy(p, pattern + 60, 40);
	chain_commit(&ch, c, 40);
	assert_chain(&ch, 0, 100);
	/* No room in the tail: a chunk of its own, given back when nothing came. */
	p = chain_reserve(&ch, &pool, CHUNK_BULK, &room, &c);
	assert_non_null(p);
	assert_ptr_not_equal(c, ch.tail);
	chain_commit(&ch, c, 0);
	assert_chain(&ch, 0, 100);
	assert_null(chain_reserve(&ch, &pool, CHUNK_BULK + 1, &room, &c));
	chain_clear(&ch);
	assert_int_equal(pool.used, 0);
	chunk_pool_done(&pool);
}

static void splits(void **state)
{
	for (size_t cut = 0; cut <= 3 * CHUNK_SMALL; cut += 511) {
		struct chunk_pool pool;
		struct chain from = {0}, to = {0};
		chunk_pool_init(&pool, SIZE_MAX);
		for (int i = 0; i < 3; i++) {
			struct chunk *c = chunk_new(&pool, 1);
			memcpy(chunk_bytes(c), pattern + CHUNK_SMALL * i, CHUNK_SMALL);
			c->len = CHUNK_SMALL;
			chain_append(&from, c);
		}
		assert_int_equal(chain_split(&to, &from, cut), 0);
		assert_chain(&to, 0, cut);
		assert_chain(&from, cut, 3 * CHUNK_SMALL - cut);
		chain_move(&to, &from);
		assert_chain(&to, 0, 3 * CHUNK_SMALL);
		assert_true(chain_empty(&from));
		chain_move(&to, &from);
		struct chunk *first = chain_take(&to);
		assert_memory_equal(chunk_bytes(first), pattern, first->len);
		chain_prepend(&to, first);
		assert_chain(&to, 0, 3 * CHUNK_SMALL);
		chain_clear(&to);
		chunk_pool_done(&pool);
	}
}

static void pool_keeps_ceiling(void **state)
{
	struct chunk_pool pool;
	struct chain ch = {0};
	chunk_pool_init(&pool, 3 * CHUNK_SMALL);
	assert_int_equal(chain_write(&ch, &pool, pattern, 2 * CHUNK_SMALL), 0);
	assert_int_equal(chain_write(&ch, &pool, pattern, 2 * CHUNK_SMALL), -ENOMEM);
	assert_chain(&ch, 0, 2 * CHUNK_SMALL);
	assert_null(chunk_new(&pool, CHUNK_LARGE));
	struct chunk *c = chunk_new(&pool, 1);
	assert_non_null(c);
	assert_null(chunk_new(&pool, 1));
	chunk_free(c);
	chunk_free(NULL);
	chain_clear(&ch);
	chunk_pool_done(&pool);
}

static void pool_gives_back(void **state)
{
	struct chunk_pool pool;
	struct chain ch = {0};
	chunk_pool_init(&pool, SIZE_MAX);
	/* More of both classes than may stay idle. */
	for (int i = 0; i < LIMIT_CHUNK_IDLE_SMALL + 20 * LIMIT_CHUNK_IDLE_BULK; i++) {
		struct chunk *c = chunk_new(&pool, i % 10 ? 1 : CHUNK_BULK);
		c->len = 1;
		chain_append(&ch, c);
	}
	chain_clear(&ch);
	assert_int_equal(chunk_pool_idle(&pool),
	        LIMIT_CHUNK_IDLE_SMALL * CHUNK_SMALL + LIMIT_CHUNK_IDLE_BULK * CHUNK_BULK);
	chunk_pool_trim(&pool, 5 * CHUNK_SMALL);
	assert_int_equal(chunk_pool_idle(&pool), 5 * CHUNK_SMALL);
	chunk_pool_trim(&pool, 0);
	assert_int_equal(chunk_pool_idle(&pool), 0);
	chunk_pool_done(&pool);
}

static void out_of_memory(void **state)
{
	struct chunk_pool pool;
	struct chain ch = {0}, to = {0};
	chunk_pool_init(&pool, SIZE_MAX);
	assert_int_equal(chain_write(&ch, &pool, pattern, 3000), 0);
	for (long n = 0; n < 2; n++) {
		allocations_left = n;
		assert_int_equal(chain_write(&ch, &pool, pattern + 3000, 100000), -ENOMEM);
		assert_chain(&ch, 0, 3000);
		chunk_pool_trim(&pool, 0);
	}
	allocations_left = 0;
	assert_int_equal(chain_split(&to, &ch, 1000), -ENOMEM);
	assert_chain(&ch, 0, 3000);
	struct chunk *c;
	size_t room;
	assert_null(chain_reserve(&ch, &pool, CHUNK_SMALL, &room, &c));
	allocations_left = -1;
	chain_clear(&ch);
	chunk_pool_done(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(writes_and_consumes),
	        cmocka_unit_test(fills_the_tail_first),
	        cmocka_unit_test(headroom),
	        cmocka_unit_test(peeks),
	        cmocka_unit_test(reserves),
	        cmocka_unit_test(splits),
	        cmocka_unit_test(pool_keeps_ceiling),
	        cmocka_unit_test(pool_gives_back),
	        cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, fill_pattern, NULL);
}
