/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash map against a plain array under random work; ceilings, sweeping, shrinking, failing allocations.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "unit.h"

#define KEYS 3000

struct item {
	char key[16];
	bool in;
};

static struct map_key key_of(const void *item)
{
	return map_key_str(((const struct item *)item)->key);
}

static struct item items[KEYS];

static int name_items(void **state)
{
	for (int i = 0; i < KEYS; i++)
		snprintf(items[i].key, sizeof(items[i].key), "k%d", i);
	return 0;
}

static void assert_same(const struct map *m)
{
	size_t cnt = 0;
	for (int i = 0; i < KEYS; i++) {
		assert_ptr_equal(map_get_str(m, items[i].key), items[i].in ? &items[i] : NULL);
		cnt += items[i].in;
	}
	assert_int_equal(map_cnt(m), cnt);
	size_t seen = 0, cursor = 0;
	while (map_next(m, &cursor))
		seen++;
	assert_int_equal(seen, cnt);
}

static void random_work(void **state)
{
	struct map m;
	map_init(&m, KEYS, key_of);
	srand(7);
	for (int round = 0; round < 6; round++) {
		int bias = round % 2 ? 8 : 2; /* fill, then mostly empty */
		for (int n = 0; n < 10000; n++) {
			struct item *it = &items[rand() % KEYS];
			void *old = NULL;
			if (rand() % 10 >= bias) {
				assert_int_equal(map_put(&m, it, &old), 0);
				assert_ptr_equal(old, it->in ? it : NULL);
				it->in = true;
			} else {
				assert_ptr_equal(map_del_str(&m, it->key), it->in ? it : NULL);
				it->in = false;
			}
		}
		assert_same(&m);
	}
	while (map_cnt(&m))
		((struct item *)map_pop(&m))->in = false;
	assert_null(map_pop(&m));
	assert_int_equal(m.cap, 0);
	assert_same(&m);
	map_done(&m);
}

static bool drop_some(void *item, void *ctx)
{
	struct item *it = item;
	++*(int *)ctx;
	if (atoi(it->key + 1) % 3)
		return false;
	it->in = false;
	return true;
}

static void sweeps(void **state)
{
	struct map m;
	map_init(&m, KEYS, key_of);
	int calls = 0;
	map_sweep(&m, drop_some, &calls);
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(map_put(&m, &items[i], NULL), 0);
		items[i].in = true;
	}
	map_sweep(&m, drop_some, &calls);
	assert_int_equal(calls, KEYS); /* each exactly once */
	assert_same(&m);
	for (int i = 0; i < KEYS; i++)
		items[i].in = false;
	map_done(&m);
	assert_same(&m);
}

static void replaces_and_keeps_ceiling(void **state)
{
	struct item twin;
	struct map m;
	void *old;
	memcpy(&twin, &items[0], sizeof(twin));
	map_init(&m, 2, key_of);
	assert_int_equal(map_put(&m, &items[0], &old), 0);
	assert_int_equal(map_put(&m, &items[1], &old), 0);
	assert_int_equal(map_put(&m, &items[2], &old), -ENOSPC);
	assert_int_equal(map_put(&m, &twin, &old), 0);
	assert_ptr_equal(old, &items[0]);
	assert_ptr_equal(map_get_str(&m, "k0"), &twin);
	assert_null(map_get(&m, "k", 1));
	assert_null(map_get(&m, "", 0));
	assert_null(map_del_str(&m, "absent"));
	map_done(&m);
	assert_null(map_get_str(&m, "k0"));
	assert_null(map_del_str(&m, "k0"));
}

static void out_of_memory(void **state)
{
	struct map m;
	map_init(&m, KEYS, key_of);
	allocations_left = 0;
	assert_int_equal(map_put(&m, &items[0], NULL), -ENOMEM);
	allocations_left = 1;
	int n = 0;
	while (map_put(&m, &items[n], NULL) == 0)
		n++;
	assert_int_equal(map_cnt(&m), (size_t)n);
	for (int i = 0; i < n; i++)
		assert_ptr_equal(map_get_str(&m, items[i].key), &items[i]);
	/* Shrinking without memory keeps the old table. */
	allocations_left = 0;
	for (int i = 0; i < n; i++)
		assert_ptr_equal(map_del_str(&m, items[i].key), &items[i]);
	allocations_left = -1;
	map_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(random_work),
	        cmocka_unit_test(sweeps),
	        cmocka_unit_test(replaces_and_keeps_ceiling),
	        cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, name_items, NULL);
}
