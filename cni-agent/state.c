/* SPDX-License-Identifier: GPL-2.0-only */
/* The state directory. Blocking: the files are tiny and changes rare. */
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

#define TARGET "cni_agent::state"

/* Longest uid that becomes a file name as it is. */
#define PLAIN_UID_MAX 64
/* Bytes of one file: a pod with long names, a long path and many addresses. */
#define STATE_FILE_MAX 32768

/* A uid is opaque: other letters than these could leave the directory. */
static bool is_plain(const char *uid)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	size_t len = strlen(uid);
	return len > 0 && len <= PLAIN_UID_MAX && strspn(uid, allowed) == len;
}

static int path_of(const char *dir, const char *uid, char dst[POD_PATH_MAX + 1])
{
	/* Two fixed keys: the name must be the same after a restart. No plain name has an underscore. */
	static const struct hash_seed high = {0x63756c76, 0x65727431}, low = {0x63756c76, 0x65727432};
	int n;
	if (is_plain(uid))
		n = snprintf(dst, POD_PATH_MAX + 1, "%s/%s.yaml", dir, uid);
	else
		n = snprintf(dst, POD_PATH_MAX + 1, "%s/uid_%016" PRIx64 "%016" PRIx64 ".yaml", dir,
		        hash_bytes(&high, uid, strlen(uid)), hash_bytes(&low, uid, strlen(uid)));
	return n > POD_PATH_MAX ? -ENAMETOOLONG : 0;
}

int state_open(const char *dir, struct err *err)
{
	struct stat st;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(err, -errno, "%s", dir);
	if (lstat(dir, &st) < 0)
		return err_sys(err, -errno, "%s", dir);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(err, -EPERM, "%s: must be a directory that only this user can write", dir);
	return 0;
}

/* Adds what a file says, if it is the file that its pod would have. */
static int load_one(const char *dir, const char *name, struct list *pods, struct err *err)
{
	char path[POD_PATH_MAX + 1], expected[POD_PATH_MAX + 1];
	struct list found = LIST_INIT(found);
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) > POD_PATH_MAX)
		return err_sys(err, -ENAMETOOLONG, "%s", name);
	int rc = pod_list_load(path, &found, err);
	if (rc < 0)
		return rc;
	if (list_empty(&found) || found.next->next != &found ||
	        path_of(dir, list_entry(found.next, struct pod_entry, node)->spec->uid, expected) < 0 ||
	        strcmp(path, expected) != 0)
		rc = err_set(err, -EINVAL, "%s: not written by this agent", path);
	if (rc == 0)
		list_move_all(pods, &found);
	pod_list_done(&found);
	return rc;
}

static int is_state_file(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');
	return entry->d_name[0] != '.' && dot && strcmp(dot, ".yaml") == 0;
}

int state_load(const char *dir, struct log *log, struct list *pods, struct err *err)
{
	struct dirent **names;
	int cnt = scandir(dir, &names, is_state_file, alphasort);
	if (cnt < 0)
		return err_sys(err, -errno, "%s", dir);
	for (int i = 0; i < cnt; i++) {
		struct err why = {0};
		if (load_one(dir, names[i]->d_name, pods, &why) < 0)
			log_msg(log, LOG_WARN, TARGET, "passed over: %s", why.text);
		free(names[i]);
	}
	free(names);
	return 0;
}

int state_save(const char *dir, const struct pod_spec *spec, struct err *err)
{
	char path[POD_PATH_MAX + 1];
	int rc = path_of(dir, spec->uid, path);
	if (rc < 0)
		return err_sys(err, rc, "%s", dir);
	struct buf text;
	struct json json;
	buf_init(&text, STATE_FILE_MAX);
	json_init(&json, &text, true);
	json_obj(&json);
	json_key(&json, "pods");
	json_arr(&json);
	json_obj(&json);
	pod_spec_members(spec, &json);
	json_obj_end(&json);
	json_arr_end(&json);
	json_obj_end(&json);
	buf_add_str(&text, "\n");
	rc = text.err ? text.err : file_write(path, text.data, text.len, 0600);
	buf_done(&text);
	return rc < 0 ? err_sys(err, rc, "%s", path) : 0;
}

void state_drop(const char *dir, const char *uid)
{
	char path[POD_PATH_MAX + 1];
	if (path_of(dir, uid, path) == 0)
		unlink(path);
}
