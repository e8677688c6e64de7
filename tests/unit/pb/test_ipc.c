/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records: every type there and back, every kind of ceiling, malformed bytes. */
#include "unit.h"

#include <errno.h>

#include "base/mem.h"
#include "samples.h"

static struct err err;
static uint8_t bytes[IPC_RECORD_MAX];
static size_t len;
static long allocations_left = -1; /* negative = all succeed */

bool mem_should_fail(size_t want)
{
	(void)want;
	if (allocations_left > 0)
		allocations_left--;
	return allocations_left == 0;
}

static void encode(const struct ipc_record *rec)
{
	assert_ok(ipc_encode(rec, bytes, sizeof(bytes), &len, &err));
}

/* Encoding what was decoded gives the same bytes: nothing was lost. */
static void test_round_trip(void **state)
{
	for (size_t i = 0; i < sample_cnt; i++) {
		uint8_t again[IPC_RECORD_MAX];
		size_t again_len;
		struct ipc_record rec;
		struct arena *arena = arena_new(IPC_ARENA_MAX);
		encode(&samples[i].rec);
		assert_ok(ipc_decode(bytes, len, arena, &rec, &err));
		assert_int_equal(rec.id, samples[i].rec.id);
		assert_int_equal(rec.type, samples[i].rec.type);
		assert_ok(ipc_encode(&rec, again, sizeof(again), &again_len, &err));
		assert_int_equal(again_len, len);
		assert_memory_equal(again, bytes, len);
		arena_unref(arena);
	}
}

static void check_workload(const struct workload *w)
{
	const struct workload *s = &sample_workload;
	assert_string_equal(w->uid, s->uid);
	assert_string_equal(w->canonical_revision, s->canonical_revision);
	assert_string_equal(w->locality.subzone, s->locality.subzone);
	assert_int_equal(w->protocol, s->protocol);
	assert_int_equal(w->network_mode, s->network_mode);
	assert_int_equal(w->status, s->status);
	assert_true(w->native_tunnel);
	assert_int_equal(w->capacity, s->capacity);
	assert_int_equal(w->ip_cnt, 2);
	assert_true(ip_eq(&w->ips[1], &s->ips[1]));
	assert_true(w->has_waypoint && !w->waypoint.is_host);
	assert_true(ip_eq(&w->waypoint.addr.ip, &s->waypoint.addr.ip));
	assert_string_equal(w->waypoint.host, "");
	assert_string_equal(w->network_gateway.host, s->network_gateway.host);
	assert_int_equal(w->network_gateway.hbone_port, 15009);
	assert_int_equal(w->app_tunnel_port, 15088);
	assert_string_equal(w->policies[1], s->policies[1]);
	assert_int_equal(w->service_cnt, 2);
	assert_string_equal(w->services[0].hostname, s->services[0].hostname);
	assert_int_equal(w->services[0].port_cnt, 3);
	assert_int_equal(w->services[0].ports[2].target_port, 65535);
	assert_int_equal(w->services[1].port_cnt, 0);
}

/* The members themselves, where the comparison of bytes could be fooled by a row that names the wrong member
 * twice. */
