/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ZDS messages: the bytes of node-agent.md 1.2, both directions, ceilings, malformed input. */
#include "unit.h"

#include <errno.h>

#include "pb/zds.h"

static struct err err;
static uint8_t bytes[ZDS_PACKET_MAX];
static size_t len;

#define BYTES(s) (const uint8_t *)(s), sizeof(s) - 1

static void expect(const char *want, size_t want_len)
{
	assert_int_equal(len, want_len);
	assert_memory_equal(bytes, want, want_len);
}

static void test_known_bytes(void **state)
{
	struct zds_request keep = {.type = ZDS_KEEP, .uid = "u1"}, del = {.type = ZDS_DEL, .uid = "u1"};
	struct zds_request sent = {.type = ZDS_SNAPSHOT_SENT};
	struct zds_request add = {.type = ZDS_ADD,
	        .uid = "u1",
	        .has_info = true,
	        .info = {.name = "n", .ns = "s", .service_account = "a"}};
	struct zds_request bare = {.type = ZDS_ADD, .uid = "u1"};
	assert_ok(zds_encode_hello(ZDS_V1, bytes, sizeof(bytes), &len));
	expect("\x08\x01", 2);
	assert_ok(zds_encode_response(NULL, bytes, sizeof(bytes), &len));
	expect("\x0a\x00", 2);
	assert_ok(zds_encode_response("", bytes, sizeof(bytes), &len));
	expect("\x0a\x00", 2);
	assert_ok(zds_encode_response("x", bytes, sizeof(bytes), &len));
	expect("\x0a\x03\x0a\x01x", 5);
	assert_ok(zds_encode_request(&sent, bytes, sizeof(bytes), &len, &err));
	expect("\x1a\x00", 2);
	assert_ok(zds_encode_request(&keep, bytes, sizeof(bytes), &len, &err));
	expect("\x2a\x04\x0a\x02u1", 6);
	assert_ok(zds_encode_request(&del, bytes, sizeof(bytes), &len, &err));
	expect("\x12\x04\x12\x02u1", 6);
	assert_ok(zds_encode_request(&add, bytes, sizeof(bytes), &len, &err));
	expect("\x0a\x0f\x0a\x02u1\x12\x09\x0a\x01n\x12\x01s\x1a\x01"
	       "a",
	        17);
	assert_ok(zds_encode_request(&bare, bytes, sizeof(bytes), &len, &err));
	expect("\x0a\x04\x0a\x02u1", 6);
}

static void test_decode_requests(void **state)
{
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	struct zds_request req;
	assert_ok(zds_decode_request(BYTES("\x0a\x0f\x0a\x02u1\x12\x09\x0a\x01n\x12\x01s\x1a\x01"
	                                   "a"),
	        arena, &req, &err));
	assert_int_equal(req.type, ZDS_ADD);
	assert_string_equal(req.uid, "u1");
	assert_true(req.has_info);
	assert_string_equal(req.info.name, "n");
	assert_string_equal(req.info.ns, "s");
	assert_string_equal(req.info.service_account, "a");
	assert_ok(zds_decode_request(BYTES("\x0a\x02\x12\x00"), arena, &req, &err));
	assert_true(req.has_info);
	assert_string_equal(req.uid, "");
	assert_string_equal(req.info.ns, "");
	assert_ok(zds_decode_request(BYTES("\x0a\x00"), arena, &req, &err));
	assert_int_equal(req.type, ZDS_ADD);
	assert_false(req.has_info);
	assert_string_equal(req.info.name, "");
	assert_ok(zds_decode_request(BYTES("\x2a\x04\x0a\x02u1"), arena, &req, &err));
	assert_int_equal(req.type, ZDS_KEEP);
	assert_string_equal(req.uid, "u1");
	assert_string_equal(req.info.name, "");
	assert_ok(zds_decode_request(BYTES("\x12\x04\x12\x02u2"), arena, &req, &err));
	assert_int_equal(req.type, ZDS_DEL);
	assert_string_equal(req.uid, "u2");
	/* Field 1 of DelWorkload is not the uid. */
	assert_ok(zds_decode_request(BYTES("\x12\x04\x0a\x02u2"), arena, &req, &err));
	assert_string_equal(req.uid, "");
	assert_ok(zds_decode_request(BYTES("\x1a\x00"), arena, &req, &err));
	assert_int_equal(req.type, ZDS_SNAPSHOT_SENT);
	assert_string_equal(req.uid, "");
	/* The reserved trust_domain of older agents, and fields of newer ones. */
	assert_ok(zds_decode_request(
	        BYTES("\x0a\x0a\x12\x08\x22\x01t\x0a\x01n\x28\x01\x98\x06\x01"), arena, &req, &err));
	assert_string_equal(req.info.name, "n");
	arena_unref(arena);
}

