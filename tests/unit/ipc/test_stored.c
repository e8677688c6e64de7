/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of each release, stored as bytes under tests/golden/ipc/<release>/:
 * this release must write its own the same, and understand all of them.
 * `test_ipc_stored --write DIR` stores those of this release.
 */
#include "../pb/unit.h"

#include <dirent.h>

#include "../pb/samples.h"

static struct err err;
static const char *stored_dir;

static void path_of(const char *name, char *dst, size_t cap)
{
	snprintf(dst, cap, "%s/%s/%s.bin", stored_dir, CULVERT_VERSION, name);
}

/* A release that has gone out is not written again by accident: this only runs by hand. */
static int write_all(void)
{
	for (size_t i = 0; i < sample_cnt; i++) {
		uint8_t bytes[IPC_RECORD_MAX];
		char path[4096];
		size_t len;
		path_of(samples[i].name, path, sizeof(path));
		FILE *f = fopen(path, "wb");
		if (ipc_encode(&samples[i].rec, bytes, sizeof(bytes), &len, &err) < 0 || !f ||
		        fwrite(bytes, 1, len, f) != len || fclose(f)) {
			fprintf(stderr, "%s: %s\n", path, err.text);
			return 1;
		}
	}
	return 0;
}

static size_t read_file(const char *path, uint8_t *dst)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s is missing: write it with --write", path);
	size_t len = fread(dst, 1, IPC_RECORD_MAX, f);
	fclose(f);
	return len;
}

static void test_written_as_before(void **state)
{
	for (size_t i = 0; i < sample_cnt; i++) {
		static uint8_t bytes[IPC_RECORD_MAX], want[IPC_RECORD_MAX];
		char path[4096];
		size_t len;
		path_of(samples[i].name, path, sizeof(path));
		assert_ok(ipc_encode(&samples[i].rec, bytes, sizeof(bytes), &len, &err));
		if (read_file(path, want) != len || memcmp(bytes, want, len) != 0)
			fail_msg("%s: written differently", path);
	}
}

static void test_all_releases_understood(void **state)
{
	size_t cnt = 0;
	DIR *releases = opendir(stored_dir);
	assert_non_null(releases);
	for (struct dirent *r = readdir(releases); r; r = readdir(releases)) {
		char dir_path[2048];
		if (r->d_name[0] == '.')
			continue;
		snprintf(dir_path, sizeof(dir_path), "%s/%s", stored_dir, r->d_name);
		DIR *dir = opendir(dir_path);
		assert_non_null(dir);
		for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
			static uint8_t bytes[IPC_RECORD_MAX];
			char path[4096];
			struct ipc_record rec;
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", dir_path, e->d_name);
			size_t len = read_file(path, bytes);
			struct arena *arena = arena_new(IPC_ARENA_MAX);
			if (ipc_decode(bytes, len, arena, &rec, &err) < 0)
				fail_msg("%s: %s", path, err.text);
			arena_unref(arena);
			cnt++;
		}
		closedir(dir);
	}
	closedir(releases);
	assert_true(cnt >= sample_cnt);
}

/* Every type that has a name has a sample, so that a new record is not forgotten. */
static void test_every_type_is_stored(void **state)
{
	for (unsigned type = 1; type < IPC_TYPE_END; type++) {
		bool found = strcmp(ipc_type_str((enum ipc_type)type), "unknown") == 0;
		for (size_t i = 0; i < sample_cnt; i++)
			found = found || samples[i].rec.type == (enum ipc_type)type;
		if (!found)
			fail_msg("%s has no sample", ipc_type_str((enum ipc_type)type));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_written_as_before),
	        cmocka_unit_test(test_all_releases_understood),
	        cmocka_unit_test(test_every_type_is_stored),
	};
	stored_dir = argv[argc - 1];
	if (argc == 3 && strcmp(argv[1], "--write") == 0)
		return write_all();
	if (argc != 2) {
		fprintf(stderr, "usage: %s [--write] DIR\n", argv[0]);
		return 2;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
