/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole files: ceilings, atomic replacement, modes. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "unit.h"

static void round_trip(void **state)
{
	char dir[] = "/tmp/culvert-file-XXXXXX", path[64], gone[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f", dir);
	snprintf(gone, sizeof(gone), "%s/no/f", dir);
	assert_false(file_exists(path));
	assert_int_equal(file_write(path, "first\nsecond\n", 13, 0600), 0);
	assert_true(file_exists(path));
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	struct buf b;
	buf_init(&b, 13);
	assert_int_equal(file_read(path, &b), 0);
	assert_string_equal(buf_cstr(&b), "first\nsecond\n");
	buf_done(&b);
	buf_init(&b, 12);
	assert_int_equal(file_read(path, &b), -EMSGSIZE);
	buf_done(&b);
	char line[32];
	assert_int_equal(file_read_line(path, line, sizeof(line)), 0);
	assert_string_equal(line, "first");
	assert_int_equal(file_read_line(path, line, 3), 0);
	assert_string_equal(line, "fi");
	assert_int_equal(file_write(path, "new", 3, 0644), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(file_write(gone, "x", 1, 0600), -ENOENT);
	assert_int_equal(file_read(gone, &b), -ENOENT);
	assert_int_equal(file_read_line(gone, line, sizeof(line)), -ENOENT);
	assert_int_equal(file_read(dir, &b), -EISDIR);
	buf_done(&b);
	unlink(path);
	assert_int_equal(rmdir(dir), 0); /* no temporary was left */
}

static void reads_proc(void **state)
{
	struct buf b;
	buf_init(&b, 1u << 20);
	assert_int_equal(file_read("/proc/self/status", &b), 0);
	assert_non_null(strstr(buf_cstr(&b), "Pid:"));
	buf_done(&b);
	buf_init(&b, 0);
	assert_int_equal(file_read("/dev/null", &b), 0);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(reads_proc)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
