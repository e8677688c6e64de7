/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A message as a client's query and as a server's reply: whatever we make of
 * it stays within its limit and is a message that we would take ourselves.
 */
#include <string.h>

#include "base/check.h"
#include "dns/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void relay(const struct dns_query *query, const uint8_t *data, size_t len, size_t limit)
{
	struct dns_reply reply;
	struct buf out;
	buf_init(&out, DNS_MESSAGE_MAX);
	if (dns_relay_write(query, data, len, 5, limit, &out) == 0) {
		ASSERT(out.len <= limit);
		/* Without TC it would not be read. */
		out.data[2] &= (uint8_t)~2;
		ASSERT(dns_reply_read(out.data, out.len, query->id, &query->question, &reply) == 0);
	}
	buf_done(&out);
}

/* The same bytes as a reply to the question that is in them. */
static void as_reply(const uint8_t *data, size_t len)
{
	struct dns_query query = {
	        .id = (uint16_t)(data[0] << 8 | data[1]), .cls = 1, .has_edns = true, .udp_size = 600};
	struct dns_query asked;
	struct dns_reply reply;
	struct buf ignored;
	struct ip ips[8];
	size_t cnt;
	uint32_t ttl;
	uint8_t copy[4096];
	if (len > sizeof(copy))
		return;
	/* Its question, read as a query's: other sections and flags put away. */
	memcpy(copy, data, len);
	copy[2] = copy[3] = 0;
	memset(copy + 6, 0, 6);
	buf_init(&ignored, DNS_MESSAGE_MAX);
	if (dns_query_read(copy, len, &asked, &ignored) == DNS_SERVE) {
		query.question = asked.question;
		if (dns_reply_read(data, len, query.id, &query.question, &reply) == 0 &&
		        !reply.is_truncated) {
			relay(&query, data, len, 600);
			relay(&query, data, len, DNS_MESSAGE_MAX);
		}
		(void)dns_reply_addrs(data, len, query.question.type, ips, 8, &cnt, &ttl);
	}
	buf_done(&ignored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dns_query query;
	struct buf reply;
	char text[DNS_TEXT_MAX];
	buf_init(&reply, DNS_MESSAGE_MAX);
	if (dns_query_read(data, len, &query, &reply) == DNS_SERVE) {
		ASSERT(strlen(dns_question_name(&query.question, text)) < DNS_TEXT_MAX);
		(void)dns_question_host(&query.question, text);
		buf_clear(&reply);
		ASSERT(dns_error_write(&query, DNS_SERVFAIL, &reply) == 0);
	}
	buf_done(&reply);
	if (len >= 12)
		as_reply(data, len);
	return 0;
}
