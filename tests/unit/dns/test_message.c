/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages by hand: what is accepted, what is refused how, what is relayed and where it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "dns/message.h"
#include "dns/wire.h"

static void put_name(struct buf *buf, const char *name)
{
	while (*name) {
		size_t len = strcspn(name, ".");
		buf_add_u8(buf, (uint8_t)len);
		buf_add(buf, name, len);
		name += len + (name[len] == '.');
	}
	buf_add_u8(buf, 0);
}

static struct buf begin(uint16_t flags, const uint16_t counts[4])
{
	struct buf buf;
	buf_init(&buf, 70000);
	buf_add_be16(&buf, 0x1234);
	buf_add_be16(&buf, flags);
	for (int i = 0; i < 4; i++)
		buf_add_be16(&buf, counts[i]);
	return buf;
}

static void put_question(struct buf *buf, const char *name, uint16_t type)
{
	put_name(buf, name);
	buf_add_be16(buf, type);
	buf_add_be16(buf, 1);
}

/* A record whose owner is the question's name. */
static void put_rr(struct buf *buf, uint16_t type, uint32_t ttl, const void *data, size_t len)
{
	buf_add_be16(buf, 0xc00c);
	buf_add_be16(buf, type);
	buf_add_be16(buf, 1);
	buf_add_be32(buf, ttl);
	buf_add_be16(buf, (uint16_t)len);
	buf_add(buf, data, len);
}

static void put_opt(struct buf *buf, uint16_t size, uint32_t flags)
{
	buf_add_u8(buf, 0);
	buf_add_be16(buf, DNS_OPT);
	buf_add_be16(buf, size);
	buf_add_be32(buf, flags);
	buf_add_be16(buf, 0);
}

static struct dns_query query_of(const char *name, uint16_t type, int edns)
{
	struct buf buf = begin(0x0110, (uint16_t[]){1, 0, 0, edns >= 0});
	struct buf reply;
	struct dns_query query;
	buf_init(&reply, 512);
	put_question(&buf, name, type);
	if (edns >= 0)
		put_opt(&buf, (uint16_t)edns, 0x8000);
	assert_int_equal(dns_query_read(buf.data, buf.len, &query, &reply), DNS_SERVE);
	buf_done(&buf);
	return query;
}

static unsigned be16(const struct buf *buf, size_t at)
{
	return (unsigned)(buf->data[at] << 8 | buf->data[at + 1]);
}

static void test_query(void **state)
{
	char text[DNS_TEXT_MAX];
	struct dns_query query = query_of("WWW.Example.com", DNS_AAAA, 1232);
	assert_int_equal(query.id, 0x1234);
	assert_true(query.rd && query.cd && query.has_edns && query.dnssec_ok);
	assert_int_equal(query.udp_size, 1232);
	assert_int_equal(query.question.type, DNS_AAAA);
	assert_string_equal(dns_question_name(&query.question, text), "WWW.Example.com");
	assert_int_equal(dns_question_host(&query.question, text), 0);
	assert_string_equal(text, "www.example.com");
	assert_int_equal(dns_answer_limit(&query, false), 1232);
	assert_int_equal(dns_answer_limit(&query, true), 65535);
	query = query_of("a", DNS_A, 100);
	assert_int_equal(dns_answer_limit(&query, false), 512);
	query = query_of("a", DNS_A, -1);
	assert_int_equal(dns_answer_limit(&query, false), 4096);
	query = query_of("a b", 12, -1);
	assert_int_equal(dns_question_host(&query.question, text), -EINVAL);
	query = query_of("", 2, -1);
	assert_string_equal(dns_question_name(&query.question, text), ".");
	assert_int_equal(dns_question_host(&query.question, text), -EINVAL);
}

static void expect_refusal(struct buf *query, const char *want, size_t want_len)
{
	struct buf reply;
	struct dns_query got;
	buf_init(&reply, 4096);
	enum dns_verdict verdict = dns_query_read(query->data, query->len, &got, &reply);
	if (!want) {
		assert_int_equal(verdict, DNS_IGNORE);
	} else {
		assert_int_equal(verdict, DNS_REFUSE);
		assert_int_equal(reply.len, want_len);
		assert_memory_equal(reply.data, want, want_len);
	}
	buf_done(&reply);
	buf_done(query);
}

