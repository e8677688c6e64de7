/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading and indexing; see dump.h. */
#include "ctl/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/mem.h"

/* Most entries of the index: a few for each record that fits an answer. */
#define NAMED_MAX 8000000

/* What a name stands for. */
struct named {
	const cJSON *record;
	unsigned cnt; /* records of that name */
	char key[];   /* a letter for the kind, then the name */
};

/* The kinds of names. */
#define SERVICE_NAME 's' /* namespace/hostname, or network/address of any of its virtual addresses */
#define SERVICE_IP 'v'   /* first virtual address */
#define WORKLOAD_IP 'a'  /* first address */
#define WORKLOAD_UID 'u'

static struct map_key key_of(const void *item)
{
	return map_key_str(((const struct named *)item)->key);
}

const char *dump_str(const cJSON *object, const char *key)
{
	const cJSON *value = cJSON_GetObjectItem(object, key);
	return cJSON_IsString(value) ? value->valuestring : "";
}

static struct named *find(const struct dump *dump, char kind, const char *name)
{
	size_t len = strlen(name);
	char *key = mem_alloc(len + 2);
	if (!key)
		return NULL;
	key[0] = kind;
	memcpy(key + 1, name, len + 1);
	struct named *named = map_get_str(&dump->named, key);
	mem_free(key);
	return named;
}

/* Enters a name; of several records the first stays, as in istioctl's walks. */
static int enter(struct dump *dump, char kind, const char *name, const cJSON *record)
{
	struct named *named = find(dump, kind, name);
	size_t len = strlen(name);
	if (named) {
		named->cnt++;
		return 0;
	}
	named = mem_zalloc(1, sizeof(*named) + len + 2);
	if (!named)
		return -ENOMEM;
	named->record = record;
	named->cnt = 1;
	named->key[0] = kind;
	memcpy(named->key + 1, name, len + 1);
	int r = map_put(&dump->named, named, NULL);
	if (r < 0)
		mem_free(named);
	return r;
}

/* "network/ip" without the network. */
static const char *without_network(const char *vip)
{
	const char *slash = strchr(vip, '/');
	return slash ? slash + 1 : vip;
}

static int index_service(struct dump *dump, const cJSON *service)
{
	const char *ns = dump_str(service, "namespace");
	const char *host = dump_str(service, "hostname");
	const cJSON *vips = cJSON_GetObjectItem(service, "vips");
	const cJSON *vip;
	size_t len = strlen(ns) + strlen(host) + 2;
	char *name = mem_alloc(len);
	if (!name)
		return -ENOMEM;
	snprintf(name, len, "%s/%s", ns, host);
	int r = enter(dump, SERVICE_NAME, name, service);
	mem_free(name);
	const cJSON *first = cJSON_IsArray(vips) ? vips->child : NULL;
	if (r == 0 && cJSON_IsString(first))
		r = enter(dump, SERVICE_IP, without_network(first->valuestring), service);
	for (vip = first; vip && r == 0; vip = vip->next)
		if (cJSON_IsString(vip))
			r = enter(dump, SERVICE_NAME, vip->valuestring, service);
	return r;
}

static int index_workload(struct dump *dump, const cJSON *workload)
{
	const cJSON *ips = cJSON_GetObjectItem(workload, "workloadIps");
	const cJSON *first = cJSON_IsArray(ips) ? ips->child : NULL;
	int r = enter(dump, WORKLOAD_UID, dump_str(workload, "uid"), workload);
	if (r == 0 && cJSON_IsString(first))
		r = enter(dump, WORKLOAD_IP, first->valuestring, workload);
	return r;
}

/* The objects of a list, or of an object's values as old ztunnels wrote them. */
static int collect(const cJSON *root, const char *key, struct records *ret)
{
	const cJSON *list = cJSON_GetObjectItem(root, key);
	size_t cnt = 0;
	const cJSON *child = cJSON_IsArray(list) || cJSON_IsObject(list) ? list->child : NULL;
	for (const cJSON *at = child; at; at = at->next)
		cnt += cJSON_IsObject(at);
	ret->all = mem_alloc((cnt + 1) * sizeof(*ret->all));
	if (!ret->all)
		return -ENOMEM;
	for (; child; child = child->next)
		if (cJSON_IsObject(child))
			ret->all[ret->cnt++] = child;
	return 0;
}

