/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options before a command word are the server's and --socket; behind it come
 * those of the command, which end up as a request in JSON: what is right for
 * a pod is the server's to say.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"
#include "request.h"

enum option_id {
	OPT_SOCKET = 256,
	OPT_ZDS_SOCKET,
	OPT_PODS,
	OPT_STATE,
	OPT_LOG_LEVEL,
	OPT_LOG_JSON,
	OPT_NO_RULES,
	OPT_DNS,
	OPT_IPV6,
	OPT_HELP,
	OPT_VERSION,
	OPT_UID,
	OPT_NAME,
	OPT_NAMESPACE,
	OPT_ACCOUNT,
	OPT_NETNS,
	OPT_PID,
	OPT_IP,
	OPT_INGRESS,
	OPT_IF,
};

static const struct option server_options[] = {
        {"socket", required_argument, NULL, OPT_SOCKET},
        {"zds-socket", required_argument, NULL, OPT_ZDS_SOCKET},
        {"pods", required_argument, NULL, OPT_PODS},
        {"state", required_argument, NULL, OPT_STATE},
        {"log-level", required_argument, NULL, OPT_LOG_LEVEL},
        {"log-json", no_argument, NULL, OPT_LOG_JSON},
        {"no-rules", no_argument, NULL, OPT_NO_RULES},
        {"dns-capture", optional_argument, NULL, OPT_DNS},
        {"ipv6", required_argument, NULL, OPT_IPV6},
        {"help", no_argument, NULL, OPT_HELP},
        {"version", no_argument, NULL, OPT_VERSION},
        {NULL, 0, NULL, 0},
};

static const struct option add_options[] = {
        {"socket", required_argument, NULL, OPT_SOCKET},
        {"uid", required_argument, NULL, OPT_UID},
        {"name", required_argument, NULL, OPT_NAME},
        {"namespace", required_argument, NULL, OPT_NAMESPACE},
        {"service-account", required_argument, NULL, OPT_ACCOUNT},
        {"netns", required_argument, NULL, OPT_NETNS},
        {"pid", required_argument, NULL, OPT_PID},
        {"ip", required_argument, NULL, OPT_IP},
        {"dns-capture", optional_argument, NULL, OPT_DNS},
        {"ingress-mode", optional_argument, NULL, OPT_INGRESS},
        {"virtual-interface", required_argument, NULL, OPT_IF},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
};

static const struct option del_options[] = {
        {"socket", required_argument, NULL, OPT_SOCKET},
        {"uid", required_argument, NULL, OPT_UID},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
};

static const struct option list_options[] = {
        {"socket", required_argument, NULL, OPT_SOCKET},
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
};

const char *options_help(void)
{
	return "usage: culvert-cni-agent [OPTION...]               serve: put pods into the mesh\n"
	       "       culvert-cni-agent [--socket PATH] COMMAND   ask a serving agent\n"
	       "\n"
	       "Serving:\n"
	       "  --zds-socket PATH      where the data plane connects (" OPTIONS_ZDS_SOCKET
	       ", or $ZTUNNEL_UDS_ADDRESS)\n"
	       "  --socket PATH          control socket (" OPTIONS_SOCKET ")\n"
	       "  --pods PATH            pods file, or directory of *.yaml, watched for changes\n"
	       "  --state DIR            keep pods of the control socket there, to find them again after a restart\n"
	       "  --dns-capture[=BOOL]   capture DNS of pods that do not say (true)\n"
	       "  --ipv6=BOOL            capture IPv6 too (true)\n"
	       "  --no-rules             leave rules and routes in the pods to somebody else\n"
	       "  --log-level FILTER     as RUST_LOG: error, warn, info, debug, trace, target=level,... ($RUST_LOG, else info)\n"
	       "  --log-json             log as JSON\n"
	       "  --help, --version\n"
	       "\n"
	       "Commands:\n"
	       "  add --uid U --name N --namespace NS --service-account SA (--netns PATH | --pid PID) --ip IP [--ip IP...]\n"
	       "      [--dns-capture=BOOL] [--ingress-mode=BOOL] [--virtual-interface IF...]\n"
	       "                         put a pod into the mesh; returns when the data plane has acknowledged it,\n"
	       "                         or after 15 s without one: the pod then stays pending\n"
	       "  del --uid U            take a pod out of the mesh\n"
	       "  list [-o json]         show the pods\n"
	       "\n"
	       "Exit status: 0 done, 1 failed (the reason is on stderr), 2 wrong use.\n"
	       "Environment: HOST_PROBE_SNAT_IP, HOST_PROBE_SNAT_IPV6: addresses that the node's own probes come from.\n";
}

/* --- values --------------------------------------------------------------- */

static int parse_bool(const char *name, const char *text, bool *ret_value, struct err *err)
{
	if (!text || strcmp(text, "true") == 0)
		*ret_value = true;
	else if (strcmp(text, "false") == 0)
		*ret_value = false;
	else
		return err_set(err, -EINVAL, "--%s: true or false is expected, not `%s`", name, text);
	return 0;
}

