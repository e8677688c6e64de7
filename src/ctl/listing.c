/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choosing, sorting and printing; the cells are in cells.c. See listing.h. */
#include "ctl/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "ctl/cells.h"
#include "ctl/emit.h"
#include "ctl/near.h"
#include "ctl/shape.h"
#include "ctl/table.h"

/* Blanks between columns; the table of certificates has more. */
#define GAP 1
#define GAP_CERTIFICATE 5

typedef int compare_fn(const void *a, const void *b);

/* What makes a list. */
struct section {
	const char *heading;
	const char *columns[TABLE_COLUMNS_MAX];
	size_t column_cnt;
	size_t gap;
	enum shape shape;
	compare_fn *compare; /* NULL = as in the dump */
	bool is_json_sorted; /* in JSON too */
	cells_fn *cells;
	const struct records *(*records)(const struct dump *dump);
	bool (*is_wanted)(const struct dump *dump, const struct ctl *ctl, const cJSON *record);
};

bool listing_is_pod(const char *text, const char *name, const char *ns)
{
	size_t name_len = strlen(name);
	size_t ns_len = strlen(ns);
	if (strcmp(text, name) == 0)
		return true;
	if (strncmp(text, name, name_len) == 0 && text[name_len] == '.' &&
	        strcmp(text + name_len + 1, ns) == 0)
		return true;
	return strncmp(text, ns, ns_len) == 0 && text[ns_len] == '/' && strcmp(text + ns_len + 1, name) == 0;
}

/* --- filters ------------------------------------------------------------- */

static bool is_equal(const char *wanted, const char *text)
{
	return !wanted || strcasecmp(wanted, text) == 0;
}

static bool is_in_namespace(const struct ctl *ctl, const cJSON *record)
{
	return is_equal(ctl->options[CTL_OPT_NAMESPACE], dump_str(record, "namespace"));
}

static bool has_address(const cJSON *workload, const char *address)
{
	const cJSON *ip;
	cJSON_ArrayForEach(ip, cJSON_GetObjectItem(workload, "workloadIps"))
	{
		if (cJSON_IsString(ip) && strcasecmp(ip->valuestring, address) == 0)
			return true;
	}
	return false;
}

static bool wants_workload(const struct dump *dump, const struct ctl *ctl, const cJSON *workload)
{
	const char *pod = ctl->options[CTL_OPT_POD];
	const char *address = ctl->options[CTL_OPT_ADDRESS];
	(void)dump;
	return is_in_namespace(ctl, workload) &&
	       is_equal(ctl->options[CTL_OPT_NODE], dump_str(workload, "node")) &&
	       (!address || has_address(workload, address)) &&
	       (!pod || listing_is_pod(pod, dump_str(workload, "name"), dump_str(workload, "namespace")));
}

static bool wants_named(const struct dump *dump, const struct ctl *ctl, const cJSON *record)
{
	(void)dump;
	return is_in_namespace(ctl, record);
}

/* The pod of an entry of workloadState. */
static const cJSON *info_of(const cJSON *state)
{
	return cJSON_GetObjectItem(state, "info");
}

static bool is_state_of(const cJSON *state, const char *pod)
{
	const cJSON *info = info_of(state);
	return (state->string && strcmp(state->string, pod) == 0) ||
	       listing_is_pod(pod, dump_str(info, "name"), dump_str(info, "namespace"));
}

/* Whether an identity ends with /ns/<namespace>/sa/<account>; account NULL = any. */
static bool is_identity_of(const char *identity, const char *ns, const char *account)
{
	const char *at = strstr(identity, "/ns/");
	size_t len = strlen(ns);
	if (!at || strncasecmp(at + 4, ns, len) != 0 || strncmp(at + 4 + len, "/sa/", 4) != 0)
		return false;
	return !account || strcmp(at + 4 + len + 4, account) == 0;
}

static bool wants_certificate(const struct dump *dump, const struct ctl *ctl, const cJSON *certificate)
{
	const char *identity = dump_str(certificate, "identity");
	const char *ns = ctl->options[CTL_OPT_NAMESPACE];
	const char *pod = ctl->options[CTL_OPT_POD];
	if (ns && !is_identity_of(identity, ns, NULL))
		return false;
	for (size_t i = 0; pod && i < dump->states.cnt; i++) {
		const cJSON *info = info_of(dump->states.all[i]);
		if (is_state_of(dump->states.all[i], pod) &&
		        is_identity_of(
		                identity, dump_str(info, "namespace"), dump_str(info, "serviceAccount")))
			return true;
	}
	return !pod;
}

