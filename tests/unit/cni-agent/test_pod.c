/* SPDX-License-Identifier: GPL-2.0-only */
/* Pods out of YAML: what is read, what is refused and how it is named, writing and reading again. */
#include "unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* A whole pod, with a hole for one more line. */
#define POD_LINES(uid, more)                                                                                 \
	"- name: web\n  namespace: shop\n  serviceAccount: web-sa\n  uid: " uid                              \
	"\n  netns: /run/netns/web\n  ips: [10.1.2.3, \"fd00::3\"]\n" more
#define POD(more) "pods:\n" POD_LINES("u-1", more)

static void test_all_keys(void **state)
{
	const struct pod_spec *spec = spec_of(
	        POD("  dnsCapture: false\n  ingressMode: true\n  virtualInterfaces: [tap0, vm-1.2]\n"));
	assert_string_equal(spec->uid, "u-1");
	assert_string_equal(spec->info.name, "web");
	assert_string_equal(spec->info.ns, "shop");
	assert_string_equal(spec->info.service_account, "web-sa");
	assert_string_equal(spec->netns, "/run/netns/web");
	assert_int_equal(spec->pid, 0);
	assert_int_equal(spec->ip_cnt, 2);
	struct ip first = ip_v4(10, 1, 2, 3);
	assert_true(ip_eq(&spec->ips[0], &first));
	assert_int_equal(spec->ips[1].family, 6);
	assert_int_equal(spec->dns, POD_OFF);
	assert_true(spec->is_ingress);
	assert_int_equal(spec->if_cnt, 2);
	assert_string_equal(spec->ifs[1], "vm-1.2");
	pod_spec_unref(spec);
}

static void test_defaults(void **state)
{
	const struct pod_spec *spec = small_spec("u");
	assert_null(spec->netns);
	assert_int_equal(spec->pid, 1);
	assert_int_equal(spec->dns, POD_DEFAULT);
	assert_false(spec->is_ingress);
	assert_int_equal(spec->if_cnt, 0);
	pod_spec_unref(spec);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		const char *part; /* of the message: place and reason */
	} cases[] = {
	        {POD("  colour: red\n"), "pods[0].colour: unknown key"},
	        {"pod: []\n", "unknown key `pod`"},
	        {POD("  dnsCapture: yes\n"), "pods[0].dnsCapture: true or false"},
	        {POD("  ingressMode: \"true\"\n"), "pods[0].ingressMode: true or false"},
	        {POD("  virtualInterfaces: tap0\n"), "pods[0].virtualInterfaces: a list"},
	        {POD("  virtualInterfaces: [\"a b\"]\n"),
	                "pods[0].virtualInterfaces[0]: not an interface name"},
	        {POD("  virtualInterfaces: ['a\"; flush ruleset']\n"), "pods[0].virtualInterfaces[0]: "},
	        {POD("  virtualInterfaces: [abcdefghijklmnop]\n"), "pods[0].virtualInterfaces[0]: longer"},
	        {POD("  pid: 4\n"), "pods[0]: one of the keys `netns` and `pid`"},
	        {POD("") POD_LINES("u-1", ""), "pods[1].uid: `u-1` is there twice"},
	        {"pods: [{name: n, namespace: s, serviceAccount: a, uid: u, ips: [10.0.0.1]}]",
	                "one of the keys `netns` and `pid`"},
	        {"pods: [{name: n, namespace: s, serviceAccount: a, uid: u, netns: run, ips: [10.0.0.1]}]",
	                "pods[0].netns: an absolute path"},
	        {"pods: [{name: n, namespace: s, serviceAccount: a, uid: u, pid: 0, ips: [10.0.0.1]}]",
	                "pods[0].pid: not a process"},
	        {"pods: [{name: n, namespace: s, serviceAccount: a, uid: u, pid: x, ips: [10.0.0.1]}]",
	                "pods[0].pid: a number"},
	        {"pods: [{name: n, namespace: s, serviceAccount: a, uid: u, pid: 1, ips: []}]",
	                "pods[0].ips: 1 to 16"},
	        {"pods: [{name: n, namespace: s, serviceAccount: a, uid: u, pid: 1, ips: [10.0.0.1/24]}]",
	                "pods[0].ips[0]: an IP address"},
	        {"pods: [{name: n, namespace: s, serviceAccount: a, uid: u, pid: 1, ips: [127.0.0.1]}]",
	                "pods[0].ips[0]: not an address of a pod"},
	        {"pods: [{name: n, namespace: s, serviceAccount: a, uid: \"\", pid: 1, ips: [10.0.0.1]}]",
	                "pods[0].uid: must not be empty"},
	        {"pods: [{name: \"a\\nb\", namespace: s, serviceAccount: a, uid: u, pid: 1, ips: [10.0.0.1]}]",
	                "pods[0].name: control"},
	        {"pods: [{namespace: s, serviceAccount: a, uid: u, pid: 1, ips: [10.0.0.1]}]",
	                "missing key `name`"},
	        {"pods: [{name: [n], namespace: s, serviceAccount: a, uid: u, pid: 1, ips: [10.0.0.1]}]",
	                "pods[0].name: a text"},
	        {"pods: [7]", "pods[0]: a map"},
	        {"pods: {a: 1}", "pods"},
	};
	struct err err;
	for (size_t i = 0; i < CNT(cases); i++) {
		struct list pods = LIST_INIT(pods);
		assert_err(pod_list_parse("t", cases[i].text, strlen(cases[i].text), &pods, &err),
		        cases[i].part);
		assert_true(list_empty(&pods));
	}
}

