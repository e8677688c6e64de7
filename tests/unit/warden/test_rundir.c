/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of pods, and the life of instance folders on a real file system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "warden/rundir.h"

static char base[64];

static int make_base(void **state)
{
	snprintf(base, sizeof(base), "/tmp/warden-rundir-XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int remove_base(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

static void expect_name(const char *uid, const char *name)
{
	char dst[RUNDIR_NAME_MAX];
	rundir_pod_name(uid, dst);
	assert_string_equal(dst, name);
}

static void expect_hashed(const char *uid)
{
	char dst[RUNDIR_NAME_MAX];
	rundir_pod_name(uid, dst);
	assert_int_equal(dst[0], '_');
	assert_int_equal(strspn(dst + 1, "0123456789abcdef"), 32);
	assert_int_equal(strlen(dst), 33);
}

static void test_names(void **state)
{
	char longest[RUNDIR_UID_MAX + 2];
	char other[RUNDIR_NAME_MAX];
	char one[RUNDIR_NAME_MAX];
	expect_name("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
	expect_name("A", "A");
	memset(longest, 'x', sizeof(longest));
	longest[RUNDIR_UID_MAX] = '\0';
	expect_name(longest, longest);
	longest[RUNDIR_UID_MAX] = 'x';
	longest[RUNDIR_UID_MAX + 1] = '\0';
	expect_hashed(longest);
	expect_hashed("");
	expect_hashed("..");
	expect_hashed("a/b");
	expect_hashed("_0123");
	expect_hashed("\xc3\xa4");
	rundir_pod_name("a/b", one);
	rundir_pod_name("a/c", other);
	assert_string_not_equal(one, other);
	rundir_pod_name("a/b", other);
	assert_string_equal(one, other);
}

static void test_socket_names(void **state)
{
	char file[RUNDIR_SOCKET_MAX];
	rundir_socket_name("u-1", file);
	assert_string_equal(file, "silo-u-1.sock");
	assert_true(rundir_is_socket_name(file));
	assert_true(rundir_is_socket_name("silo-u-1~2.sock"));
	assert_false(rundir_is_socket_name("silo-.sock"));
	assert_false(rundir_is_socket_name("silo-a"));
	assert_false(rundir_is_socket_name("broker.sock"));
	assert_false(rundir_is_socket_name(".sock"));
}

static int exists(const struct rundir *run, const char *file)
{
	return faccessat(run->fd, file, F_OK, 0) == 0;
}

static void make_file(const struct rundir *run, const char *file)
{
	int fd = openat(run->fd, file, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, file, strlen(file)), (ssize_t)strlen(file));
	close(fd);
}

/* A living instance is left alone; a dead one gives its sockets and root away and vanishes. */
static void test_succession(void **state)
{
	struct settings settings = {.run_dir = base};
	struct rundir dead, alive, next;
	int listener = -1, fd = -1;
	struct stat st;
	char path[PATH_MAX + 64];
	assert_int_equal(rundir_create(&dead, &settings, false, NULL), 0);
	assert_int_equal(rundir_create(&alive, &settings, false, NULL), 0);
	assert_string_not_equal(dead.instance, alive.instance);
	assert_int_equal(fstat(dead.fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(rundir_listen(dead.fd, "silo-a.sock", &listener), 0);
	make_file(&dead, "ca-root.pem");
	make_file(&dead, "admin.sock");
	make_file(&alive, "silo-b.sock");
	snprintf(path, sizeof(path), "%s/%s", base, dead.instance);
	rundir_done(&dead);

	assert_int_equal(rundir_create(&next, &settings, false, NULL), 0);
	assert_true(exists(&next, "silo-a.sock"));
	assert_true(exists(&next, "ca-root.pem"));
	assert_false(exists(&next, "admin.sock"));
	assert_false(exists(&next, "silo-b.sock"));
	assert_true(exists(&alive, "silo-b.sock"));
	assert_false(file_exists(path));
	assert_int_equal(rundir_connect(next.fd, "silo-a.sock", &fd), 0);
	close(fd);
	close(listener);
	rundir_remove(&next);
	assert_true(exists(&next, "silo-a.sock"));
	assert_int_equal(unlinkat(next.fd, "silo-a.sock", 0), 0);
	rundir_remove(&next);
	snprintf(path, sizeof(path), "%s/%s", base, next.instance);
	assert_false(file_exists(path));
	rundir_done(&next);
	rundir_done(&alive);
}

/* Two dead instances with a silo of the same pod each: none is lost. */
static void test_twins(void **state)
{
	struct settings settings = {.run_dir = base};
	struct rundir one, two, next;
	assert_int_equal(rundir_create(&one, &settings, false, NULL), 0);
	assert_int_equal(rundir_create(&two, &settings, false, NULL), 0);
	make_file(&one, "silo-a.sock");
	make_file(&two, "silo-a.sock");
	rundir_done(&one);
	rundir_done(&two);
	assert_int_equal(rundir_create(&next, &settings, false, NULL), 0);
	assert_true(exists(&next, "silo-a.sock"));
	assert_true(exists(&next, "silo-a~2.sock"));
	rundir_done(&next);
}

static void test_open(void **state)
{
	struct settings settings = {.run_dir = base};
	struct rundir run, other;
	struct stat a, b;
	assert_int_equal(rundir_create(&run, &settings, true, NULL), 0);
	settings.instance = run.instance;
	assert_int_equal(rundir_open(&other, &settings, NULL), 0);
	assert_int_equal(fstat(run.fd, &a), 0);
	assert_int_equal(fstat(other.fd, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_mode & 0777, 0770);
	rundir_done(&other);
	settings.instance = NULL;
	assert_int_equal(rundir_open(&other, &settings, NULL), -EINVAL);
	settings.instance = "../x";
	assert_true(rundir_open(&other, &settings, NULL) < 0);
	rundir_remove(&run);
	rundir_done(&run);
}

/* Whoever else may write there could replace sockets. */
static void test_foreign_base(void **state)
{
	struct settings settings = {.run_dir = base};
	struct rundir run;
	struct err err = {0};
	assert_int_equal(chmod(base, 0777), 0);
	assert_int_equal(rundir_create(&run, &settings, false, &err), -EPERM);
	assert_non_null(strstr(err.text, base));
	assert_int_equal(chmod(base, 0700), 0);
	settings.run_dir = "/proc/nothing/here";
	assert_true(rundir_create(&run, &settings, false, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_socket_names),
	        cmocka_unit_test_setup_teardown(test_succession, make_base, remove_base),
	        cmocka_unit_test_setup_teardown(test_twins, make_base, remove_base),
	        cmocka_unit_test_setup_teardown(test_open, make_base, remove_base),
	        cmocka_unit_test_setup_teardown(test_foreign_base, make_base, remove_base),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