/* control.md 10.2, row by row. */
static void test_refusals(void **state)
{
	struct buf buf = begin(0x0100, (uint16_t[]){1, 0, 0, 0});
	buf.len = 11;
	expect_refusal(&buf, NULL, 0);
	buf = begin(0x8100, (uint16_t[]){1, 0, 0, 0});
	put_question(&buf, "a", 1);
	expect_refusal(&buf, NULL, 0);
	buf = begin(0x0100, (uint16_t[]){1, 0, 0, 0});
	buf_add(&buf, "\1a\0\0\1", 5);
	expect_refusal(&buf, "\x12\x34\x81\1\0\0\0\0\0\0\0\0", 12);
	/* A record that is announced and not there. */
	buf = begin(0x0100, (uint16_t[]){1, 0, 0, 1});
	put_question(&buf, "a", 1);
	expect_refusal(&buf, "\x12\x34\x81\1\0\0\0\0\0\0\0\0", 12);
	buf = begin(0x2100, (uint16_t[]){1, 0, 0, 0});
	put_question(&buf, "a", 1);
	expect_refusal(&buf, "\x12\x34\xa1\4\0\1\0\0\0\0\0\0\1a\0\0\1\0\1", 19);
	buf = begin(0x0000, (uint16_t[]){0, 0, 0, 0});
	expect_refusal(&buf, "\x12\x34\x80\2\0\0\0\0\0\0\0\0", 12);
	buf = begin(0x0100, (uint16_t[]){2, 0, 0, 0});
	put_question(&buf, "a", 1);
	put_question(&buf, "b", 1);
	expect_refusal(&buf, "\x12\x34\x81\2\0\2\0\0\0\0\0\0\1a\0\0\1\0\1\1b\0\0\1\0\1", 26);
	/* Pointers that go forwards or in circles. */
	buf = begin(0x0100, (uint16_t[]){1, 0, 0, 0});
	buf_add(&buf, "\xc0\x0c\0\1\0\1", 6);
	expect_refusal(&buf, "\x12\x34\x81\1\0\0\0\0\0\0\0\0", 12);
	buf = begin(0x0100, (uint16_t[]){1, 0, 0, 0});
	buf_add(&buf, "\1a\xc0\x0c\0\1\0\1", 8);
	expect_refusal(&buf, "\x12\x34\x81\1\0\0\0\0\0\0\0\0", 12);
}

static void test_local(void **state)
{
	struct dns_query query = query_of("www.shop", DNS_A, 1232);
	const struct ip ips[] = {ip_v4(10, 0, 0, 1), ip_v4(10, 0, 0, 2)};
	struct dns_local local = {.ips = ips, .ip_cnt = 2, .ttl = 30, .cname = "shop.www.shop"};
	struct buf out;
	buf_init(&out, 65535);
	assert_int_equal(dns_local_write(&query, &local, 512, &out), 0);
	static const char want[] = "\x12\x34\x85\x90\0\1\0\3\0\0\0\1"
	                           "\3www\4shop\0\0\1\0\1"
	                           "\xc0\x0c\0\5\0\1\0\0\0\x1e\0\7\4shop\xc0\x0c"
	                           "\xc0\x26\0\1\0\1\0\0\0\x1e\0\4\x0a\0\0\1"
	                           "\xc0\x26\0\1\0\1\0\0\0\x1e\0\4\x0a\0\0\2"
	                           "\0\0\x29\4\xd0\0\0\x80\0\0\0";
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(out.data, want, out.len);
	buf_done(&out);
	/* Nothing fits: TC and no OPT, but the question. */
	buf_init(&out, 65535);
	assert_int_equal(dns_local_write(&query, &local, 26, &out), 0);
	assert_int_equal(be16(&out, 2) & 0x0200, 0x0200);
	assert_int_equal(be16(&out, 10), 0);
	buf_done(&out);
}

static struct buf reply_of(const struct dns_question *question, uint16_t flags, const uint16_t counts[4])
{
	struct buf buf = begin(flags, counts);
	buf_add(&buf, question->name, question->name_len);
	buf_add_be16(&buf, question->type);
	buf_add_be16(&buf, 1);
	return buf;
}

