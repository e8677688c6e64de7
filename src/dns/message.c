/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DNS messages. Nothing of a stranger's message is used before c-ares took it
 * as well formed; the records themselves are then copied as bytes. Knows no
 * socket, no clock and no name of ours.
 */
#include "dns/message.h"

#include <ares.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "dns/wire.h"

#define HEADER_LEN 12
#define QR 0x8000
#define AA 0x0400
#define TC 0x0200
#define RD 0x0100
#define RA 0x0080
#define CD 0x0010
/* Of the OPT's TTL field (RFC 6891 6.1.3). */
#define EDNS_DO 0x8000
/* Bytes of an OPT without options. */
#define OPT_LEN 11
/* c-ares leaves the data of records unread, but an SOA's, which limits how long nothing is remembered. */
#define RAW                                                                                                  \
	(ARES_DNS_PARSE_AN_BASE_RAW | ARES_DNS_PARSE_AR_BASE_RAW | ARES_DNS_PARSE_AN_EXT_RAW |               \
	        ARES_DNS_PARSE_NS_EXT_RAW)

/* Puts a header at the front; counts are set at the end. */
static void header_add(struct buf *out, uint16_t id, uint16_t flags, uint16_t questions)
{
	buf_add_be16(out, id);
	buf_add_be16(out, flags);
	buf_add_be16(out, questions);
	buf_add_be16(out, 0);
	buf_add_be32(out, 0);
}

static void put_be16(struct buf *out, size_t at, uint16_t value)
{
	if (out->err)
		return;
	out->data[at] = (uint8_t)(value >> 8);
	out->data[at + 1] = (uint8_t)value;
}

/* Flags of every answer to a query. */
static uint16_t answer_flags(const struct dns_query *query)
{
	return (uint16_t)(QR | RA | (query->rd ? RD : 0) | (query->cd ? CD : 0));
}

/* Where the question section of a message ends, or -EBADMSG. */
static long questions_end(const uint8_t *data, size_t len)
{
	uint8_t name[WIRE_NAME_MAX];
	size_t pos = HEADER_LEN;
	for (unsigned i = wire_be16(data + 4); i > 0; i--) {
		if (wire_name_read(data, len, &pos, name) < 0 || len - pos < 4)
			return -EBADMSG;
		pos += 4;
	}
	return (long)pos;
}

/* An error answer to a message that became no query: with the first `end` bytes' questions, or none. */
static enum dns_verdict refuse(const uint8_t *data, size_t end, enum dns_rcode rcode, struct buf *reply)
{
	uint16_t flags = wire_be16(data + 2);
	uint16_t questions = end > HEADER_LEN ? wire_be16(data + 4) : 0;
	header_add(reply, wire_be16(data), (uint16_t)(QR | (flags & (0x7800 | RD)) | rcode), questions);
	buf_add(reply, data + HEADER_LEN, end - HEADER_LEN);
	return reply->err ? DNS_IGNORE : DNS_REFUSE;
}

static void read_edns(const ares_dns_record_t *record, struct dns_query *query)
{
	size_t cnt = ares_dns_record_rr_cnt(record, ARES_SECTION_ADDITIONAL);
	for (size_t i = 0; i < cnt; i++) {
		const ares_dns_rr_t *rr = ares_dns_record_rr_get_const(record, ARES_SECTION_ADDITIONAL, i);
		if (ares_dns_rr_get_type(rr) != ARES_REC_TYPE_OPT)
			continue;
		query->has_edns = true;
		query->udp_size = ares_dns_rr_get_u16(rr, ARES_RR_OPT_UDP_SIZE);
		query->edns_version = ares_dns_rr_get_u8(rr, ARES_RR_OPT_VERSION);
		query->dnssec_ok = ares_dns_rr_get_u16(rr, ARES_RR_OPT_FLAGS) & EDNS_DO;
	}
}

/* Lets c-ares judge a query whose class it may not know: any class is taken, so it sees IN. */
static int judge(const uint8_t *data, size_t len, size_t cls_at, ares_dns_record_t **ret_record)
{
	uint8_t *copy = mem_alloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, len);
	copy[cls_at] = 0;
	copy[cls_at + 1] = 1;
	ares_status_t status = ares_dns_parse(copy, len, 0, ret_record);
	mem_free(copy);
	return status == ARES_SUCCESS ? 0 : status == ARES_ENOMEM ? -ENOMEM : -EBADMSG;
}