static void test_refused_requests(void **state)
{
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	struct zds_request req = {.uid = "untouched"};
	assert_err(zds_decode_request(BYTES(""), arena, &req, &err), ERR_PROTOCOL,
	        "WorkloadRequest: has no payload");
	assert_err(zds_decode_request(BYTES("\x22\x00"), arena, &req, &err), ERR_PROTOCOL,
	        "payload 4 is not known");
	assert_err(zds_decode_request(BYTES("\x1a\x00\x1a\x00"), arena, &req, &err), ERR_PROTOCOL,
	        "two payloads");
	assert_err(zds_decode_request(BYTES("\xff"), arena, &req, &err), ERR_PROTOCOL,
	        "WorkloadRequest: malformed");
	assert_err(zds_decode_request(BYTES("\x0a\x05\x0a"), arena, &req, &err), ERR_PROTOCOL, "malformed");
	assert_err(zds_decode_request(BYTES("\x0a\x03\x0a\x01\xff"), arena, &req, &err), ERR_BAD_UTF8,
	        "AddWorkload.uid");
	assert_err(zds_decode_request(BYTES("\x0a\x03\x0a\x01\0"), arena, &req, &err), ERR_PROTOCOL,
	        "AddWorkload.uid: holds a zero");
	assert_err(zds_decode_request(BYTES("\x0a\x05\x12\x03\x12\x01\x80"), arena, &req, &err), ERR_BAD_UTF8,
	        "AddWorkload.workload_info.namespace");
	assert_err(zds_decode_request(BYTES("\x2a\x02\x08\x01"), arena, &req, &err), ERR_PROTOCOL,
	        "KeepWorkload.uid: wrong wire type");
	assert_err(zds_decode_request(BYTES("\x0a\x04\x12\x00\x12\x00"), arena, &req, &err), ERR_PROTOCOL,
	        "workload_info: given twice");
	assert_string_equal(req.uid, "untouched");
	arena_unref(arena);
}

