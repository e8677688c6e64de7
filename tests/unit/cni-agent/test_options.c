/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line: defaults, requests that commands become, wrong uses. */
#include "unit.h"

#include <stdlib.h>

#include "options.h"
#include "request.h"

#define ARGS_MAX 32

static int parse(struct options *options, struct err *err, const char *line)
{
	static char words[2048];
	static char *argv[ARGS_MAX + 1];
	int argc = 0;
	char *save = NULL;
	snprintf(words, sizeof(words), "culvert-cni-agent %s", line);
	for (char *w = strtok_r(words, " ", &save); w && argc < ARGS_MAX; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	return options_parse(options, argc, argv, err);
}

static void test_server(void **state)
{
	struct options options;
	struct err err;
	assert_ok(parse(&options, &err, ""));
	assert_int_equal(options.command, COMMAND_SERVE);
	assert_string_equal(options.zds_socket, "/var/run/ztunnel/ztunnel.sock");
	assert_true(options.config.ipv6 && options.config.dns);
	assert_false(options.config.no_rules);
	options_done(&options);
	assert_ok(parse(&options, &err,
	        "--zds-socket /z --socket /s --pods /p --state /d --log-level debug --log-json --no-rules --dns-capture=false --ipv6=false"));
	assert_string_equal(options.zds_socket, "/z");
	assert_string_equal(options.socket, "/s");
	assert_string_equal(options.pods, "/p");
	assert_string_equal(options.config.state_dir, "/d");
	assert_string_equal(options.log_level, "debug");
	assert_true(options.log_json && options.config.no_rules);
	assert_false(options.config.ipv6 || options.config.dns);
	options_done(&options);
}

static void test_environment(void **state)
{
	struct options options;
	struct err err;
	setenv("ZTUNNEL_UDS_ADDRESS", "/from/env", 1);
	setenv("HOST_PROBE_SNAT_IP", "169.254.1.2", 1);
	assert_ok(parse(&options, &err, ""));
	assert_string_equal(options.zds_socket, "/from/env");
	struct ip probe = ip_v4(169, 254, 1, 2);
	assert_true(ip_eq(&options.config.probe4, &probe));
	options_done(&options);
	setenv("HOST_PROBE_SNAT_IP", "fd00::1", 1);
	assert_err(parse(&options, &err, ""), "HOST_PROBE_SNAT_IP: an IPv4");
	options_done(&options);
	unsetenv("HOST_PROBE_SNAT_IP");
	unsetenv("ZTUNNEL_UDS_ADDRESS");
}

static void test_add(void **state)
{
	struct options options;
	struct err err;
	struct request req;
	assert_ok(parse(&options, &err,
	        "--socket /s add --uid u --name n --namespace ns --service-account sa --netns /n --ip 10.0.0.1 --ip fd00::1 "
	        "--dns-capture=true --ingress-mode=false --virtual-interface tap0"));
	assert_int_equal(options.command, COMMAND_ADD);
	assert_string_equal(options.socket, "/s");
	assert_ok(request_parse((const char *)options.request.data, options.request.len, &req, &err));
	assert_int_equal(req.kind, REQUEST_ADD);
	assert_string_equal(req.spec->uid, "u");
	assert_string_equal(req.spec->info.service_account, "sa");
	assert_string_equal(req.spec->netns, "/n");
	assert_int_equal(req.spec->ip_cnt, 2);
	assert_int_equal(req.spec->dns, POD_ON);
	assert_false(req.spec->is_ingress);
	assert_string_equal(req.spec->ifs[0], "tap0");
	request_done(&req);
	options_done(&options);
}

static void test_del_and_list(void **state)
{
	struct options options;
	struct err err;
	struct request req;
	assert_ok(parse(&options, &err, "del --uid a\"b"));
	assert_ok(request_parse((const char *)options.request.data, options.request.len, &req, &err));
	assert_int_equal(req.kind, REQUEST_DEL);
	assert_string_equal(req.uid, "a\"b");
	request_done(&req);
	options_done(&options);
	assert_ok(parse(&options, &err, "list -o json"));
	assert_true(options.json);
	assert_ok(request_parse((const char *)options.request.data, options.request.len, &req, &err));
	assert_int_equal(req.kind, REQUEST_LIST);
	request_done(&req);
	options_done(&options);
}

static void test_wrong_use(void **state)
{
	static const struct {
		const char *line;
		const char *part;
	} cases[] = {
	        {"frob", "unknown command `frob`"},
	        {"--ipv6=maybe", "--ipv6: true or false"},
	        {"add --uid u", "--name is missing"},
	        {"add --uid u --name n --namespace ns --service-account sa --netns /n", "--ip is missing"},
	        {"add --uid u --name n --namespace ns --service-account sa --ip 10.0.0.1",
	                "one of --netns and --pid"},
	        {"add --uid u --name n --namespace ns --service-account sa --ip 10.0.0.1 --netns /n --pid 3",
	                "one of --netns and --pid"},
	        {"add --uid u --name n --namespace ns --service-account sa --ip 10.0.0.1 --pid x",
	                "--pid: a number"},
	        {"add --uid u --name n --namespace ns --service-account sa --ip 10.0.0.1 --pid 1 --dns-capture=1",
	                "--dns-capture: true or false"},
	        {"add --uid u --name \xff", "not valid UTF-8"},
	        {"del", "--uid is missing"},
	        {"del --uid u more", "unexpected argument `more`"},
	        {"list -o yaml", "-o: json"},
	        {"list --uid u", "option --uid is not understood"},
	        {"--frob", "option --frob is not understood"},
	        {"--frob=1 add", "option --frob=1 is not understood"},
	        {"-x", "option -x is not understood"},
	        {"list -o", "option -o needs a value"},
	        {"--log-json=1", "option --log-json=1 is not understood"},
	        {"--socket", "option --socket needs a value"},
	};
	struct err err;
	for (size_t i = 0; i < CNT(cases); i++) {
		struct options options;
		assert_err(parse(&options, &err, cases[i].line), cases[i].part);
		options_done(&options);
	}
}

static void test_bad_requests(void **state)
{
	static const struct {
		const char *text;
		const char *part;
	} cases[] = {
	        {"", "a map"},
	        {"{}", "one of the keys `add`, `del`, `list`"},
	        {"{\"del\": {\"uid\": \"u\"}, \"list\": {}}", "one of the keys"},
	        {"{\"drop\": {}}", "drop: unknown key"},
	        {"{\"del\": {}}", "missing key `uid`"},
	        {"{\"del\": {\"uid\": [1]}}", "del.uid: a text"},
	        {"{\"list\": {\"all\": true}}", "list.all: unknown key"},
	        {"{\"add\": {\"uid\": \"u\"}}", "add: missing key `name`"},
	};
	struct err err;
	struct request req;
	for (size_t i = 0; i < CNT(cases); i++)
		assert_err(request_parse(cases[i].text, strlen(cases[i].text), &req, &err), cases[i].part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_server),
	        cmocka_unit_test(test_environment),
	        cmocka_unit_test(test_add),
	        cmocka_unit_test(test_del_and_list),
	        cmocka_unit_test(test_wrong_use),
	        cmocka_unit_test(test_bad_requests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
