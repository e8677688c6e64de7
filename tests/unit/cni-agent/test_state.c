/* SPDX-License-Identifier: GPL-2.0-only */
/* The state directory: what is saved is found, and nothing else; names cannot leave it. */
#include "unit.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "state.h"

static char dir[64];

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/cni-agent-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	DIR *d = opendir(dir);
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	return rmdir(dir);
}

static size_t file_cnt(void)
{
	size_t cnt = 0;
	DIR *d = opendir(dir);
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		cnt += e->d_name[0] != '.';
	closedir(d);
	return cnt;
}

static void save(const char *yaml_uid)
{
	struct err err;
	const struct pod_spec *spec = small_spec(yaml_uid);
	assert_ok(state_save(dir, spec, &err));
	pod_spec_unref(spec);
}

static void test_round_trip(void **state)
{
	struct err err;
	struct list pods = LIST_INIT(pods);
	assert_ok(state_open(dir, &err));
	save("plain-1");
	save("plain-1");
	save("../../etc/passwd");
	save("'a b'");
	assert_int_equal(file_cnt(), 3);
	assert_ok(state_load(dir, NULL, &pods, &err));
	assert_non_null(pod_list_find(&pods, "plain-1"));
	assert_non_null(pod_list_find(&pods, "../../etc/passwd"));
	const struct pod_spec *odd = pod_list_find(&pods, "a b");
	assert_non_null(odd);
	const struct pod_spec *wanted = small_spec("'a b'");
	assert_true(pod_spec_eq(odd, wanted));
	pod_spec_unref(wanted);
	pod_list_done(&pods);
	state_drop(dir, "plain-1");
	state_drop(dir, "a b");
	state_drop(dir, "../../etc/passwd");
	state_drop(dir, "never-there");
	assert_int_equal(file_cnt(), 0);
}

static void test_mode(void **state)
{
	char path[128];
	struct stat st;
	save("u");
	snprintf(path, sizeof(path), "%s/u.yaml", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Files that the agent did not write itself, or not for that pod, are passed over; good ones are still found.
 */
static void test_strangers(void **state)
{
	static const char *const texts[] = {
	        "not yaml: [",
	        "",
	        "pods: []",
	        "pods: [{name: n, namespace: ns, serviceAccount: sa, uid: other, pid: 1, ips: [10.0.0.1]}]",
	        "pods: [{name: n, namespace: ns, serviceAccount: sa, uid: x0, pid: 1, ips: [10.0.0.1]}, {name: n, namespace: ns, serviceAccount: sa, uid: x1, pid: 1, ips: [10.0.0.1]}]",
	};
	struct err err;
	struct list pods = LIST_INIT(pods);
	for (size_t i = 0; i < CNT(texts); i++) {
		char path[128];
		snprintf(path, sizeof(path), "%s/x%zu.yaml", dir, i);
		assert_int_equal(file_write(path, texts[i], strlen(texts[i]), 0600), 0);
	}
	save("good");
	assert_ok(state_load(dir, NULL, &pods, &err));
	assert_non_null(pod_list_find(&pods, "good"));
	assert_ptr_equal(pods.next->next, &pods);
	pod_list_done(&pods);
}

static void test_open_refuses(void **state)
{
	struct err err;
	chmod(dir, 0777);
	assert_err(state_open(dir, &err), "only this user can write");
	chmod(dir, 0700);
	assert_err(state_open("/dev/null", &err), "must be a directory");
	assert_err(state_open("/nowhere/at/all", &err), "No such file");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_round_trip), TEST(test_mode), TEST(test_strangers), TEST(test_open_refuses)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