enum dns_verdict dns_query_read(
        const uint8_t *data, size_t len, struct dns_query *ret_query, struct buf *reply)
{
	if (len < HEADER_LEN || (wire_be16(data + 2) & QR))
		return DNS_IGNORE;
	long end = questions_end(data, len);
	if (end < 0)
		return refuse(data, HEADER_LEN, DNS_FORMERR, reply);
	uint16_t flags = wire_be16(data + 2);
	if (flags & 0x7800)
		return refuse(data, (size_t)end, DNS_NOTIMP, reply);
	if (wire_be16(data + 4) != 1)
		return refuse(data, (size_t)end, DNS_SERVFAIL, reply);
	ares_dns_record_t *record = NULL;
	int rc = judge(data, len, (size_t)end - 2, &record);
	if (rc == -ENOMEM)
		return DNS_IGNORE;
	if (rc < 0)
		return refuse(data, HEADER_LEN, DNS_FORMERR, reply);
	struct dns_query query = {.id = wire_be16(data), .rd = flags & RD, .cd = flags & CD};
	size_t pos = HEADER_LEN;
	query.question.name_len = (uint8_t)wire_name_read(data, len, &pos, query.question.name);
	query.question.type = wire_be16(data + end - 4);
	query.cls = wire_be16(data + end - 2);
	read_edns(record, &query);
	ares_dns_record_destroy(record);
	*ret_query = query;
	return DNS_SERVE;
}

size_t dns_answer_limit(const struct dns_query *query, bool is_tcp)
{
	if (is_tcp)
		return DNS_MESSAGE_MAX;
	if (!query->has_edns)
		return DNS_UDP_MAX;
	return query->udp_size < 512 ? 512 : query->udp_size;
}

/* Header and question of an answer. */
static void answer_begin(struct wire_out *out, struct buf *buf, const struct dns_query *query, uint16_t flags)
{
	wire_out_init(out, buf);
	header_add(buf, query->id, flags, 1);
	wire_name_add(out, query->question.name, query->question.name_len);
	buf_add_be16(buf, query->question.type);
	buf_add_be16(buf, query->cls);
}

/* Counts of an answer, and the OPT where there is room and the client sent one. */
static int answer_end(
        struct buf *buf, const struct dns_query *query, size_t limit, const uint16_t counts[2], bool is_cut)
{
	size_t additional = counts[1];
	if (query->has_edns && !is_cut && buf->len + OPT_LEN > limit)
		is_cut = true;
	else if (query->has_edns && !is_cut) {
		buf_add_u8(buf, 0);
		buf_add_be16(buf, DNS_OPT);
		buf_add_be16(buf, query->udp_size < 512 ? 512 : query->udp_size);
		buf_add_be32(buf, (uint32_t)query->edns_version << 16 | (query->dnssec_ok ? EDNS_DO : 0));
		buf_add_be16(buf, 0);
		additional++;
	}
	put_be16(buf, 6, counts[0]);
	put_be16(buf, 10, (uint16_t)additional);
	if (is_cut && !buf->err)
		buf->data[2] |= TC >> 8;
	return buf->err;
}

int dns_error_write(const struct dns_query *query, enum dns_rcode rcode, struct buf *out)
{
	struct wire_out wire;
	answer_begin(&wire, out, query, (uint16_t)(answer_flags(query) | rcode));
	return out->err;
}

/* Head of a record whose data follows, RDLENGTH included. */
static void rr_head(struct wire_out *out, const uint8_t *owner, size_t owner_len, uint16_t type, uint32_t ttl,
        uint16_t len)
{
	wire_name_add(out, owner, owner_len);
	buf_add_be16(out->buf, type);
	buf_add_be16(out->buf, 1);
	buf_add_be32(out->buf, ttl);
	buf_add_be16(out->buf, len);
}

static void cname_add(
        struct wire_out *out, const struct dns_query *query, const uint8_t *name, size_t len, uint32_t ttl)
{
	rr_head(out, query->question.name, query->question.name_len, DNS_CNAME, ttl, 0);
	size_t at = out->buf->len;
	wire_name_add(out, name, len);
	put_be16(out->buf, at - 2, (uint16_t)(out->buf->len - at));
}