static void test_relay(void **state)
{
	struct dns_query query = query_of("www.shop", 65400, 512);
	struct buf buf = reply_of(&query.question, 0x8580, (uint16_t[]){1, 1, 1, 2});
	struct buf out;
	struct dns_reply reply;
	/* Data that looks like a pointer stays as it is: only known types hold names. */
	put_rr(&buf, 65400, 100, "\xc0\x0c\xff", 3);
	put_rr(&buf, 2, 50, "\2ns\xc0\x0c", 5);
	put_opt(&buf, 4096, 0);
	/* An SRV whose target points into the authority section, which goes. */
	size_t target = buf.len - 11 - 5;
	const uint8_t srv[] = {0, 1, 0, 2, 0, 3, (uint8_t)(0xc0 | target >> 8), (uint8_t)target};
	put_rr(&buf, 33, 20, srv, sizeof(srv));
	assert_int_equal(dns_reply_read(buf.data, buf.len, 0x1234, &query.question, &reply), 0);
	assert_int_equal(reply.answer_cnt, 1);
	assert_int_equal(reply.ttl, 20);
	buf_init(&out, 65535);
	assert_int_equal(dns_relay_write(&query, buf.data, buf.len, 30, 512, &out), 0);
	static const char want[] = "\x12\x34\x81\x90\0\1\0\1\0\0\0\2"
	                           "\3www\4shop\0\xff\x78\0\1"
	                           "\xc0\x0c\xff\x78\0\1\0\0\0\x46\0\3\xc0\x0c\xff"
	                           "\xc0\x0c\0\x21\0\1\0\0\0\0\0\x13\0\1\0\2\0\3\2ns\3www\4shop\0"
	                           "\0\0\x29\2\0\0\0\x80\0\0\0";
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(out.data, want, out.len);
	buf_done(&out);
	buf_done(&buf);
}

/* Records that fit, cut between records. */
static void test_relay_cut(void **state)
{
	struct dns_query query = query_of("big.example.test", DNS_A, 1232);
	struct buf buf = reply_of(&query.question, 0x8180, (uint16_t[]){1, 256, 0, 0});
	struct dns_reply reply;
	for (int i = 0; i < 256; i++)
		put_rr(&buf, DNS_A, 60, "\x0a\0\0\1", 4);
	for (size_t limit = 40; limit < 4300; limit += 7) {
		struct buf out;
		buf_init(&out, 65535);
		assert_int_equal(dns_relay_write(&query, buf.data, buf.len, 0, limit, &out), 0);
		assert_true(out.len <= limit);
		bool is_whole = 34 + 256 * 16 + 11 <= limit;
		assert_int_equal(be16(&out, 2) & 0x0200, is_whole ? 0 : 0x0200);
		assert_int_equal(be16(&out, 10), is_whole);
		size_t fits = (limit - 34) / 16 > 256 ? 256 : (limit - 34) / 16;
		assert_int_equal(be16(&out, 6), fits);
		if (!is_whole)
			out.data[2] &= (uint8_t)~2;
		assert_int_equal(dns_reply_read(out.data, out.len, 0x1234, &query.question, &reply), 0);
		buf_done(&out);
	}
	buf_done(&buf);
}

static void test_reply(void **state)
{
	struct dns_question question;
	struct dns_reply reply;
	struct ip ips[4];
	size_t cnt;
	uint32_t ttl;
	assert_int_equal(dns_question_set(&question, "Host.example", DNS_A), 0);
	struct buf buf = reply_of(&question, 0x8180, (uint16_t[]){1, 2, 0, 0});
	put_rr(&buf, DNS_CNAME, 9, "\1x\xc0\x0c", 4);
	put_rr(&buf, DNS_A, 300, "\x0a\0\0\1", 4);
	assert_int_equal(dns_reply_read(buf.data, buf.len, 0x1234, &question, &reply), 0);
	assert_int_equal(dns_reply_addrs(buf.data, buf.len, DNS_A, ips, 4, &cnt, &ttl), 0);
	assert_int_equal(cnt, 1);
	assert_int_equal(ttl, 9);
	assert_int_equal(ips[0].b[3], 1);
	/* Not ours: id, direction, question. */
	assert_int_equal(dns_reply_read(buf.data, buf.len, 0x1235, &question, &reply), -EBADMSG);
	assert_int_equal(dns_reply_read(buf.data, 11, 0x1234, &question, &reply), -EBADMSG);
	question.type = DNS_AAAA;
	assert_int_equal(dns_reply_read(buf.data, buf.len, 0x1234, &question, &reply), -EBADMSG);
	question.type = DNS_A;
	question.name[1] = 'h';
	assert_int_equal(dns_reply_read(buf.data, buf.len, 0x1234, &question, &reply), 0);
	question.name[1] = 'x';
	assert_int_equal(dns_reply_read(buf.data, buf.len, 0x1234, &question, &reply), -EBADMSG);
	question.name[1] = 'h';
	buf.data[2] &= 0x7f;
	assert_int_equal(dns_reply_read(buf.data, buf.len, 0x1234, &question, &reply), -EBADMSG);
	buf.data[2] |= 0x80;
	/* Ours, but broken. */
	assert_int_equal(dns_reply_read(buf.data, buf.len - 1, 0x1234, &question, &reply), -EPROTO);
	/* Truncated: whatever is in it does not matter. */
	buf.data[2] |= 2;
	assert_int_equal(dns_reply_read(buf.data, buf.len - 1, 0x1234, &question, &reply), 0);
	assert_true(reply.is_truncated);
	buf_done(&buf);
}

