/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Intrusive doubly linked ring list. A struct list embedded in an object is a
 * node, one standing alone is a head. The list owns nothing.
 */
#ifndef CULVERT_BASE_LIST_H
#define CULVERT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Head or node. A node not on a list points to itself (after list_init or list_del). */
struct list {
	struct list *next; /* first element from a head */
	struct list *prev; /* last element from a head */
};

/* Initialiser of a head or node. */
#define LIST_INIT(name)                                                                                      \
	{                                                                                                    \
		&(name), &(name)                                                                             \
	}

/* The object of type `type` whose member `member` is at p. */
#define list_entry(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

/* Walks the nodes; the list must not change meanwhile. */
#define list_for_each(it, head) for (struct list *it = (head)->next; it != (head); it = it->next)

/* Walks the nodes; `it` itself may be removed meanwhile, its successor not. */
#define list_for_each_safe(it, head)                                                                         \
	for (struct list *it = (head)->next, *it##_next = it->next; it != (head);                            \
	        it = it##_next, it##_next = it->next)

/* Makes an empty head or a detached node. */
static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

/* Whether a head has no elements; for a node: whether it is on no list. */
static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Inserts a detached node after `at` (a head: at the front). */
static inline void list_add(struct list *at, struct list *node)
{
	node->next = at->next;
	node->prev = at;
	at->next->prev = node;
	at->next = node;
}

/* Inserts a detached node before `at` (a head: at the end). */
static inline void list_add_tail(struct list *at, struct list *node)
{
	list_add(at->prev, node);
}

/* Takes a node off its list and leaves it detached; harmless on a detached node. */
static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* Takes the first node off and returns it, NULL when empty. */
static inline struct list *list_pop(struct list *head)
{
	struct list *node = head->next;
	if (node == head)
		return NULL;
	list_del(node);
	return node;
}

/* Moves all nodes of `from` to the end of `to`, leaving `from` empty. */
static inline void list_move_all(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	from->prev->next = to;
	to->prev->next = from->next;
	to->prev = from->prev;
	list_init(from);
}

#endif
