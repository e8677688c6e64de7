/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cuts answers that may be longer than a record into pages. An answer is seen
 * as a row of items (of a view: workload, service, endpoints); a page takes as
 * many as fit. Knows nothing of who asked.
 */
#include <errno.h>
#include <stdio.h>

#include "pb/ipc_table.h"

/* What the lengths around the items of a page may grow by once they are in: three varints of up to three
 * bytes. */
#define PAGE_SLACK 9

/* Most items of a page: what the smallest list of a page may hold (AnswerView.endpoints in
 * proto/ipc.options). */
#define PAGE_ITEM_MAX 128

/* Kinds of items in an answer. */
enum part {
	PART_WORKLOAD,
	PART_SERVICE,
	PART_ENDPOINT,
	PART_POLICY,
	PART_CONNECTION,
	PART_CERTIFICATE,
	PART_METRIC
};

/* One item of an answer. */
struct item {
	enum part part;
	size_t index; /* within its array */
	const struct codec_msg *table;
	const void *obj;
};

static size_t view_items(const struct ipc_answer_view *view)
{
	return (view->workload != NULL) + (view->service != NULL) + view->endpoint_cnt;
}

static size_t item_cnt(const struct ipc_record *whole)
{
	switch (whole->type) {
	case IPC_ANSWER_VIEW:
		return view_items(&whole->answer_view);
	case IPC_ANSWER_POLICIES:
		return whole->answer_policies.policy_cnt;
	case IPC_ANSWER_STATE:
		return whole->answer_state.connection_cnt + whole->answer_state.certificate_cnt;
	case IPC_ANSWER_METRICS:
		return whole->answer_metrics.metric_cnt;
	default:
		return 0;
	}
}

static struct item view_item(const struct ipc_answer_view *view, size_t n)
{
	if (view->workload && n-- == 0)
		return (struct item){PART_WORKLOAD, 0, ipc_table_workload, view->workload};
	if (view->service && n-- == 0)
		return (struct item){PART_SERVICE, 0, ipc_table_service, view->service};
	return (struct item){PART_ENDPOINT, n, ipc_table_endpoint, &view->endpoints[n]};
}

static struct item item_at(const struct ipc_record *whole, size_t n)
{
	const struct ipc_answer_state *state = &whole->answer_state;
	if (whole->type == IPC_ANSWER_VIEW)
		return view_item(&whole->answer_view, n);
	if (whole->type == IPC_ANSWER_POLICIES)
		return (struct item){PART_POLICY, n, ipc_table_policy, &whole->answer_policies.policies[n]};
	if (whole->type == IPC_ANSWER_METRICS)
		return (struct item){PART_METRIC, n, ipc_table_metric, &whole->answer_metrics.metrics[n]};
	if (n < state->connection_cnt)
		return (struct item){PART_CONNECTION, n, ipc_table_connection, &state->connections[n]};
	n -= state->connection_cnt;
	return (struct item){PART_CERTIFICATE, n, ipc_table_certificate, &state->certificates[n]};
}

/* Name of an item for error texts. */
static void item_name(const struct item *item, char *dst, size_t cap)
{
	const struct workload *w = item->obj;
	const struct service *s = item->obj;
	const struct policy *p = item->obj;
	switch (item->part) {
	case PART_WORKLOAD:
		snprintf(dst, cap, "workload %s", w->uid);
		return;
	case PART_SERVICE:
		snprintf(dst, cap, "service %s/%s", s->ns, s->hostname);
		return;
	case PART_ENDPOINT:
		w = ((const struct endpoint *)item->obj)->workload;
		snprintf(dst, cap, "endpoint %s", w ? w->uid : "");
		return;
	case PART_POLICY:
		snprintf(dst, cap, "policy %s/%s", p->ns, p->name);
		return;
	case PART_CONNECTION:
		snprintf(dst, cap, "connection %zu", item->index);
		return;
	case PART_METRIC:
		snprintf(dst, cap, "metric %zu", item->index);
		return;
	case PART_CERTIFICATE:
		snprintf(dst, cap, "certificate %s", ((const struct ipc_certificate *)item->obj)->identity);
		return;
	}
}

/* The answer without its items. */
static struct ipc_record empty_page(const struct ipc_record *whole, uint32_t page)
{
	struct ipc_record rec = *whole;
	if (rec.type == IPC_ANSWER_VIEW) {
		rec.answer_view.workload = NULL;
		rec.answer_view.service = NULL;
		rec.answer_view.endpoint_cnt = 0;
		rec.answer_view.page = page;
		rec.answer_view.last = false;
	} else if (rec.type == IPC_ANSWER_POLICIES) {
		rec.answer_policies.policy_cnt = 0;
		rec.answer_policies.page = page;
		rec.answer_policies.last = false;
	} else if (rec.type == IPC_ANSWER_STATE) {
		rec.answer_state.connection_cnt = 0;
		rec.answer_state.certificate_cnt = 0;
		rec.answer_state.page = page;
		rec.answer_state.last = false;
	} else if (rec.type == IPC_ANSWER_METRICS) {
		rec.answer_metrics.metric_cnt = 0;
		rec.answer_metrics.page = page;
		rec.answer_metrics.last = false;
	}
	return rec;
}

