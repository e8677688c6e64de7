/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shapes and the copying after them; see shape.h. */
#include "ctl/shape.h"

#include <stdbool.h>
#include <string.h>

/* How a member is copied. */
enum kind {
	STRING,  /* "" when absent */
	NUMBER,  /* 0 when absent */
	BOOL,    /* false when absent */
	LIST,    /* of anything, as it is; null when absent */
	MAP,     /* an object as it is; null when absent */
	OBJECT,  /* in its own shape */
	OBJECTS, /* a list of such; null when absent */
	VALUES,  /* a map of such; null when absent */
	RULES,   /* a list of lists of lists of matches in their shape */
};

/* A member. */
struct field {
	const char *key;
	enum kind kind;
	bool is_optional;          /* left out when absent or empty */
	const struct field *inner; /* of OBJECT, OBJECTS and VALUES; ends with a key NULL */
};

static const struct field GATEWAY[] = {{"destination", STRING, false, NULL}, {0}};
static const struct field LOCALITY[] = {
        {"region", STRING, true, NULL}, {"zone", STRING, true, NULL}, {"subzone", STRING, true, NULL}, {0}};
static const struct field TUNNEL[] = {{"protocol", STRING, false, NULL}, {"port", NUMBER, true, NULL}, {0}};

static const struct field WORKLOAD[] = {
        {"uid", STRING, false, NULL},
        {"workloadIps", LIST, false, NULL},
        {"waypoint", OBJECT, true, GATEWAY},
        {"networkGateway", OBJECT, true, GATEWAY},
        {"protocol", STRING, false, NULL},
        {"name", STRING, false, NULL},
        {"namespace", STRING, false, NULL},
        {"serviceAccount", STRING, false, NULL},
        {"workloadName", STRING, false, NULL},
        {"workloadType", STRING, false, NULL},
        {"canonicalName", STRING, false, NULL},
        {"canonicalRevision", STRING, false, NULL},
        {"clusterId", STRING, false, NULL},
        {"trustDomain", STRING, true, NULL},
        {"locality", OBJECT, false, LOCALITY},
        {"node", STRING, false, NULL},
        {"network", STRING, true, NULL},
        {"status", STRING, false, NULL},
        {"hostname", STRING, false, NULL},
        {"capacity", NUMBER, false, NULL},
        {"applicationTunnel", OBJECT, false, TUNNEL},
        {"authorizationPolicies", LIST, true, NULL},
        {0},
};

static const struct field BALANCER[] = {{"mode", STRING, false, NULL},
        {"routingPreferences", LIST, false, NULL}, {"healthPolicy", STRING, false, NULL}, {0}};
static const struct field ENDPOINT[] = {{"workloadUid", STRING, false, NULL},
        {"service", STRING, false, NULL}, {"address", STRING, true, NULL}, {"port", MAP, false, NULL}, {0}};

static const struct field SERVICE[] = {
        {"name", STRING, false, NULL},
        {"namespace", STRING, false, NULL},
        {"hostname", STRING, false, NULL},
        {"vips", LIST, false, NULL},
        {"cidrVips", LIST, true, NULL},
        {"ports", MAP, false, NULL},
        {"loadBalancer", OBJECT, true, BALANCER},
        {"waypoint", OBJECT, true, GATEWAY},
        {"endpoints", VALUES, false, ENDPOINT},
        {"subjectAltNames", LIST, true, NULL},
        {"ipFamilies", STRING, false, NULL},
        {"canonical", BOOL, false, NULL},
        {"visibility", STRING, true, NULL},
        {0},
};

static const struct field MATCH[] = {
        {"namespaces", LIST, true, NULL},
        {"notNamespaces", LIST, true, NULL},
        {"principals", LIST, true, NULL},
        {"notPrincipals", LIST, true, NULL},
        {"sourceIps", LIST, true, NULL},
        {"notSourceIps", LIST, true, NULL},
        {"destinationIps", LIST, true, NULL},
        {"notDestinationIps", LIST, true, NULL},
        {"destinationPorts", LIST, true, NULL},
        {"notDestinationPorts", LIST, true, NULL},
        {"serviceAccounts", LIST, true, NULL},
        {"notServiceAccounts", LIST, true, NULL},
        {0},
};

static const struct field POLICY[] = {
        {"name", STRING, false, NULL},
        {"namespace", STRING, false, NULL},
        {"scope", STRING, false, NULL},
        {"action", STRING, false, NULL},
        {"rules", RULES, false, NULL},
        {0},
};

static const struct field CERT[] = {{"pem", STRING, false, NULL}, {"serialNumber", STRING, false, NULL},
        {"validFrom", STRING, false, NULL}, {"expirationTime", STRING, false, NULL}, {0}};

