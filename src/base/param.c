/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expands the parameter table: defaults, parsing by type, the rules that
 * span several variables, and the part that a silo may see. Reads no file.
 */
#include "base/param.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/utf8.h"
#include "base/workers.h"
#include "culvert/limits.h"

enum param_type {
	PARAM_TYPE_BOOL,
	PARAM_TYPE_FLAG,
	PARAM_TYPE_U16,
	PARAM_TYPE_U32,
	PARAM_TYPE_U64,
	PARAM_TYPE_DURATION,
	PARAM_TYPE_STRING,
	PARAM_TYPE_PATH,
	PARAM_TYPE_URI,
};

/* A row of the table as data. */
struct row {
	const char *env;
	enum param_type type;
	unsigned readers;
	size_t at;     /* offset of the value in struct settings */
	size_t set_at; /* offset of <field>_set */
	uint64_t min;
	uint64_t max;
	const char *word; /* FLAG: the value that means true */
};

#define WORD_BOOL(def) NULL
#define WORD_FLAG(def) def
#define WORD_U16(def) NULL
#define WORD_U32(def) NULL
#define WORD_U64(def) NULL
#define WORD_DURATION(def) NULL
#define WORD_STRING(def) NULL
#define WORD_PATH(def) NULL
#define WORD_URI(def) NULL