int dns_local_write(
        const struct dns_query *query, const struct dns_local *local, size_t limit, struct buf *out)
{
	struct wire_out wire;
	uint8_t target[WIRE_NAME_MAX];
	const uint8_t *owner = query->question.name;
	size_t owner_len = query->question.name_len;
	uint16_t counts[2] = {0, 0};
	bool is_cut = false;
	int target_len = local->cname ? wire_name_parse(local->cname, target) : 0;
	if (target_len < 0)
		return target_len;
	answer_begin(&wire, out, query, (uint16_t)(answer_flags(query) | (local->is_foreign ? 0 : AA)));
	if (target_len) {
		cname_add(&wire, query, target, (size_t)target_len, local->ttl);
		owner = target;
		owner_len = (size_t)target_len;
		counts[0]++;
	}
	for (size_t i = 0; i < local->ip_cnt && !is_cut; i++) {
		size_t before = out->len, len = ip_len(&local->ips[i]);
		rr_head(&wire, owner, owner_len, len == 4 ? DNS_A : DNS_AAAA, local->ttl, (uint16_t)len);
		buf_add(out, local->ips[i].b, len);
		if (out->err == -ENOMEM)
			return out->err;
		is_cut = out->err || out->len > limit;
		if (is_cut)
			wire_out_cut(&wire, before);
		else
			counts[0]++;
	}
	return answer_end(out, query, limit, counts, is_cut);
}

int dns_question_set(struct dns_question *question, const char *name, uint16_t type)
{
	int len = wire_name_parse(name, question->name);
	if (len < 0)
		return len;
	question->name_len = (uint8_t)len;
	question->type = type;
	return 0;
}

char *dns_question_name(const struct dns_question *question, char dst[DNS_TEXT_MAX])
{
	size_t out = 0;
	for (size_t i = 0; i + 1 < question->name_len; i += (size_t)question->name[i] + 1) {
		if (out)
			dst[out++] = '.';
		for (size_t k = 1; k <= question->name[i]; k++) {
			uint8_t c = question->name[i + k];
			dst[out++] = c > ' ' && c < 0x7f ? (char)c : '?';
		}
	}
	if (!out)
		dst[out++] = '.';
	dst[out] = '\0';
	return dst;
}

int dns_question_host(const struct dns_question *question, char dst[DNS_TEXT_MAX])
{
	if (question->name_len <= 1)
		return -EINVAL;
	for (size_t i = 0; i + 1 < question->name_len; i += (size_t)question->name[i] + 1) {
		for (size_t k = 1; k <= question->name[i]; k++) {
			uint8_t c = question->name[i + k];
			if (c <= ' ' || c >= 0x7f || c == '.')
				return -EINVAL;
		}
	}
	dns_question_name(question, dst);
	for (char *c = dst; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return 0;
}

const char *dns_type_name(uint16_t type)
{
	static const struct {
		uint16_t type;
		const char *name;
	} names[] = {
	        {1, "a"},
	        {2, "ns"},
	        {5, "cname"},
	        {6, "soa"},
	        {10, "null"},
	        {12, "ptr"},
	        {13, "hinfo"},
	        {15, "mx"},
	        {16, "txt"},
	        {24, "sig"},
	        {25, "key"},
	        {28, "aaaa"},
	        {33, "srv"},
	        {35, "naptr"},
	        {37, "cert"},
	        {41, "opt"},
	        {43, "ds"},
	        {44, "sshfp"},
	        {46, "rrsig"},
	        {47, "nsec"},
	        {48, "dnskey"},
	        {50, "nsec3"},
	        {51, "nsec3param"},
	        {52, "tlsa"},
	        {59, "cds"},
	        {60, "cdnskey"},
	        {61, "openpgpkey"},
	        {62, "csync"},
	        {64, "svcb"},
	        {65, "https"},
	        {250, "tsig"},
	        {251, "ixfr"},
	        {252, "axfr"},
	        {255, "any"},
	        {257, "caa"},
	        {65305, "aname"},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].type == type)
			return names[i].name;
	}
	return "unknown";
}