static int parse_probe(const char *variable, uint8_t family, struct ip *ip, struct err *err)
{
	const char *text = getenv(variable);
	struct ip parsed;
	if (!text || text[0] == 0)
		return 0;
	if (ip_parse(text, strlen(text), &parsed) < 0 || parsed.family != family)
		return err_set(
		        err, -EINVAL, "%s: an IPv%d address is expected, not `%s`", variable, family, text);
	*ip = parsed;
	return 0;
}

/* id is what getopt_long gave: ':' = the value is missing, else the option itself is wrong. */
static int wrong_option(char **argv, int id, struct err *err)
{
	const char *what = id == ':' ? "needs a value" : "is not understood";
	/* A short option may stand in the middle of a word. */
	if (optopt > 0 && optopt < 128)
		return err_set(err, -EINVAL, "option -%c %s, see --help", optopt, what);
	return err_set(err, -EINVAL, "option %s %s, see --help", argv[optind - 1], what);
}

/* --- the server ----------------------------------------------------------- */

static int take_server_option(struct options *options, char **argv, int id, struct err *err)
{
	switch (id) {
	case OPT_SOCKET:
		options->socket = optarg;
		return 0;
	case OPT_ZDS_SOCKET:
		options->zds_socket = optarg;
		return 0;
	case OPT_PODS:
		options->pods = optarg;
		return 0;
	case OPT_STATE:
		options->config.state_dir = optarg;
		return 0;
	case OPT_LOG_LEVEL:
		options->log_level = optarg;
		return 0;
	case OPT_LOG_JSON:
		options->log_json = true;
		return 0;
	case OPT_NO_RULES:
		options->config.no_rules = true;
		return 0;
	case OPT_DNS:
		return parse_bool("dns-capture", optarg, &options->config.dns, err);
	case OPT_IPV6:
		return parse_bool("ipv6", optarg, &options->config.ipv6, err);
	case OPT_HELP:
		options->command = COMMAND_HELP;
		return 0;
	case OPT_VERSION:
		options->command = COMMAND_VERSION;
		return 0;
	default:
		return wrong_option(argv, id, err);
	}
}

/* --- commands ------------------------------------------------------------- */

/* Values that belong together although they come one by one. */
struct pod_args {
	const char *texts[OPT_IF - OPT_UID + 1]; /* by option id - OPT_UID */
	const char *ips[POD_IPS_MAX];
	size_t ip_cnt;
	const char *ifs[POD_IFS_MAX];
	size_t if_cnt;
	bool has_dns;
	bool dns;
	bool is_ingress;
	bool wants_help;
};

static int add_to(const char **list, size_t *cnt, size_t max, const char *name, struct err *err)
{
	if (*cnt == max)
		return err_set(err, -EINVAL, "--%s: more than %zu", name, max);
	list[(*cnt)++] = optarg;
	return 0;
}

static int take_command_option(
        struct options *options, struct pod_args *args, char **argv, int id, struct err *err)
{
	if (optarg && !utf8_valid(optarg, strlen(optarg)))
		return err_set(err, -EINVAL, "a value is not valid UTF-8");
	switch (id) {
	case OPT_SOCKET:
		options->socket = optarg;
		return 0;
	case OPT_HELP:
		args->wants_help = true;
		return 0;
	case OPT_IP:
		return add_to(args->ips, &args->ip_cnt, POD_IPS_MAX, "ip", err);
	case OPT_IF:
		return add_to(args->ifs, &args->if_cnt, POD_IFS_MAX, "virtual-interface", err);
	case OPT_DNS:
		args->has_dns = true;
		return parse_bool("dns-capture", optarg, &args->dns, err);
	case OPT_INGRESS:
		return parse_bool("ingress-mode", optarg, &args->is_ingress, err);
	case 'o':
		if (strcmp(optarg, "json") != 0)
			return err_set(err, -EINVAL, "-o: json is expected, not `%s`", optarg);
		options->json = true;
		return 0;
	case OPT_UID:
	case OPT_NAME:
	case OPT_NAMESPACE:
	case OPT_ACCOUNT:
	case OPT_NETNS:
	case OPT_PID:
		args->texts[id - OPT_UID] = optarg;
		return 0;
	default:
		return wrong_option(argv, id, err);
	}
}

static int demand(const struct pod_args *args, const struct option *table, int last_id, struct err *err)
{
	for (int id = OPT_UID; id <= last_id; id++) {
		if (args->texts[id - OPT_UID])
			continue;
		while (table->val != id)
			table++;
		return err_set(err, -EINVAL, "--%s is missing", table->name);
	}
	return 0;
}

static void write_strings(struct json *json, const char *key, const char *const *list, size_t cnt)
{
	json_key(json, key);
	json_arr(json);
	for (size_t i = 0; i < cnt; i++)
		json_str(json, list[i]);
	json_arr_end(json);
}

static int write_place(const struct pod_args *args, struct json *json, struct err *err)
{
	const char *netns = args->texts[OPT_NETNS - OPT_UID];
	const char *pid = args->texts[OPT_PID - OPT_UID];
	uint64_t number;
	if (!netns == !pid)
		return err_set(err, -EINVAL, "one of --netns and --pid is expected");
	if (netns)
		json_kv_str(json, "netns", netns);
	else if (num_parse(pid, strlen(pid), INT32_MAX, &number) == 0)
		json_kv_u64(json, "pid", number);
	else
		return err_set(err, -EINVAL, "--pid: a number is expected, not `%s`", pid);
	return 0;
}

