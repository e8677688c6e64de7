/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages back into one answer. A page that is the whole answer is handed through
 * with its own arena; only longer answers are copied together. Knows no socket.
 */
#include "ipc/gather.h"

#include <errno.h>
#include <string.h>

/* Most policies of one workload: far above any mesh that was seen, 4 MB of arena end it earlier for large
 * ones. */
#define POLICY_MAX 8192

/* The items of one page. */
struct gather_part {
	struct gather_part *next;
	const void *items;
	size_t cnt;
};

/* What views and policy sets have in common. */
struct page {
	uint64_t generation;
	uint32_t number;
	bool last;
	size_t cnt;
	size_t size; /* of an item */
	size_t max;  /* items of the whole answer */
};

static struct page look(const struct ipc_record *rec)
{
	const struct ipc_answer_view *v = &rec->answer_view;
	const struct ipc_answer_policies *p = &rec->answer_policies;
	if (rec->type == IPC_ANSWER_VIEW)
		return (struct page){v->generation, v->page, v->last, v->endpoint_cnt, sizeof(*v->endpoints),
		        IPC_VIEW_ENDPOINT_MAX};
	return (struct page){
	        p->generation, p->page, p->last, p->policy_cnt, sizeof(*p->policies), POLICY_MAX};
}

void gather_done(struct gather *gather)
{
	arena_unref(gather->arena);
	memset(gather, 0, sizeof(*gather));
}

static int no_memory(struct err *err)
{
	return err_set(
	        err, ERR_TOO_LARGE, "answer is above %u bytes, or memory is out", (unsigned)GATHER_MAX);
}

static int begin(
        struct gather *gather, const struct ipc_record *rec, const struct page *page, struct err *err)
{
	gather_done(gather);
	gather->arena = arena_new(GATHER_MAX);
	if (!gather->arena)
		return no_memory(err);
	gather->type = rec->type;
	gather->generation = page->generation;
	gather->whole = *rec;
	if (rec->type != IPC_ANSWER_VIEW)
		return 0;
	gather->whole.answer_view.workload = NULL;
	gather->whole.answer_view.service = NULL;
	return ipc_copy_key(gather->arena, &rec->answer_view.key, &gather->whole.answer_view.key) < 0
	               ? no_memory(err)
	               : 0;
}

/* Whether the page goes on where the last one ended. */
static int check_next(
        const struct gather *gather, const struct ipc_record *rec, const struct page *page, struct err *err)
{
	if (rec->type != gather->type || page->generation != gather->generation ||
	        page->number != gather->next_page)
		return err_set(err, ERR_PROTOCOL, "%s: page %u is out of order", ipc_type_str(rec->type),
		        page->number);
	if (page->number >= GATHER_PAGE_MAX || page->cnt > page->max - gather->item_cnt)
		return err_set(err, ERR_TOO_MANY, "%s: too long", ipc_type_str(rec->type));
	if (rec->type != IPC_ANSWER_VIEW)
		return 0;
	const struct ipc_answer_view *whole = &gather->whole.answer_view;
	const struct ipc_answer_view *view = &rec->answer_view;
	if (!ipc_key_eq(&view->key, &whole->key) || view->known != whole->known)
		return err_set(err, ERR_PROTOCOL, "AnswerView: page %u is of another view", page->number);
	if ((view->workload && whole->workload) || (view->service && whole->service))
		return err_set(
		        err, ERR_PROTOCOL, "AnswerView: page %u repeats workload or service", page->number);
	return 0;
}

static int take(struct gather *gather, const struct ipc_record *rec, const struct page *page, struct err *err)
{
	struct arena *arena = gather->arena;
	struct ipc_answer_view *whole = &gather->whole.answer_view;
	struct gather_part *part = arena_zalloc(arena, 1, sizeof(*part));
	if (!part)
		return no_memory(err);
	if (rec->type == IPC_ANSWER_VIEW) {
		const struct ipc_answer_view *view = &rec->answer_view;
		part->items = ipc_copy_endpoints(arena, view->endpoints, view->endpoint_cnt);
		if (view->workload && !(whole->workload = ipc_copy_workload(arena, view->workload)))
			return no_memory(err);
		if (view->service && !(whole->service = ipc_copy_service(arena, view->service)))
			return no_memory(err);
	} else {
		part->items = ipc_copy_policies(arena, rec->answer_policies.policies, page->cnt);
	}
	if (!part->items)
		return no_memory(err);
	part->cnt = page->cnt;
	part->next = gather->parts;
	gather->parts = part;
	gather->item_cnt += page->cnt;
	gather->next_page++;
	return 0;
}

/* Joins the parts, which hang newest first, and hands everything over. */
static int finish(struct gather *gather, const struct page *page, struct arena **ret_arena,
        struct ipc_record *ret_whole, struct err *err)
{
	size_t at = gather->item_cnt;
	char *items = arena_alloc(gather->arena, at * page->size);
	if (!items)
		return no_memory(err);
	for (const struct gather_part *part = gather->parts; part; part = part->next) {
		at -= part->cnt;
		memcpy(items + at * page->size, part->items, part->cnt * page->size);
	}
	struct ipc_record *whole = &gather->whole;
	if (whole->type == IPC_ANSWER_VIEW) {
		whole->answer_view.endpoints = (const struct endpoint *)(const void *)items;
		whole->answer_view.endpoint_cnt = gather->item_cnt;
		whole->answer_view.page = 0;
		whole->answer_view.last = true;
	} else {
		whole->answer_policies.policies = (const struct policy *)(const void *)items;
		whole->answer_policies.policy_cnt = gather->item_cnt;
		whole->answer_policies.page = 0;
		whole->answer_policies.last = true;
	}
	*ret_whole = *whole;
	*ret_arena = gather->arena;
	gather->arena = NULL;
	gather_done(gather);
	return 0;
}

int gather_add(struct gather *gather, struct arena *arena, const struct ipc_record *rec,
        struct arena **ret_arena, struct ipc_record *ret_whole, struct err *err)
{
	if (rec->type != IPC_ANSWER_VIEW && rec->type != IPC_ANSWER_POLICIES)
		return err_set(err, ERR_PROTOCOL, "%s: has no pages", ipc_type_str(rec->type));
	struct page page = look(rec);
	if (gather->arena && page.generation < gather->generation)
		return -EAGAIN;
	if (page.number == 0 && page.last) {
		gather_done(gather);
		*ret_arena = arena_ref(arena);
		*ret_whole = *rec;
		return 0;
	}
	int rc = page.number == 0 ? begin(gather, rec, &page, err) : 0;
	if (rc == 0)
		rc = check_next(gather, rec, &page, err);
	if (rc == 0)
		rc = take(gather, rec, &page, err);
	if (rc == 0 && page.last)
		rc = finish(gather, &page, ret_arena, ret_whole, err);
	else if (rc == 0)
		rc = -EAGAIN;
	if (rc < 0 && rc != -EAGAIN)
		gather_done(gather);
	return rc;
}