static const char *node_of(const struct dump *dump, const char *name, const char *ns)
{
	for (size_t i = 0; i < dump->workloads.cnt; i++) {
		const cJSON *workload = dump->workloads.all[i];
		if (strcmp(dump_str(workload, "name"), name) == 0 &&
		        strcmp(dump_str(workload, "namespace"), ns) == 0)
			return dump_str(workload, "node");
	}
	return "";
}

static bool wants_state(const struct dump *dump, const struct ctl *ctl, const cJSON *state)
{
	const cJSON *info = info_of(state);
	const char *pod = ctl->options[CTL_OPT_POD];
	const char *node = ctl->options[CTL_OPT_NODE];
	return is_equal(ctl->options[CTL_OPT_NAMESPACE], dump_str(info, "namespace")) &&
	       (!node ||
	               is_equal(node, node_of(dump, dump_str(info, "name"), dump_str(info, "namespace")))) &&
	       (!pod || is_state_of(state, pod));
}

/* --- order --------------------------------------------------------------- */

static const cJSON *record_at(const void *p)
{
	return *(const cJSON *const *)p;
}

static int by_string(const cJSON *a, const cJSON *b, const char *key)
{
	return strcmp(dump_str(a, key), dump_str(b, key));
}

static int by_name(const cJSON *a, const cJSON *b)
{
	int r = by_string(a, b, "namespace");
	return r ? r : by_string(a, b, "name");
}

/* Byte i of "namespace.name"; 0 at the end. */
static unsigned char joined_at(const char *ns, size_t ns_len, const char *name, size_t i)
{
	if (i < ns_len)
		return (unsigned char)ns[i];
	return (unsigned char)(i == ns_len ? '.' : name[i - ns_len - 1]);
}

/* Compares what istioctl compares: the two joined by a dot, which is behind the dash that names may have. */
static int by_joined(const cJSON *a, const cJSON *b)
{
	const char *a_ns = dump_str(a, "namespace"), *a_name = dump_str(a, "name");
	const char *b_ns = dump_str(b, "namespace"), *b_name = dump_str(b, "name");
	size_t a_len = strlen(a_ns), b_len = strlen(b_ns);
	for (size_t i = 0;; i++) {
		unsigned char one = joined_at(a_ns, a_len, a_name, i);
		unsigned char two = joined_at(b_ns, b_len, b_name, i);
		if (one != two || !one)
			return one - two;
	}
}

static int by_workload(const void *a, const void *b)
{
	int r = by_joined(record_at(a), record_at(b));
	return r ? r : by_string(record_at(a), record_at(b), "node");
}

static int by_service(const void *a, const void *b)
{
	int r = by_name(record_at(a), record_at(b));
	return r ? r : by_string(record_at(a), record_at(b), "hostname");
}

static int by_policy(const void *a, const void *b)
{
	return by_name(record_at(a), record_at(b));
}

static int by_state(const void *a, const void *b)
{
	return by_name(info_of(record_at(a)), info_of(record_at(b)));
}

/* --- the lists ----------------------------------------------------------- */

static const struct records *workloads_of(const struct dump *dump)
{
	return &dump->workloads;
}

static const struct records *services_of(const struct dump *dump)
{
	return &dump->services;
}

static const struct records *policies_of(const struct dump *dump)
{
	return &dump->policies;
}

static const struct records *certificates_of(const struct dump *dump)
{
	return &dump->certificates;
}

static const struct records *states_of(const struct dump *dump)
{
	return &dump->states;
}

static const struct section SECTIONS[LISTING_CNT] = {
        [LISTING_WORKLOAD] = {"WORKLOAD",
                {"NAMESPACE", "POD NAME", "ADDRESS", "NODE", "WAYPOINT", "PROTOCOL"}, 6, GAP, SHAPE_WORKLOAD,
                by_workload, false, cells_workload, workloads_of, wants_workload},
        [LISTING_SERVICE] = {"SERVICE", {"NAMESPACE", "SERVICE NAME", "SERVICE VIP", "WAYPOINT", "ENDPOINTS"},
                5, GAP, SHAPE_SERVICE, by_service, true, cells_service, services_of, wants_named},
        [LISTING_POLICY] = {"POLICY", {"NAMESPACE", "POLICY NAME", "ACTION", "SCOPE"}, 4, GAP, SHAPE_POLICY,
                by_policy, true, cells_policy, policies_of, wants_named},
        [LISTING_CERTIFICATE] = {"SECRET",
                {"CERTIFICATE NAME", "TYPE", "STATUS", "VALID CERT", "SERIAL NUMBER", "NOT AFTER",
                        "NOT BEFORE"},
                7, GAP_CERTIFICATE, SHAPE_CERTIFICATE, NULL, false, cells_certificate, certificates_of,
                wants_certificate},
        [LISTING_CONNECTIONS] = {"CONNECTIONS",
                {"WORKLOAD", "DIRECTION", "LOCAL", "REMOTE", "REMOTE TARGET", "PROTOCOL"}, 6, GAP,
                SHAPE_STATE, by_state, true, cells_connections, states_of, wants_state},
};