static int write_add(const struct pod_args *args, struct json *json, struct err *err)
{
	int rc = demand(args, add_options, OPT_ACCOUNT, err);
	if (rc == 0 && args->ip_cnt == 0)
		rc = err_set(err, -EINVAL, "--ip is missing");
	if (rc < 0)
		return rc;
	json_key(json, "add");
	json_obj(json);
	json_kv_str(json, "uid", args->texts[OPT_UID - OPT_UID]);
	json_kv_str(json, "name", args->texts[OPT_NAME - OPT_UID]);
	json_kv_str(json, "namespace", args->texts[OPT_NAMESPACE - OPT_UID]);
	json_kv_str(json, "serviceAccount", args->texts[OPT_ACCOUNT - OPT_UID]);
	rc = write_place(args, json, err);
	write_strings(json, "ips", args->ips, args->ip_cnt);
	if (args->has_dns)
		json_kv_bool(json, "dnsCapture", args->dns);
	json_kv_bool(json, "ingressMode", args->is_ingress);
	if (args->if_cnt > 0)
		write_strings(json, "virtualInterfaces", args->ifs, args->if_cnt);
	json_obj_end(json);
	return rc;
}

static int write_request(struct options *options, const struct pod_args *args, struct err *err)
{
	struct json json;
	int rc = 0;
	json_init(&json, &options->request, false);
	json_obj(&json);
	if (options->command == COMMAND_ADD) {
		rc = write_add(args, &json, err);
	} else if (options->command == COMMAND_DEL) {
		rc = demand(args, del_options, OPT_UID, err);
		json_key(&json, "del");
		json_obj(&json);
		json_kv_str(&json, "uid", args->texts[0] ? args->texts[0] : "");
		json_obj_end(&json);
	} else {
		json_key(&json, "list");
		json_obj(&json);
		json_obj_end(&json);
	}
	if (rc < 0)
		return rc;
	json_obj_end(&json);
	return options->request.err
	               ? err_set(err, -EINVAL, "the request is longer than %d bytes", REQUEST_MAX)
	               : 0;
}

/* argv[0] is the command word. */
static int parse_command(struct options *options, int argc, char **argv, struct err *err)
{
	static const struct {
		const char *word;
		enum command command;
		const char *shorts;
		const struct option *table;
	} commands[] = {
	        {"add", COMMAND_ADD, ":", add_options},
	        {"del", COMMAND_DEL, ":", del_options},
	        {"list", COMMAND_LIST, ":o:", list_options},
	};
	size_t i = 0;
	while (i < sizeof(commands) / sizeof(commands[0]) && strcmp(commands[i].word, argv[0]) != 0)
		i++;
	if (i == sizeof(commands) / sizeof(commands[0]))
		return err_set(err, -EINVAL, "unknown command `%s`, see --help", argv[0]);
	struct pod_args args = {.ip_cnt = 0};
	options->command = commands[i].command;
	/* 0 makes getopt_long(3) start anew with another argv. */
	optind = 0;
	for (int id; (id = getopt_long(argc, argv, commands[i].shorts, commands[i].table, NULL)) != -1;) {
		int rc = take_command_option(options, &args, argv, id, err);
		if (rc < 0)
			return rc;
	}
	if (args.wants_help) {
		options->command = COMMAND_HELP;
		return 0;
	}
	if (optind < argc)
		return err_set(err, -EINVAL, "unexpected argument `%s`", argv[optind]);
	return write_request(options, &args, err);
}

int options_parse(struct options *options, int argc, char **argv, struct err *err)
{
	const char *zds_socket = getenv("ZTUNNEL_UDS_ADDRESS");
	*options = (struct options){
	        .zds_socket = zds_socket && zds_socket[0] ? zds_socket : OPTIONS_ZDS_SOCKET,
	        .socket = OPTIONS_SOCKET,
	        .log_level = getenv("RUST_LOG"),
	        .config = {.dns = true, .ipv6 = true, .probe4 = rules_probe4(), .probe6 = rules_probe6()}};
	buf_init(&options->request, REQUEST_MAX);
	int rc = parse_probe("HOST_PROBE_SNAT_IP", 4, &options->config.probe4, err);
	if (rc == 0)
		rc = parse_probe("HOST_PROBE_SNAT_IPV6", 6, &options->config.probe6, err);
	optind = 0;
	opterr = 0;
	/* "+": the first word that is no option is the command. */
	for (int id; rc == 0 && (id = getopt_long(argc, argv, "+:", server_options, NULL)) != -1;)
		rc = take_server_option(options, argv, id, err);
	if (rc < 0 || options->command != COMMAND_SERVE || optind >= argc)
		return rc;
	return parse_command(options, argc - optind, argv + optind, err);
}

void options_done(struct options *options)
{
	buf_done(&options->request);
}
