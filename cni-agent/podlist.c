/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Documents of pods: one file, or a directory of them. All or nothing: the
 * first thing that is wrong leaves the list as it was.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "culvert/limits.h"
#include "pod.h"

/* Bytes of one pods file: LIMIT_PODS pods of about 1 KiB. */
#define FILE_MAX (4u << 20)
/* Nodes of one pod: its keys, values, addresses and interfaces. */
#define POD_NODES_MAX 256
/* Nesting below the top: list, map, list, text. */
#define POD_DEPTH_MAX 8

/* What a document adds to. */
struct reading {
	struct list pods; /* of this document */
	struct map uids;  /* of all documents; items are the specs */
};

static struct map_key uid_of(const void *item)
{
	const struct pod_spec *spec = item;
	return map_key_str(spec->uid);
}

static int on_pod(void *ctx, const struct yaml_node *item, struct err *err)
{
	struct reading *reading = ctx;
	const struct pod_spec *spec;
	int rc = pod_spec_read(item, &spec, err);
	if (rc < 0)
		return rc;
	if (map_get_str(&reading->uids, spec->uid)) {
		rc = yaml_error(yaml_get(item, "uid"), err, "`%s` is there twice", spec->uid);
		pod_spec_unref(spec);
		return rc;
	}
	struct pod_entry *entry = mem_zalloc(1, sizeof(*entry));
	/* The map only looks at its items. */
	rc = entry ? map_put(&reading->uids, (void *)(uintptr_t)spec, NULL) : -ENOMEM;
	if (rc < 0) {
		mem_free(entry);
		pod_spec_unref(spec);
		return rc == -ENOSPC ? yaml_error(item, err, "more than %d pods", LIMIT_PODS)
		                     : err_set(err, rc, "%s", err_str(rc));
	}
	entry->spec = spec;
	list_add_tail(&reading->pods, &entry->node);
	return 0;
}

static int enter_known(struct reading *reading, const struct list *pods)
{
	int rc = 0;
	list_for_each(it, (struct list *)(uintptr_t)pods)
	{
		if (rc == 0)
			rc = map_put(&reading->uids,
			        (void *)(uintptr_t)list_entry(it, struct pod_entry, node)->spec, NULL);
	}
	return rc;
}

int pod_list_parse(const char *file, const char *text, size_t len, struct list *pods, struct err *err)
{
	const struct yaml_limits limits = {
	        .text_max = FILE_MAX, .node_max = POD_NODES_MAX, .depth_max = POD_DEPTH_MAX};
	const struct yaml_section section = {.name = "pods", .item = on_pod};
	struct reading reading;
	list_init(&reading.pods);
	map_init(&reading.uids, LIMIT_PODS, uid_of);
	int rc = enter_known(&reading, pods);
	if (rc < 0)
		err_set(err, rc, "%s", err_str(rc));
	else
		rc = yaml_stream(file, text, len, &limits, &section, 1, &reading, err);
	map_done(&reading.uids);
	if (rc == 0)
		list_move_all(pods, &reading.pods);
	pod_list_done(&reading.pods);
	return rc;
}

static int load_file(const char *path, struct list *pods, struct err *err)
{
	struct buf text;
	buf_init(&text, FILE_MAX);
	int rc = file_read(path, &text);
	if (rc < 0)
		err_sys(err, rc, "%s", path);
	else
		rc = pod_list_parse(path, text.data ? (const char *)text.data : "", text.len, pods, err);
	buf_done(&text);
	return rc;
}

static int is_pods_file(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');
	/* A leading dot also hides the folders that a ConfigMap keeps its versions in. */
	return entry->d_name[0] != '.' && dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static int load_dir(const char *path, struct list *pods, struct err *err)
{
	struct dirent **names;
	int cnt = scandir(path, &names, is_pods_file, alphasort);
	if (cnt < 0)
		return err_sys(err, -errno, "%s", path);
	int rc = 0;
	for (int i = 0; i < cnt; i++) {
		char file[POD_PATH_MAX + 1];
		int n = snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		if (rc == 0)
			rc = n < (int)sizeof(file) ? load_file(file, pods, err)
			                           : err_sys(err, -ENAMETOOLONG, "%s", path);
		free(names[i]);
	}
	free(names);
	return rc;
}

int pod_list_load(const char *path, struct list *pods, struct err *err)
{
	struct list loaded = LIST_INIT(loaded);
	struct stat st;
	int rc;
	if (stat(path, &st) < 0)
		rc = err_sys(err, -errno, "%s", path);
	else if (S_ISDIR(st.st_mode))
		rc = load_dir(path, &loaded, err);
	else
		rc = load_file(path, &loaded, err);
	if (rc == 0)
		list_move_all(pods, &loaded);
	pod_list_done(&loaded);
	return rc;
}

void pod_list_done(struct list *pods)
{
	for (struct list *it = list_pop(pods); it; it = list_pop(pods)) {
		struct pod_entry *entry = list_entry(it, struct pod_entry, node);
		pod_spec_unref(entry->spec);
		mem_free(entry);
	}
}

const struct pod_spec *pod_list_find(const struct list *pods, const char *uid)
{
	for (const struct list *it = pods->next; it != pods; it = it->next) {
		const struct pod_spec *spec = list_entry(it, struct pod_entry, node)->spec;
		if (strcmp(spec->uid, uid) == 0)
			return spec;
	}
	return NULL;
}