static void test_members(void **state)
{
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	struct ipc_record rec;
	for (size_t i = 0; i < sample_cnt; i++) {
		encode(&samples[i].rec);
		assert_ok(ipc_decode(bytes, len, arena, &rec, &err));
		if (rec.type == IPC_ANSWER_WORKLOAD && rec.answer_workload.found)
			check_workload(rec.answer_workload.workload);
		if (rec.type == IPC_ANSWER_VIEW && rec.answer_view.known) {
			const struct service *s = rec.answer_view.service;
			check_workload(rec.answer_view.workload);
			check_workload(rec.answer_view.endpoints[1].workload);
			assert_int_equal(rec.answer_view.endpoints[0].ports[0].target_port, 8080);
			assert_int_equal(s->scopes[0], LB_SCOPE_NETWORK);
			assert_int_equal(s->cidrs[0].cidr.len, 16);
			assert_int_equal(s->cidrs[0].cidr.ip.b[3], 3);
			assert_int_equal(s->weighted[0].weight, 90);
			assert_int_equal(s->lb_mode, LB_MODE_FAILOVER);
			assert_int_equal(s->lb_health, LB_ALLOW_ALL);
			assert_int_equal(s->families, IP_FAMILIES_DUAL);
			assert_int_equal(s->visibility, VISIBILITY_NAMESPACE);
			assert_true(s->canonical && s->has_lb && s->has_waypoint);
		}
		if (rec.type == IPC_ANSWER_POLICIES) {
			const struct policy_match *m =
			        &rec.answer_policies.policies[0].rules[0].clauses[0].matches[0];
			assert_int_equal(rec.answer_policies.policies[0].rule_cnt, 2);
			assert_int_equal(m->namespace_cnt, 4);
			assert_int_equal(m->namespaces[2].kind, MATCH_SUFFIX);
			assert_string_equal(m->namespaces[2].value, "eb");
			assert_int_equal(m->not_principal_cnt, 3);
			assert_string_equal(m->accounts[0].service_account, "web");
			assert_int_equal(m->source_ips[0].len, 8);
			assert_int_equal(m->dest_ports[2], 65535);
			assert_int_equal(m->not_dest_port_cnt, 2);
		}
		if (rec.type == IPC_ASK_CERTIFICATE)
			assert_memory_equal(rec.ask_certificate.csr, "\x30\x00\xff", 3);
	}
	arena_unref(arena);
}

/* What is absent reads as "" and 0, not as NULL. */
static void test_defaults(void **state)
{
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	struct ipc_record rec = {
	        .type = IPC_HELLO, .hello = {.proto_min = 1, .proto_max = 1, .role = IPC_ROLE_WARDEN}};
	encode(&rec);
	assert_ok(ipc_decode(bytes, len, arena, &rec, &err));
	assert_string_equal(rec.hello.release, "");
	assert_string_equal(rec.hello.uid, "");
	assert_string_equal(rec.hello.info.service_account, "");
	arena_unref(arena);
}

static void test_peek(void **state)
{
	struct ipc_peek peek;
	for (size_t i = 0; i < sample_cnt; i++) {
		encode(&samples[i].rec);
		assert_ok(ipc_peek(bytes, len, &peek, &err));
		assert_int_equal(peek.id, samples[i].rec.id);
		assert_int_equal(peek.type, samples[i].rec.type);
		assert_int_equal(peek.len, len);
	}
	assert_ok(ipc_peek((const uint8_t *)"", 0, &peek, &err));
	assert_int_equal(peek.type, 0);
	assert_int_equal(ipc_peek(bytes, IPC_RECORD_MAX + 1, &peek, &err), ERR_TOO_LARGE);
}

