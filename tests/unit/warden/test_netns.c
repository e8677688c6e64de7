/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What passes for a pod's namespace. Making one needs root; without it those parts are skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "warden/netns.h"

static struct netns_guard guard;

static int init_guard(void **state)
{
	return netns_guard_init(&guard);
}

static void expect_refused(const char *path, const char *why)
{
	struct err err = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(netns_check(&guard, fd, &err), -EINVAL);
	assert_non_null(strstr(err.text, why));
	close(fd);
}

static void test_refused(void **state)
{
	expect_refused("/dev/null", "not a network namespace");
	expect_refused("/etc/passwd", "not a network namespace");
	expect_refused("/", "not a network namespace");
	expect_refused("/proc/self/ns/mnt", "not a network namespace");
	expect_refused("/proc/self/ns/net", "culvertd itself");
}

static void test_host(void **state)
{
	struct netns_guard other = guard;
	struct err err = {0};
	int fd = -1;
	assert_int_equal(netns_open_own(&fd), 0);
	other.own.ino++;
	other.has_host = true;
	other.host = guard.own;
	assert_int_equal(netns_check(&other, fd, &err), -EINVAL);
	assert_non_null(strstr(err.text, "host"));
	other.has_host = false;
	assert_int_equal(netns_check(&other, fd, &err), 0);
	close(fd);
}

static void test_pod(void **state)
{
	struct netns_id id;
	int own = -1, pod = -1;
	assert_int_equal(netns_open_own(&own), 0);
	if (unshare(CLONE_NEWNET) < 0) {
		close(own);
		skip();
	}
	assert_int_equal(netns_open_own(&pod), 0);
	assert_int_equal(setns(own, CLONE_NEWNET), 0);
	assert_int_equal(netns_check(&guard, pod, NULL), 0);
	assert_int_equal(netns_id_of(pod, &id), 0);
	assert_false(netns_eq(&id, &guard.own));
	assert_true(netns_eq(&id, &id));
	close(own);
	close(pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_refused), cmocka_unit_test(test_host), cmocka_unit_test(test_pod)};
	return cmocka_run_group_tests(tests, init_guard, NULL);
}