int dns_question_write(uint16_t id, const struct dns_question *question, bool has_edns, struct buf *out)
{
	header_add(out, id, RD, 1);
	buf_add(out, question->name, question->name_len);
	buf_add_be16(out, question->type);
	buf_add_be16(out, 1);
	if (has_edns) {
		buf_add_u8(out, 0);
		buf_add_be16(out, DNS_OPT);
		buf_add_be16(out, DNS_UDP_MAX);
		buf_add_be32(out, 0);
		buf_add_be16(out, 0);
		put_be16(out, 10, 1);
	}
	return out->err;
}

/* Whether the message has exactly this question. */
static bool asks(const uint8_t *data, size_t len, const struct dns_question *question)
{
	uint8_t name[WIRE_NAME_MAX];
	size_t pos = HEADER_LEN;
	if (wire_be16(data + 4) != 1)
		return false;
	int name_len = wire_name_read(data, len, &pos, name);
	return name_len > 0 && len - pos >= 4 && wire_be16(data + pos) == question->type &&
	       wire_be16(data + pos + 2) == 1 &&
	       wire_name_eq(name, (size_t)name_len, question->name, question->name_len);
}

/* The smallest TTL of one section. */
static void section_ttl(const ares_dns_record_t *record, ares_dns_section_t section, struct dns_reply *reply)
{
	size_t cnt = ares_dns_record_rr_cnt(record, section);
	for (size_t i = 0; i < cnt; i++) {
		const ares_dns_rr_t *rr = ares_dns_record_rr_get_const(record, section, i);
		uint32_t ttl = ares_dns_rr_get_ttl(rr);
		if (ares_dns_rr_get_type(rr) != ARES_REC_TYPE_OPT && ttl < reply->ttl)
			reply->ttl = ttl;
	}
}

/* How long it may be remembered that there is nothing (RFC 2308 5), seconds. */
static uint32_t nothing_ttl(const ares_dns_record_t *record)
{
	size_t cnt = ares_dns_record_rr_cnt(record, ARES_SECTION_AUTHORITY);
	for (size_t i = 0; i < cnt; i++) {
		const ares_dns_rr_t *rr = ares_dns_record_rr_get_const(record, ARES_SECTION_AUTHORITY, i);
		if (ares_dns_rr_get_type(rr) != ARES_REC_TYPE_SOA)
			continue;
		uint32_t minimum = ares_dns_rr_get_u32(rr, ARES_RR_SOA_MINIMUM);
		return minimum < ares_dns_rr_get_ttl(rr) ? minimum : ares_dns_rr_get_ttl(rr);
	}
	return 0;
}

int dns_reply_read(const uint8_t *data, size_t len, uint16_t id, const struct dns_question *question,
        struct dns_reply *ret_reply)
{
	if (len < HEADER_LEN || wire_be16(data) != id || !(wire_be16(data + 2) & QR))
		return -EBADMSG;
	struct dns_reply reply = {.rcode = data[3] & 0xf, .is_truncated = wire_be16(data + 2) & TC};
	/* Servers that could not read a question don't repeat it. */
	if (wire_be16(data + 4) == 0 && reply.rcode != DNS_NOERROR && reply.rcode != DNS_NXDOMAIN) {
		*ret_reply = reply;
		return 0;
	}
	if (!asks(data, len, question))
		return -EBADMSG;
	if (reply.is_truncated) {
		*ret_reply = reply;
		return 0;
	}
	ares_dns_record_t *record;
	ares_status_t status = ares_dns_parse(data, len, RAW, &record);
	if (status != ARES_SUCCESS)
		return status == ARES_ENOMEM ? -ENOMEM : -EPROTO;
	reply.answer_cnt = ares_dns_record_rr_cnt(record, ARES_SECTION_ANSWER);
	reply.ttl = UINT32_MAX;
	section_ttl(record, ARES_SECTION_ANSWER, &reply);
	section_ttl(record, ARES_SECTION_ADDITIONAL, &reply);
	if (reply.answer_cnt == 0)
		reply.ttl = nothing_ttl(record);
	ares_dns_record_destroy(record);
	*ret_reply = reply;
	return 0;
}