static const struct field CERTIFICATE[] = {
        {"identity", STRING, false, NULL},
        {"state", STRING, false, NULL},
        {"certChain", OBJECTS, false, CERT},
        {"rootCerts", OBJECTS, true, CERT},
        {0},
};

static const struct field CONNECTION[] = {{"src", STRING, false, NULL}, {"originalDst", STRING, false, NULL},
        {"actualDst", STRING, false, NULL}, {"protocol", STRING, false, NULL}, {0}};
static const struct field CONNECTIONS[] = {
        {"inbound", OBJECTS, false, CONNECTION}, {"outbound", OBJECTS, false, CONNECTION}, {0}};
static const struct field INFO[] = {{"name", STRING, false, NULL}, {"namespace", STRING, false, NULL},
        {"trustDomain", STRING, false, NULL}, {"serviceAccount", STRING, false, NULL}, {0}};

static const struct field STATE[] = {
        {"state", STRING, true, NULL},
        {"connections", OBJECT, false, CONNECTIONS},
        {"info", OBJECT, false, INFO},
        {0},
};

static const struct field *const SHAPES[] = {
        [SHAPE_WORKLOAD] = WORKLOAD,
        [SHAPE_SERVICE] = SERVICE,
        [SHAPE_POLICY] = POLICY,
        [SHAPE_CERTIFICATE] = CERTIFICATE,
        [SHAPE_STATE] = STATE,
};

static cJSON *copy_object(const struct field *fields, const cJSON *from);

/* Adds an item, which is deleted when that fails; false without memory. */
static bool add(cJSON *to, const char *key, cJSON *item)
{
	bool is_added = item && (key ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item));
	if (!is_added)
		cJSON_Delete(item);
	return is_added;
}

/* The objects among the members of a list or map, each in its shape. */
static cJSON *copy_all(const struct field *inner, const cJSON *from)
{
	bool is_map = cJSON_IsObject(from);
	cJSON *to = is_map ? cJSON_CreateObject() : cJSON_CreateArray();
	for (const cJSON *child = from->child; child && to; child = child->next) {
		if (!cJSON_IsObject(child))
			continue;
		if (!add(to, is_map ? child->string : NULL, copy_object(inner, child))) {
			cJSON_Delete(to);
			return NULL;
		}
	}
	return to;
}

/* Lists down to the matches, which lie `depth` lists deep. */
static cJSON *copy_rules(const cJSON *from, unsigned depth)
{
	if (depth == 0)
		return copy_all(MATCH, from);
	cJSON *to = cJSON_CreateArray();
	for (const cJSON *child = from->child; child && to; child = child->next) {
		if (!cJSON_IsArray(child))
			continue;
		if (!add(to, NULL, copy_rules(child, depth - 1))) {
			cJSON_Delete(to);
			return NULL;
		}
	}
	return to;
}

/* What stands for a member that is not there. */
static cJSON *make_absent(const struct field *field)
{
	switch (field->kind) {
	case STRING:
		return cJSON_CreateString("");
	case NUMBER:
		return cJSON_CreateNumber(0);
	case BOOL:
		return cJSON_CreateBool(false);
	case OBJECT:
		return copy_object(field->inner, NULL);
	default:
		return cJSON_CreateNull();
	}
}

static bool fits(const struct field *field, const cJSON *value)
{
	switch (field->kind) {
	case STRING:
		return cJSON_IsString(value);
	case NUMBER:
		return cJSON_IsNumber(value);
	case BOOL:
		return cJSON_IsBool(value);
	case MAP:
	case OBJECT:
	case VALUES:
		return cJSON_IsObject(value);
	default:
		return cJSON_IsArray(value);
	}
}

static cJSON *copy_value(const struct field *field, const cJSON *value)
{
	switch (field->kind) {
	case OBJECT:
		return copy_object(field->inner, value);
	case OBJECTS:
	case VALUES:
		return copy_all(field->inner, value);
	case RULES:
		return copy_rules(value, 2);
	default:
		return cJSON_Duplicate(value, true);
	}
}

static bool is_empty(const cJSON *value)
{
	return (cJSON_IsString(value) && !value->valuestring[0]) || (cJSON_IsArray(value) && !value->child);
}

static cJSON *copy_object(const struct field *fields, const cJSON *from)
{
	cJSON *to = cJSON_CreateObject();
	for (const struct field *field = fields; field->key && to; field++) {
		const cJSON *value = from ? cJSON_GetObjectItem(from, field->key) : NULL;
		if (!fits(field, value))
			value = NULL;
		if (field->is_optional && (!value || is_empty(value)))
			continue;
		if (!add(to, field->key, value ? copy_value(field, value) : make_absent(field))) {
			cJSON_Delete(to);
			return NULL;
		}
	}
	return to;
}

cJSON *shape_make(enum shape shape, const cJSON *record)
{
	return copy_object(SHAPES[shape], record);
}
