/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intrusive lists: order, removal while walking, moving. */
#include "base/list.h"
#include "unit.h"

struct item {
	int n;
	struct list node;
};

static void assert_order(struct list *head, const int *want, size_t cnt)
{
	size_t i = 0;
	list_for_each(it, head)
	{
		assert_true(i < cnt);
		assert_int_equal(list_entry(it, struct item, node)->n, want[i++]);
	}
	assert_int_equal(i, cnt);
}

static void all(void **state)
{
	struct list head = LIST_INIT(head), other = LIST_INIT(other);
	struct item items[5];
	assert_true(list_empty(&head));
	assert_null(list_pop(&head));
	for (int i = 0; i < 5; i++) {
		items[i].n = i;
		list_init(&items[i].node);
		list_del(&items[i].node);
		if (i < 3)
			list_add_tail(&head, &items[i].node);
		else
			list_add(&head, &items[i].node);
	}
	assert_order(&head, (int[]){4, 3, 0, 1, 2}, 5);
	list_for_each_safe(it, &head) if (list_entry(it, struct item, node)->n % 2) list_del(it);
	assert_order(&head, (int[]){4, 0, 2}, 3);
	assert_true(list_empty(&items[1].node));
	list_add_tail(&other, &items[1].node);
	list_move_all(&other, &head);
	assert_order(&other, (int[]){1, 4, 0, 2}, 4);
	assert_true(list_empty(&head));
	list_move_all(&other, &head);
	assert_ptr_equal(list_pop(&other), &items[1].node);
	assert_order(&other, (int[]){4, 0, 2}, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
