/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mesh files are read twice, element by element: once to check everything,
 * once to insert. Neither pass holds more than one element besides the text,
 * so that a file of 100,000 workloads needs little more than its own size.
 */
#include "broker/local_file.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "broker/local_record.h"
#include "culvert/limits.h"

/* Nodes of one element: a service may name 10,000 endpoints, a policy thousands of matches. */
#define ELEMENT_NODES_MAX 2000000
/* Nesting below the top: rules reach 9 levels. */
#define ELEMENT_DEPTH_MAX 24

struct local_file {
	char *name;
	char *text;
	size_t len;
};

/* A pass over the file; store NULL = check only. */
struct pass {
	struct store *store;
};

/* Explains a store's refusal at the element that caused it. Returns rc. */
static int refused(const struct yaml_node *item, int rc, struct err *err)
{
	if (rc == 0)
		return 0;
	yaml_error(item, err, "%s", err_str(rc));
	if (err)
		err->code = rc;
	return rc;
}

static int on_workload(void *ctx, const struct yaml_node *item, struct err *err)
{
	struct pass *pass = ctx;
	struct arena *arena = arena_new(SIZE_MAX); /* bounded by the nodes of the element */
	struct workload w;

	if (!arena)
		return refused(item, -ENOMEM, err);
	int rc = local_workload(item, arena, &w, err);
	if (rc == 0 && pass->store)
		rc = refused(item, store_insert_workload(pass->store, &w, STORE_FILE), err);
	arena_unref(arena);
	return rc;
}

static int on_service(void *ctx, const struct yaml_node *item, struct err *err)
{
	struct pass *pass = ctx;
	struct arena *arena = arena_new(SIZE_MAX);
	struct local_service s;

	if (!arena)
		return refused(item, -ENOMEM, err);
	int rc = local_service(item, arena, &s, err);
	if (rc == 0 && pass->store)
		rc = refused(item,
		        store_insert_service(
		                pass->store, &s.service, s.endpoints, s.endpoint_cnt, STORE_FILE),
		        err);
	arena_unref(arena);
	return rc;
}

static int on_policy(void *ctx, const struct yaml_node *item, struct err *err)
{
	struct pass *pass = ctx;
	struct arena *arena = arena_new(SIZE_MAX);
	struct policy p;

	if (!arena)
		return refused(item, -ENOMEM, err);
	int rc = local_policy(item, arena, &p, err);
	if (rc == 0 && pass->store) {
		const char *key = arena_printf(arena, "%s/%s", p.ns, p.name);
		rc = refused(
		        item, key ? store_insert_policy(pass->store, key, &p, STORE_FILE) : -ENOMEM, err);
	}
	arena_unref(arena);
	return rc;
}

static int run(const struct local_file *file, struct store *store, struct err *err)
{
	static const struct yaml_section sections[] = {
	        {"workloads", on_workload},
	        {"policies", on_policy},
	        {"services", on_service},
	};
	const struct yaml_limits limits = {
	        .text_max = LIMIT_FILE_MESH,
	        .node_max = ELEMENT_NODES_MAX,
	        .depth_max = ELEMENT_DEPTH_MAX,
	};
	struct pass pass = {.store = store};

	return yaml_stream(file->name, file->text, file->len, &limits, sections,
	        sizeof(sections) / sizeof(sections[0]), &pass, err);
}

/* Takes the text over, whatever happens, and checks it. */
static int make(const char *name, char *text, size_t len, struct local_file **ret_file, struct err *err)
{
	struct local_file *file = mem_zalloc(1, sizeof(*file));
	char *copy = mem_strdup(name);

	if (!file || !copy) {
		mem_free(file);
		mem_free(copy);
		mem_free(text);
		return err_set(err, -ENOMEM, "%s: %s", name, err_str(-ENOMEM));
	}
	*file = (struct local_file){.name = copy, .text = text, .len = len};
	int rc = run(file, NULL, err);
	if (rc == 0)
		*ret_file = file;
	else
		local_file_free(file);
	return rc;
}

int local_file_parse(
        const char *name, const char *text, size_t len, struct local_file **ret_file, struct err *err)
{
	char *copy = mem_strndup(text, len);
	if (!copy)
		return err_set(err, -ENOMEM, "%s: %s", name, err_str(-ENOMEM));
	return make(name, copy, len, ret_file, err);
}

int local_file_load(const char *path, struct local_file **ret_file, struct err *err)
{
	struct buf text;
	size_t len;

	buf_init(&text, LIMIT_FILE_MESH);
	int rc = file_read(path, &text);
	if (rc < 0) {
		buf_done(&text);
		return err_sys(err, rc, "%s", path);
	}
	char *bytes = (char *)buf_take(&text, &len);
	/* An empty file has no buffer. */
	if (!bytes)
		return local_file_parse(path, "", 0, ret_file, err);
	return make(path, bytes, len, ret_file, err);
}

int local_file_apply(const struct local_file *file, struct store *store, struct err *err)
{
	store_replace_begin(store, STORE_FILE);
	int rc = run(file, store, err);
	store_replace_commit(store, rc == 0);
	return rc;
}

void local_file_free(struct local_file *file)
{
	if (!file)
		return;
	mem_free(file->name);
	mem_free(file->text);
	mem_free(file);
}
