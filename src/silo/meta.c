/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HBONE's informational headers; see meta.h. */
#include "silo/meta.h"

#include <stdio.h>
#include <string.h>

#include "base/rand.h"

/* Ceiling of what one message's baggage may take in memory: its own text and a record. */
static bool visible_ascii(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || (unsigned char)line[i] > 0x7e)
			return false;
	return true;
}

/* Appends `,key=value`; returns false when it does not fit. */
static bool put_pair(char *dst, size_t *len, const char *key, const char *value)
{
	if (!value[0])
		return true;
	int n = snprintf(dst + *len, META_BAGGAGE_MAX - *len, "%s%s=%s", *len ? "," : "", key, value);
	if (n < 0 || (size_t)n >= META_BAGGAGE_MAX - *len)
		return false;
	*len += (size_t)n;
	return true;
}

void meta_baggage_format(const struct workload *workload, char dst[META_BAGGAGE_MAX])
{
	char type_key[64];
	size_t len = 0;
	const char *type = workload->workload_type[0] ? workload->workload_type : "deployment";
	snprintf(type_key, sizeof(type_key), "k8s.%s.name", type);
	dst[0] = '\0';
	bool ok = put_pair(dst, &len, "k8s.cluster.name", workload->cluster_id) &&
	          put_pair(dst, &len, "k8s.namespace.name", workload->ns) &&
	          put_pair(dst, &len, type_key, workload->workload_name) &&
	          put_pair(dst, &len, "service.name", workload->canonical_name) &&
	          put_pair(dst, &len, "service.version", workload->canonical_revision) &&
	          put_pair(dst, &len, "cloud.region", workload->locality.region) &&
	          put_pair(dst, &len, "cloud.availability_zone", workload->locality.zone);
	/* A header with a control character in it would be refused as a whole by the peer. */
	if (!ok || !visible_ascii(dst, len))
		dst[0] = '\0';
}

/* A key of baggage and where its value goes. */
struct baggage_key {
	const char *name;
	size_t offset;    /* of the value in struct meta_baggage */
	const char *type; /* workload type that the key implies, or NULL */
};

#define KEY(name, field)                                                                                     \
	{                                                                                                    \
		name, offsetof(struct meta_baggage, field), NULL                                             \
	}
#define TYPE_KEY(type)                                                                                       \
	{                                                                                                    \
		"k8s." type ".name", offsetof(struct meta_baggage, workload_name), type                      \
	}

static const struct baggage_key BAGGAGE_KEYS[] = {
        KEY("k8s.cluster.name", cluster),
        KEY("k8s.namespace.name", ns),
        TYPE_KEY("deployment"),
        TYPE_KEY("cronjob"),
        TYPE_KEY("pod"),
        TYPE_KEY("job"),
        KEY("service.name", service_name),
        KEY("service.version", revision),
        KEY("cloud.region", region),
        KEY("cloud.availability_zone", zone),
};

/* One `key=value[=ignored]` of baggage. */
static void take_pair(struct meta_baggage *baggage, struct arena *arena, const char *pair, size_t len)
{
	const char *eq = memchr(pair, '=', len);
	if (!eq)
		return;
	size_t key_len = (size_t)(eq - pair);
	const char *value = eq + 1;
	size_t value_len = len - key_len - 1;
	const char *cut = memchr(value, '=', value_len);
	if (cut)
		value_len = (size_t)(cut - value);
	for (size_t i = 0; i < sizeof(BAGGAGE_KEYS) / sizeof(BAGGAGE_KEYS[0]); i++) {
		const struct baggage_key *key = &BAGGAGE_KEYS[i];
		if (strlen(key->name) != key_len || memcmp(key->name, pair, key_len) != 0)
			continue;
		const char **slot = (const char **)(void *)((char *)baggage + key->offset);
		*slot = value_len ? arena_strndup(arena, value, value_len) : NULL;
		if (key->type)
			baggage->workload_type = key->type;
	}
}