static int fill(struct dump *dump)
{
	const cJSON *root = dump->answer.json;
	int r = collect(root, "workloads", &dump->workloads);
	r = r < 0 ? r : collect(root, "services", &dump->services);
	r = r < 0 ? r : collect(root, "policies", &dump->policies);
	r = r < 0 ? r : collect(root, "certificates", &dump->certificates);
	r = r < 0 ? r : collect(root, "workloadState", &dump->states);
	for (size_t i = 0; i < dump->services.cnt && r == 0; i++)
		r = index_service(dump, dump->services.all[i]);
	for (size_t i = 0; i < dump->workloads.cnt && r == 0; i++)
		r = index_workload(dump, dump->workloads.all[i]);
	return r;
}

/* Takes the answer over in any case. */
static int take(struct answer *answer, struct dump *ret_dump, struct err *err)
{
	struct dump dump = {.answer = *answer};
	map_init(&dump.named, NAMED_MAX, key_of);
	int r = 0;
	if (!cJSON_IsObject(answer->json))
		r = err_set(err, -EPROTO, "this is no config dump: it is no JSON object");
	else if ((r = fill(&dump)) < 0)
		err_sys(err, r, "reading the config dump");
	if (r < 0)
		dump_done(&dump);
	else
		*ret_dump = dump;
	return r;
}

int dump_parse(const char *text, size_t len, struct dump *ret_dump, struct err *err)
{
	struct buf body;
	struct answer answer;
	buf_init(&body, CLIENT_BODY_MAX);
	int r = buf_add(&body, text, len);
	if (r < 0) {
		buf_done(&body);
		return err_sys(err, r, "the config dump");
	}
	r = answer_parse(&answer, &body, "the config dump", err);
	return r < 0 ? r : take(&answer, ret_dump, err);
}

static int read_file(const char *path, struct answer *ret_answer, struct err *err)
{
	struct buf body;
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, -errno, "%s", path);
	buf_init(&body, CLIENT_BODY_MAX);
	int r = file_read_fd(fd, &body);
	if (!is_stdin)
		fd_close(&fd);
	if (r < 0) {
		buf_done(&body);
		return err_sys(err, r, "%s", path);
	}
	return answer_parse(ret_answer, &body, path, err);
}

int dump_open(const struct ctl *ctl, struct dump *ret_dump, struct err *err)
{
	struct answer answer;
	const char *file = ctl->options[CTL_OPT_FILE];
	int r = file ? read_file(file, &answer, err) : client_get(ctl, "/config_dump", &answer, err);
	return r < 0 ? r : take(&answer, ret_dump, err);
}

void dump_done(struct dump *dump)
{
	struct records *const lists[] = {
	        &dump->workloads, &dump->services, &dump->policies, &dump->certificates, &dump->states};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		mem_free(lists[i]->all);
	for (struct named *named = map_pop(&dump->named); named; named = map_pop(&dump->named))
		mem_free(named);
	map_done(&dump->named);
	answer_done(&dump->answer);
}

static const cJSON *lookup(const struct dump *dump, char kind, const char *name)
{
	const struct named *named = find(dump, kind, name);
	return named ? named->record : NULL;
}

const cJSON *dump_service_of(const struct dump *dump, const char *destination)
{
	return lookup(dump, SERVICE_NAME, destination);
}

const cJSON *dump_service_at(const struct dump *dump, const char *ip)
{
	return lookup(dump, SERVICE_IP, ip);
}

const cJSON *dump_workload_at(const struct dump *dump, const char *ip)
{
	return lookup(dump, WORKLOAD_IP, ip);
}

bool dump_is_healthy(const struct dump *dump, const char *uid)
{
	const struct named *named = find(dump, WORKLOAD_UID, uid);
	return named && named->cnt == 1 && strcmp(dump_str(named->record, "status"), "Healthy") == 0;
}