static void test_too_large_for_a_packet(void **state)
{
	char uid[1019], text[4096];
	struct err err;
	struct list pods = LIST_INIT(pods);
	memset(uid, 'u', sizeof(uid));
	uid[sizeof(uid) - 1] = 0;
	snprintf(text, sizeof(text),
	        "pods: [{name: n, namespace: s, serviceAccount: a, uid: %s, pid: 1, ips: [10.0.0.1]}]", uid);
	assert_err(pod_list_parse("t", text, strlen(text), &pods, &err), "do not fit a packet of 1024 bytes");
}

static void test_empty_documents(void **state)
{
	struct err err;
	struct list pods = LIST_INIT(pods);
	assert_ok(pod_list_parse("t", "", 0, &pods, &err));
	assert_ok(pod_list_parse("t", "pods: []", 8, &pods, &err));
	assert_true(list_empty(&pods));
}

/* A second document may not repeat a uid of the first, and a bad one leaves the list alone. */
static void test_second_document(void **state)
{
	struct err err;
	struct list pods = LIST_INIT(pods);
	static const char other[] = "pods:\n" POD_LINES("u-2", "") POD_LINES("u-1", "");
	assert_ok(pod_list_parse("a", POD(""), strlen(POD("")), &pods, &err));
	assert_err(pod_list_parse("b", other, strlen(other), &pods, &err), "b:");
	assert_non_null(pod_list_find(&pods, "u-1"));
	assert_null(pod_list_find(&pods, "u-2"));
	pod_list_done(&pods);
}

static void test_written_is_read(void **state)
{
	const struct pod_spec *specs[] = {
	        spec_of(POD("  dnsCapture: true\n  ingressMode: true\n  virtualInterfaces: [tap0]\n")),
	        small_spec("\"odd \\\" \\u00e9 / uid\""),
	};
	for (size_t i = 0; i < CNT(specs); i++) {
		struct buf text;
		struct json json;
		buf_init(&text, 8192);
		json_init(&json, &text, i == 0);
		json_obj(&json);
		json_key(&json, "pods");
		json_arr(&json);
		json_obj(&json);
		pod_spec_members(specs[i], &json);
		json_obj_end(&json);
		json_arr_end(&json);
		json_obj_end(&json);
		const struct pod_spec *again = spec_of(buf_cstr(&text));
		assert_true(pod_spec_eq(specs[i], again));
		pod_spec_unref(again);
		pod_spec_unref(specs[i]);
		buf_done(&text);
	}
}

static void test_eq_sees_each_member(void **state)
{
	const struct pod_spec *base = spec_of(POD(""));
	static const char *const others[] = {
	        POD("  dnsCapture: false\n"),
	        POD("  ingressMode: true\n"),
	        POD("  virtualInterfaces: [x]\n"),
	        "pods:\n" POD_LINES("u-2", ""),
	        "pods: [{name: web2, namespace: shop, serviceAccount: web-sa, uid: u-1, netns: /run/netns/web, ips: [10.1.2.3, 'fd00::3']}]",
	        "pods: [{name: web, namespace: shop, serviceAccount: web-sa, uid: u-1, netns: /run/netns/web, ips: [10.1.2.3, 'fd00::4']}]",
	        "pods: [{name: web, namespace: shop, serviceAccount: web-sa, uid: u-1, netns: /run/netns/web, ips: [10.1.2.3]}]",
	        "pods: [{name: web, namespace: shop, serviceAccount: web-sa, uid: u-1, netns: /run/netns/w, ips: [10.1.2.3, 'fd00::3']}]",
	        "pods: [{name: web, namespace: shop, serviceAccount: web-sa, uid: u-1, pid: 1, ips: [10.1.2.3, 'fd00::3']}]",
	};
	for (size_t i = 0; i < CNT(others); i++) {
		const struct pod_spec *other = spec_of(others[i]);
		assert_false(pod_spec_eq(base, other));
		pod_spec_unref(other);
	}
	const struct pod_spec *same = spec_of(POD(""));
	assert_true(pod_spec_eq(base, same));
	pod_spec_unref(same);
	pod_spec_unref(base);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write(path, text, strlen(text), 0600), 0);
}

static void drop(const char *dir, const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

static void test_directory(void **state)
{
	char dir[] = "/tmp/cni-agent-test-XXXXXX";
	struct err err;
	struct list pods = LIST_INIT(pods);
	assert_non_null(mkdtemp(dir));
	put(dir, "b.yaml", POD(""));
	put(dir, "a.yml", "pods:\n" POD_LINES("u-2", ""));
	put(dir, ".hidden.yaml", "not: ours");
	put(dir, "notes.txt", "not: ours");
	assert_ok(pod_list_load(dir, &pods, &err));
	assert_string_equal(list_entry(pods.next, struct pod_entry, node)->spec->uid, "u-2");
	assert_string_equal(list_entry(pods.next->next, struct pod_entry, node)->spec->uid, "u-1");
	pod_list_done(&pods);
	put(dir, "c.yaml", POD(""));
	assert_err(pod_list_load(dir, &pods, &err), "c.yaml:");
	assert_true(list_empty(&pods));
	static const char *const names[] = {"b.yaml", "a.yml", ".hidden.yaml", "notes.txt", "c.yaml"};
	for (size_t i = 0; i < CNT(names); i++)
		drop(dir, names[i]);
	rmdir(dir);
	assert_err(pod_list_load(dir, &pods, &err), "No such file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_all_keys),
	        cmocka_unit_test(test_defaults),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_too_large_for_a_packet),
	        cmocka_unit_test(test_empty_documents),
	        cmocka_unit_test(test_second_document),
	        cmocka_unit_test(test_written_is_read),
	        cmocka_unit_test(test_eq_sees_each_member),
	        cmocka_unit_test(test_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
