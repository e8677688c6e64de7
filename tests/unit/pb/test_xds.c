/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resources: every field to its member, every reason of refusal, ceilings; requests and metadata as bytes. */
#include "unit.h"

#include <errno.h>

#include "culvert/limits.h"
#include "pb/codec.h"
#include "pb/xds.h"

/* A message being written by hand. */
struct msg {
	uint8_t bytes[1 << 16];
	size_t len;
};

static void raw(struct msg *m, const void *p, size_t len)
{
	assert_true(m->len + len <= sizeof(m->bytes));
	memcpy(m->bytes + m->len, p, len);
	m->len += len;
}

static void bytes(struct msg *m, uint32_t tag, const void *p, size_t len)
{
	uint8_t head[CODEC_HEAD_MAX];
	raw(m, head, codec_head(tag, len, head));
	raw(m, p, len);
}

static void str(struct msg *m, uint32_t tag, const char *s)
{
	bytes(m, tag, s, strlen(s));
}

static void num(struct msg *m, uint32_t tag, uint64_t v)
{
	uint8_t head[CODEC_HEAD_MAX];
	raw(m, head, codec_varint(tag, v, head));
}

static void sub(struct msg *m, uint32_t tag, const struct msg *inner)
{
	bytes(m, tag, inner->bytes, inner->len);
}

/* Decodes inner as the arm `tag` of an Address, or (0) as a policy. */
static int decode(
        uint32_t tag, const struct msg *inner, struct arena *arena, struct xds_record *ret, struct err *err)
{
	static struct msg outer;
	outer.len = 0;
	if (tag == 0)
		return xds_decode(XDS_TYPE_POLICY, inner->bytes, inner->len, arena, ret, err);
	sub(&outer, tag, inner);
	return xds_decode(XDS_TYPE_ADDRESS, outer.bytes, outer.len, arena, ret, err);
}

#define WORKLOAD 1
#define SERVICE 2
#define POLICY 0

static struct arena *arena;

static int set_up(void **state)
{
	(void)state;
	arena = arena_new(LIMIT_RECORD_ARENA);
	return arena ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	arena_unref(arena);
	return 0;
}

static void test_defaults_of_a_workload(void **state)
{
	struct msg m = {.len = 0};
	struct xds_record rec;
	struct err err;
	(void)state;
	num(&m, 12, 77);  /* unknown type */
	num(&m, 99, 1);   /* unknown field */
	str(&m, 26, "x"); /* extensions */
	assert_ok(decode(WORKLOAD, &m, arena, &rec, &err));
	const struct workload *w = rec.workload;
	assert_int_equal(rec.kind, XDS_WORKLOAD);
	assert_string_equal(w->trust_domain, "cluster.local");
	assert_string_equal(w->service_account, "default");
	assert_string_equal(w->cluster_id, "Kubernetes");
	assert_string_equal(w->workload_type, "deployment");
	assert_string_equal(w->uid, "");
	assert_int_equal(w->capacity, 1);
	assert_int_equal(w->protocol, WORKLOAD_TCP);
	assert_false(w->has_waypoint || w->has_network_gateway || w->has_app_tunnel);
	struct msg zero = {.len = 0};
	sub(&m, 27, &zero); /* capacity: there, and 0 */
	assert_ok(decode(WORKLOAD, &m, arena, &rec, &err));
	assert_int_equal(rec.workload->capacity, 0);
}