/* Puts an item into a page. Items of one array follow each other, so a page has a slice of it. */
static void add_item(struct ipc_record *rec, const struct item *item)
{
	switch (item->part) {
	case PART_WORKLOAD:
		rec->answer_view.workload = item->obj;
		return;
	case PART_SERVICE:
		rec->answer_view.service = item->obj;
		return;
	case PART_ENDPOINT:
		if (rec->answer_view.endpoint_cnt++ == 0)
			rec->answer_view.endpoints = item->obj;
		return;
	case PART_POLICY:
		if (rec->answer_policies.policy_cnt++ == 0)
			rec->answer_policies.policies = item->obj;
		return;
	case PART_CONNECTION:
		if (rec->answer_state.connection_cnt++ == 0)
			rec->answer_state.connections = item->obj;
		return;
	case PART_METRIC:
		if (rec->answer_metrics.metric_cnt++ == 0)
			rec->answer_metrics.metrics = item->obj;
		return;
	case PART_CERTIFICATE:
		if (rec->answer_state.certificate_cnt++ == 0)
			rec->answer_state.certificates = item->obj;
		return;
	}
}

static void set_last(struct ipc_record *rec)
{
	if (rec->type == IPC_ANSWER_VIEW)
		rec->answer_view.last = true;
	else if (rec->type == IPC_ANSWER_POLICIES)
		rec->answer_policies.last = true;
	else if (rec->type == IPC_ANSWER_STATE)
		rec->answer_state.last = true;
	else if (rec->type == IPC_ANSWER_METRICS)
		rec->answer_metrics.last = true;
}

/* Bytes that an item adds to a page, its tag and length included; ERR_TOO_LARGE when that is more than room.
 */
static int item_size(const struct item *item, size_t room, size_t *ret_len, struct err *err)
{
	char name[128];
	uint8_t head[CODEC_HEAD_MAX];
	size_t len = 0;
	item_name(item, name, sizeof(name));
	int rc = codec_size(item->table, item->obj, name, &len, err);
	if (rc < 0)
		return rc;
	len += codec_head(1, len, head);
	if (len > room)
		return err_set(err, ERR_TOO_LARGE, "%s: %zu bytes do not fit a record", name, len);
	*ret_len = len;
	return 0;
}

/* Fills rec from pager->next on. *ret_next = first item that is not in. Fails only when the very first one
 * cannot go in. */
static int fill_page(const struct ipc_record *whole, size_t from, size_t room, struct ipc_record *rec,
        size_t *ret_next, struct err *err)
{
	size_t cnt = item_cnt(whole);
	size_t next = from;
	for (; next < cnt && next - from < PAGE_ITEM_MAX; next++) {
		struct item item = item_at(whole, next);
		size_t len = 0;
		int rc = item_size(&item, room, &len, next == from ? err : NULL);
		if (rc < 0 && next == from)
			return rc;
		if (rc < 0)
			break;
		room -= len;
		add_item(rec, &item);
	}
	*ret_next = next;
	return 0;
}

/* Bytes of a record that its one item cannot have: id, the answer's own fields, heads. */
#define PAGE_OVERHEAD 1024
/* Bytes of an answer that is better not cut into pages: what gathers them has a ceiling too. */
#define PAGES_MAX (512u << 10)

bool ipc_fits_pages(const struct ipc_record *whole)
{
	size_t len;
	size_t sum = 0;
	for (size_t i = 0; i < item_cnt(whole); i++) {
		struct item item = item_at(whole, i);
		if (item_size(&item, IPC_RECORD_MAX - PAGE_OVERHEAD, &len, NULL) < 0)
			return false;
		sum += len;
		if (sum > PAGES_MAX)
			return false;
	}
	return true;
}

int ipc_encode_page(const struct ipc_record *whole, struct ipc_pager *pager, uint8_t *dst, size_t cap,
        size_t *ret_len, struct err *err)
{
	struct ipc_record rec = empty_page(whole, pager->page);
	const struct codec_msg *table = ipc_table_body(rec.type);
	uint8_t head[2 * CODEC_HEAD_MAX];
	size_t frame;
	if (cap > IPC_RECORD_MAX)
		cap = IPC_RECORD_MAX;
	if (!table)
		return ipc_encode(&rec, dst, cap, ret_len, err);
	set_last(&rec);
	int rc = codec_size(table, &rec.hello, ipc_type_str(rec.type), &frame, err);
	if (rc < 0)
		return rc;
	frame += codec_varint(IPC_ID_TAG, rec.id, head) + codec_head(rec.type, frame, head) + PAGE_SLACK;
	rec = empty_page(whole, pager->page);
	size_t next = pager->next;
	rc = fill_page(whole, next, cap > frame ? cap - frame : 0, &rec, &next, err);
	if (rc < 0) {
		pager->next++;
		return rc;
	}
	bool last = next == item_cnt(whole);
	if (last)
		set_last(&rec);
	rc = ipc_encode(&rec, dst, cap, ret_len, err);
	if (rc < 0)
		return rc;
	pager->next = next;
	pager->page++;
	pager->done = last;
	return 0;
}

bool ipc_is_last(const struct ipc_record *rec)
{
	switch (rec->type) {
	case IPC_ANSWER_VIEW:
		return rec->answer_view.last;
	case IPC_ANSWER_POLICIES:
		return rec->answer_policies.last;
	case IPC_ANSWER_STATE:
		return rec->answer_state.last;
	case IPC_ANSWER_METRICS:
		return rec->answer_metrics.last;
	default:
		return true;
	}
}
