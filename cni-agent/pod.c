/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One pod's description: reading, comparing, writing. Every string is checked
 * here, because names end up in logs, interface names in rules.
 */
#include "pod.h"

#include <errno.h>
#include <string.h>

#include "pb/zds.h"

/* Largest pid the kernel gives (PID_MAX_LIMIT). */
#define PID_MAX 4194304

enum pod_key {
	KEY_NAME,
	KEY_NAMESPACE,
	KEY_ACCOUNT,
	KEY_UID,
	KEY_NETNS,
	KEY_PID,
	KEY_IPS,
	KEY_DNS,
	KEY_INGRESS,
	KEY_IFS,
	KEY_CNT
};

static const struct yaml_key keys[KEY_CNT] = {
        [KEY_NAME] = {"name", true},
        [KEY_NAMESPACE] = {"namespace", true},
        [KEY_ACCOUNT] = {"serviceAccount", true},
        [KEY_UID] = {"uid", true},
        [KEY_NETNS] = {"netns", false},
        [KEY_PID] = {"pid", false},
        [KEY_IPS] = {"ips", true},
        [KEY_DNS] = {"dnsCapture", false},
        [KEY_INGRESS] = {"ingressMode", false},
        [KEY_IFS] = {"virtualInterfaces", false},
};

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
}

/* A text that is there, at most max bytes, without control characters. */
static int read_text(
        const struct yaml_node *node, size_t max, struct arena *arena, const char **ret_text, struct err *err)
{
	const char *text;
	int rc = yaml_str(node, &text, err);
	if (rc < 0)
		return rc;
	if (text[0] == 0)
		return yaml_error(node, err, "must not be empty");
	if (strlen(text) > max)
		return yaml_error(node, err, "longer than %zu bytes", max);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return yaml_error(node, err, "control characters are not allowed");
	const char *copy = arena_strdup(arena, text);
	if (!copy)
		return no_memory(err);
	*ret_text = copy;
	return 0;
}

static int read_names(const struct yaml_node *const *values, struct pod_spec *spec, struct err *err)
{
	int rc = read_text(values[KEY_UID], LIMIT_ZDS_UID, spec->arena, &spec->uid, err);
	if (rc == 0)
		rc = read_text(values[KEY_NAME], 253, spec->arena, &spec->info.name, err);
	if (rc == 0)
		rc = read_text(values[KEY_NAMESPACE], 253, spec->arena, &spec->info.ns, err);
	if (rc == 0)
		rc = read_text(values[KEY_ACCOUNT], 253, spec->arena, &spec->info.service_account, err);
	return rc;
}

static int read_place(const struct yaml_node *node, const struct yaml_node *const *values,
        struct pod_spec *spec, struct err *err)
{
	if (!values[KEY_NETNS] == !values[KEY_PID])
		return yaml_error(node, err, "one of the keys `netns` and `pid` is expected");
	if (values[KEY_PID]) {
		uint64_t pid = 0;
		int rc = yaml_u64(values[KEY_PID], PID_MAX, &pid, err);
		if (rc == 0 && pid == 0)
			rc = yaml_error(values[KEY_PID], err, "not a process");
		spec->pid = (pid_t)pid;
		return rc;
	}
	int rc = read_text(values[KEY_NETNS], POD_PATH_MAX, spec->arena, &spec->netns, err);
	if (rc == 0 && spec->netns[0] != '/')
		rc = yaml_error(values[KEY_NETNS], err, "an absolute path is expected");
	return rc;
}

static int read_ips(const struct yaml_node *list, struct pod_spec *spec, struct err *err)
{
	int rc = yaml_list(list, err);
	if (rc < 0)
		return rc;
	size_t cnt = yaml_cnt(list);
	if (cnt == 0 || cnt > POD_IPS_MAX)
		return yaml_error(list, err, "1 to %d addresses are expected", POD_IPS_MAX);
	struct ip *ips = arena_zalloc(spec->arena, cnt, sizeof(*ips));
	if (!ips)
		return no_memory(err);
	spec->ips = ips;
	for (const struct yaml_node *item = yaml_first(list); item; item = yaml_next(item)) {
		const char *text;
		rc = yaml_str(item, &text, err);
		if (rc < 0)
			return rc;
		struct ip *ip = &ips[spec->ip_cnt++];
		if (ip_parse(text, strlen(text), ip) < 0)
			return yaml_error(item, err, "an IP address is expected");
		*ip = ip_canonical(*ip);
		if (ip_is_loopback(ip) || ip_is_unspecified(ip) || ip_is_multicast(ip))
			return yaml_error(item, err, "not an address of a pod");
	}
	return 0;
}