static const struct row rows[] = {
#define P(field, env, type, def, min, max, readers, text)                                                    \
	{env, PARAM_TYPE_##type, readers, offsetof(struct settings, field),                                  \
	        offsetof(struct settings, field##_set), min, max, WORD_##type(def)},
#include "culvert/params.tbl.h"
#undef P
};

#define ROW_CNT (sizeof(rows) / sizeof(rows[0]))

static const struct param_info infos[] = {
#define P(field, env, type, def, min, max, readers, text) {env, #type, #def, readers, text},
#include "culvert/params.tbl.h"
#undef P
};

#define DEFAULT_BOOL(def) (def)
#define DEFAULT_FLAG(def) false
#define DEFAULT_U16(def) (def)
#define DEFAULT_U32(def) (def)
#define DEFAULT_U64(def) (def)
#define DEFAULT_DURATION(def) (def)
#define DEFAULT_STRING(def) (def)
#define DEFAULT_PATH(def) (def)
#define DEFAULT_URI(def) (def)

static void set_defaults(struct settings *s)
{
	*s = (struct settings){
#define P(field, env, type, def, min, max, readers, text) .field = DEFAULT_##type(def),
#include "culvert/params.tbl.h"
#undef P
	};
}

const struct param_info *param_info(size_t i)
{
	return i < ROW_CNT ? &infos[i] : NULL;
}

/* Value of a variable, NULL when unset. */
static const char *lookup(char *const *env, const char *name)
{
	size_t len = strlen(name);
	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

static int bad_value(const char *name, const char *value, const char *why, struct err *err)
{
	return err_set(err, -EINVAL, "invalid env var %s=%.200s (%s)", name, value, why);
}

static int parse_bool(const struct row *row, const char *value, bool *ret_value, struct err *err)
{
	bool is_true = strcmp(value, "true") == 0;
	if (!is_true && strcmp(value, "false") != 0)
		return bad_value(row->env, value, "provided string was not `true` or `false`", err);
	*ret_value = is_true;
	return 0;
}

static int parse_number(const struct row *row, const char *value, uint64_t *ret_value, struct err *err)
{
	uint64_t v;
	int rc = num_parse(value, strlen(value), row->max, &v);
	if (rc == -EINVAL)
		return bad_value(row->env, value,
		        *value ? "invalid digit found in string" : "cannot parse integer from empty string",
		        err);
	if (rc < 0)
		return bad_value(row->env, value, "number too large to fit in target type", err);
	if (v < row->min)
		return bad_value(row->env, value, "number too small", err);
	*ret_value = v;
	return 0;
}

/* Whether text is host[:port][/...] with a host and no blanks; enough to refuse what cannot be dialled. */
static bool is_authority(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f || strchr("<>\"{}|\\^`", *p))
			return false;
	size_t len = strcspn(text, "/?#");
	const char *host_end = *text == '[' ? memchr(text, ']', len) : NULL;
	if (*text == '[' && !host_end)
		return false;
	const char *colon =
	        memchr(host_end ? host_end : text, ':', len - (host_end ? (size_t)(host_end - text) : 0));
	size_t host_len = colon ? (size_t)(colon - text) : len;
	uint64_t port;
	return host_len > 0 && (!colon || num_parse(colon + 1, len - host_len - 1, UINT16_MAX, &port) == 0);
}

/* Empty = none; without a scheme https:// is added. */
static int parse_uri(const struct row *row, const char *value, struct arena *arena, const char **ret_value,
        struct err *err)
{
	const char *split = strstr(value, "://");
	if (*value == '\0') {
		*ret_value = NULL;
		return 0;
	}
	size_t scheme_len = split ? (size_t)(split - value) : 0;
	bool known = !split || (scheme_len == 5 && strncasecmp(value, "https", 5) == 0) ||
	             (scheme_len == 4 && strncasecmp(value, "http", 4) == 0);
	if (!known || !is_authority(split ? split + 3 : value))
		return err_set(err, -EINVAL, "invalid uri: %s=%.200s", row->env, value);
	const char *text = arena_printf(arena, "%s%s", split ? "" : "https://", value);
	if (!text)
		return err_sys(err, -ENOMEM, "settings");
	*ret_value = text;
	return 0;
}

static int parse_duration(const struct row *row, const char *value, uint64_t *ret_ms, struct err *err)
{
	const char *why = "";
	if (duration_parse(value, strlen(value), ret_ms, &why) < 0)
		return bad_value(row->env, value, why, err);
	return 0;
}

static int parse_string(const char *value, struct arena *arena, const char **ret_value, struct err *err)
{
	const char *copy = arena_strdup(arena, value);
	if (!copy)
		return err_sys(err, -ENOMEM, "settings");
	*ret_value = copy;
	return 0;
}

static int parse_row(const struct row *row, const char *value, struct settings *s, struct err *err)
{
	void *at = (char *)s + row->at;
	uint64_t v = 0;
	int rc = 0;
	switch (row->type) {
	case PARAM_TYPE_BOOL:
		return parse_bool(row, value, at, err);
	case PARAM_TYPE_FLAG:
		*(bool *)at = strcmp(value, row->word) == 0;
		return 0;
	case PARAM_TYPE_U16:
		rc = parse_number(row, value, &v, err);
		if (rc == 0)
			*(uint16_t *)at = (uint16_t)v;
		return rc;
	case PARAM_TYPE_U32:
		rc = parse_number(row, value, &v, err);
		if (rc == 0)
			*(uint32_t *)at = (uint32_t)v;
		return rc;
	case PARAM_TYPE_U64:
		return parse_number(row, value, at, err);
	case PARAM_TYPE_DURATION:
		return parse_duration(row, value, at, err);
	case PARAM_TYPE_STRING:
	case PARAM_TYPE_PATH:
		return parse_string(value, s->arena, at, err);
	case PARAM_TYPE_URI:
		return parse_uri(row, value, s->arena, at, err);
	}
	return -EINVAL;
}

static int load_rows(struct settings *s, char *const *env, unsigned mask, struct err *err)
{
	for (size_t i = 0; i < ROW_CNT; i++) {
		const char *value = rows[i].readers & mask ? lookup(env, rows[i].env) : NULL;
		if (!value)
			continue;
		int rc = parse_row(&rows[i], value, s, err);
		if (rc < 0)
			return rc;
		*(bool *)((char *)s + rows[i].set_at) = true;
	}
	return 0;
}

int settings_exit_status(int rc)
{
	return rc == -ENOTRECOVERABLE ? SETTINGS_EXIT_PANIC : 1;
}

int settings_check_env(char *const *env, struct err *err)
{
	for (; *env; env++)
		if (!utf8_valid(*env, strlen(*env)))
			return err_set(err, -ENOTRECOVERABLE, "environment variable %.*s is not valid UTF-8",
			        (int)strcspn(*env, "="), *env);
	return 0;
}

/* Header name of RFC 9110 5.1, and not one that gRPC would treat as binary. */
static bool is_header_key(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = key[i];
		bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!alnum && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return len > 0 && !(len >= 4 && strncasecmp(key + len - 4, "-bin", 4) == 0);
}

static bool is_header_value(const char *value)
{
	for (; *value; value++)
		if ((*value < ' ' && *value != '\t') || *value == 0x7f)
			return false;
	return true;
}

/* Key behind the prefix (taken off as often as it repeats), copied and lower-cased for headers. */
static int make_pair(struct settings *s, const char *var, const char *prefix, bool header,
        struct setting_pair *ret_pair, struct err *err)
{
	const char *eq = strchr(var, '=');
	const char *key = var;
	size_t prefix_len = strlen(prefix);
	do {
		key += prefix_len;
	} while (!header && strncmp(key, prefix, prefix_len) == 0);
	size_t key_len = (size_t)(eq - key);
	if (header && !is_header_key(key, key_len))
		return err_set(err, -EINVAL, "failed to parse header key: %.*s", (int)(eq - var), var);
	if (header && !is_header_value(eq + 1))
		return err_set(err, -EINVAL, "failed to parse header value: %.*s", (int)(eq - var), var);
	char *copy = arena_strndup(s->arena, key, key_len);
	char *value = arena_strdup(s->arena, eq + 1);
	if (!copy || !value)
		return err_sys(err, -ENOMEM, "settings");
	for (size_t i = 0; header && i < key_len; i++)
		if (copy[i] >= 'A' && copy[i] <= 'Z')
			copy[i] = (char)(copy[i] + ('a' - 'A'));
	*ret_pair = (struct setting_pair){copy, value};
	return 0;
}

static bool has_prefix(const char *var, const char *prefix)
{
	return strncmp(var, prefix, strlen(prefix)) == 0 && strchr(var, '=') >= var + strlen(prefix);
}

/* All variables of a prefix, in the order of the environment. */
static int load_pairs(struct settings *s, char *const *env, const char *prefix, bool header,
        struct setting_pairs *ret_pairs, struct err *err)
{
	size_t cnt = 0;
	for (char *const *e = env; *e; e++)
		cnt += has_prefix(*e, prefix);
	if (cnt > LIMIT_SETTINGS_PAIRS)
		return err_set(err, -EINVAL, "more than %d environment variables begin with %s",
		        LIMIT_SETTINGS_PAIRS, prefix);
	struct setting_pairs pairs = {.pairs = arena_zalloc(s->arena, cnt, sizeof(*pairs.pairs))};
	if (!pairs.pairs)
		return err_sys(err, -ENOMEM, "settings");
	for (; *env; env++) {
		if (!has_prefix(*env, prefix))
			continue;
		int rc = make_pair(s, *env, prefix, header, &pairs.pairs[pairs.cnt], err);
		if (rc < 0)
			return rc;
		pairs.cnt++;
	}
	*ret_pairs = pairs;
	return 0;
}

static bool has_key(const struct setting_pairs *pairs, const char *key)
{
	for (size_t i = 0; i < pairs->cnt; i++)
		if (strcmp(pairs->pairs[i].key, key) == 0)
			return true;
	return false;
}

/* The environment's, then what ProxyConfig adds (control.md 3.3). */
static int load_metadata(struct settings *s, char *const *env, struct err *err)
{
	struct setting_pairs ours, config;
	int rc = load_pairs(s, env, "ISTIO_META_", false, &ours, err);
	if (rc == 0)
		rc = load_pairs(s, env, "CULVERT_META_", false, &config, err);
	if (rc < 0)
		return rc;
	struct setting_pair *all = arena_zalloc(s->arena, ours.cnt + config.cnt, sizeof(*all));
	if (!all)
		return err_sys(err, -ENOMEM, "settings");
	s->metadata = (struct setting_pairs){.pairs = all, .cnt = ours.cnt};
	if (ours.cnt)
		memcpy(all, ours.pairs, ours.cnt * sizeof(*all));
	for (size_t i = 0; i < config.cnt; i++)
		if (!has_key(&ours, config.pairs[i].key))
			all[s->metadata.cnt++] = config.pairs[i];
	return 0;
}

static int load_all_pairs(struct settings *s, char *const *env, struct err *err)
{
	int rc = load_pairs(s, env, "XDS_HEADER_", true, &s->xds_headers, err);
	if (rc == 0)
		rc = load_pairs(s, env, "CA_HEADER_", true, &s->ca_headers, err);
	if (rc == 0)
		rc = load_metadata(s, env, err);
	if (rc == 0)
		rc = load_pairs(s, env, "ISTIO_METAJSON_", false, &s->metadata_json, err);
	return rc;
}

/* A name of dot-separated labels of 1 to 63 bytes, RFC 1035 2.3.4, underscores allowed. */
static bool is_dns_name(const char *name)
{
	size_t len = strlen(name);
	size_t label = 0;
	if (len == 0 || len >= LIMIT_HOSTNAME)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		if (c == '.') {
			if (label == 0)
				return false;
			label = 0;
			continue;
		}
		bool ok = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		          c == '-' || c == '_';
		if (!ok || ++label > 63)
			return false;
	}
	return true;
}

/* namespace/name/service-account; a third slash belongs to the account. */
static int derive_workload(struct settings *s, struct err *err)
{
	s->workload_ns = s->workload_name = s->workload_service_account = "";
	const char *text = s->proxy_workload_info;
	if (!s->dedicated || !text)
		return 0;
	const char *first = strchr(text, '/');
	const char *second = first ? strchr(first + 1, '/') : NULL;
	if (!second)
		return err_set(err, -EINVAL,
		        "invalid configuration: PROXY_WORKLOAD_INFO must be namespace/name/service-account, not %.200s",
		        text);
	s->workload_ns = arena_strndup(s->arena, text, (size_t)(first - text));
	s->workload_name = arena_strndup(s->arena, first + 1, (size_t)(second - first - 1));
	s->workload_service_account = second + 1;
	if (!s->workload_ns || !s->workload_name)
		return err_sys(err, -ENOMEM, "settings");
	s->has_workload_info = true;
	return 0;
}

static int derive_mode(struct settings *s, struct err *err)
{
	s->dedicated = strcmp(s->proxy_mode, "dedicated") == 0;
	if (!s->dedicated && strcmp(s->proxy_mode, "shared") != 0)
		return bad_value("PROXY_MODE", s->proxy_mode, "must be shared or dedicated", err);
	if (strcmp(s->access_log, "all") != 0 && strcmp(s->access_log, "errors") != 0 &&
	        strcmp(s->access_log, "off") != 0)
		return bad_value("CULVERT_ACCESS_LOG", s->access_log, "must be all, errors or off", err);
	s->leave_on_term = strcmp(s->on_term, "leave") == 0;
	if (!s->leave_on_term && strcmp(s->on_term, "drain") != 0)
		return bad_value("CULVERT_ON_TERM", s->on_term, "must be drain or leave", err);
	if (strcmp(s->seccomp, "kill") != 0 && strcmp(s->seccomp, "log") != 0 &&
	        strcmp(s->seccomp, "off") != 0)
		return bad_value("CULVERT_SECCOMP", s->seccomp, "must be kill, log or off", err);
	if (s->dedicated && !s->packet_mark_set)
		s->packet_mark = 0;
	return derive_workload(s, err);
}

static int derive_dns(struct settings *s, struct err *err)
{
	static const char localhost[] = "localhost:";
	uint64_t port;
	if (!s->dns_capture_set && s->config_dns_capture)
		s->dns_capture = s->config_dns_capture;
	if (!s->dns_proxy_addr_set && s->config_dns_proxy_addr)
		s->dns_proxy_addr = s->config_dns_proxy_addr;
	const char *text = s->dns_proxy_addr;
	s->dns_enabled = strcasecmp(s->dns_capture, "true") == 0;
	s->dns_localhost = strncmp(text, localhost, sizeof(localhost) - 1) == 0;
	if (!s->dns_localhost)
		return addr_parse(text, strlen(text), &s->dns_addr) < 0
		               ? bad_value("ISTIO_META_DNS_PROXY_ADDR", text,
		                         "must be localhost:PORT or IP:PORT", err)
		               : 0;
	text += sizeof(localhost) - 1;
	if (num_parse(text, strlen(text), UINT16_MAX, &port) < 0)
		return bad_value("ISTIO_META_DNS_PROXY_ADDR", s->dns_proxy_addr,
		        "must be localhost:PORT or IP:PORT", err);
	s->dns_addr.port = (uint16_t)port;
	return 0;
}

/* The grace period minus a reserve for ourselves; 0 is treated like 1. */
static uint64_t drain_time(const struct settings *s)
{
	if (s->termination_deadline_ms_set)
		return s->termination_deadline_ms;
	if (!s->grace_period_s_set)
		return 5000;
	uint64_t seconds = s->grace_period_s > 10  ? s->grace_period_s - 5
	                   : s->grace_period_s > 1 ? s->grace_period_s - 1
	                                           : 1;
	return seconds > UINT64_MAX / 1000 ? UINT64_MAX : seconds * 1000;
}

/* "major.minor" of a kernel. */
static int derive_baseline(struct settings *s, struct err *err)
{
	const char *text = s->io_baseline_text;
	if (!text || !*text)
		return 0;
	const char *dot = strchr(text, '.');
	uint64_t major, minor;
	if (!dot || num_parse(text, (size_t)(dot - text), 999, &major) < 0 ||
	        num_parse(dot + 1, strlen(dot + 1), 999, &minor) < 0)
		return bad_value("CULVERT_IO_BASELINE", text, "must be a kernel release such as 6.1", err);
	s->io_baseline = (uint32_t)(major * 1000 + minor);
	return 0;
}

static int derive_control_plane(struct settings *s, struct err *err)
{
	const char *fallback =
	        s->kubernetes_host_set ? "https://istiod.istio-system.svc:15012" : "https://localhost:15012";
	/* Outside of Kubernetes a mesh file is the whole mesh unless somebody names a control plane: upstream
	 * would call localhost for ever and never be ready. */
	const bool is_file_only = !s->kubernetes_host_set && (s->local_xds || s->local_xds_path);
	if (!s->xds_address_set)
		s->xds_address = s->discovery_address_set ? s->discovery_address
		                 : is_file_only           ? NULL
		                                          : fallback;
	if (!s->ca_address_set)
		s->ca_address = fallback;
	if (!s->ca_address && !s->fake_ca)
		return err_set(err, -ENOTRECOVERABLE, "ca_address must be set to use CA");
	if (s->local_xds && s->local_xds_path)
		return err_set(err, -EINVAL,
		        "invalid configuration: only one of LOCAL_XDS_PATH and LOCAL_XDS may be set");
	struct ip ip;
	if (s->alt_ca_hostname && !is_dns_name(s->alt_ca_hostname) &&
	        ip_parse(s->alt_ca_hostname, strlen(s->alt_ca_hostname), &ip) < 0)
		return bad_value(
		        "ALT_CA_HOSTNAME", s->alt_ca_hostname, "neither a DNS name nor an address", err);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	const struct worker_inputs in = {
	        .threads = s->worker_threads,
	        .has_concurrency = s->concurrency_set,
	        .concurrency = s->concurrency,
	        .cpu_limit = s->cpu_limit,
	        .limit = s->resource_cpu_limit,
	        .request = s->resource_cpu_request,
	        .machine_cores = cores > 0 ? (uint64_t)cores : 1,
	};
	return workers_count(&in, &s->worker_cnt, err);
}

static int derive(struct settings *s, unsigned mask, struct err *err)
{
	int rc = derive_mode(s, err);
	if (rc == 0)
		rc = derive_dns(s, err);
	if (rc == 0)
		rc = derive_baseline(s, err);
	if (rc == 0 && mask & PARAM_B)
		rc = derive_control_plane(s, err);
	if (rc < 0)
		return rc;
	s->drain_ms = drain_time(s);
	if (s->meta_cluster_id)
		s->cluster_id = s->meta_cluster_id;
	if (s->crl_path && !*s->crl_path)
		s->crl_path = NULL;
	if (!is_dns_name(s->cluster_domain))
		return bad_value("CLUSTER_DOMAIN", s->cluster_domain, "not a DNS name", err);
	if (s->dns_enabled && s->xds_on_demand)
		return err_set(err, -EINVAL,
		        "error parsing proxy config: DNS proxy does not currently support on-demand mode");
	if (!s->enable_proxy && !s->dns_enabled)
		return err_set(
		        err, -EINVAL, "error parsing proxy config: ztunnel run without any servers enabled");
	return 0;
}

int settings_load(struct settings *settings, char *const *env, unsigned mask, struct err *err)
{
	struct settings s;
	set_defaults(&s);
	s.arena = arena_new(LIMIT_SETTINGS_ARENA);
	int rc = s.arena ? settings_check_env(env, err) : err_sys(err, -ENOMEM, "settings");
	if (rc == 0)
		rc = load_rows(&s, env, mask, err);
	if (rc == 0 && mask & PARAM_B)
		rc = load_all_pairs(&s, env, err);
	if (rc == 0)
		rc = derive(&s, mask, err);
	if (rc < 0) {
		settings_done(&s);
		*settings = s;
		return rc;
	}
	*settings = s;
	return 0;
}

static bool is_said(const char *text)
{
	return text && text[0];
}

bool settings_has_self(const struct settings *settings)
{
	return !settings->dedicated && settings->enable_proxy && is_said(settings->pod_name) &&
	       is_said(settings->pod_namespace) && is_said(settings->service_account);
}

void settings_done(struct settings *settings)
{
	arena_unref(settings->arena);
	*settings = (struct settings){0};
}

bool settings_is_silo_name(const char *name, size_t len)
{
	for (size_t i = 0; i < ROW_CNT; i++)
		if (rows[i].readers & PARAM_S && strlen(rows[i].env) == len &&
		        memcmp(rows[i].env, name, len) == 0)
			return true;
	return false;
}

/*
 * The C library of a silo keeps no pieces aside: they cannot be given back (malloc_trim(3) leaves them) and
 * each of them would pin a page, 400 KB of a silo after a busy hour. There is no call for it.
 */
static const char silo_tunables[] = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0";

int settings_silo_env(char *const *env, char ***ret_env)
{
	size_t cnt = 0;
	while (env[cnt])
		cnt++;
	char **out = mem_zalloc(cnt + 2, sizeof(*out));
	if (!out)
		return -ENOMEM;
	size_t n = 0;
	for (size_t i = 0; i < cnt; i++) {
		const char *eq = strchr(env[i], '=');
		if (eq && settings_is_silo_name(env[i], (size_t)(eq - env[i])))
			out[n++] = env[i];
	}
	out[n] = (char *)(uintptr_t)silo_tunables;
	*ret_env = out;
	return 0;
}