/* Bytes, code, part of the text. */
static void test_malformed(void **state)
{
	static const struct {
		const char *what;
		const char *bytes;
		size_t len;
		int code;
		const char *text;
	} cases[] = {
	        {"empty", "", 0, ERR_UNSUPPORTED, "not known"},
	        {"unknown body", "\xfa\x03\x00", 3, ERR_UNSUPPORTED, "63"},
	        {"two bodies", "\x6a\x00\x6a\x00", 4, ERR_PROTOCOL, "two bodies"},
	        {"two bodies, one unknown", "\x6a\x00\xfa\x03\x00", 5, ERR_PROTOCOL, "two bodies"},
	        {"two ids", "\x08\x01\x08\x01\x6a\x00", 6, ERR_PROTOCOL, "id"},
	        {"id above 32 bits", "\x08\xff\xff\xff\xff\x7f\x6a\x00", 8, ERR_PROTOCOL, "id"},
	        {"id as bytes", "\x0a\x01\x01\x6a\x00", 5, ERR_PROTOCOL, "id"},
	        {"body as number", "\x68\x01", 2, ERR_PROTOCOL, "wire type"},
	        {"tag 0", "\x02\x00", 2, ERR_PROTOCOL, "malformed"},
	        {"body ends early", "\x62\x05\x08\x01", 4, ERR_PROTOCOL, "malformed"},
	        {"endless varint", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, ERR_PROTOCOL,
	                "malformed"},
	        {"group", "\x63\x64", 2, ERR_PROTOCOL, "malformed"},
	        {"field given twice", "\x62\x04\x08\x01\x08\x01", 6, ERR_PROTOCOL,
	                "Drain.graceful: given twice"},
	        {"wrong wire type of a bool", "\x62\x03\x0a\x01\x01", 5, ERR_PROTOCOL,
	                "Drain.graceful: wrong wire type"},
	        {"bool above 1", "\x62\x02\x08\x02", 4, ERR_PROTOCOL, "Drain.graceful: value 2"},
	        {"fixed32 for a bool", "\x62\x05\x0d\x01\x01\x01\x01", 7, ERR_PROTOCOL,
	                "Drain.graceful: wrong wire type"},
	        {"zero byte in a string",
	                "\x72\x05\x0a\x03"
	                "a\0b",
	                7, ERR_PROTOCOL, "StartFailed.text: holds a zero byte"},
	        {"ill-formed UTF-8", "\x72\x03\x0a\x01\xff", 5, ERR_BAD_UTF8, "StartFailed.text"},
	        {"overlong UTF-8", "\x72\x04\x0a\x02\xc0\x80", 6, ERR_BAD_UTF8, "StartFailed.text"},
	        {"hello without role", "\x12\x04\x10\x01\x18\x01", 6, ERR_PROTOCOL, "role"},
	        {"hello without versions", "\x12\x02\x28\x01", 4, ERR_PROTOCOL, "protocol range"},
	        {"hello of an unknown role", "\x12\x02\x28\x05", 4, ERR_PROTOCOL, "Hello.role: value 5"},
	        {"pid above 31 bits", "\xa2\x01\x06\x18\x80\x80\x80\x80\x08", 9, ERR_PROTOCOL,
	                "SiloAttach.pid"},
	        {"descriptor 2 as heritage", "\x52\x06\x1a\x04\x08\x01\x10\x02", 8, ERR_PROTOCOL,
	                "Heritage.fds[0]: is a standard"},
	        {"descriptor without kind", "\x52\x04\x1a\x02\x10\x07", 6, ERR_PROTOCOL,
	                "Heritage.fds[0]: has no kind"},
	        {"address of 5 bytes", "\x9a\x02\x09\x12\x07\x12\x05\x01\x02\x03\x04\x05", 12, ERR_PROTOCOL,
	                "AskAddress.addr.ip: 5 bytes"},
	        {"key without anything", "\x9a\x02\x00", 3, ERR_PROTOCOL, "AskAddress: is not one address"},
	        {"address for a host", "\xa2\x02\x08\x12\x06\x12\x04\x01\x02\x03\x04", 11, ERR_PROTOCOL,
	                "AskHost: is an address"},
	        {"host for an address", "\x9a\x02\x05\x08\x01\x22\x01h", 8, ERR_PROTOCOL,
	                "AskAddress: is a host name"},
	        {"certificate without anything", "\x92\x02\x00", 3, ERR_PROTOCOL, "neither chain nor error"},
	        {"found without workload", "\x82\x02\x02\x08\x01", 5, ERR_PROTOCOL, "disagree"},
	};
	for (size_t i = 0; i < CNT(cases); i++) {
		struct arena *arena = arena_new(IPC_ARENA_MAX);
		struct ipc_record rec = {.id = 4711};
		int rc = ipc_decode((const uint8_t *)cases[i].bytes, cases[i].len, arena, &rec, &err);
		if (rc != cases[i].code || !strstr(err.text, cases[i].text))
			fail_msg("%s: %d, \"%s\"", cases[i].what, rc, err.text);
		assert_int_equal(rec.id, 4711);
		arena_unref(arena);
	}
}

/* Fields of a later release are stepped over, whatever their wire type. */
static void test_unknown_fields(void **state)
{
	static const char later[] = "\x62\x1a" /* Drain */
	                            "\x08\x01"
	                            "\x98\x06\x05"                             /* varint 99 */
	                            "\x9a\x06\x02hi"                           /* bytes 99 */
	                            "\x9d\x06\x01\x02\x03\x04"                 /* fixed32 99 */
	                            "\x99\x06\x01\x02\x03\x04\x05\x06\x07\x08" /* fixed64 99 */
	                            "\x98\xf7\x02\x01";                        /* of Record, varint 5987 */
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	struct ipc_record rec;
	assert_ok(ipc_decode((const uint8_t *)later, sizeof(later) - 1, arena, &rec, &err));
	assert_true(rec.drain.graceful);
	assert_int_equal(rec.drain.deadline_ms, 0);
	arena_unref(arena);
}