static void test_every_field_of_a_workload(void **state)
{
	static const struct {
		uint32_t tag;
		size_t off;
	} TEXTS[] = {{1, offsetof(struct workload, name)}, {2, offsetof(struct workload, ns)},
	        {4, offsetof(struct workload, network)}, {6, offsetof(struct workload, trust_domain)},
	        {7, offsetof(struct workload, service_account)}, {9, offsetof(struct workload, node)},
	        {10, offsetof(struct workload, canonical_name)},
	        {11, offsetof(struct workload, canonical_revision)},
	        {13, offsetof(struct workload, workload_name)}, {18, offsetof(struct workload, cluster_id)},
	        {20, offsetof(struct workload, uid)}, {21, offsetof(struct workload, hostname)}};
	struct msg m = {.len = 0}, host = {.len = 0}, gateway = {.len = 0}, addr = {.len = 0},
	           other = {.len = 0}, ports = {.len = 0}, port = {.len = 0}, entry = {.len = 0},
	           tunnel = {.len = 0}, place = {.len = 0};
	struct xds_record rec;
	struct err err;
	char want[16];
	(void)state;
	for (size_t i = 0; i < CNT(TEXTS); i++) {
		snprintf(want, sizeof(want), "text-%u", TEXTS[i].tag);
		str(&m, TEXTS[i].tag, want);
	}
	bytes(&m, 3, "\x0a\0\0\x01", 4);
	bytes(&m, 3, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07", 16);
	num(&m, 5, 1);
	num(&m, 12, 3);
	num(&m, 14, 1);
	num(&m, 17, 1);
	num(&m, 25, 1);
	str(&m, 16, "ns/p1");
	str(&m, 16, "ns/p2");
	str(&host, 1, "hns");
	str(&host, 2, "host");
	sub(&gateway, 1, &host);
	num(&gateway, 3, 65536 + 15008);
	sub(&m, 8, &gateway);
	str(&addr, 1, "net");
	bytes(&addr, 2, "\x0a\x09\x09\x09", 4);
	num(&addr, 3, 8); /* the length does not matter here */
	sub(&other, 2, &addr);
	sub(&m, 19, &other);
	num(&port, 1, 80);
	num(&port, 2, 65536 + 8080);
	sub(&ports, 1, &port);
	str(&entry, 1, "sns/svc.sns/odd");
	sub(&entry, 2, &ports);
	sub(&m, 22, &entry);
	num(&tunnel, 1, 1);
	num(&tunnel, 2, 9000);
	sub(&m, 23, &tunnel);
	str(&place, 1, "r");
	str(&place, 2, "z");
	str(&place, 3, "s");
	sub(&m, 24, &place);
	assert_ok(decode(WORKLOAD, &m, arena, &rec, &err));
	const struct workload *w = rec.workload;
	for (size_t i = 0; i < CNT(TEXTS); i++) {
		snprintf(want, sizeof(want), "text-%u", TEXTS[i].tag);
		assert_string_equal(*(const char *const *)((const char *)w + TEXTS[i].off), want);
	}
	assert_int_equal(w->ip_cnt, 2);
	assert_int_equal(w->ips[0].family, 4);
	assert_int_equal(w->ips[1].b[15], 7);
	assert_int_equal(w->protocol, WORKLOAD_HBONE);
	assert_string_equal(w->workload_type, "job");
	assert_true(w->native_tunnel);
	assert_int_equal(w->status, WORKLOAD_UNHEALTHY);
	assert_int_equal(w->network_mode, NETWORK_MODE_HOST);
	assert_int_equal(w->policy_cnt, 2);
	assert_string_equal(w->policies[1], "ns/p2");
	assert_true(w->has_waypoint && w->waypoint.is_host);
	assert_string_equal(w->waypoint.ns, "hns");
	assert_string_equal(w->waypoint.host, "host");
	assert_int_equal(w->waypoint.hbone_port, 15008);
	assert_true(w->has_network_gateway && !w->network_gateway.is_host);
	assert_string_equal(w->network_gateway.addr.network, "net");
	assert_int_equal(w->network_gateway.addr.ip.b[0], 10);
	assert_int_equal(w->service_cnt, 1);
	assert_string_equal(w->services[0].ns, "sns");
	assert_string_equal(w->services[0].hostname, "svc.sns/odd");
	assert_int_equal(w->services[0].ports[0].target_port, 8080);
	assert_true(w->has_app_tunnel && w->app_tunnel_protocol == APP_TUNNEL_PROXY);
	assert_int_equal(w->app_tunnel_port, 9000);
	assert_string_equal(w->locality.subzone, "s");
}

static void add_vip(struct msg *m, const void *ip, size_t ip_len, int has_length, uint64_t length)
{
	struct msg addr = {.len = 0};
	bytes(&addr, 2, ip, ip_len);
	if (has_length)
		num(&addr, 3, length);
	sub(m, 4, &addr);
}

static void test_service_addresses_and_ports(void **state)
{
	static const uint8_t V6[16] = {0x20, 1};
	struct msg m = {.len = 0}, port = {.len = 0};
	struct xds_record rec;
	struct err err;
	(void)state;
	add_vip(&m, "\x0a\0\0\x01", 4, 0, 0);
	add_vip(&m, "\x0a\0\0\x02", 4, 1, 32);
	add_vip(&m, "\x0a\0\0\x03", 4, 1, 0);
	add_vip(&m, "\x0a\0\0\x04", 4, 1, 256 + 8);
	add_vip(&m, V6, 16, 1, 128);
	add_vip(&m, V6, 16, 1, 32);
	for (int i = 0; i < 3; i++) {
		port.len = 0;
		num(&port, 1, i == 1 ? 443 : 80);
		num(&port, 2, 1000u + (unsigned)i);
		num(&port, 3, 5);
		sub(&m, 5, &port);
	}
	num(&m, 14, 9); /* unknown visibility */
	num(&m, 12, 1); /* ingress_use_waypoint */
	assert_ok(decode(SERVICE, &m, arena, &rec, &err));
	const struct service *s = rec.service;
	assert_int_equal(s->vip_cnt, 3);
	assert_int_equal(s->cidr_cnt, 3);
	assert_int_equal(s->cidrs[0].cidr.len, 0);
	assert_int_equal(s->cidrs[1].cidr.len, 8);
	assert_int_equal(s->cidrs[2].cidr.len, 32);
	assert_int_equal(s->port_cnt, 2);
	assert_int_equal(s->ports[0].service_port, 80);
	assert_int_equal(s->ports[0].target_port, 1002);
	assert_int_equal(s->visibility, VISIBILITY_PUBLIC);
	assert_false(s->has_lb);
}

/* A message of one number, text or nested message. */
static struct msg with_num(uint32_t tag, uint64_t v)
{
	struct msg m = {.len = 0};
	num(&m, tag, v);
	return m;
}

static struct msg with_sub(uint32_t tag, struct msg inner)
{
	struct msg m = {.len = 0};
	sub(&m, tag, &inner);
	return m;
}

static struct msg with_str(uint32_t tag, const char *s)
{
	struct msg m = {.len = 0};
	str(&m, tag, s);
	return m;
}

static void refused(uint32_t arm, struct msg m, int code, const char *text)
{
	struct xds_record rec;
	struct err err;
	assert_err(decode(arm, &m, arena, &rec, &err), code, text);
	if (code == ERR_UNSUPPORTED)
		assert_string_equal(err.text, text);
}

static void test_reasons(void **state)
{
	struct msg nothing = {.len = 0}, m = {.len = 0};
	struct xds_record rec;
	struct err err;
	(void)state;
	assert_err(xds_decode(XDS_TYPE_ADDRESS, NULL, 0, arena, &rec, &err), ERR_UNSUPPORTED,
	        "unknown address type");
	refused(WORKLOAD, with_str(3, "12345"), ERR_UNSUPPORTED, "failed to parse address, had 5 bytes");
	refused(WORKLOAD, with_str(3, ""), ERR_UNSUPPORTED, "failed to parse address, had 0 bytes");
	refused(WORKLOAD, with_num(5, 2), ERR_UNSUPPORTED,
	        "unknown enum: unsupported tunnel protocol: legacy istio mtls");
	refused(WORKLOAD, with_num(5, 3), ERR_UNSUPPORTED, "decode error: unknown enumeration value 3");
	refused(WORKLOAD, with_num(17, (uint64_t)-5), ERR_UNSUPPORTED,
	        "decode error: unknown enumeration value -5");
	refused(WORKLOAD, with_num(25, 2), ERR_UNSUPPORTED, "decode error: unknown enumeration value 2");
	refused(WORKLOAD, with_sub(8, nothing), ERR_UNSUPPORTED,
	        "nonempty gateway address is missing address");
	refused(WORKLOAD, with_sub(19, nothing), ERR_UNSUPPORTED,
	        "nonempty gateway address is missing address");
	refused(WORKLOAD, with_sub(22, with_str(1, "key")), ERR_UNSUPPORTED,
	        "failed to parse namespaced hostname: key");
	refused(WORKLOAD, with_sub(23, with_num(1, 2)), ERR_UNSUPPORTED,
	        "decode error: unknown enumeration value 2");
	refused(SERVICE, with_num(9, 4), ERR_UNSUPPORTED, "decode error: unknown enumeration value 4");
	refused(SERVICE, with_sub(8, with_num(1, 0)), ERR_UNSUPPORTED, "unknown enum: invalid target");
	refused(SERVICE, with_sub(8, with_num(1, 7)), ERR_UNSUPPORTED,
	        "decode error: unknown enumeration value 7");
	refused(SERVICE, with_sub(8, with_num(2, 4)), ERR_UNSUPPORTED,
	        "decode error: unknown enumeration value 4");
	refused(SERVICE, with_sub(8, with_num(3, 2)), ERR_UNSUPPORTED,
	        "decode error: unknown enumeration value 2");
	refused(SERVICE, with_sub(13, nothing), ERR_UNSUPPORTED,
	        "nonempty gateway address is missing address");
	add_vip(&m, "\x0a\0\0\x01", 4, 1, 33);
	refused(SERVICE, m, ERR_UNSUPPORTED, "invalid cidr: invalid IP prefix length");
	refused(POLICY, with_num(3, 3), ERR_UNSUPPORTED, "decode error: unknown enumeration value 3");
	refused(POLICY, with_num(4, 2), ERR_UNSUPPORTED, "decode error: unknown enumeration value 2");
	refused(WORKLOAD, with_str(1, "\xff"), ERR_BAD_UTF8,
	        "decode: failed to decode Protobuf message: Address.workload.name");
	refused(WORKLOAD, with_num(1, 1), ERR_PROTOCOL, "decode: failed to decode Protobuf message: ");
	assert_err(xds_decode(XDS_TYPE_ADDRESS, (const uint8_t *)"\x0a\x7f", 2, arena, &rec, &err),
	        ERR_PROTOCOL, "decode: failed to decode Protobuf message: Address: malformed");
}

static void test_ceilings(void **state)
{
	static const struct {
		uint32_t arm;
		uint32_t tag;
		size_t max;
	} ROWS[] = {{WORKLOAD, 3, 64}, {WORKLOAD, 16, 512}, {WORKLOAD, 22, 512}, {SERVICE, 4, 256},
	        {SERVICE, 5, 1024}, {SERVICE, 6, 512}, {SERVICE, 13, 64}, {POLICY, 5, 512}};
	(void)state;
	for (size_t i = 0; i < CNT(ROWS); i++) {
		struct msg m = {.len = 0};
		for (size_t n = 0; n <= ROWS[i].max; n++)
			str(&m, ROWS[i].tag, "");
		refused(ROWS[i].arm, m, ERR_TOO_MANY, "more than ");
	}
	char name[300];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	refused(WORKLOAD, with_str(1, name), ERR_TOO_LARGE, "Address.workload.name: 299 bytes");
}

static void test_policies(void **state)
{
	struct msg match = {.len = 0}, m = {.len = 0}, prefix = {.len = 0};
	struct xds_record rec;
	struct err err;
	(void)state;
	sub(&match, 1, &(struct msg){.len = 0}); /* a string match without kind is left out */
	for (uint32_t kind = 1; kind <= 4; kind++) {
		struct msg one = with_str(kind, kind == 4 ? "" : "v");
		sub(&match, kind % 2 ? 3 : 4, &one);
	}
	sub(&match, 5, &prefix); /* so is a prefix without address */
	bytes(&prefix, 1, "\x0a\0\0\0", 4);
	sub(&match, 5, &prefix); /* no length: everything */
	num(&prefix, 2, 33);
	sub(&match, 5, &prefix); /* too long: out */
	num(&match, 9, 65536 + 80);
	num(&match, 10, 443);
	struct msg account = with_str(2, "sa");
	sub(&match, 11, &account);
	struct msg rule = with_sub(1, with_sub(2, match));
	str(&m, 1, "name");
	num(&m, 3, 2);
	num(&m, 4, 1);
	sub(&m, 5, &rule);
	sub(&m, 5, &(struct msg){.len = 0});
	num(&m, 6, 1);
	assert_ok(decode(POLICY, &m, arena, &rec, &err));
	const struct policy *p = rec.policy;
	assert_true(p->scope == POLICY_SELECTOR && p->action == POLICY_DENY && p->dry_run);
	assert_int_equal(p->rule_cnt, 2);
	assert_int_equal(p->rules[1].clause_cnt, 0);
	const struct policy_match *got = &p->rules[0].clauses[0].matches[0];
	assert_int_equal(got->namespace_cnt, 0);
	assert_int_equal(got->principal_cnt, 2);
	assert_int_equal(got->principals[0].kind, MATCH_EXACT);
	assert_int_equal(got->principals[1].kind, MATCH_SUFFIX);
	assert_int_equal(got->not_principals[0].kind, MATCH_PREFIX);
	assert_int_equal(got->not_principals[1].kind, MATCH_PRESENCE);
	assert_int_equal(got->source_ip_cnt, 1);
	assert_int_equal(got->source_ips[0].len, 0);
	assert_int_equal(got->dest_ports[0], 80);
	assert_int_equal(got->not_dest_ports[0], 443);
	assert_string_equal(got->accounts[0].service_account, "sa");
}

static void test_envelope(void **state)
{
	struct msg res = {.len = 0}, any = {.len = 0};
	struct xds_resource got;
	struct err err;
	const char *alias;
	size_t at = 0, len;
	(void)state;
	str(&any, 1, "type.googleapis.com/istio.security.Authorization");
	str(&any, 2, "payload");
	str(&res, 1, "v");
	sub(&res, 2, &any);
	str(&res, 3, "name");
	str(&res, 4, "one");
	str(&res, 4, "two");
	assert_ok(xds_resource_read(res.bytes, res.len, &got, &err));
	assert_true(got.has_any && got.type == XDS_TYPE_POLICY);
	assert_int_equal(got.value_len, 7);
	assert_memory_equal(got.name, "name", 4);
	assert_int_equal(xds_resource_alias(res.bytes, res.len, &at, &alias, &len), 1);
	assert_memory_equal(alias, "one", len);
	assert_int_equal(xds_resource_alias(res.bytes, res.len, &at, &alias, &len), 1);
	assert_int_equal(xds_resource_alias(res.bytes, res.len, &at, &alias, &len), 0);
	assert_err(
	        xds_resource_read((const uint8_t *)"\x1a\x01\xff", 3, &got, &err), ERR_PROTOCOL, "no text");
	assert_err(xds_resource_read((const uint8_t *)"\x12\x7f", 2, &got, &err), ERR_PROTOCOL, "malformed");
	assert_err(xds_resource_read((const uint8_t *)"\x12\x02\x0a\x7f", 4, &got, &err), ERR_PROTOCOL,
	        "malformed");
}

static void json_is(const char *json, const void *want, size_t len)
{
	struct buf out;
	struct err err;
	buf_init(&out, 4096);
	assert_ok(xds_json_write(&out, json, strlen(json), &err));
	assert_int_equal(out.len, len);
	assert_memory_equal(out.data, want, len);
	buf_done(&out);
}

static void test_json(void **state)
{
	static const char *const BAD[] = {"", "{", "[1,]", "{\"a\"}", "01", "-", "1.", "1e", "\"\\x\"",
	        "\"\\ud800\"", "\"\\udc00\"", "\"\x01\"", "nul", "1 2", "{a:1}", "\"a", "\"\xff\"", "[1"};
	char deep[101];
	struct buf out;
	struct err err;
	(void)state;
	json_is(" \"a\\n\\u00e9\\ud83d\\ude00\" ",
	        "\x1a\x08"
	        "a\n\xc3\xa9\xf0\x9f\x98\x80",
	        10);
	json_is("true", "\x20\x01", 2);
	json_is("false", "\x20\x00", 2);
	json_is("null", "\x08\x00", 2);
	json_is("-2.5e1", "\x11\0\0\0\0\0\0\x39\xc0", 9);
	json_is("{}", "\x2a\x00", 2);
	json_is("[ ]", "\x32\x00", 2);
	json_is("{\"k\":[true]}", "\x2a\x0d\x0a\x0b\x0a\x01k\x12\x06\x32\x04\x0a\x02\x20\x01", 15);
	for (size_t i = 0; i < CNT(BAD); i++) {
		buf_init(&out, 4096);
		assert_err(xds_json_write(&out, BAD[i], strlen(BAD[i]), &err), -EINVAL, "");
		assert_true(err.text[0]);
		buf_done(&out);
	}
	memset(deep, '[', 100);
	deep[100] = 0;
	buf_init(&out, 4096);
	assert_err(xds_json_write(&out, deep, 100, &err), -EINVAL, "too deeply nested");
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_defaults_of_a_workload, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_every_field_of_a_workload, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_service_addresses_and_ports, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_reasons, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_ceilings, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_policies, set_up, tear_down),
	        cmocka_unit_test(test_envelope),
	        cmocka_unit_test(test_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
