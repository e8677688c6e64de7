/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One function for each table; see cells.h. */
#include "ctl/cells.h"

#include <string.h>
#include <time.h>

/* Bytes of one cell: some hundred addresses. What is beyond is left out. */
#define CELL_MAX 65536

/* Digits of a number that is turned to hexadecimal; serial numbers have 49 (RFC 5280 4.1.2.2). */
#define DIGITS_MAX 200

/* Text of a cell under construction; "" when memory was short. */
static const char *text_of(struct buf *cell)
{
	const char *text = buf_cstr(cell);
	return text ? text : "";
}

/* Joins the strings of a list by commas, each without what is before its first slash if has_network. A
 * virtual address without network shows as nothing, as with istioctl. */
static void join(struct buf *cell, const cJSON *list, bool has_network)
{
	const cJSON *item;
	bool is_first = true;
	cJSON_ArrayForEach(item, list)
	{
		const char *text = cJSON_IsString(item) ? item->valuestring : "";
		const char *slash = strchr(text, '/');
		if (!is_first)
			buf_add_str(cell, ",");
		is_first = false;
		buf_add_str(cell, !has_network ? text : slash ? slash + 1 : "");
	}
}

static const char *waypoint_of(const struct dump *dump, const cJSON *record)
{
	const char *destination = dump_str(cJSON_GetObjectItem(record, "waypoint"), "destination");
	if (!destination[0])
		return "None";
	const cJSON *service = dump_service_of(dump, destination);
	return service ? dump_str(service, "name") : "NA";
}

void cells_workload(const struct cells_env *env, const cJSON *workload, struct table *table)
{
	struct buf address;
	buf_init(&address, CELL_MAX);
	join(&address, cJSON_GetObjectItem(workload, "workloadIps"), false);
	if (address.len == 0)
		buf_add_str(&address, dump_str(workload, "hostname"));
	const char *const cells[] = {dump_str(workload, "namespace"), dump_str(workload, "name"),
	        text_of(&address), dump_str(workload, "node"), waypoint_of(env->dump, workload),
	        dump_str(workload, "protocol")};
	table_row(table, cells);
	buf_done(&address);
}

void cells_service(const struct cells_env *env, const cJSON *service, struct table *table)
{
	struct buf vips;
	char endpoints[48];
	const cJSON *endpoint;
	unsigned all = 0, healthy = 0;
	buf_init(&vips, CELL_MAX);
	join(&vips, cJSON_GetObjectItem(service, "vips"), true);
	cJSON_ArrayForEach(endpoint, cJSON_GetObjectItem(service, "endpoints"))
	{
		all++;
		healthy += dump_is_healthy(env->dump, dump_str(endpoint, "workloadUid"));
	}
	snprintf(endpoints, sizeof(endpoints), "%u/%u", healthy, all);
	const char *const cells[] = {dump_str(service, "namespace"), dump_str(service, "name"),
	        text_of(&vips), waypoint_of(env->dump, service), endpoints};
	table_row(table, cells);
	buf_done(&vips);
}

void cells_policy(const struct cells_env *env, const cJSON *policy, struct table *table)
{
	(void)env;
	const char *const cells[] = {dump_str(policy, "namespace"), dump_str(policy, "name"),
	        dump_str(policy, "action"), dump_str(policy, "scope")};
	table_row(table, cells);
}

/* --- certificates -------------------------------------------------------- */

void cells_hex(const char *decimal, struct buf *dst)
{
	unsigned char hex[DIGITS_MAX]; /* digits, the least first */
	size_t cnt = 0;
	bool is_negative = decimal[0] == '-';
	const char *digits = decimal + (is_negative || decimal[0] == '+');
	size_t len = strspn(digits, "0123456789");
	if (len == 0 || digits[len] || len > DIGITS_MAX) {
		buf_add_str(dst, "<nil>");
		return;
	}
	for (; *digits; digits++) {
		unsigned carry = (unsigned)(*digits - '0');
		for (size_t i = 0; i < cnt; i++) {
			carry += hex[i] * 10u;
			hex[i] = carry & 15;
			carry >>= 4;
		}
		for (; carry && cnt < DIGITS_MAX; carry >>= 4)
			hex[cnt++] = carry & 15;
	}
	if (is_negative && cnt > 0)
		buf_add_u8(dst, '-');
	if (cnt == 0)
		buf_add_u8(dst, '0');
	while (cnt > 0)
		buf_add_u8(dst, (uint8_t) "0123456789abcdef"[hex[--cnt]]);
}

/* An RFC 3339 time in UTC as seconds since 1970; false when it is none. */
static bool read_time(const char *text, int64_t *ret_s)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!end)
		return false;
	if (*end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	if (strcmp(end, "Z") != 0)
		return false;
	*ret_s = timegm(&tm);
	return true;
}

static bool is_valid(const cJSON *cert, int64_t now_s)
{
	int64_t from, to;
	return read_time(dump_str(cert, "validFrom"), &from) &&
	       read_time(dump_str(cert, "expirationTime"), &to) && from < now_s && now_s < to;
}