/* Numbers in a list may come packed, singly, or mixed. */
static void test_packed(void **state)
{
	/* AnswerView.service.scopes = [1], 2, [3, 4] */
	static const uint8_t mixed[] = {0xaa, 0x02, 0x19, 0x0a, 0x08, 0x12, 0x06, 0x12, 0x04, 1, 2, 3, 4,
	        0x10, 1, 0x3a, 0x0b, 0x5a, 1, 1, 0x58, 2, 0x5a, 2, 3, 4, 0x5a, 0};
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	struct ipc_record rec;
	assert_ok(ipc_decode(mixed, sizeof(mixed), arena, &rec, &err));
	assert_int_equal(rec.answer_view.service->scope_cnt, 4);
	assert_int_equal(rec.answer_view.service->scopes[3], 4);
	uint8_t bad[sizeof(mixed)];
	memcpy(bad, mixed, sizeof(mixed));
	bad[25] = 0x84;
	assert_err(
	        ipc_decode(bad, sizeof(bad), arena, &rec, &err), ERR_PROTOCOL, "service.scopes: malformed");
	bad[25] = 7;
	assert_err(ipc_decode(bad, sizeof(bad), arena, &rec, &err), ERR_PROTOCOL,
	        "AnswerView.service.scopes[3]: value 7");
	arena_unref(arena);
}

/* Replaces one string of a hello by n bytes of 'x'. */
static struct ipc_record long_release(char *text, size_t n)
{
	memset(text, 'x', n);
	text[n] = '\0';
	return (struct ipc_record){.type = IPC_HELLO,
	        .hello = {.release = text, .proto_min = 1, .proto_max = 1, .role = IPC_ROLE_SILO}};
}

static void test_string_ceiling(void **state)
{
	char text[80];
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	struct ipc_record rec = long_release(text, 63);
	encode(&rec);
	assert_ok(ipc_decode(bytes, len, arena, &rec, &err));
	rec = long_release(text, 64);
	assert_err(ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_TOO_LARGE,
	        "Hello.release: 64 bytes, at most 63");
	/* The same from a peer that does not mind: lengthen the field by hand. */
	rec = long_release(text, 63);
	encode(&rec);
	memmove(bytes + 5, bytes + 4, len - 4);
	bytes[1]++;
	bytes[3]++;
	bytes[4] = 'x';
	assert_err(ipc_decode(bytes, len + 1, arena, &rec, &err), ERR_TOO_LARGE,
	        "Hello.release: 64 bytes, at most 63");
	arena_unref(arena);
}

static void test_count_ceiling(void **state)
{
	static const uint8_t entry[] = {0x1a, 4, 0x08, IPC_FD_OUTBOUND, 0x10, 7};
	struct ipc_inherited fds[33];
	for (size_t i = 0; i < CNT(fds); i++)
		fds[i] = (struct ipc_inherited){.kind = IPC_FD_OUTBOUND, .fd = 7};
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	struct ipc_record rec = {.type = IPC_HERITAGE, .heritage = {.fds = fds, .fd_cnt = 32}};
	encode(&rec);
	assert_ok(ipc_decode(bytes, len, arena, &rec, &err));
	assert_int_equal(rec.heritage.fd_cnt, 32);
	rec = (struct ipc_record){.type = IPC_HERITAGE, .heritage = {.fds = fds, .fd_cnt = 33}};
	assert_err(ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_TOO_MANY,
	        "Heritage.fds: 33 entries, at most 32");
	/* The same from a peer that does not mind. */
	memcpy(bytes, "\x52\xc6\x01", 3);
	for (size_t i = 0; i < 33; i++)
		memcpy(bytes + 3 + i * sizeof(entry), entry, sizeof(entry));
	assert_err(ipc_decode(bytes, 3 + 33 * sizeof(entry), arena, &rec, &err), ERR_TOO_MANY,
	        "Heritage.fds: more than 32 entries");
	arena_unref(arena);
}