/* Takes the address of a record of that type. */
static bool rr_ip(const ares_dns_rr_t *rr, uint16_t type, struct ip *ret_ip)
{
	const void *bytes = type == DNS_A ? (const void *)ares_dns_rr_get_addr(rr, ARES_RR_A_ADDR)
	                                  : (const void *)ares_dns_rr_get_addr6(rr, ARES_RR_AAAA_ADDR);
	return bytes && ip_from_bytes(bytes, type == DNS_A ? 4 : 16, ret_ip) == 0;
}

int dns_reply_addrs(const uint8_t *data, size_t len, uint16_t type, struct ip *ips, size_t cap,
        size_t *ret_cnt, uint32_t *ret_ttl)
{
	ares_dns_record_t *record;
	ares_status_t status = ares_dns_parse(data, len, 0, &record);
	if (status != ARES_SUCCESS)
		return status == ARES_ENOMEM ? -ENOMEM : -EPROTO;
	size_t cnt = 0, answers = ares_dns_record_rr_cnt(record, ARES_SECTION_ANSWER);
	uint32_t ttl = UINT32_MAX;
	for (size_t i = 0; i < answers && cnt < cap; i++) {
		const ares_dns_rr_t *rr = ares_dns_record_rr_get_const(record, ARES_SECTION_ANSWER, i);
		uint16_t rr_type = (uint16_t)ares_dns_rr_get_type(rr);
		if (rr_type != type && rr_type != DNS_CNAME)
			continue;
		if (ares_dns_rr_get_ttl(rr) < ttl)
			ttl = ares_dns_rr_get_ttl(rr);
		if (rr_type == type && rr_ip(rr, type, &ips[cnt]))
			cnt++;
	}
	ares_dns_record_destroy(record);
	*ret_cnt = cnt;
	*ret_ttl = cnt ? ttl : 0;
	return 0;
}

/*
 * Copies `cnt` records from *pos. Those of type OPT are between two neighbours only and
 * stay behind. 1: all of them; 0: no more room; negative: broken or out of memory.
 */
static int relay_section(struct wire_out *out, const uint8_t *data, size_t len, size_t *pos, unsigned cnt,
        uint32_t age, size_t limit, uint16_t *copied)
{
	struct wire_rr rr;
	for (; cnt > 0; cnt--) {
		size_t before = out->buf->len;
		if (wire_rr_read(data, len, pos, &rr) < 0)
			return -EPROTO;
		if (rr.type == DNS_OPT)
			continue;
		if (wire_rr_add(out, data, len, &rr, rr.ttl > age ? rr.ttl - age : 0) < 0)
			return -EPROTO;
		if (out->buf->err == -ENOMEM)
			return -ENOMEM;
		if (out->buf->err || out->buf->len > limit) {
			wire_out_cut(out, before);
			return 0;
		}
		++*copied;
	}
	return 1;
}

/* Passes over `cnt` records. */
static int skip_section(const uint8_t *data, size_t len, size_t *pos, unsigned cnt)
{
	struct wire_rr rr;
	for (; cnt > 0; cnt--) {
		if (wire_rr_read(data, len, pos, &rr) < 0)
			return -EPROTO;
	}
	return 1;
}

int dns_relay_write(const struct dns_query *query, const uint8_t *data, size_t len, uint32_t age,
        size_t limit, struct buf *out)
{
	struct wire_out wire;
	uint16_t counts[2] = {0, 0};
	if (len < HEADER_LEN)
		return -EPROTO;
	unsigned rcode = data[3] & 0xf, answers = wire_be16(data + 6);
	if (rcode != DNS_NOERROR || answers == 0)
		return dns_error_write(query, (enum dns_rcode)rcode, out);
	long end = questions_end(data, len);
	if (end < 0)
		return -EPROTO;
	size_t pos = (size_t)end;
	answer_begin(&wire, out, query, answer_flags(query));
	int rc = relay_section(&wire, data, len, &pos, answers, age, limit, &counts[0]);
	if (rc > 0)
		rc = skip_section(data, len, &pos, wire_be16(data + 8));
	if (rc > 0)
		rc = relay_section(&wire, data, len, &pos, wire_be16(data + 10), age, limit, &counts[1]);
	if (rc < 0)
		return rc;
	return answer_end(out, query, limit, counts, rc == 0);
}