/* What of an entry its certificates' rows share. */
struct entry {
	const struct cells_env *env;
	const char *identity;
	const char *state;
	struct table *table;
};

static void put_cert(const struct entry *entry, const cJSON *cert, const char *type)
{
	struct buf serial;
	buf_init(&serial, DIGITS_MAX + 2);
	cells_hex(dump_str(cert, "serialNumber"), &serial);
	const char *const cells[] = {entry->identity, type, entry->state,
	        is_valid(cert, entry->env->now_s) ? "true" : "false", text_of(&serial),
	        dump_str(cert, "expirationTime"), dump_str(cert, "validFrom")};
	table_row(entry->table, cells);
	buf_done(&serial);
}

void cells_certificate(const struct cells_env *env, const cJSON *certificate, struct table *table)
{
	const cJSON *chain = cJSON_GetObjectItem(certificate, "certChain");
	const cJSON *roots = cJSON_GetObjectItem(certificate, "rootCerts");
	const char *state = dump_str(certificate, "state");
	const struct entry entry = {.env = env,
	        .identity = dump_str(certificate, "identity"),
	        .state = strstr(state, "Unavailable") ? "Unavailable" : state,
	        .table = table};
	const cJSON *cert;
	if (!cJSON_IsArray(chain) || !chain->child) {
		const char *const cells[] = {entry.identity, "NA", entry.state, "false", "NA", "NA", "NA"};
		table_row(table, cells);
		return;
	}
	bool has_roots = cJSON_IsArray(roots) && roots->child;
	cJSON_ArrayForEach(cert, chain)
	{
		bool is_leaf = cert == chain->child;
		bool is_root = !has_roots && !is_leaf && !cert->next;
		put_cert(&entry, cert, is_leaf ? "Leaf" : is_root ? "Root" : "Intermediate");
	}
	for (cert = has_roots ? roots->child : NULL; cert; cert = cert->next)
		put_cert(&entry, cert, "Root");
}

/* --- connections --------------------------------------------------------- */

/* Writes "ip:port" with the name that belongs to the address, if one does. */
static void put_name(const struct cells_env *env, struct buf *cell, const char *address)
{
	char ip[64];
	const char *colon = strrchr(address, ':');
	bool has_brackets = address[0] == '[' && colon && colon[-1] == ']';
	size_t len = colon ? (size_t)(colon - address) - (has_brackets ? 2 : 0) : 0;
	if (env->is_raw || len == 0 || len >= sizeof(ip)) {
		buf_add_str(cell, address);
		return;
	}
	memcpy(ip, address + has_brackets, len);
	ip[len] = '\0';
	const cJSON *service = dump_service_at(env->dump, ip);
	const cJSON *workload = service ? NULL : dump_workload_at(env->dump, ip);
	if (service)
		buf_printf(cell, "%s%s", dump_str(service, "hostname"), colon);
	else if (workload)
		buf_printf(
		        cell, "%s.%s%s", dump_str(workload, "name"), dump_str(workload, "namespace"), colon);
	else
		buf_add_str(cell, address);
}

/* Rows of one list of connections of a workload. */
static void put_connections(
        const struct cells_env *env, const char *who, const cJSON *list, bool is_inbound, struct table *table)
{
	const cJSON *connection;
	cJSON_ArrayForEach(connection, list)
	{
		struct buf local, remote, target;
		buf_init(&local, CELL_MAX);
		buf_init(&remote, CELL_MAX);
		buf_init(&target, CELL_MAX);
		put_name(env, &local, dump_str(connection, is_inbound ? "actualDst" : "src"));
		put_name(env, &remote, dump_str(connection, is_inbound ? "src" : "actualDst"));
		if (is_inbound)
			buf_add_str(&target, dump_str(connection, "originalDst"));
		else
			put_name(env, &target, dump_str(connection, "originalDst"));
		const char *const cells[] = {who, is_inbound ? "Inbound" : "Outbound", text_of(&local),
		        text_of(&remote), text_of(&target), dump_str(connection, "protocol")};
		table_row(table, cells);
		buf_done(&local);
		buf_done(&remote);
		buf_done(&target);
	}
}

void cells_connections(const struct cells_env *env, const cJSON *state, struct table *table)
{
	const cJSON *info = cJSON_GetObjectItem(state, "info");
	const cJSON *all = cJSON_GetObjectItem(state, "connections");
	struct buf who;
	buf_init(&who, CELL_MAX);
	buf_printf(&who, "%s.%s", dump_str(info, "name"), dump_str(info, "namespace"));
	if (!env->direction || strcmp(env->direction, "inbound") == 0)
		put_connections(env, text_of(&who), cJSON_GetObjectItem(all, "inbound"), true, table);
	if (!env->direction || strcmp(env->direction, "outbound") == 0)
		put_connections(env, text_of(&who), cJSON_GetObjectItem(all, "outbound"), false, table);
	buf_done(&who);
}