static void test_bad_values(void **state)
{
	struct workload w = sample_workload;
	struct ipc_record rec = {
	        .type = IPC_ANSWER_WORKLOAD, .answer_workload = {.found = true, .workload = &w}};
	w.protocol = 7;
	assert_err(ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_PROTOCOL,
	        "AnswerWorkload.workload.protocol: value 7");
	w = sample_workload;
	w.waypoint.addr.ip.family = 0;
	assert_err(ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_PROTOCOL,
	        "workload.waypoint: has no address");
	w = sample_workload;
	w.name = "\xff";
	assert_err(ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_BAD_UTF8,
	        "AnswerWorkload.workload.name");
	assert_err(ipc_workload_size(&w, &len, &err), ERR_BAD_UTF8, "workload.name");
	rec = (struct ipc_record){.type = IPC_SILO_ATTACH, .silo_attach = {.pid = -1}};
	assert_err(
	        ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_PROTOCOL, "SiloAttach.pid: negative");
	rec = (struct ipc_record){.type = IPC_NONE};
	assert_err(ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_PROTOCOL, "no wire form");
	rec = (struct ipc_record){.type = IPC_ASK_HOST, .ask_host = {.addr = {.ip = {.family = 4}}}};
	assert_err(
	        ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_PROTOCOL, "AskHost: is an address");
}

/* A record above 32 KB and one above the caller's room. */
static void test_record_ceiling(void **state)
{
	static char pem[16385];
	const char *chain[] = {pem, pem};
	struct ipc_record rec = {.id = 1,
	        .type = IPC_ANSWER_CERTIFICATE,
	        .answer_certificate = {.chain = chain, .chain_cnt = 2}};
	memset(pem, 'x', sizeof(pem) - 1);
	assert_err(ipc_encode(&rec, bytes, sizeof(bytes), &len, &err), ERR_TOO_LARGE, "AnswerCertificate: ");
	rec.answer_certificate.chain_cnt = 1;
	encode(&rec);
	assert_err(ipc_encode(&rec, bytes, len - 1, &len, &err), -EMSGSIZE, "no room");
}

/* Empty messages by the thousand want far more memory than they have bytes: the arena's ceiling holds. */
static void test_arena_ceiling(void **state)
{
	struct arena *arena = arena_new(IPC_ARENA_MAX);
	struct ipc_record rec;
	/* AnswerPolicies.policies of 16 rules of 16 clauses of 31 empty matches. */
	uint8_t *at = bytes + 8;
	uint8_t clause[64], rule[1400];
	size_t clause_len = 0, rule_len = 0;
	clause[clause_len++] = 0x0a;
	clause[clause_len++] = 62;
	for (int i = 0; i < 31; i++) {
		clause[clause_len++] = 0x0a;
		clause[clause_len++] = 0;
	}
	for (int i = 0; i < 16; i++) {
		memcpy(rule + rule_len, clause, clause_len);
		rule_len += clause_len;
	}
	size_t body = 0;
	for (int i = 0; i < 30; i++) {
		at[body++] = 0x22; /* a policy */
		at[body++] = (uint8_t)((rule_len + 3) | 0x80);
		at[body++] = (uint8_t)((rule_len + 3) >> 7);
		at[body++] = 0x32;
		at[body++] = (uint8_t)(rule_len | 0x80);
		at[body++] = (uint8_t)(rule_len >> 7);
		memcpy(at + body, rule, rule_len);
		body += rule_len;
	}
	uint8_t head[] = {
	        0xba, 0x02, (uint8_t)(body | 0x80), (uint8_t)(body >> 7 | 0x80), (uint8_t)(body >> 14)};
	memmove(bytes + sizeof(head), at, body);
	memcpy(bytes, head, sizeof(head));
	assert_err(ipc_decode(bytes, sizeof(head) + body, arena, &rec, &err), -ENOMEM, "no memory left");
	assert_true(arena_used(arena) <= IPC_ARENA_MAX);
	arena_unref(arena);
}

/* Decoding and copying fail cleanly at whatever allocation fails. */
static void test_allocation_failures(void **state)
{
	for (size_t i = 0; i < sample_cnt; i++) {
		encode(&samples[i].rec);
		int rc = -ENOMEM;
		for (long n = 1; rc == -ENOMEM; n++) {
			struct arena *arena = arena_new_sized(0, IPC_ARENA_MAX);
			struct ipc_record rec;
			allocations_left = n;
			rc = ipc_decode(bytes, len, arena, &rec, &err);
			allocations_left = -1;
			arena_unref(arena);
		}
		assert_int_equal(rc, 0);
	}
	struct arena *arena = arena_new_sized(0, 256);
	assert_null(ipc_copy_workload(arena, &sample_workload));
	assert_null(ipc_copy_service(arena, &sample_service));
	assert_null(ipc_copy_policies(arena, &sample_policy, 1));
	arena_unref(arena);
}