void meta_baggage_parse(struct meta_baggage *baggage, struct arena *arena, const char *line, size_t len)
{
	if (!visible_ascii(line, len) || len > META_BAGGAGE_IN_MAX) {
		baggage->is_bad = true;
		return;
	}
	while (len > 0) {
		const char *comma = memchr(line, ',', len);
		size_t part = comma ? (size_t)(comma - line) : len;
		take_pair(baggage, arena, line, part);
		part += comma ? 1 : 0;
		line += part;
		len -= part;
	}
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

const struct workload *meta_baggage_workload(const struct meta_baggage *baggage, struct arena *arena)
{
	bool says_something = baggage->cluster || baggage->ns || baggage->workload_name ||
	                      baggage->service_name || baggage->revision || baggage->region || baggage->zone;
	if (baggage->is_bad || !says_something)
		return NULL;
	struct workload *workload = arena_zalloc(arena, 1, sizeof(*workload));
	if (!workload)
		return NULL;
	*workload = (struct workload){
	        .uid = "",
	        .name = "",
	        .ns = or_empty(baggage->ns),
	        .trust_domain = "",
	        .service_account = "",
	        .network = "",
	        .workload_name = or_empty(baggage->workload_name),
	        .workload_type = or_empty(baggage->workload_type),
	        .canonical_name = or_empty(baggage->service_name),
	        .canonical_revision = or_empty(baggage->revision),
	        .hostname = "",
	        .node = "",
	        .cluster_id = or_empty(baggage->cluster),
	        .locality = {.region = or_empty(baggage->region),
	                .zone = or_empty(baggage->zone),
	                .subzone = ""},
	};
	return workload;
}

void meta_forwarded_format(const struct addr *client, const char *host, char dst[META_FORWARDED_MAX])
{
	char text[ADDR_STR_MAX];
	addr_format(client, text);
	/* RFC 7239 6: an IPv6 address stands in brackets, address and port in quotes. */
	int len = snprintf(dst, META_FORWARDED_MAX, "for=\"%s\"", text);
	if (!host || !host[0])
		return;
	int more = snprintf(dst + len, META_FORWARDED_MAX - (size_t)len, ";host=%s", host);
	if (more < 0 || (size_t)more >= META_FORWARDED_MAX - (size_t)len)
		dst[len] = '\0';
}

bool meta_forwarded_host(const char *line, size_t len, char *dst, size_t cap)
{
	static const char prefix[] = "host=";
	if (!visible_ascii(line, len))
		return false;
	while (len > 0) {
		const char *end = memchr(line, ';', len);
		size_t part = end ? (size_t)(end - line) : len;
		const char *p = line;
		size_t n = part;
		while (n > 0 && *p == ' ')
			p++, n--;
		while (n > 0 && p[n - 1] == ' ')
			n--;
		if (n >= sizeof(prefix) - 1 && memcmp(p, prefix, sizeof(prefix) - 1) == 0) {
			p += sizeof(prefix) - 1;
			n -= sizeof(prefix) - 1;
			if (n >= 2 && p[0] == '"' && p[n - 1] == '"')
				p++, n -= 2;
			if (n == 0 || n >= cap)
				return false;
			memcpy(dst, p, n);
			dst[n] = '\0';
			return true;
		}
		part += end ? 1 : 0;
		line += part;
		len -= part;
	}
	return false;
}

void meta_traceparent_make(char dst[META_TRACEPARENT_MAX])
{
	uint64_t id[3];
	rand_bytes(id, sizeof(id));
	snprintf(dst, META_TRACEPARENT_MAX, "00-%016llx%016llx-%016llx-00", (unsigned long long)id[0],
	        (unsigned long long)id[1], (unsigned long long)id[2]);
}

bool meta_traceparent_ok(const char *line, size_t len)
{
	/* Lengths of version, trace id, parent id and flags (W3C Trace Context 3.2). */
	static const size_t part_len[] = {2, 32, 16, 2};
	if (len != META_TRACEPARENT_LEN)
		return false;
	for (size_t i = 0; i < 4; i++) {
		for (size_t k = 0; k < part_len[i]; k++, line++)
			if (!((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')))
				return false;
		if (i < 3 && *line++ != '-')
			return false;
	}
	return true;
}
