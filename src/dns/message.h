/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DNS messages (RFC 1035, EDNS of RFC 6891), bytes in, bytes out: what a
 * client asked, the answer to it, a question to a server, its reply. c-ares
 * judges what strangers send; what we send is written by wire.c, because
 * answers are relayed record by record as the server wrote them, whatever
 * their type, with other TTLs and another end (control.md 10.2, 10.4, 10.5).
 */
#ifndef CULVERT_DNS_MESSAGE_H
#define CULVERT_DNS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"

/* Bytes of the largest message, over TCP. */
#define DNS_MESSAGE_MAX 65535
/* Bytes of the largest UDP message that is read or sent without EDNS (control.md 10.5). */
#define DNS_UDP_MAX 4096
/* Bytes of a name on the wire (RFC 1035 2.3.4). */
#define DNS_NAME_MAX 255
/* Room for a name as text, terminator included; bytes that aren't printable become '?'. */
#define DNS_TEXT_MAX 256
/* TTL of answers of our own, seconds (control.md 10.3). */
#define DNS_LOCAL_TTL 30

/* Types that are told apart. */
enum dns_type { DNS_A = 1, DNS_CNAME = 5, DNS_SOA = 6, DNS_AAAA = 28, DNS_OPT = 41 };

/* Response codes that are told apart. */
enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
};

/* A question of class IN. */
struct dns_question {
	uint8_t name[DNS_NAME_MAX]; /* on the wire, case as it was sent */
	uint8_t name_len;
	uint16_t type;
};

/* What a client asked; a plain value. */
struct dns_query {
	uint16_t id;
	bool rd; /* recursion desired, copied into answers */
	bool cd; /* checking disabled, likewise */
	bool has_edns;
	uint16_t udp_size;    /* with EDNS: as sent, may be below 512 */
	uint8_t edns_version; /* with EDNS */
	bool dnssec_ok;       /* with EDNS */
	struct dns_question question;
	uint16_t cls; /* echoed; answers are of class IN whatever it is */
};

/* What dns_query_read() found. */
enum dns_verdict {
	DNS_SERVE,  /* the query is to be answered */
	DNS_REFUSE, /* the reply to send has been written */
	DNS_IGNORE, /* not worth an answer */
};

/*
 * Judges a client's message (control.md 10.2). On DNS_SERVE *ret_query is
 * set; on DNS_REFUSE `reply` (empty before) holds FORMERR, NOTIMP or SERVFAIL.
 * Out of memory: DNS_IGNORE.
 */
enum dns_verdict dns_query_read(
        const uint8_t *data, size_t len, struct dns_query *ret_query, struct buf *reply);

/* Bytes that an answer to this query may have. */
size_t dns_answer_limit(const struct dns_query *query, bool is_tcp);

/* Writes an answer without records: errors have no OPT (control.md 10.5). `out` is empty before. 0, -ENOMEM.
 */
int dns_error_write(const struct dns_query *query, enum dns_rcode rcode, struct buf *out);

/* An answer of our own. */
struct dns_local {
	const struct ip *ips; /* array of ip_cnt, all of the family that was asked for */
	size_t ip_cnt;
	const char *cname; /* the name that owns the addresses; NULL = the name asked for */
	uint32_t ttl;      /* seconds */
	bool is_foreign;   /* not of the mesh (hosts file, localhost): without AA */
};

/*
 * Writes NOERROR with AA and the addresses; when they don't fit `limit` bytes as
 * many as do, TC, and no OPT. `out` is empty before, its maximum at least
 * `limit`. 0, -ENOMEM, -EINVAL: cname is no name.
 */
int dns_local_write(
        const struct dns_query *query, const struct dns_local *local, size_t limit, struct buf *out);

/* A question from text. 0, or -EINVAL: not a name. */
int dns_question_set(struct dns_question *question, const char *name, uint16_t type);

/* The question's name as text without a dot at the end, "." for the root. Returns dst. */
char *dns_question_name(const struct dns_question *question, char dst[DNS_TEXT_MAX]);

/* The name as text, lower case, for comparison; -EINVAL when it holds bytes that a host name can't have, or
 * is the root. */
int dns_question_host(const struct dns_question *question, char dst[DNS_TEXT_MAX]);

/* Lower-case name of a type for a metric's label, "unknown" for one that has none. */
const char *dns_type_name(uint16_t type);

/* Writes a question to a server: RD, and an OPT of DNS_UDP_MAX bytes if `has_edns`. `out` is empty before. 0,
 * -ENOMEM.
 */
int dns_question_write(uint16_t id, const struct dns_question *question, bool has_edns, struct buf *out);

/* What a server replied. */
struct dns_reply {
	uint8_t rcode; /* the lower four bits */
	bool is_truncated;
	size_t answer_cnt; /* records in the answer section */
	uint32_t ttl;      /* how long it holds, seconds: the smallest of answers and additionals; of a reply
	                      without      answers what its SOA says (RFC 2308 5); 0 when there is none */
};

/*
 * Judges a server's message. -EBADMSG: not a reply to this question under this
 * id; wait on for the right one. -EPROTO: the right reply, but
 * broken. A truncated reply is not read beyond its header. 0, -ENOMEM.
 */
int dns_reply_read(const uint8_t *data, size_t len, uint16_t id, const struct dns_question *question,
        struct dns_reply *ret_reply);

/*
 * The addresses of a reply that dns_reply_read() took, of the question's type, at most `cap`; other
 * owners' too, as CNAME chains end in them. *ret_ttl is the smallest TTL of the chain, seconds. 0 (possibly
 * none), -EPROTO, -ENOMEM.
 */
int dns_reply_addrs(const uint8_t *data, size_t len, uint16_t type, struct ip *ips, size_t cap,
        size_t *ret_cnt, uint32_t *ret_ttl);

/*
 * Writes the answer to `query` from a server's reply that dns_reply_read() took: answers and
 * additionals with their TTLs less `age` seconds, no authority section, AA off, RA on. Whatever is not
 * NOERROR with answers becomes its code without records. Too large for `limit`: the records that fit, TC, no
 * OPT. `out` is empty before, its maximum at least `limit`. 0, -ENOMEM, -EPROTO.
 */
int dns_relay_write(const struct dns_query *query, const uint8_t *data, size_t len, uint32_t age,
        size_t limit, struct buf *out);

#endif