bool pod_if_valid(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
	size_t len = strlen(name);
	return len >= 1 && len <= 15 && strspn(name, allowed) == len && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

static int read_ifs(const struct yaml_node *list, struct pod_spec *spec, struct err *err)
{
	int rc = yaml_list(list, err);
	if (rc < 0)
		return rc;
	size_t cnt = yaml_cnt(list);
	if (cnt > POD_IFS_MAX)
		return yaml_error(list, err, "more than %d interfaces", POD_IFS_MAX);
	const char **ifs = arena_zalloc(spec->arena, cnt, sizeof(*ifs));
	if (!ifs)
		return no_memory(err);
	spec->ifs = ifs;
	for (const struct yaml_node *item = yaml_first(list); item; item = yaml_next(item)) {
		rc = read_text(item, 15, spec->arena, &ifs[spec->if_cnt], err);
		if (rc < 0)
			return rc;
		if (!pod_if_valid(ifs[spec->if_cnt++]))
			return yaml_error(item, err, "not an interface name");
	}
	return 0;
}

static int read_capture(const struct yaml_node *const *values, struct pod_spec *spec, struct err *err)
{
	int rc = 0;
	if (values[KEY_DNS]) {
		bool is_on = false;
		rc = yaml_bool(values[KEY_DNS], &is_on, err);
		spec->dns = is_on ? POD_ON : POD_OFF;
	}
	if (rc == 0 && values[KEY_INGRESS])
		rc = yaml_bool(values[KEY_INGRESS], &spec->is_ingress, err);
	if (rc == 0 && values[KEY_IFS])
		rc = read_ifs(values[KEY_IFS], spec, err);
	return rc;
}

/* The names together must fit one packet, which no single ceiling can say. */
static int check_packet(const struct yaml_node *node, const struct pod_spec *spec, struct err *err)
{
	uint8_t packet[ZDS_PACKET_MAX];
	size_t len;
	struct zds_request add = {.type = ZDS_ADD, .uid = spec->uid, .has_info = true, .info = spec->info};
	if (zds_encode_request(&add, packet, sizeof(packet), &len, NULL) < 0)
		return yaml_error(
		        node, err, "uid and names together do not fit a packet of %d bytes", ZDS_PACKET_MAX);
	return 0;
}

int pod_spec_read(const struct yaml_node *node, const struct pod_spec **ret_spec, struct err *err)
{
	const struct yaml_node *values[KEY_CNT];
	int rc = yaml_map(node, keys, KEY_CNT, false, values, err);
	if (rc < 0)
		return rc;
	struct arena *arena = arena_new(POD_ARENA_MAX);
	struct pod_spec *spec = arena ? arena_zalloc(arena, 1, sizeof(*spec)) : NULL;
	if (!spec) {
		arena_unref(arena);
		return no_memory(err);
	}
	spec->arena = arena;
	rc = read_names(values, spec, err);
	if (rc == 0)
		rc = read_place(node, values, spec, err);
	if (rc == 0)
		rc = read_ips(values[KEY_IPS], spec, err);
	if (rc == 0)
		rc = read_capture(values, spec, err);
	if (rc == 0)
		rc = check_packet(node, spec, err);
	if (rc < 0) {
		arena_unref(arena);
		return rc;
	}
	*ret_spec = spec;
	return 0;
}

const struct pod_spec *pod_spec_ref(const struct pod_spec *spec)
{
	arena_ref(spec->arena);
	return spec;
}

void pod_spec_unref(const struct pod_spec *spec)
{
	if (spec)
		arena_unref(spec->arena);
}

bool pod_info_eq(const struct workload_info *a, const struct workload_info *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->ns, b->ns) == 0 &&
	       strcmp(a->service_account, b->service_account) == 0;
}

bool pod_spec_eq(const struct pod_spec *a, const struct pod_spec *b)
{
	if (strcmp(a->uid, b->uid) != 0 || !pod_info_eq(&a->info, &b->info) || a->pid != b->pid ||
	        !a->netns != !b->netns)
		return false;
	if (a->netns && strcmp(a->netns, b->netns) != 0)
		return false;
	if (a->dns != b->dns || a->is_ingress != b->is_ingress || a->ip_cnt != b->ip_cnt ||
	        a->if_cnt != b->if_cnt)
		return false;
	for (size_t i = 0; i < a->ip_cnt; i++)
		if (!ip_eq(&a->ips[i], &b->ips[i]))
			return false;
	for (size_t i = 0; i < a->if_cnt; i++)
		if (strcmp(a->ifs[i], b->ifs[i]) != 0)
			return false;
	return true;
}

static void write_lists(const struct pod_spec *spec, struct json *json)
{
	char text[IP_STR_MAX];
	json_key(json, "ips");
	json_arr(json);
	for (size_t i = 0; i < spec->ip_cnt; i++)
		json_str(json, ip_format(&spec->ips[i], text));
	json_arr_end(json);
	if (spec->if_cnt == 0)
		return;
	json_key(json, "virtualInterfaces");
	json_arr(json);
	for (size_t i = 0; i < spec->if_cnt; i++)
		json_str(json, spec->ifs[i]);
	json_arr_end(json);
}

void pod_spec_members(const struct pod_spec *spec, struct json *json)
{
	json_kv_str(json, "name", spec->info.name);
	json_kv_str(json, "namespace", spec->info.ns);
	json_kv_str(json, "serviceAccount", spec->info.service_account);
	json_kv_str(json, "uid", spec->uid);
	if (spec->netns)
		json_kv_str(json, "netns", spec->netns);
	else
		json_kv_u64(json, "pid", (uint64_t)spec->pid);
	if (spec->dns != POD_DEFAULT)
		json_kv_bool(json, "dnsCapture", spec->dns == POD_ON);
	if (spec->is_ingress)
		json_kv_bool(json, "ingressMode", true);
	write_lists(spec, json);
}