/* RFC 2308 5: nothing is known for as long as the SOA says. */
static void test_nothing(void **state)
{
	static const char soa[] = "\xc0\x0c\xc0\x0c\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\x1e";
	struct dns_query query = query_of("no.example", DNS_A, 1232);
	struct dns_reply reply;
	struct buf out, buf = reply_of(&query.question, 0x8583, (uint16_t[]){1, 0, 1, 0});
	put_rr(&buf, DNS_SOA, 3600, soa, sizeof(soa) - 1);
	assert_int_equal(dns_reply_read(buf.data, buf.len, 0x1234, &query.question, &reply), 0);
	assert_int_equal(reply.rcode, DNS_NXDOMAIN);
	assert_int_equal(reply.ttl, 30);
	buf_init(&out, 512);
	assert_int_equal(dns_relay_write(&query, buf.data, buf.len, 0, 512, &out), 0);
	assert_int_equal(out.len, 12 + 12 + 4);
	assert_int_equal(be16(&out, 2), 0x8193);
	assert_int_equal(be16(&out, 8), 0);
	buf_done(&out);
	buf_done(&buf);
}

static void test_question(void **state)
{
	struct dns_question question;
	struct buf out;
	char name[300];
	assert_int_equal(dns_question_set(&question, "a..b", 1), -EINVAL);
	memset(name, 'a', sizeof(name));
	name[64] = '\0';
	assert_int_equal(dns_question_set(&question, name, 1), -EINVAL);
	for (size_t i = 63; i < 254; i += 64)
		name[i] = '.';
	name[64] = 'a';
	name[253] = '\0';
	assert_int_equal(dns_question_set(&question, name, 1), 0);
	assert_int_equal(question.name_len, 255);
	name[253] = 'a';
	name[254] = '\0';
	assert_int_equal(dns_question_set(&question, name, 1), -EINVAL);
	assert_int_equal(dns_question_set(&question, "a.", 1), 0);
	buf_init(&out, 512);
	assert_int_equal(dns_question_write(7, &question, true, &out), 0);
	static const char want[] = "\0\7\1\0\0\1\0\0\0\0\0\1\1a\0\0\1\0\1\0\0\x29\x10\0\0\0\0\0\0\0";
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(out.data, want, out.len);
	buf_done(&out);
	assert_string_equal(dns_type_name(28), "aaaa");
	assert_string_equal(dns_type_name(65400), "unknown");
}

/* Pointers to pointers are followed as often as a name can have labels. */
static void test_pointer_chains(void **state)
{
	uint8_t msg[1 + 2 * 128] = {0};
	uint8_t name[WIRE_NAME_MAX];
	(void)state;
	for (size_t i = 0; i < 128; i++) {
		msg[1 + 2 * i] = 0xc0;
		msg[2 + 2 * i] = (uint8_t)(i ? 2 * i - 1 : 0);
	}
	size_t pos = 1 + 2 * 126;
	assert_int_equal(wire_name_read(msg, sizeof(msg), &pos, name), 1);
	assert_int_equal(pos, 1 + 2 * 127);
	assert_int_equal(wire_name_read(msg, sizeof(msg), &pos, name), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_pointer_chains),
	        cmocka_unit_test(test_query),
	        cmocka_unit_test(test_refusals),
	        cmocka_unit_test(test_local),
	        cmocka_unit_test(test_relay),
	        cmocka_unit_test(test_relay_cut),
	        cmocka_unit_test(test_reply),
	        cmocka_unit_test(test_nothing),
	        cmocka_unit_test(test_question),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
