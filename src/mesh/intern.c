/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counted strings. Numbers are reused, so that a mesh in which names come
 * and go does not grow the table for ever.
 */
#include "mesh/intern.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

struct intern_entry {
	uint32_t refs;
	uint32_t id;
	char text[];
};

static struct map_key key_of(const void *item)
{
	return map_key_str(((const struct intern_entry *)item)->text);
}

void intern_init(struct intern *t)
{
	*t = (struct intern){.next = 1};
	map_init(&t->by_text, INTERN_MAX, key_of);
}

void intern_done(struct intern *t)
{
	for (uint32_t i = 1; i < t->next; i++)
		mem_free(t->entries[i]);
	mem_free(t->entries);
	mem_free(t->spare);
	map_done(&t->by_text);
	intern_init(t);
}

static int grow(struct intern *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 64;
	if (t->cap > INTERN_MAX)
		return -ENOSPC;
	struct intern_entry **entries = mem_realloc(t->entries, cap * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	t->entries = entries;
	uint32_t *spare = mem_realloc(t->spare, cap * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	t->spare = spare;
	t->cap = cap;
	return 0;
}

int intern_get(struct intern *t, const char *s, uint32_t *ret_id)
{
	if (s[0] == 0) {
		*ret_id = 0;
		return 0;
	}
	struct intern_entry *e = map_get_str(&t->by_text, s);
	if (e) {
		e->refs++;
		*ret_id = e->id;
		return 0;
	}
	int rc = t->spare_cnt == 0 && t->next >= t->cap ? grow(t) : 0;
	if (rc < 0)
		return rc;
	size_t len = strlen(s);
	e = mem_alloc(sizeof(*e) + len + 1);
	if (!e)
		return -ENOMEM;
	memcpy(e->text, s, len + 1);
	e->refs = 1;
	rc = map_put(&t->by_text, e, NULL);
	if (rc < 0) {
		mem_free(e);
		return rc;
	}
	e->id = t->spare_cnt ? t->spare[--t->spare_cnt] : t->next++;
	t->entries[e->id] = e;
	*ret_id = e->id;
	return 0;
}

uint32_t intern_ref(struct intern *t, uint32_t id)
{
	if (id)
		t->entries[id]->refs++;
	return id;
}

void intern_put(struct intern *t, uint32_t id)
{
	if (id == 0)
		return;
	struct intern_entry *e = t->entries[id];
	ASSERT(e && e->refs > 0);
	if (--e->refs > 0)
		return;
	map_del_str(&t->by_text, e->text);
	t->entries[id] = NULL;
	t->spare[t->spare_cnt++] = id;
	mem_free(e);
}

int intern_find(const struct intern *t, const char *s, uint32_t *ret_id)
{
	if (s[0] == 0) {
		*ret_id = 0;
		return 0;
	}
	const struct intern_entry *e = map_get_str(&t->by_text, s);
	if (!e)
		return -ENOENT;
	*ret_id = e->id;
	return 0;
}

const char *intern_text(const struct intern *t, uint32_t id)
{
	return id ? t->entries[id]->text : "";
}