/* The records that the call wants; mem_free the array. -ENOMEM. */
static int choose(
        const struct dump *dump, const struct ctl *ctl, const struct section *section, struct records *ret)
{
	const struct records *all = section->records(dump);
	struct records chosen = {.all = mem_alloc((all->cnt + 1) * sizeof(*chosen.all))};
	if (!chosen.all)
		return -ENOMEM;
	for (size_t i = 0; i < all->cnt; i++)
		if (section->is_wanted(dump, ctl, all->all[i]))
			chosen.all[chosen.cnt++] = all->all[i];
	if (section->compare && (section->is_json_sorted || ctl->output == CTL_OUTPUT_SHORT))
		qsort(chosen.all, chosen.cnt, sizeof(*chosen.all), section->compare);
	*ret = chosen;
	return 0;
}

static int print_records(
        const struct ctl *ctl, const struct section *section, const struct records *records, struct err *err)
{
	/* Go prints a list that was never made as null. */
	bool is_null = records->cnt == 0 && section->shape == SHAPE_CERTIFICATE;
	cJSON *list = is_null ? cJSON_CreateNull() : cJSON_CreateArray();
	bool is_whole = list != NULL;
	for (size_t i = 0; i < records->cnt && is_whole; i++) {
		cJSON *item = shape_make(section->shape, records->all[i]);
		is_whole = item && cJSON_AddItemToArray(list, item);
		if (!is_whole)
			cJSON_Delete(item);
	}
	int r = is_whole ? emit(ctl->out, list, ctl->output, err) : err_sys(err, -ENOMEM, "the list");
	cJSON_Delete(list);
	return r;
}

static int print_rows(const struct dump *dump, const struct ctl *ctl, const struct section *section,
        const struct records *records, int64_t now_s, struct err *err)
{
	struct table table;
	const struct cells_env env = {.dump = dump,
	        .is_raw = ctl->options[CTL_OPT_RAW] != NULL,
	        .direction = ctl->options[CTL_OPT_DIRECTION],
	        .now_s = now_s};
	table_init(&table, section->column_cnt, section->columns, section->gap);
	for (size_t i = 0; i < records->cnt; i++)
		section->cells(&env, records->all[i], &table);
	int r = table_print(&table, ctl->out, err);
	table_done(&table);
	return r;
}

/* The call names a pod that is not there: says which names are near. */
static int no_such_pod(const struct dump *dump, const struct ctl *ctl, enum listing listing, struct err *err)
{
	const struct records *from = listing == LISTING_WORKLOAD ? &dump->workloads : &dump->states;
	struct near near;
	near_init(&near, ctl->options[CTL_OPT_POD]);
	for (size_t i = 0; i < from->cnt; i++) {
		const cJSON *who = listing == LISTING_WORKLOAD ? from->all[i] : info_of(from->all[i]);
		near_offer(&near, dump_str(who, "name"), dump_str(who, "namespace"));
	}
	return near_fail(&near, listing == LISTING_WORKLOAD ? "workload" : "pod on this node", err);
}

int listing_print(
        const struct dump *dump, const struct ctl *ctl, enum listing listing, int64_t now_s, struct err *err)
{
	const struct section *section = &SECTIONS[listing];
	struct records records;
	int r = choose(dump, ctl, section, &records);
	if (r < 0)
		return err_sys(err, r, "the list");
	if (ctl->options[CTL_OPT_POD] && records.cnt == 0)
		r = no_such_pod(dump, ctl, listing, err);
	else if (ctl->output == CTL_OUTPUT_SHORT)
		r = print_rows(dump, ctl, section, &records, now_s, err);
	else
		r = print_records(ctl, section, &records, err);
	mem_free(records.all);
	return r;
}

void listing_heading(FILE *out, enum listing listing)
{
	fprintf(out, "------ %s INFO ------\n\n", SECTIONS[listing].heading);
}