static void test_ceilings(void **state)
{
	char uid[LIMIT_ZDS_UID + 2], name[255];
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	struct zds_request req = {.type = ZDS_ADD,
	        .uid = "u1",
	        .has_info = true,
	        .info = {.name = name, .ns = name, .service_account = name}};
	memset(uid, 'u', LIMIT_ZDS_UID);
	uid[LIMIT_ZDS_UID] = '\0';
	memset(name, 'n', 253);
	name[253] = '\0';
	assert_ok(zds_encode_request(&req, bytes, sizeof(bytes), &len, &err));
	assert_ok(zds_decode_request(bytes, len, arena, &req, &err));
	assert_int_equal(strlen(req.info.service_account), 253);
	/* The longest uid fills the packet. */
	req = (struct zds_request){.type = ZDS_ADD, .uid = uid};
	assert_ok(zds_encode_request(&req, bytes, sizeof(bytes), &len, &err));
	assert_int_equal(len, ZDS_PACKET_MAX);
	assert_ok(zds_decode_request(bytes, len, arena, &req, &err));
	req = (struct zds_request){.type = ZDS_ADD, .uid = uid, .has_info = true};
	assert_err(zds_encode_request(&req, bytes, sizeof(bytes), &len, &err), -EMSGSIZE, "no room");
	req = (struct zds_request){.type = ZDS_KEEP, .uid = uid};
	uid[LIMIT_ZDS_UID] = 'u';
	uid[LIMIT_ZDS_UID + 1] = '\0';
	assert_err(zds_encode_request(&req, bytes, sizeof(bytes), &len, &err), ERR_TOO_LARGE,
	        "KeepWorkload.uid: 1019 bytes, at most 1018");
	name[253] = 'n';
	name[254] = '\0';
	req = (struct zds_request){.type = ZDS_ADD, .uid = "", .has_info = true, .info = {.ns = name}};
	assert_err(zds_encode_request(&req, bytes, sizeof(bytes), &len, &err), ERR_TOO_LARGE,
	        "workload_info.namespace: 254 bytes");
	req = (struct zds_request){.type = ZDS_KEEP, .uid = "u1"};
	assert_err(zds_encode_request(&req, bytes, 5, &len, &err), -EMSGSIZE, "no room");
	req.type = (enum zds_request_type)4;
	assert_err(zds_encode_request(&req, bytes, sizeof(bytes), &len, &err), ERR_PROTOCOL, "no wire form");
	arena_unref(arena);
}

static void test_hello(void **state)
{
	enum zds_version version = ZDS_NOT_USED;
	assert_ok(zds_decode_hello(BYTES("\x08\x01"), &version, &err));
	assert_int_equal(version, ZDS_V1);
	assert_ok(zds_decode_hello(BYTES("\x08\x02\x12\x01x"), &version, &err));
	assert_int_equal(version, 2);
	assert_err(zds_decode_hello(BYTES("\x0a\x01\x01"), &version, &err), ERR_PROTOCOL, "ZdsHello.version");
}

static void test_responses(void **state)
{
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	const char *text = NULL;
	assert_ok(zds_decode_response(BYTES("\x0a\x00"), arena, &text, &err));
	assert_string_equal(text, "");
	assert_ok(zds_decode_response(BYTES("\x0a\x03\x0a\x01x"), arena, &text, &err));
	assert_string_equal(text, "x");
	assert_err(zds_decode_response(BYTES(""), arena, &text, &err), ERR_PROTOCOL, "no payload");
	assert_err(zds_decode_response(BYTES("\x12\x00"), arena, &text, &err), ERR_PROTOCOL, "payload 2");
	assert_err(zds_decode_response(BYTES("\x0a\x03\x0a\x01\xff"), arena, &text, &err), ERR_BAD_UTF8,
	        "Ack.error");
	arena_unref(arena);
}

/* A NACK is always possible: long text is cut between characters, garbage is replaced. */
static void test_nack_text(void **state)
{
	char text[2001];
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	const char *back;
	memset(text, 'e', 2000);
	text[2000] = '\0';
	assert_ok(zds_encode_response(text, bytes, sizeof(bytes), &len));
	assert_int_equal(len, ZDS_PACKET_MAX);
	assert_ok(zds_decode_response(bytes, len, arena, &back, &err));
	assert_int_equal(strlen(back), ZDS_ERROR_MAX);
	for (size_t i = 0; i < 1998; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	assert_ok(zds_encode_response(text, bytes, sizeof(bytes), &len));
	assert_ok(zds_decode_response(bytes, len, arena, &back, &err));
	assert_int_equal(strlen(back), ZDS_ERROR_MAX / 3 * 3);
	assert_ok(zds_encode_response("a\xff\xc3z", bytes, sizeof(bytes), &len));
	assert_ok(zds_decode_response(bytes, len, arena, &back, &err));
	assert_string_equal(back, "a??z");
	arena_unref(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_known_bytes),
	        cmocka_unit_test(test_decode_requests),
	        cmocka_unit_test(test_refused_requests),
	        cmocka_unit_test(test_ceilings),
	        cmocka_unit_test(test_hello),
	        cmocka_unit_test(test_responses),
	        cmocka_unit_test(test_nack_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