/* A copy owns everything: it encodes the same after its source is gone. */
static void test_copy(void **state)
{
	uint8_t again[IPC_RECORD_MAX];
	size_t again_len;
	struct ipc_record rec;
	for (size_t i = 0; i < sample_cnt; i++) {
		if (samples[i].rec.type != IPC_ANSWER_VIEW)
			continue;
		struct arena *from = arena_new(IPC_ARENA_MAX), *to = arena_new(IPC_ARENA_MAX);
		encode(&samples[i].rec);
		assert_ok(ipc_decode(bytes, len, from, &rec, &err));
		struct ipc_answer_view *v = &rec.answer_view;
		assert_int_equal(ipc_copy_key(to, &v->key, &v->key), 0);
		v->workload = v->workload ? ipc_copy_workload(to, v->workload) : NULL;
		v->service = v->service ? ipc_copy_service(to, v->service) : NULL;
		v->endpoints = ipc_copy_endpoints(to, v->endpoints, v->endpoint_cnt);
		arena_unref(from);
		assert_ok(ipc_encode(&rec, again, sizeof(again), &again_len, &err));
		assert_int_equal(again_len, len);
		assert_memory_equal(again, bytes, len);
		arena_unref(to);
	}
	struct arena *to = arena_new(IPC_ARENA_MAX);
	struct policy *copy = ipc_copy_policies(to, &sample_policy, 1);
	size_t a, b;
	assert_ok(ipc_policy_size(&sample_policy, &a, &err));
	assert_ok(ipc_policy_size(copy, &b, &err));
	assert_int_equal(a, b);
	assert_ptr_not_equal(copy->rules, sample_policy.rules);
	arena_unref(to);
}

static void test_keys(void **state)
{
	struct ipc_key a = {.addr = {.network = "n", .ip = {.family = 4, .b = {1}}}};
	struct ipc_key b = a, c = {.is_host = true, .ns = "x", .host = "h"}, d = c;
	assert_true(ipc_key_eq(&a, &b));
	b.addr.network = "";
	assert_false(ipc_key_eq(&a, &b));
	b = a;
	b.unfiltered = true;
	assert_false(ipc_key_eq(&a, &b));
	b = a;
	b.addr.ip.b[0] = 2;
	assert_false(ipc_key_eq(&a, &b));
	assert_false(ipc_key_eq(&a, &c));
	assert_true(ipc_key_eq(&c, &d));
	d.ns = NULL;
	assert_false(ipc_key_eq(&c, &d));
	c.ns = "";
	assert_true(ipc_key_eq(&c, &d));
}

static void test_names(void **state)
{
	assert_string_equal(ipc_type_str(IPC_ANSWER_VIEW), "AnswerView");
	assert_string_equal(ipc_type_str(IPC_NONE), "unknown");
	assert_string_equal(ipc_type_str((enum ipc_type)9999), "unknown");
	for (size_t i = 0; i < sample_cnt; i++)
		assert_string_not_equal(ipc_type_str(samples[i].rec.type), "unknown");
	assert_string_equal(ipc_role_str(IPC_ROLE_CTL), "ctl");
	assert_string_equal(ipc_role_str(IPC_ROLE_NONE), "nobody");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_round_trip),
	        cmocka_unit_test(test_members),
	        cmocka_unit_test(test_defaults),
	        cmocka_unit_test(test_peek),
	        cmocka_unit_test(test_malformed),
	        cmocka_unit_test(test_unknown_fields),
	        cmocka_unit_test(test_packed),
	        cmocka_unit_test(test_string_ceiling),
	        cmocka_unit_test(test_count_ceiling),
	        cmocka_unit_test(test_bad_values),
	        cmocka_unit_test(test_record_ceiling),
	        cmocka_unit_test(test_arena_ceiling),
	        cmocka_unit_test(test_allocation_failures),
	        cmocka_unit_test(test_copy),
	        cmocka_unit_test(test_keys),
	        cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
